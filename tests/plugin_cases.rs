//! `runner plugin test` on the cases of all our plugins, and on plugins with faults.
//!
//! Transcripts are in `command_line/snapshots`, with times and digests removed.

mod faults;
mod folders;
mod forms;
mod ours;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::process::{Exit, run, runner};

/// A component that was built, by its name below `target/components`.
fn component(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components").join(name);
    assert!(path.is_file(), "{} is not built; run `cargo xtask plugins`", path.display());
    path
}

/// Some cases of a plugin of these tests.
struct Project {
    folder: tempfile::TempDir,
    component: PathBuf,
}

impl Project {
    fn new(guest: &str) -> Self {
        Project {
            folder: tempfile::tempdir().unwrap(),
            component: component(&format!("guests/{guest}.wasm")),
        }
    }

    /// A backend with this configuration and one case, `words`, whose reply is this.
    fn asking(config: &str, reply: &str, body: &[u8]) -> Self {
        let project = Project::new("unsteady-backend");
        project.write("cases/words/config.toml", config);
        project.write("cases/words/sample.json", SAMPLE);
        project.write(&format!("cases/words/{reply}"), body);
        project
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap()
    }

    /// `runner plugin test` in its folder, with these further words.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = runner();
        command.current_dir(self.folder.path()).args(["plugin", "test"]).args(words);
        command
    }

    /// Runs [`Self::command`] with the component named.
    fn test(&self, words: &[&str]) -> Exit {
        run(self.command(words).arg("--plugin").arg(&self.component))
    }

    /// Its report, once it ended with this code.
    fn report(&self, code: i32) -> serde_json::Value {
        let ended = self.test(&["--json"]).with_code(code);
        serde_json::from_str(&ended.stdout).unwrap()
    }
}

/// The limits that a message tells to raise can be raised.
#[test]
fn the_sandbox_flag_sets_the_limits() {
    let project = Project::asking("", "reply.lines", WORDS);
    let refused = project.test(&["--sandbox", "functions=1"]).with_code(4).stderr;
    assert!(
        refused.contains("at most 1 are allowed (raise `functions` under [sandbox]"),
        "{refused}"
    );
    assert!(refused.contains("with --sandbox KEY=VALUE"), "{refused}");
    let wrong = project.test(&["--sandbox", "functons=1,memory=much"]).with_code(2).stderr;
    assert!(
        wrong.contains("did you mean `functions`?") && wrong.contains("`sandbox.memory`"),
        "{wrong}"
    );
    project.test(&["--bless", "--sandbox", "functions=300000,memory=300MiB"]).with_code(0);
    let report = run(project
        .command(&["--json", "--sandbox", "memory=300MiB", "--plugin"])
        .arg(&project.component));
    let report: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["limits"]["memory-bytes"], 300 << 20);
}

const SAMPLE: &str = "{\"id\": \"1\", \"prompt\": {\"text\": \"Hello\"}}\n";
const WORDS: &[u8] = b"one\ntwo\nthree\nfour\nfive\nend\n";
