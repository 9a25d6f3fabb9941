//! `runner record` on real processes: the traffic passes unchanged, and the recording has its load
//! and none of its words.
//!
//! - `dialects`: requests and replies of all shipped backends.
//! - `traffic`: faults, TLS, HTTP/2, sockets that behave badly, and bodies of other sizes.
//! - `workload`: a recorded trace is the trace, with faults too; sessions of chats.
//! - `secrets`: nothing of the traffic's words is on disk, in the log or in a core dump.

mod dialects;
mod secrets;
mod traffic;
mod workload;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::process::{Exit, Process, runner, words};
use crate::support::results::json_lines;

/// `runner record` as a process of its own.
pub struct Recorder {
    process: Process,
    pub url: String,
    folder: TempDir,
}

/// The end of a recording.
pub struct Recorded {
    pub exit: Exit,
    pub rows: Vec<Value>,
    pub sessions: Vec<Value>,
    folder: TempDir,
}

impl Recorder {
    pub fn start(to: &str, flags: &str) -> Self {
        Recorder::start_as(runner(), to, flags)
    }

    pub fn start_as(mut command: Command, to: &str, flags: &str) -> Self {
        let folder = TempDir::new().unwrap();
        command.args(words("record rows.jsonl --sessions sessions.jsonl --listen 127.0.0.1:0"));
        command.args(["--to", to]).args(words(flags)).current_dir(folder.path());
        let mut process = Process::start(&mut command);
        process.until("the recorder listens", |process| process.stdout().contains('\n'));
        let url = process.stdout().trim().rsplit(' ').next().unwrap().to_owned();
        Recorder { process, url, folder }
    }

    pub fn address(&self) -> &str {
        self.url.rsplit("//").next().unwrap()
    }

    pub fn rows(&self) -> PathBuf {
        self.folder.path().join("rows.jsonl")
    }

    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Waits until this many rows are on disk.
    #[track_caller]
    pub fn until_rows(&mut self, count: usize) {
        let path = self.rows();
        self.process.until("the rows are written", |_| lines(&path) >= count);
    }

    pub fn end(self) -> Recorded {
        self.process.signal("INT");
        let exit = self.process.end().with_code(0);
        let read = |name: &str| json_lines(self.folder.path().join(name));
        let (rows, sessions) = (read("rows.jsonl"), read("sessions.jsonl"));
        Recorded { exit, rows, sessions, folder: self.folder }
    }
}

impl Recorded {
    /// The line of the closing text with this count.
    #[track_caller]
    pub fn count(&self, text: &str) -> u64 {
        let line = self.exit.stderr.lines().find(|line| line.trim_end().ends_with(text));
        line.map_or(0, |line| line.split_whitespace().next().unwrap().parse().unwrap())
    }
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}
