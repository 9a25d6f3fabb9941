//! The step for GitHub Actions and the template for GitLab, in the repository of a user: the files
//! of `tests/ci/example`, taken as the systems take them, with their variables and files. Steps run
//! in the shell that the system starts; caches and artifacts are folders, and the API is a server
//! on this machine that keeps its requests.
//!
//! The engine is the mock, whose speed a commit changes.

mod api;
mod expression;
mod github;
mod gitlab;
mod scripts;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::lacking;
use crate::support::port;
use crate::support::process::runner;

/// The token that comments, which no file and no log may hold.
const TOKEN: &str = "ghs_aSecretOfTheTest";

/// The machine has the programs that the steps and these tests need.
fn is_equipped() -> bool {
    let mut yaml = Command::new("python3");
    lacking::has("curl", &lacking::CURL)
        && lacking::has("jq", &lacking::JQ)
        && lacking::can(yaml.args(["-c", "import yaml"]), &lacking::YAML)
}

/// The folder of the files that users take.
fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci").join(path)
}

fn yaml(path: &Path) -> Value {
    let read = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)";
    let read = Command::new("python3").args(["-c", read]).arg(path).output().unwrap();
    assert!(read.status.success(), "{path:?}: {read:?}");
    serde_json::from_slice(&read.stdout).unwrap()
}

/// A text of a file in YAML; absent is empty.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A user's repository as a system checked it out.
struct Checkout {
    folder: TempDir,
}

impl Checkout {
    /// The example, with an engine that takes this long to the first token and between two.
    fn new(ttft: &str, itl: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/ci/example/.");
        let copied = Command::new("cp").args(["-R", example]).arg(folder.path()).status();
        assert!(copied.unwrap().success());
        let port = port::free().to_string();
        let checkout = Checkout { folder };
        for file in ["engine.sh", ".github/workflows/benchmark.yml", ".gitlab-ci.yml"] {
            checkout.change(file, "8123", &port);
        }
        checkout.change("engine.sh", "--ttft 60ms", &format!("--ttft {ttft}"));
        checkout.change("engine.sh", "--itl 20ms", &format!("--itl {itl}"));
        // Half as long a run is enough for the tests of the steps.
        checkout.change("chat.toml", "requests = 60", "requests = 40");
        checkout.change("chat.toml", "rate = 30.0", "rate = 40.0");
        checkout
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.path().join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
    }

    fn result(&self, name: &str) -> String {
        let path = self.path().join("benchmark-results").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    }

    /// The files of the results that hold a text.
    fn holding(&self, what: &str) -> Vec<PathBuf> {
        let mut folders = vec![self.path().to_owned()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    if bytes.windows(what.len()).any(|part| part == what.as_bytes()) {
                        found.push(path);
                    }
                }
            }
        }
        found
    }
}

/// A shell as a system starts it: nothing of this process's environment but the usual variables.
fn shell(flags: &[&str], path: &[PathBuf]) -> Command {
    let mut shell = Command::new("bash");
    shell.args(flags).env_clear();
    for (name, value) in runner().get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    for name in ["HOME", "LANG", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            shell.env(name, value);
        }
    }
    let given = std::env::var_os("PATH").unwrap_or_default();
    let all = path.iter().cloned().chain(std::env::split_paths(&given));
    shell.env("PATH", std::env::join_paths(all).unwrap());
    shell
}

/// Returns the names of the tests that fail in a report of JUnit.
fn failing(xml: &str) -> Vec<String> {
    let report = quick_junit::Report::deserialize_from_str(xml).unwrap();
    let cases = report.test_suites.iter().flat_map(|suite| &suite.test_cases);
    cases
        .filter(|case| matches!(case.status, quick_junit::TestCaseStatus::NonSuccess { .. }))
        .map(|case| case.name.to_string())
        .collect()
}

/// Copies a file or a folder, and makes the folders above the copy.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    let copied = Command::new("cp").arg("-R").args([from, to]).status();
    assert!(copied.unwrap().success());
}
