//! Checks of the documents against the tree: links lead to files, and every shipped file is named.
//! `cargo xtask test` runs the commands of the README and of the guide.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The documents that are written for people.
#[rustfmt::skip]
const DOCUMENTS: [&str; 33] = [
    "README.md", ".github/CONTRIBUTING.md", ".github/STYLE.md", "host/ARCHITECTURE.md",
    "host/guide/src/SUMMARY.md", "host/guide/src/auditing.md", "host/guide/src/backends.md",
    "host/guide/src/ci.md", "host/guide/src/coming-from.md", "host/guide/src/comparing.md",
    "host/guide/src/connections.md", "host/guide/src/datasets.md", "host/guide/src/devices.md",
    "host/guide/src/findings.md", "host/guide/src/fleets.md", "host/guide/src/labs.md",
    "host/guide/src/load.md", "host/guide/src/mock.md", "host/guide/src/monitoring.md",
    "host/guide/src/plugins.md", "host/guide/src/reference/plugin-cases.md",
    "host/guide/src/reports.md", "host/guide/src/results.md", "host/guide/src/scenarios.md",
    "host/guide/src/scorers.md", "host/guide/src/searching.md", "host/guide/src/start.md",
    "host/guide/src/uncertainty.md", "host/guide/src/verify.md", "plugins/guide/README.md",
    "plugins/guide/backend.md", "plugins/guide/dataset.md", "plugins/guide/scorer.md",
];

/// The targets of links: the text between `[text](` and `)`.
fn links(markdown: &str) -> Vec<&str> {
    markdown.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

/// Words in backticks, outside of fenced blocks.
fn code_spans(markdown: &str) -> Vec<&str> {
    markdown.split("```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2)).collect()
}

fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).expect("the folder exists") {
        let entry = entry.expect("it can be read");
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(files(&path, extension));
        } else if path.ends_with(extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn paths_in_prose_exist() {
    let tops = ["host/", "wit/", "plugins/", "scenarios/", "tests/", ".ci/"];
    for document in DOCUMENTS {
        let text = read(document);
        for span in code_spans(&text) {
            // `path/to/file.rs::item` names a function or a constant in that file.
            let (path, item) = span.split_once("::").unwrap_or((span, ""));
            let is_path = tops.iter().any(|top| path.starts_with(top))
                && !path.contains([' ', '*', '{', '…'])
                && !path.contains("NAME")
                && !path.contains("TARGET");
            if !is_path {
                continue;
            }
            assert!(root().join(path).exists(), "{document} names `{path}`, which is not there");
            if !item.is_empty() {
                let source = read(path);
                let known = ["fn ", "const ", "struct ", "enum "]
                    .iter()
                    .any(|word| source.contains(&format!("{word}{item}")));
                assert!(known, "{document} names `{span}`, but {path} has no `{item}`");
            }
        }
    }
}

#[test]
fn every_shipped_file_is_named() {
    let text = read("host/guide/src/start.md");
    for kind in ["backends", "datasets", "scorers"] {
        for manifest in files(&format!("plugins/{kind}"), "/Cargo.toml") {
            let is_plugin = read(&manifest).contains("cdylib");
            let name = manifest.split('/').nth(2).expect("plugins/KIND/NAME/Cargo.toml");
            let plugin = format!("{kind}/{name}.wasm");
            assert!(
                !is_plugin || text.contains(&plugin),
                "host/guide/src/start.md does not name `{plugin}`"
            );
        }
    }
    let scenarios = files("scenarios", ".toml").into_iter();
    // Cases and clients to verify are listed by `runner verify --list`.
    for scenario in scenarios.filter(|name| !name.starts_with("scenarios/conformance/")) {
        assert!(text.contains(&scenario), "host/guide/src/start.md does not name `{scenario}`");
    }
}

#[test]
fn the_two_commands_stand_first() {
    let text = read("README.md");
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("cargo ")).collect();
    assert_eq!(commands[..2], ["cargo xtask demo", "cargo xtask test"]);
}

/// The pages that a file links to, as paths below the guide's sources.
fn pages(text: &str, folder: &str) -> Vec<String> {
    links(text)
        .into_iter()
        .filter_map(|link| link.strip_prefix(folder))
        .filter(|page| page.ends_with(".md"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_table_of_the_guide_is_its_summary() {
    let readme = read("README.md");
    let (_, guide) = readme.split_once("## The guide").expect("a chapter on the guide");
    let guide = guide.split("\n## ").next().unwrap_or_default();
    assert_eq!(pages(guide, "host/guide/src/"), pages(&read("host/guide/src/SUMMARY.md"), ""));
}

#[test]
fn the_guide_has_every_finding() {
    let source = read("host/measure/result/src/finding.rs");
    let (_, ids) = source.split_once("pub enum Id {").expect("the ids of findings");
    let (ids, _) = ids.split_once("\n    }").expect("the end of the ids");
    let page = read("host/guide/src/findings.md");
    for id in ids.split('"').skip(1).step_by(2) {
        assert!(page.contains(&format!("`{id}`")), "findings.md does not name `{id}`");
    }
}

#[test]
fn the_plugins_are_counted() {
    let readme = read("README.md");
    for kind in ["backends", "datasets", "scorers"] {
        let manifests = files(&format!("plugins/{kind}"), "/Cargo.toml").into_iter();
        let ships = |path: &String| read(path).contains("cdylib");
        let count = format!("{} {kind}", manifests.filter(ships).count());
        assert!(readme.contains(&count), "README.md does not say `{count}`");
    }
}
