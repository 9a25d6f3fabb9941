//! What a plugin's author does, step by step, with only the built binary and nothing from the repository: create a
//! project, build its component, inspect it. The Rust templates are built here; those of other languages need
//! compilers that not every machine has.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::process::{PROJECTS, run_patiently, runner};

/// The binary as an author without a network calls it.
fn author(folder: &Path) -> Command {
    let mut command = runner();
    command.current_dir(folder);
    command
        .env("CARGO_TARGET_DIR", PROJECTS)
        .env("CARGO_NET_OFFLINE", "true");
    if let Some(toolchain) = std::env::var_os("RUNNER_WASM_TOOLCHAIN") {
        command.env("RUNNER_WASM_TOOLCHAIN", toolchain);
    }
    command
}

fn facts(command: &mut Command) -> Value {
    let ended = run_patiently(command.arg("--json")).with_code(0);
    serde_json::from_str(&ended.stdout).expect("one JSON object")
}

/// One test for the three kinds, because cargo would make them wait for each other anyway.
#[test]
fn every_rust_template_becomes_a_component_that_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let interfaces = [
        ("backend", ["log", "types"].as_slice()),
        ("dataset", &["files", "log", "types"]),
        ("scorer", &["log", "types"]),
    ];
    for (kind, interfaces) in interfaces {
        let name = format!("my-{kind}");
        let made = facts(author(folder.path()).args(["plugin", "new", kind, &name]));
        assert_eq!(made["language"], "rust");

        let built = facts(author(folder.path()).args(["plugin", "build", &name]));
        let path = built["path"].as_str().unwrap();
        assert_eq!(
            Path::new(path),
            Path::new(&name).join(format!("target/plugin/{name}.wasm"))
        );
        let component = std::fs::read(folder.path().join(path)).unwrap();
        assert_eq!(built["size-bytes"], component.len());
        let place = folder.path().to_str().unwrap().as_bytes();
        assert!(
            !component.windows(place.len()).any(|bytes| bytes == place),
            "the component says where it was built"
        );

        let checked = facts(author(folder.path()).args(["plugin", "check", path]));
        assert_eq!(checked["loads"], true);
        assert_eq!(
            (&checked["kind"], &checked["name"]),
            (&kind.into(), &name.as_str().into())
        );
        assert_eq!(checked["sha256"], built["sha256"]);
        assert_eq!(checked["config-keys"].as_array().unwrap().len(), 1);
        let imports: Vec<&str> = (checked["imports"].as_array().unwrap().iter())
            .map(|import| import["name"].as_str().unwrap())
            .filter_map(|name| name.strip_prefix("runner:plugin/")?.split('@').next())
            .collect();
        assert_eq!(imports.len(), checked["imports"].as_array().unwrap().len());
        for import in &imports {
            assert!(interfaces.contains(import), "{kind}: {import}");
        }

        run_patiently(author(folder.path()).args(["plugin", "test", &name])).with_code(0);

        // The module alone, as another tool would have made it, becomes the same component.
        let module = format!("{PROJECTS}/wasm32-unknown-unknown/release/{kind}_my_{kind}.wasm");
        std::fs::copy(module, folder.path().join("mine.core.wasm")).unwrap();
        let wrapped = facts(author(folder.path()).args(["plugin", "build", "mine.core.wasm"]));
        assert_eq!(wrapped["path"], "mine.component.wasm");
        assert_eq!(wrapped["sha256"], built["sha256"]);

        // The first thing that an author tries gives no warning.
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(folder.path().join(&name));
        cargo.args(["test", "--quiet", "--offline", "--target-dir", PROJECTS]);
        cargo
            .env("RUSTFLAGS", "-D warnings")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        let tested = run_patiently(&mut cargo).with_code(0);
        assert!(tested.stdout.contains("2 passed"), "{tested:#?}");
    }
}

#[test]
fn a_module_that_does_not_know_the_interface_becomes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let module = wat::parse_str("(module (memory (export \"memory\") 1))").unwrap();
    std::fs::write(folder.path().join("bare.wasm"), module).unwrap();
    let build = ["plugin", "build", "bare.wasm", "--output", "made.wasm"];
    let ended = run_patiently(author(folder.path()).args(build)).with_code(4);
    assert!(ended.stderr.contains("bare"), "{ended:#?}");
    assert!(!folder.path().join("made.wasm").exists());
    run_patiently(author(folder.path()).args(["plugin", "build", "--output", "x"])).with_code(2);
}

#[test]
fn what_does_not_compile_says_why_and_ends_with_the_code_of_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    run_patiently(author(folder.path()).args(["plugin", "new", "scorer", "mine"])).with_code(0);
    let source = folder.path().join("mine/src/lib.rs");
    std::fs::write(source, "fn nothing() -> u8 {}\n").unwrap();
    let ended = run_patiently(author(folder.path()).args(["plugin", "build", "mine"])).with_code(4);
    assert!(ended.stderr.contains("mismatched types"), "{ended:#?}");
    assert!(
        ended
            .stderr
            .contains("error: cargo failed (exit status: 101)"),
        "{ended:#?}"
    );
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_compiler_that_is_missing_is_named_with_the_line_that_installs_it() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    for (language, wanted) in [
        (
            "python",
            "python3 -m venv .venv && .venv/bin/pip install componentize-py==",
        ),
        ("javascript", "npm install --global componentize-qjs@"),
        (
            "c",
            "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32",
        ),
    ] {
        let project = folder.path().join(language);
        std::fs::create_dir(&project).unwrap();
        let manifest = format!("name = 'mine'\nkind = 'scorer'\nlanguage = '{language}'\n");
        std::fs::write(project.join("runner-plugin.toml"), manifest).unwrap();
        let mut command = author(folder.path());
        command
            .env("PATH", &empty)
            .args(["plugin", "build", language]);
        for variable in [
            "COMPONENTIZE_PY",
            "COMPONENTIZE_QJS",
            "CLANG",
            "WASI_SDK_PATH",
        ] {
            command.env_remove(variable);
        }
        let ended = run_patiently(&mut command).with_code(4);
        assert!(ended.stderr.contains(wanted), "{language}: {ended:#?}");
    }
    run_patiently(author(folder.path()).args(["plugin", "new", "scorer", "rust"])).with_code(0);
    let mut command = author(folder.path());
    command
        .env("PATH", &empty)
        .env("RUNNER_WASM_TOOLCHAIN", "rustup");
    let ended = run_patiently(command.args(["plugin", "build", "rust"])).with_code(4);
    assert!(
        ended
            .stderr
            .contains("rustup target add wasm32-unknown-unknown"),
        "{ended:#?}"
    );
}
