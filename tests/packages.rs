//! Packages of the program under test, installed from nothing. Each one measures a mock engine.
//!
//! The packaged program lacks its debugging information, and needs this machine's C library.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::support::lacking::{self, DPKG, NIX, NPM, PODMAN, PYTHON_ITSELF};
use crate::support::process::{Mock, only_run, run, run_patiently};
use crate::support::pypi;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const VERSION: &str = env!("CARGO_PKG_VERSION");
const TEMPORARY: &str = env!("CARGO_TARGET_TMPDIR");

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    // maturin gives the file's name to the command.
    let stripped = Path::new(TEMPORARY).join("packaged/runner");
    fs::create_dir_all(stripped.parent().unwrap()).unwrap();
    let mut strip = Command::new("strip");
    run(strip.arg("-o").arg(&stripped).arg(env!("CARGO_BIN_EXE_runner"))).with_code(0);
    stripped
});

static MATURIN: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let project = fs::read_to_string(Path::new(ROOT).join("pyproject.toml")).unwrap();
    let project: toml::Table = project.parse().unwrap();
    let requirement = project["build-system"]["requires"][0].as_str().unwrap();
    pypi::python(&Path::new(TEMPORARY).join("maturin"), requirement)
});

/// The script that makes packages, with its output in a folder.
fn packing(kinds: &[&str], folder: &Path) -> Command {
    let mut script = Command::new("python3");
    script.arg(Path::new(ROOT).join("host/build/package/package.py")).args(kinds);
    script.arg("--output").arg(folder).env("PYTHONDONTWRITEBYTECODE", "1");
    script
}

/// The package of a kind, and the folder that it lies in.
fn made(kind: &str) -> Option<(TempDir, PathBuf)> {
    if !lacking::has("python3", &PYTHON_ITSELF) {
        return None;
    }
    let folder = TempDir::new().unwrap();
    run_patiently(packing(&[kind], folder.path()).arg("--program").arg(&*PROGRAM)).with_code(0);
    let package = only_file(folder.path());
    Some((folder, package))
}

fn only_file(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let first = files.next().unwrap();
    assert_eq!(files.next(), None);
    first
}

/// A command with nothing of this process's environment but the way to programs.
fn bare(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap());
    // A run's validity also depends on the machine's load.
    command.env("RUNNER_ALLOW_INVALID", "1");
    // Shared by all tests: a short run mostly compiles plugins.
    command.env("XDG_CACHE_HOME", Path::new(TEMPORARY).join("cache"));
    command
}

/// Arguments that measure a mock engine and leave the run in a folder.
fn measuring(mock: &Mock, runs: &str) -> Vec<String> {
    let line = format!(
        "--backend openai --base-url {} --dataset-name random --random-input-len 16 \
         --random-output-len 4 --num-prompts 4 --output-dir {runs}",
        mock.url
    );
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs a command that measures, and checks that it did.
#[track_caller]
fn measures(command: &mut Command) {
    let ended = run(command).with_code(0);
    let words = ended.stdout.lines().find_map(|line| line.strip_prefix("Successful requests:"));
    assert_eq!(words.map(str::trim), Some("4"), "{ended:#?}");
}

fn executable(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// Wheels of maturin whose `cargo rustc` is the program under test: from the script, and from pip.
#[test]
fn a_wheel_is_installed_by_pip_and_measures() {
    let Some(python) = pypi::present(&MATURIN) else { return };
    let folder = TempDir::new().unwrap();
    let [cargo, made, by_pip] = ["cargo", "made", "by-pip"].map(|name| folder.path().join(name));
    // maturin moves the program while it works, and other tests package it at the same time.
    let program = folder.path().join("compiled/runner");
    fs::create_dir(program.parent().unwrap()).unwrap();
    fs::copy(&*PROGRAM, &program).unwrap();
    let root = Path::new(ROOT).canonicalize().unwrap();
    let artifact = serde_json::json!({
        "reason": "compiler-artifact",
        "package_id": format!("path+file://{}/host/runner#{VERSION}", root.display()),
        "manifest_path": root.join("host/runner/Cargo.toml"),
        "target": {
            "kind": ["bin"], "crate_types": ["bin"], "name": "runner", "edition": "2024",
            "src_path": root.join("host/runner/src/main.rs"),
            "doc": true, "doctest": false, "test": false,
        },
        "profile": {
            "opt_level": "z", "debuginfo": 0, "debug_assertions": false,
            "overflow_checks": false, "test": false,
        },
        "features": [],
        "filenames": [&program],
        "executable": &program,
        "fresh": false,
    });
    let path = std::env::var("PATH").unwrap();
    let answers = format!(
        "#!/bin/sh\ncase $* in\n'xtask plugins --shipping') ;;\n\
         'rustc --profile '*' --bin runner') echo '{artifact}' ;;\n\
         metadata*|tree*) PATH='{path}' exec env -u CARGO cargo \"$@\" ;;\n*) exit 1 ;;\nesac\n"
    );
    executable(&cargo, &answers);
    let tools =
        format!("{}:{}:{path}", folder.path().display(), python.parent().unwrap().display());
    let mut script = packing(&["wheel", "archive"], &made);
    run_patiently(script.env("PATH", &tools).env("CARGO", &cargo)).with_code(0);
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]);
    pip.env("PATH", &tools).env("CARGO", &cargo).env("PYTHONDONTWRITEBYTECODE", "1");
    run_patiently(pip.arg("--wheel-dir").arg(&by_pip).arg(&root)).with_code(0);

    let files = fs::read_dir(&made).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<PathBuf> = files.collect();
    let ending =
        |end: &str| files.iter().find(|file| file.to_str().unwrap().ends_with(end)).unwrap();
    let bill: serde_json::Value =
        serde_json::from_slice(&fs::read(ending(".cdx.json")).unwrap()).unwrap();
    let components = bill["components"].as_array().unwrap();
    assert!(components.iter().any(|component| component["name"] == "wasmtime"));
    let mock = Mock::start(&[]);
    for wheel in [ending(".whl"), &only_file(&by_pip)] {
        let environment = TempDir::new().unwrap();
        let scripts = environment.path().join("bin");
        run(bare("python3").args(["-m", "venv"]).arg(environment.path())).with_code(0);
        let mut pip = bare(scripts.join("pip"));
        pip.args(["install", "--no-index", "--no-deps", "--disable-pip-version-check"]);
        run(pip.arg(wheel)).with_code(0);
        let version = run(bare(scripts.join("runner")).arg("--version")).with_code(0).stdout;
        assert_eq!(version, format!("runner {VERSION}\n"));
        let mut module = bare(scripts.join("python"));
        let version = run(module.args(["-m", "runner_llm", "--version"])).with_code(0).stdout;
        assert_eq!(version, format!("runner {VERSION}\n"));
        let mut pip = bare(scripts.join("pip"));
        let shown = run(pip.args(["show", "--files", "runner-llm"])).with_code(0).stdout;
        for file in ["licenses/LICENSE", "/THIRD-PARTY.txt", "sboms/runner.cyclonedx.json"] {
            assert!(shown.lines().any(|line| line.ends_with(file)), "{file}: {shown}");
        }
        let mut command = bare(scripts.join("runner"));
        measures(command.current_dir(&environment).args(measuring(&mock, "runs")));
    }
}

#[test]
fn an_archive_is_unpacked_and_measures() {
    let Some((folder, archive)) = made("archive") else { return };
    run(bare("tar").arg("-xzf").arg(&archive).current_dir(&folder)).with_code(0);
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.gz").unwrap();
    assert_eq!(name, format!("runner-{VERSION}-{}-unknown-linux-gnu", std::env::consts::ARCH));
    let unpacked = folder.path().join(name);
    for file in [
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "man/runner.1",
        "completions/runner.bash",
        "completions/runner.fish",
        "completions/_runner",
    ] {
        assert_ne!(unpacked.join(file).metadata().unwrap().len(), 0, "{file}");
    }
    // Licences of a crate of the program, and of a crate that only plugins have.
    let notices = fs::read_to_string(unpacked.join("THIRD-PARTY.txt")).unwrap();
    assert!(notices.contains("wasmtime v") && notices.contains("wit-bindgen v"));
    let mock = Mock::start(&[]);
    measures(bare("./runner").current_dir(unpacked).args(measuring(&mock, "runs")));
}

/// The addresses of archives in the manifest have the names of archives.
#[test]
fn binstall_finds_the_archives() {
    let manifest = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let metadata = &manifest["package"]["metadata"]["binstall"];
    let name = "{ name }-{ version }-{ target }";
    let url = format!("{{ repo }}/releases/download/v{{ version }}/{name}.tar.gz");
    assert_eq!(metadata["pkg-url"].as_str(), Some(url.as_str()));
    assert_eq!(metadata["bin-dir"].as_str(), Some(format!("{name}/{{ bin }}").as_str()));
}

/// Evaluates the flake of the sources, with functions that print their arguments.
#[test]
fn the_flake_has_a_package_and_an_app() {
    if !lacking::has("nix-instantiate", &NIX) {
        return;
    }
    let home = TempDir::new().unwrap();
    let expression = format!(
        "let made = (import {}/flake.nix).outputs {{ self = made; nixpkgs = {{ \
           lib.genAttrs = names: make: {{ system = make \"system\"; }}; \
           legacyPackages.system = {{ lld = null; lib.licenses.asl20 = null; \
             rustPlatform.buildRustPackage = it: {{ outPath = it.version + it.buildPhase; }}; }}; \
         }}; }}; in made.apps.system.default.program",
        Path::new(ROOT).canonicalize().unwrap().display()
    );
    let mut nix = bare("nix-instantiate");
    nix.env("HOME", home.path()).env("NIX_STATE_DIR", home.path().join("state"));
    nix.env("NIX_STORE_DIR", home.path().join("store"));
    let text = run(nix.args(["--eval", "--json", "--expr", &expression])).with_code(0).stdout;
    assert!(text.contains(VERSION) && text.contains("cargo xtask dist"), "{text}");
}

#[test]
fn an_installed_debian_package_measures() {
    if !lacking::has("dpkg-deb", &DPKG) || !lacking::may_mount() {
        return;
    }
    let Some((_folder, package)) = made("deb") else { return };
    let root = TempDir::new().unwrap();
    let root = root.path();
    for folder in ["var/lib/dpkg", "work", "dev", "proc"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let libraries = run(Command::new("ldd").arg(&*PROGRAM)).with_code(0).stdout;
    for library in libraries.split_whitespace().filter_map(|word| word.strip_prefix('/')) {
        let place = root.join(library);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(Path::new("/").join(library), place).unwrap();
    }
    let known = run(bare("dpkg-query").args(["--status", "libc6", "libgcc-s1"])).with_code(0);
    fs::write(root.join("var/lib/dpkg/status"), known.stdout).unwrap();
    let dpkg = |arguments: &[&str]| {
        let mut command = bare("dpkg");
        command.arg("--root").arg(root).arg("--force-script-chrootless");
        run(command.args(["--log", "/dev/null"]).args(arguments)).with_code(0)
    };
    dpkg(&["--install", package.to_str().unwrap()]);
    // A file that is as its digest says has no line.
    assert_eq!(dpkg(&["--verify", "runner-llm"]).stdout, "");
    let listed = dpkg(&["--listfiles", "runner-llm"]).stdout;
    for file in [
        "/usr/bin/runner",
        "/usr/share/man/man1/runner.1.gz",
        "/usr/share/bash-completion/completions/runner",
        "/usr/share/fish/vendor_completions.d/runner.fish",
        "/usr/share/zsh/vendor-completions/_runner",
        "/usr/share/doc/runner-llm/copyright",
        "/usr/share/doc/runner-llm/THIRD-PARTY.txt.gz",
    ] {
        assert!(listed.lines().any(|line| line == file), "{file}: {listed}");
    }
    let mock = Mock::start(&[]);
    let mut command = bare("unshare");
    // The installed program sees this root, and devices and processes as in a system that runs.
    let inside = "mount --rbind /dev \"$0/dev\" && mount --rbind /proc \"$0/proc\" \
                  && exec chroot \"$0\" /usr/bin/runner \"$@\"";
    command.env("XDG_CACHE_HOME", "/work/cache");
    command.args(["--mount", "sh", "-c", inside]).arg(root);
    measures(command.args(measuring(&mock, "/work/runs")));
    dpkg(&["--remove", "runner-llm"]);
    assert!(!root.join("usr/bin").exists() && !root.join("usr/share").exists());
}

#[test]
fn a_package_is_installed_by_npm_and_measures() {
    if !lacking::has("npm", &NPM) {
        return;
    }
    let Some((_folder, package)) = made("npm") else { return };
    let prefix = TempDir::new().unwrap();
    let mut npm = bare("npm");
    npm.env("HOME", prefix.path());
    npm.args(["install", "--global", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]);
    run(npm.arg("--prefix").arg(prefix.path()).arg(package)).with_code(0);
    let command = prefix.path().join("bin/runner");
    let mock = Mock::start(&[]);
    measures(bare(&command).current_dir(&prefix).args(measuring(&mock, "runs")));
    run(bare(&command).arg("nowhere.toml")).with_code(3);
}

#[test]
fn an_image_runs_as_its_own_user_on_a_root_that_is_read_only() {
    if !lacking::has("podman", &PODMAN) || !lacking::may_mount() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let [store, work] = ["store", "work"].map(|name| folder.path().join(name));
    let settings = folder.path().join("storage.conf");
    let [graph, state] = ["graph", "state"].map(|name| store.join(name).display().to_string());
    let text = format!("[storage]\ndriver = 'vfs'\ngraphroot = '{graph}'\nrunroot = '{state}'\n");
    fs::write(&settings, text).unwrap();
    let made = folder.path().join("made");
    let mut script = packing(&["image"], &made);
    script.arg("--program").arg(&*PROGRAM).env("CONTAINERS_STORAGE_CONF", &settings);
    run_patiently(&mut script).with_code(0);
    // An empty store: the image comes from the file.
    fs::remove_dir_all(&store).unwrap();
    fs::create_dir(&work).unwrap();
    chown(&work, Some(65_532), Some(65_532)).unwrap();
    let podman = |arguments: &[&str]| {
        let mut podman = bare("podman");
        podman.env("CONTAINERS_STORAGE_CONF", &settings).args(arguments);
        podman
    };
    let archive = only_file(&made);
    run(&mut podman(&["load", "--quiet", "--input", archive.to_str().unwrap()])).with_code(0);
    let image = format!("localhost/runner-llm:{VERSION}");
    let volume = format!("{}:/work", work.display());
    let mut contained = podman(&["--cgroup-manager=cgroupfs", "run", "--rm", "--read-only"]);
    contained.args(["--network=host", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]);
    contained.args(["--env=RUNNER_ALLOW_INVALID=1", "--volume", &volume, &image]);
    let mock = Mock::start(&[]);
    measures(contained.args(measuring(&mock, "runs")));
    assert_eq!(only_run(&work.join("runs")).unwrap().metadata().unwrap().uid(), 65_532);
}
