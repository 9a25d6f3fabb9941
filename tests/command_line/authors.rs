//! `runner plugin`, as authors and users meet it. The transcripts leave out who compiled a
//! component, and how fast.

use std::path::Path;

use super::transcript;
use crate::support::process::{Exit, run, runner, words};

/// Rows of `check` and the like whose value is the machine's.
const CHANGING: [&str; 5] =
    ["size ", "sha256 ", "compile time ", "instance time ", "memory at rest "];

fn plugin(folder: &Path, line: &str) -> Exit {
    run(runner().current_dir(folder).arg("plugin").args(words(line)))
}

/// Stdout and stderr without the varying parts. Shipped plugins have the runner's version, which
/// each release changes.
fn shown(ended: &Exit) -> String {
    let lines = ended.stdout.lines().map(|line| {
        let changing = (CHANGING.iter()).find(|row| line.trim_start().starts_with(*row));
        let hex = |word: &str| word.len() == 12 && word.bytes().all(|b| b.is_ascii_hexdigit());
        match (changing, line.split_whitespace().find(|word| hex(word))) {
            (Some(row), _) => format!("  {}[…]\n", row),
            (None, Some(digest)) => line.replace(digest, "[  digest  ]") + "\n",
            (None, None) => format!("{line}\n"),
        }
    });
    let text: String = lines.chain([ended.stderr.clone()]).collect();
    text.replace(concat!(" ", env!("CARGO_PKG_VERSION")), " VERSION")
}

#[test]
fn a_component_that_is_let_in() {
    let folder = tempfile::tempdir().unwrap();
    transcript("plugin-check", &shown(&plugin(folder.path(), "check vllm").with_code(0)));
    let facts = plugin(folder.path(), "check backends/vllm.wasm --json").with_code(0).json();
    assert_eq!(facts["loads"], true);
    assert_eq!(facts["size-bytes"], shipped::plugin("backends/vllm.wasm").unwrap().len());
    assert!(facts["measured"]["compile-seconds"].as_f64().unwrap() > 0.0);
    assert!(facts["measured"]["instantiate-seconds"].as_f64().unwrap() > 0.0);
    assert!(facts["memory-at-rest-bytes"].as_u64().unwrap() >= 65_536);
    assert!(facts["config-schema"]["properties"]["route"].is_object());
}

#[test]
fn components_that_are_not_let_in() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    make("notes.wasm", b"no component");
    let stranger = r#"(component
        (import "acme:storage/disk@1.0.0" (instance))
        (import "wasi:http/outgoing-handler@0.2.0" (instance))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance))
    )"#;
    make("stranger.wasm", &wat::parse_str(stranger).unwrap());
    for name in ["notes", "stranger"] {
        let ended = plugin(folder.path(), &format!("check {name}.wasm")).with_code(4);
        transcript(&format!("plugin-check-{name}"), &shown(&ended));
    }
    let ended = plugin(folder.path(), "check stranger.wasm --json").with_code(4);
    let facts = ended.json();
    assert_eq!(facts["loads"], false);
    let allowed: Vec<bool> = (facts["imports"].as_array().unwrap().iter())
        .map(|import| import["allowed"].as_bool().unwrap())
        .collect();
    assert_eq!(allowed, [false, false, true]);
    assert!(ended.stderr.contains(facts["error"].as_str().unwrap()));
}

#[test]
fn plugin_info_shows_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["vllm", "sharegpt", "exact-match"] {
        let ended = plugin(folder.path(), &format!("info {name}")).with_code(0);
        transcript(&format!("plugin-info-{name}"), &shown(&ended));
    }
    plugin(folder.path(), "info vlm").with_stderr(4, "plugin `vlm` not found");
}

/// The example of every built-in plugin is part of a scenario, and shows its defaults.
#[test]
fn examples_can_be_copied() {
    let folder = tempfile::tempdir().unwrap();
    for name in shipped::plugins() {
        let facts = plugin(folder.path(), &format!("info {name} --json")).with_code(0).json();
        let example = facts["example"].as_str().unwrap();
        let read = scenario::Scenario::parse("example.toml", example);
        assert!(read.is_ok(), "{name}: {:?}\n{example}", read.err());
    }
}

#[test]
fn lists_the_plugins() {
    let folder = tempfile::tempdir().unwrap();
    transcript("plugin-list", &shown(&plugin(folder.path(), "list").with_code(0)));
    let mine = shipped::plugin("scorers/exact-match.wasm").unwrap();
    std::fs::write(folder.path().join("mine.wasm"), mine).unwrap();
    std::fs::write(folder.path().join("notes.wasm"), "no component").unwrap();
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    let facts = plugin(folder.path(), "list --plugin-path . --json").with_code(0).json();
    let files = |list: &str| -> Vec<String> {
        let entries = facts[list].as_array().unwrap().iter();
        entries.map(|entry| entry["plugin"].as_str().unwrap().to_owned()).collect()
    };
    let shipped = shipped::plugins().count();
    assert_eq!(files("plugins").len(), shipped + 1);
    assert!(files("plugins").contains(&"./mine.wasm".to_owned()));
    assert_eq!(files("unusable"), ["./notes.wasm"]);
}

#[test]
fn projects_that_are_not_made() {
    let folder = tempfile::tempdir().unwrap();
    plugin(folder.path(), "new scorer mine").with_code(0);
    let mut text = String::new();
    for (line, code) in [
        ("new scorer mine", 3),
        ("new scorer other --path mine/README.md", 3),
        ("new scorer My_Engine", 2),
        ("new judge mine", 2),
        ("new scorer other --lang go", 2),
    ] {
        let ended = plugin(folder.path(), line).with_code(code);
        text += &format!("$ runner plugin {line}\n{}", shown(&ended));
    }
    transcript("plugin-new-refused", &text);
}

#[test]
fn folders_that_are_no_projects() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, file: &str, text: &str| {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join(file), text).unwrap();
    };
    make("bare", "notes.txt", "");
    make("workspace", "Cargo.toml", "[workspace]\n");
    make("program", "Cargo.toml", "[package]\nname = 'a'\n");
    make("manifest", "runner-plugin.toml", "name = 'mine'\nkind = 'judge'\nlanguage = 'c'\n");
    let mut text = String::new();
    for name in ["absent", "bare", "workspace", "program", "manifest"] {
        let ended = plugin(folder.path(), &format!("build {name}")).with_code(3);
        text += &format!("$ runner plugin build {name}\n{}", shown(&ended));
    }
    transcript("plugin-build-refused", &text);
}

#[test]
fn names_of_files_cannot_steer_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("\u{1b}[2Jx\u{9b}");
    std::fs::create_dir_all(project.join("cases")).unwrap();
    std::fs::write(project.join("Cargo.toml"), "[package]\nname = 3\n").unwrap();
    for command in ["build", "test", "check", "info"] {
        let ended =
            run(runner().current_dir(folder.path()).args(["plugin", command]).arg(&project));
        assert!(
            !ended.stderr.contains(|c: char| c.is_control() && c != '\n'),
            "{command}: {:?}",
            ended.stderr
        );
        assert!(ended.stderr.contains(r"\u{1b}[2Jx"), "{command}: {:?}", ended.stderr);
    }
}
