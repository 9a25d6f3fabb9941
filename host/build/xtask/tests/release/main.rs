//! Releases without the network: the files that `cargo xtask release` writes and refuses, the
//! permissions of the workflows, and the order in which the release workflow publishes.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "its files are the tests' own"
)]

mod bump;
mod publishing;
mod workflow;
mod workflows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files that a release reads and writes.
const FILES: [&str; 5] =
    ["Cargo.toml", "Cargo.lock", "tests/fuzz/Cargo.lock", "tests/wasi3/Cargo.lock", "CHANGELOG.md"];

/// A checkout with the files that a release reads, of version 0.1.0 with a changelog.
struct Scratch(TempDir);

impl Scratch {
    fn new(changelog: &str) -> Self {
        let scratch = Self(tempfile::tempdir().unwrap());
        let now = version(&root());
        for file in FILES {
            let text = read(root().join(file));
            let own = format!("version = \"{now}\"");
            scratch.write(file, &text.replace(&own, "version = \"0.1.0\""));
        }
        scratch.write("CHANGELOG.md", changelog);
        scratch.git(&["init", "--quiet"]);
        scratch.commit();
        scratch
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn read(&self, file: &str) -> String {
        read(self.path().join(file))
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .current_dir(self.path())
            .args(["-c", "user.name=Tester", "-c", "user.email=tester@example.org"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "A change"]);
    }

    fn xtask(&self, arguments: &[&str]) -> CommandOutput {
        xtask(self.path(), arguments)
    }
}

/// A command's exit code, output and errors.
#[derive(Debug)]
struct CommandOutput(Option<i32>, String, String);

impl CommandOutput {
    #[track_caller]
    fn well(self) -> String {
        assert_eq!((self.0, self.2.as_str()), (Some(0), ""));
        self.1
    }

    /// The errors of a command that wrote nothing else, by line.
    #[track_caller]
    fn badly(self) -> Vec<String> {
        assert_eq!((self.0, self.1.as_str()), (Some(1), ""));
        self.2.trim_start_matches("xtask: ").lines().map(str::to_owned).collect()
    }
}

fn xtask(root: &Path, arguments: &[&str]) -> CommandOutput {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = xtask.args(arguments).arg("--root").arg(root).output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    CommandOutput(output.status.code(), stdout, stderr)
}

fn version(root: &Path) -> String {
    xtask(root, &["release", "--show"]).well().trim().to_owned()
}
