//! Short runs and their results: parts of the output, and files.

use std::path::{Path, PathBuf};
use std::process::Command;

use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::process::{Exit, only_run, run, runner, words};

impl Exit {
    /// The same, after checking the exit code and a part of stdout.
    #[track_caller]
    pub fn with_stdout(self, code: i32, part: &str) -> Self {
        let ended = self.with_code(code);
        assert!(ended.stdout.contains(part), "no {part:?} in stdout: {ended:#?}");
        ended
    }

    /// The same, after checking the exit code and a part of stderr.
    #[track_caller]
    pub fn with_stderr(self, code: i32, part: &str) -> Self {
        let ended = self.with_code(code);
        assert!(ended.stderr.contains(part), "no {part:?} in stderr: {ended:#?}");
        ended
    }

    /// The JSON on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Stderr on one line: messages break where the terminal ends.
    pub fn message(&self) -> String {
        let words: Vec<&str> = self.stderr.split_whitespace().collect();
        words.join(" ").replace("│ ", "")
    }
}

/// A run of the random dataset against an engine.
pub fn random(url: &str, folder: &Path, flags: &str) -> Command {
    let mut command = runner();
    command.args(words("--backend vllm --dataset-name random")).args(words(flags));
    command.args(["--base-url", url]).current_dir(folder);
    command
}

/// Runs `runner report` for a run's folder.
#[track_caller]
pub fn report(run_folder: &Path, flags: &str) -> Exit {
    run(runner().arg("report").arg(run_folder).args(words(flags))).with_code(0)
}

/// The schema of that name, as `runner schema` prints it.
#[track_caller]
pub fn schema(name: &str) -> Validator {
    let schema = run(runner().args(["schema", name])).with_code(0).json();
    jsonschema::validator_for(&schema).unwrap()
}

/// Checks that a document follows the schema of that name.
#[track_caller]
pub fn follows(name: &str, document: &Value) {
    let errors: Vec<_> =
        schema(name).iter_errors(document).map(|error| error.to_string()).collect();
    assert_eq!(errors, [""; 0], "{name}: {document:#}");
}

#[track_caller]
pub fn json_file(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A file with a document of JSON on each line.
#[track_caller]
pub fn json_lines<T: DeserializeOwned>(path: impl AsRef<Path>) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The folder of the only run in a folder's `runs`.
#[track_caller]
pub fn run_folder(folder: &Path) -> PathBuf {
    only_run(&folder.join("runs")).unwrap()
}

/// A file of the only run in a folder's `runs`.
#[track_caller]
pub fn run_file(folder: &Path, name: &str) -> Value {
    json_file(run_folder(folder).join(name))
}

/// The folders of all runs in a folder's `runs`, the oldest first.
pub fn run_folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("runs")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

/// Copies the files of a folder to a new folder.
pub fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Every file of a folder with its bytes, decompressed.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let content = |path: PathBuf| {
        let mut bytes = std::fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "zst") {
            bytes = zstd::decode_all(&bytes[..]).unwrap();
        }
        (path, bytes)
    };
    entries.map(content).collect()
}
