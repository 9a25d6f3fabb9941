//! The packages for npm, installed from files without a network, and the launcher between a caller
//! and the program.

use std::path::{Path, PathBuf};

use package::Kind;
use tempfile::TempDir;

use super::{bare, made, measures, measuring, product};
use crate::support::lacking::{self, NPM};
use crate::support::process::{Mock, Process, processes_with, run};

/// The command that npm installed, below a prefix of its own.
fn installed() -> Option<(TempDir, PathBuf)> {
    let (_folder, packages) = made(Kind::Npm);
    if !lacking::has("npm", &NPM) {
        return None;
    }
    let prefix = TempDir::new().unwrap();
    let mut npm = bare("npm");
    npm.env("HOME", prefix.path());
    npm.args(["install", "--global", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]);
    run(npm.arg("--prefix").arg(prefix.path()).args(packages)).with_code(0);
    let command = prefix.path().join("bin/runner");
    Some((prefix, command))
}

/// The way a mock engine ends that gets a signal through this command: its exit code, if it has one.
fn ended_by(signal: &str, command: &Path) -> Option<i32> {
    let mut process = Process::start(bare(command).args(["mock", "--port", "0"]));
    process.until("the mock engine listens", |it| it.stdout().contains('\n'));
    process.signal(signal);
    process.end().code
}

#[test]
fn packages_are_installed_by_npm_and_pass_signals_and_exit_codes() {
    let Some((prefix, command)) = installed() else {
        return;
    };
    let mock = Mock::start(&[]);
    let mut measure = bare(&command);
    measures(measure.current_dir(&prefix).args(measuring(&mock, "runs")));
    run(bare(&command).arg("nowhere.toml")).with_code(3);
    run(bare(&command).arg("--no-such-flag")).with_code(2);
    for signal in ["INT", "TERM", "HUP"] {
        let direct = ended_by(signal, &product().path);
        assert_eq!(ended_by(signal, &command), direct, "{signal}");
    }
    let left = processes_with(prefix.path().to_str().unwrap());
    assert!(left.is_empty(), "{left:?}");
    // The package of this machine's program is gone, as with `--omit=optional`.
    let programs = prefix.path().join("lib/node_modules");
    for entry in std::fs::read_dir(programs).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() != "runner-llm" {
            std::fs::remove_dir_all(path).unwrap();
        }
    }
    let ended = run(bare(&command).arg("--version")).with_code(127);
    assert!(ended.stderr.contains("is not installed"), "{ended:#?}");
}
