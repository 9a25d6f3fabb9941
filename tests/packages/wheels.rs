//! The wheel, installed by pip into an environment of its own: from the checkout, whose backend asks
//! a `cargo` that has made it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use package::Kind;
use tempfile::TempDir;

use super::{bare, made, measures, measuring, product};
use crate::support::lacking::{self, PYTHON_ITSELF, VENV};
use crate::support::process::{Mock, run};

/// Checks every file of a wheel against the list in it, which pip does not do.
const CHECK: &str = r#"
import base64, csv, hashlib, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()
record = next(name for name in names if name.endswith(".dist-info/RECORD"))
rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
assert sorted(row[0] for row in rows) == sorted(names), names
for name, digest, size in rows:
    if name != record:
        found = hashlib.sha256(wheel.read(name)).digest()
        assert digest == "sha256=" + base64.urlsafe_b64encode(found).rstrip(b"=").decode(), name
        assert int(size) == len(wheel.read(name)), name
"#;

#[test]
fn a_wheel_is_installed_by_pip_and_measures() {
    let (_folder, packages) = made(Kind::Wheel);
    let wheel = packages[0].to_str().unwrap();
    let has_tags = match product().target.is_static {
        true => wheel.contains("-py3-none-manylinux_2_17_") && wheel.contains(".musllinux_1_2_"),
        // Of the glibc that compiled it.
        false => wheel.contains("-py3-none-manylinux_2_") && !wheel.contains("musllinux"),
    };
    assert!(has_tags, "{wheel}");
    let mut ensurepip = bare("python3");
    if !lacking::has("python3", &PYTHON_ITSELF)
        || !lacking::can(ensurepip.args(["-c", "import ensurepip, venv"]), &VENV)
    {
        return;
    }
    run(bare("python3").args(["-c", CHECK, wheel])).with_code(0);
    let environment = TempDir::new().unwrap();
    let scripts = environment.path().join("bin");
    run(bare("python3").args(["-m", "venv"]).arg(environment.path())).with_code(0);
    let cargo = scripts.join("cargo");
    let made = format!(
        "#!/bin/sh\ncase $* in\n\
         'xtask dist') ;;\n\
         'xtask package wheel --binary target/dist/runner --output '*) cp '{wheel}' \"$7\" ;;\n\
         *) exit 1 ;;\nesac\n"
    );
    fs::write(&cargo, made).unwrap();
    fs::set_permissions(&cargo, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", scripts.display(), std::env::var("PATH").unwrap());
    let mut pip = bare(scripts.join("pip"));
    pip.args(["install", "--no-index", "--no-deps", "--no-cache-dir"]);
    pip.arg("--disable-pip-version-check").arg(&product().project.root);
    run(pip.env("PATH", path)).with_code(0);
    let mut pip = bare(scripts.join("pip"));
    let shown = run(pip.args(["show", "--files", "runner-llm"])).with_code(0);
    let mut files = vec![
        "../../../bin/runner".to_owned(),
        "licenses/LICENSE".to_owned(),
        "licenses/THIRD-PARTY.txt".to_owned(),
        "sboms/runner.cyclonedx.json".to_owned(),
    ];
    let module = product().project.root.join("host/python/src/runner_llm");
    if module.exists() {
        files.extend(modules(&module));
    }
    for file in files {
        let is_shown = shown.stdout.lines().any(|line| line.ends_with(&file));
        assert!(is_shown, "{file}: {shown:#?}");
    }
    let mock = Mock::start(&[]);
    let mut command = bare(scripts.join("runner"));
    measures(command.current_dir(&environment).args(measuring(&mock, "runs")));
}

/// The module's own Python files at its top.
fn modules(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".py")).map(|name| format!("runner_llm/{name}")).collect()
}
