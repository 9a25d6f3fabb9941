//! Steps of a plugin's author, with only the built binary and nothing from the repository: create a
//! project, build its component, inspect it. The Rust templates are built here; templates of other
//! languages need compilers that not every machine has.

mod record;
mod workshop;

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::support::languages::{C, JAVASCRIPT, Other, PYTHON};
use crate::support::process::{PROJECTS, light_projects, run_patiently, runner};

/// The binary as an author without a network calls it.
fn author(folder: &Path) -> Command {
    let mut command = runner();
    command.current_dir(folder);
    command.env("CARGO_TARGET_DIR", PROJECTS).env("CARGO_NET_OFFLINE", "true");
    if let Some(toolchain) = std::env::var_os("RUNNER_WASM_TOOLCHAIN") {
        command.env("RUNNER_WASM_TOOLCHAIN", toolchain);
    }
    command
}

/// Makes a project `mine` of a kind in a language.
fn create(folder: &Path, kind: &str, language: &str) {
    let new = ["plugin", "new", kind, "mine", "--lang", language];
    run_patiently(author(folder).args(new)).with_code(0);
}

/// The build of the project `mine` with a language's compiler.
fn build(folder: &Path, language: &Other, compiler: &Path) -> Command {
    let mut build = author(folder);
    build.env(language.variable, compiler).args(["plugin", "build", "mine"]);
    build
}

fn facts(command: &mut Command) -> Value {
    let ended = run_patiently(command.arg("--json")).with_code(0);
    serde_json::from_str(&ended.stdout).expect("one JSON object")
}

/// One test for the three kinds, because cargo would make them wait for each other anyway. Little
/// optimization leaves a dataset an import that it does not use.
#[test]
fn every_rust_template_becomes_a_component_that_is_let_in() {
    let interfaces = [
        ("backend", ["log", "types"].as_slice()),
        ("dataset", &["files", "log", "types"]),
        ("scorer", &["log", "types"]),
    ];
    for (kind, interfaces) in interfaces {
        let folder = tempfile::tempdir().unwrap();
        if kind == "backend" {
            light_projects(folder.path());
        }
        let name = format!("my-{kind}");
        let made = facts(author(folder.path()).args(["plugin", "new", kind, &name]));
        assert_eq!(made["language"], "rust");

        let built = facts(author(folder.path()).args(["plugin", "build", &name]));
        let path = built["path"].as_str().unwrap();
        assert_eq!(Path::new(path), Path::new(&name).join(format!("target/plugin/{name}.wasm")));
        let component = std::fs::read(folder.path().join(path)).unwrap();
        assert_eq!(built["size-bytes"], component.len());
        let place = folder.path().to_str().unwrap().as_bytes();
        assert!(
            !component.windows(place.len()).any(|bytes| bytes == place),
            "the component says where it was built"
        );

        let checked = facts(author(folder.path()).args(["plugin", "check", path]));
        assert_eq!(checked["loads"], true);
        assert_eq!((&checked["kind"], &checked["name"]), (&kind.into(), &name.as_str().into()));
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

        // The first thing that an author tries gives no warning. The release profile, for a named
        // target, shares its macros with the component's build.
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(folder.path().join(&name));
        cargo.args(["test", "--quiet", "--offline", "--target-dir", PROJECTS]);
        cargo.args(["--release", "--target", "host-tuple"]);
        cargo.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_LTO", "off");
        cargo.env("RUSTFLAGS", "-D warnings").env_remove("CARGO_ENCODED_RUSTFLAGS");
        run_patiently(&mut cargo).with_stdout(0, "2 passed");
    }
}

#[test]
fn a_module_that_does_not_know_the_interface_becomes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let module = wat::parse_str("(module (memory (export \"memory\") 1))").unwrap();
    std::fs::write(folder.path().join("bare.wasm"), module).unwrap();
    let build = ["plugin", "build", "bare.wasm", "--output", "made.wasm"];
    run_patiently(author(folder.path()).args(build)).with_stderr(4, "bare");
    assert!(!folder.path().join("made.wasm").exists());
    run_patiently(author(folder.path()).args(["plugin", "build", "--output", "x"])).with_code(2);
}

#[test]
fn a_compile_error_is_shown_with_the_exit_code_of_a_plugin() {
    let folder = tempfile::tempdir().unwrap();
    run_patiently(author(folder.path()).args(["plugin", "new", "scorer", "mine"])).with_code(0);
    std::fs::write(folder.path().join("mine/src/lib.rs"), "fn nothing() -> u8 {}\n").unwrap();
    let ended = run_patiently(author(folder.path()).args(["plugin", "build", "mine"]))
        .with_stderr(4, "mismatched types")
        .with_stderr(4, "error: cargo failed (exit status: 101)");
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_syntax_error_in_python_is_the_last_message() {
    let Some(compiler) = PYTHON.compiler() else { return };
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "scorer", "python");
    std::fs::write(folder.path().join("mine/scorer.py"), "def score(:\n    pass\n").unwrap();
    let ended = run_patiently(&mut build(folder.path(), &PYTHON, &compiler))
        .with_stderr(4, "\"scorer.py\", line 1")
        .with_stderr(4, "SyntaxError: invalid syntax");
    assert!(ended.stderr.lines().count() < 12, "{ended:#?}");
}

#[test]
fn a_missing_compiler_is_named_with_its_install_command() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    for (language, wanted) in [
        ("python", "python3 -m venv .venv && .venv/bin/pip install componentize-py=="),
        ("javascript", "npm install --global componentize-qjs@"),
        ("c", "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32"),
    ] {
        let project = folder.path().join(language);
        std::fs::create_dir(&project).unwrap();
        let manifest = format!("name = 'mine'\nkind = 'scorer'\nlanguage = '{language}'\n");
        std::fs::write(project.join("runner-plugin.toml"), manifest).unwrap();
        let mut command = author(folder.path());
        command.env("PATH", &empty).args(["plugin", "build", language]);
        for variable in ["COMPONENTIZE_PY", "COMPONENTIZE_QJS", "CLANG", "WASI_SDK_PATH"] {
            command.env_remove(variable);
        }
        let ended = run_patiently(&mut command).with_code(4);
        assert!(ended.stderr.contains(wanted), "{language}: {ended:#?}");
    }
    run_patiently(author(folder.path()).args(["plugin", "new", "scorer", "rust"])).with_code(0);
    let mut command = author(folder.path());
    command.env("PATH", &empty).env("RUNNER_WASM_TOOLCHAIN", "rustup");
    run_patiently(command.args(["plugin", "build", "rust"]))
        .with_stderr(4, "rustup target add wasm32-unknown-unknown");
}

/// The scores that a case of an author's scorer must show, if the scorer follows its configuration.
enum Shows {
    /// An error with this text, at the line that says `here: CASE`.
    Error(&'static str),
    Contract(&'static str),
    Scores(&'static str),
    /// These lines of the log.
    Log(&'static [&'static str]),
    /// Scores that are the same in every instance.
    Same,
}

/// Builds a scorer that follows its configuration, and checks the output of each of its cases.
fn check_cases(language: &Other, entry: &str, source: &str, cases: &[(&str, Shows)]) {
    let Some(compiler) = language.compiler() else { return };
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "scorer", language.word);
    let project = folder.path().join("mine");
    std::fs::write(project.join(entry), source).unwrap();
    std::fs::remove_dir_all(project.join("cases")).unwrap();
    for (case, _) in cases {
        let path = project.join("cases").join(case);
        std::fs::create_dir_all(&path).unwrap();
        let exchanges = format!(r#"[{{"id": "1", "reference": "{case}", "output": ""}}]"#);
        std::fs::write(path.join("exchanges.json"), exchanges).unwrap();
    }
    let built = facts(&mut build(folder.path(), language, &compiler));
    // The compiler would write another component. It is not called.
    let again = facts(&mut build(folder.path(), language, Path::new("/no/compiler")));
    assert_eq!(again["kept"], true, "{again:#}");
    assert_eq!(again["sha256"], built["sha256"]);
    run_patiently(author(folder.path()).args(["plugin", "test", "mine", "--bless"])).with_code(4);
    let ended = run_patiently(author(folder.path()).args(["plugin", "test", "mine", "--json"]));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    for (case, shows) in cases {
        let all = report["cases"].as_array().unwrap();
        let found = all.iter().find(|found| found["name"] == *case).unwrap();
        let scores = std::fs::read_to_string(project.join("cases").join(case).join("scores.json"));
        let scores = scores.unwrap_or_default();
        let holds = match shows {
            Shows::Error(words) => {
                let mark = format!("here: {case}");
                let line = source.lines().position(|line| line.ends_with(&mark)).unwrap() + 1;
                let wanted = format!("{words} at {case}, {entry} line {line}");
                found["failures"][0]["error"].as_str().unwrap_or_default().ends_with(&wanted)
            }
            Shows::Contract(words) | Shows::Scores(words) => scores.contains(words),
            Shows::Log(lines) => lines
                .iter()
                .all(|line| found["log"].as_array().unwrap().iter().any(|found| found == line)),
            Shows::Same => found["failures"].as_array().unwrap().is_empty() && !scores.is_empty(),
        };
        assert!(holds, "{} {case}: {found:#} {scores}", language.word);
    }
}

#[test]
fn python_errors_are_shown_and_exceptions_have_their_lines() {
    check_cases(
        &PYTHON,
        "scorer.py",
        include_str!("authoring/scorer.py"),
        &[
            ("prints", Shows::Log(&["info: from print", "error: from standard error"])),
            ("clocks", Shows::Scores(r#""time":0.0,"monotonic":0.0,"performance":0.0"#)),
            ("chance", Shows::Same),
            ("key", Shows::Error("KeyError: 'no such key'")),
            (
                "deeper",
                Shows::Error("TypeError: '<' not supported between instances of 'str' and 'int'"),
            ),
            ("exits", Shows::Error("SystemExit: a plugin must return a result or raise an error")),
            (
                "raises_exit",
                Shows::Error("SystemExit: a plugin must return a result or raise an error"),
            ),
            (
                "late",
                Shows::Error(
                    "ModuleNotFoundError: No module named 'datetime' (import modules at the top of a file: the component is \
                     a snapshot taken after that)",
                ),
            ),
            ("half", Shows::Error("ValueError: half \u{fffd} a character")),
            ("half_input", Shows::Contract("invalid-input: half \u{fffd} a character")),
            ("half_protocol", Shows::Contract("protocol: half \u{fffd} a character")),
            ("half_other", Shows::Contract("other: half \u{fffd} a character")),
        ],
    );
}

#[test]
fn javascript_errors_are_shown_and_exceptions_have_their_lines() {
    check_cases(
        &JAVASCRIPT,
        "plugin.js",
        include_str!("authoring/plugin.js"),
        &[
            (
                "prints",
                Shows::Log(&[
                    "info: while it loads",
                    "info: from log {\"a\":1,\"b\":\"2n\"}",
                    "warn: from warn",
                ]),
            ),
            ("clocks", Shows::Scores(r#""date":0.0,"performance":0.0"#)),
            ("chance", Shows::Same),
            ("property", Shows::Error("TypeError: cannot read property 'value' of undefined")),
            ("own", Shows::Error("RangeError: of my own")),
            (
                "arrival",
                Shows::Error(
                    "TypeError: sample 1: arrival: expected a number, found \"5n\", a bigint",
                ),
            ),
            (
                "unknown",
                Shows::Error("TypeError: framing: expected one of lines, whole, found lins"),
            ),
            ("forms", Shows::Scores(r#""equal":1.0"#)),
            ("half", Shows::Error("Error: half \u{fffd} a character")),
            ("half_input", Shows::Contract("invalid-input: half \u{fffd} a character")),
        ],
    );
}

/// The component states its sources, so that a test of it says something about the sources.
#[test]
fn a_component_of_other_sources_is_not_tested() {
    let Some(compiler) = C.compiler() else { return };
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "scorer", "c");
    let build = || facts(&mut build(folder.path(), &C, &compiler));
    let test = || run_patiently(author(folder.path()).args(["plugin", "test", "mine"]));
    let built = build();
    // The same sources give the same component.
    assert_eq!(build()["sha256"], built["sha256"]);
    test().with_code(0);
    let check = ["plugin", "check", "mine/target/plugin/mine.wasm"];
    assert!(facts(author(folder.path()).args(check))["stale"].is_null());

    let source = folder.path().join("mine/plugin.c");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, format!("{text}\n// changed\n")).unwrap();
    let ended = test().with_code(4);
    for words in [
        "`plugin.c` has changed since",
        "run `runner plugin build ",
        "or name the component with --plugin",
    ] {
        assert!(ended.stderr.contains(words), "{ended:#?}");
    }
    let stale = facts(author(folder.path()).args(check))["stale"].clone();
    assert!(
        stale
            .as_str()
            .unwrap()
            .starts_with("`plugin.c` has changed since; run `runner plugin build "),
        "{stale}"
    );
    // The file for a build server says so too.
    let junit = ["plugin", "test", "mine", "--format", "junit"];
    let ended = run_patiently(author(folder.path()).args(junit)).with_code(4);
    let report = quick_junit::Report::deserialize_from_str(&ended.stdout).unwrap();
    assert_eq!((report.tests, report.errors), (1, 1), "{}", ended.stdout);
    let named = ["plugin", "test", "mine", "--plugin", "mine/target/plugin/mine.wasm"];
    run_patiently(author(folder.path()).args(named)).with_code(0);
    build();
    test().with_code(0);
}

/// Spare samples and references of every SDK; the guest `unsteady-dataset` tests Rust's.
#[test]
fn sessions_and_references_are_the_same_in_every_language() {
    for (language, entry, source) in [
        (&PYTHON, "dataset.py", include_str!("authoring/dataset.py")),
        (&JAVASCRIPT, "plugin.js", include_str!("authoring/dataset.js")),
        (&C, "plugin.c", include_str!("authoring/dataset.c")),
    ] {
        let Some(compiler) = language.compiler() else { continue };
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), "dataset", language.word);
        let project = folder.path().join("mine");
        std::fs::write(project.join(entry), source).unwrap();
        std::fs::remove_dir_all(project.join("cases")).unwrap();
        for (case, text, digest) in [
            (
                "none",
                "count = 50\n",
                "bc21ff26ec1b6273bde50789ca5ae956684d58ae44f223f769f4043edd65e754  50 samples\n",
            ),
            (
                "two",
                "count = 50\nspare = 2\n",
                "8897ed5d989f0b6589bd22327f8633df1aa52445c6be008492db529175a8affb  50 samples\n",
            ),
        ] {
            let path = project.join("cases").join(case);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("case.toml"), text).unwrap();
            std::fs::write(path.join("digest.txt"), digest).unwrap();
        }
        run_patiently(&mut build(folder.path(), language, &compiler)).with_code(0);
        let bless = ["plugin", "test", "mine", "--bless"];
        run_patiently(author(folder.path()).args(bless)).with_code(0);
        let read = |file: &str| std::fs::read_to_string(project.join("cases").join(file)).unwrap();
        // Blessing wrote the samples, and had no reason to change the digests.
        assert!(read("none/digest.txt").starts_with("bc21ff26"), "{}", language.word);
        assert!(read("two/digest.txt").starts_with("8897ed5d"), "{}", language.word);
        let samples: Value = serde_json::from_str(&read("two/samples.json")).unwrap();
        let ids = |key: &str| -> Vec<&str> {
            let samples = samples[key].as_array().unwrap().iter();
            samples.map(|sample| sample["id"].as_str().unwrap()).collect()
        };
        assert_eq!((ids("spare"), ids("samples")), (vec!["1", "4"], vec!["7", "8", "9"]));
        // A text stays a text.
        assert_eq!(samples["samples"][0]["reference"], "7");
        assert_eq!(samples["samples"][1]["reference"], 8);
    }
}

#[test]
fn a_trap_of_c_names_the_functions_around_it() {
    let Some(compiler) = C.compiler() else { return };
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "scorer", "c");
    let source = folder.path().join("mine/plugin.c");
    let text = std::fs::read_to_string(&source).unwrap();
    let traps = text.replace("  judge->exchanges++;", "  __builtin_trap();");
    assert_ne!(text, traps);
    std::fs::write(source, traps).unwrap();
    run_patiently(&mut build(folder.path(), &C, &compiler)).with_code(0);
    let ended = run_patiently(author(folder.path()).args(["plugin", "test", "mine"])).with_code(4);
    let words = "it aborted without a message, in `exports_scorer_method_judge_score`";
    assert!(ended.stdout.contains(words), "{}", ended.stdout);
}

/// One interpreter at a time is compiled, on all processors: the sandbox bounds its time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a project of a backend in a language, has its cases put into it, builds it, and tests it.
/// Returns the project's folder; absent without the language's compiler.
fn builds_and_passes(
    language: &Other,
    files: &Path,
    put_cases: impl Fn(&Path),
) -> Option<tempfile::TempDir> {
    let compiler = language.compiler()?;
    let (entry, source) = match language.word {
        "python" => ("backend.py", "plugin.py"),
        "javascript" => ("plugin.js", "plugin.js"),
        _ => ("plugin.c", "plugin.c"),
    };
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), "backend", language.word);
    let project = folder.path().join("mine");
    std::fs::copy(files.join(source), project.join(entry)).unwrap();
    std::fs::remove_dir_all(project.join("cases")).unwrap();
    put_cases(&project.join("cases"));
    run_patiently(&mut build(folder.path(), language, &compiler)).with_code(0);
    run_patiently(author(folder.path()).args(["plugin", "test", "mine"])).with_code(0);
    Some(folder)
}

/// Messages of Protocol Buffers and calls of gRPC without generated code. Google's own library for
/// Python wrote the expected bytes, from `t.proto`.
#[test]
fn grpc_is_the_same_in_every_language() {
    const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/authoring/grpc");
    let files = Path::new(FILES);
    let cases = [
        (
            "answered",
            "reply.grpc",
            "[\n  {\"frame\":0,\"kind\":\"text\",\"text\":\"Hé -3 0.25 0.5 -7 200\",\"tokens\":2},\n  \
             {\"frame\":1,\"kind\":\"text\",\"text\":\"! 1099511627776 -1.5 2 9 0\",\"tokens\":1},\n  \
             {\"frame\":2,\"kind\":\"end\"}\n]\n",
            None,
        ),
        (
            "refused",
            "failed.grpc",
            "[\n  {\"frame\":0,\"kind\":\"failure\",\"reason\":\"overloaded\",\"message\":\
             \"RESOURCE_EXHAUSTED (8): the queue is full\"}\n]\n",
            None,
        ),
        (
            "broken",
            "broken.grpc",
            "[]\n",
            Some("protocol: a message of Protocol Buffers that ends in the middle of a field\n"),
        ),
    ];
    for language in [&PYTHON, &JAVASCRIPT, &C] {
        builds_and_passes(language, files, |folder| {
            for (case, reply, events, error) in cases {
                let path = folder.join(case);
                let write = |file: &str, text: &str| std::fs::write(path.join(file), text).unwrap();
                std::fs::create_dir_all(&path).unwrap();
                write("sample.json", r#"{"id": "1", "prompt": {"text": "Grüß dich"}}"#);
                write("events.json", events);
                if let Some(error) = error {
                    write("error.txt", error);
                }
                std::fs::copy(files.join("request.http"), path.join("request.http")).unwrap();
                std::fs::copy(files.join(reply), path.join("reply.grpc")).unwrap();
            }
        });
    }
}

/// Exchanges of several requests, and messages over a WebSocket.
#[test]
fn conversing_is_the_same_in_every_language() {
    const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/authoring/conversing");
    let files = Path::new(FILES);
    for language in [&PYTHON, &JAVASCRIPT, &C] {
        let built = builds_and_passes(language, files, |folder| {
            for case in ["steps", "socket", "prepare", "prepared"] {
                let path = folder.join(case);
                std::fs::create_dir_all(&path).unwrap();
                for file in std::fs::read_dir(files.join("cases").join(case)).unwrap() {
                    let file = file.unwrap();
                    std::fs::copy(file.path(), path.join(file.file_name())).unwrap();
                }
            }
        });
        if let Some(folder) = built {
            workshop::demands_each_part(folder.path(), language.word);
        }
    }
}
