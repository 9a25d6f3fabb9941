//! Observations of a plugin while a case runs: its output, and its misbehaviour.

use super::expect::diff;
use super::format;
use super::report::{Checks, Failure};
use crate::PluginError;
use crate::sandbox::LogBook;

/// A case stops after this many traps on damaged input.
pub const TOLERATED: usize = 3;

/// The most log lines of a case that are shown.
const LINES: usize = 40;

#[derive(Default)]
pub struct Observations {
    /// The output, by the expectation's file.
    pub found: Vec<(&'static str, String)>,
    pub failures: Vec<Failure>,
    pub checks: Checks,
    /// True if some output is not known: else an expectation without output must not exist.
    pub unsettled: bool,
    /// The receiver of the plugin's log lines.
    pub log: LogBook,
    /// Those that are worth showing, each once.
    pub lines: Vec<String>,
    /// True if a reply was read that has no end, although the server sent all of it without an
    /// error.
    pub endless: bool,
}

impl Observations {
    /// Takes the log since the last call. It is shown as long as the reply is intact; for damaged
    /// replies, only after a failure.
    pub fn keep_log(&mut self) {
        for line in self.log.drain() {
            if !self.lines.contains(&line) && self.lines.len() < LINES {
                self.lines.push(line);
            }
        }
    }

    pub fn found(&mut self, file: &'static str, text: String) {
        self.found.push((file, text));
    }

    /// The plugin returned an error or misbehaved, and the case cannot continue.
    pub fn ended(&mut self, doing: &str, error: &PluginError) {
        match format::error(error) {
            Some(message) => self.found("error.txt", message),
            None => self.misbehaved(doing, error),
        }
    }

    /// The plugin trapped or broke its contract; its output is unknown.
    pub fn misbehaved(&mut self, doing: &str, error: &PluginError) {
        self.unsettled = true;
        let doing = doing.to_owned();
        self.failures.push(Failure::Misbehaved { doing, error: error.to_string() });
    }

    /// Returns true if a repetition gave the same as the first time; if not, records the
    /// difference.
    pub fn same(&mut self, what: impl FnOnce() -> String, first: &str, second: &str) -> bool {
        if first == second {
            return true;
        }
        self.unsettled = true;
        self.failures.push(Failure::Unstable { what: what(), diff: diff(first, second) });
        false
    }

    /// The plugin's output violates its contract.
    pub fn breach(&mut self, what: String) {
        self.failures.push(Failure::Breach { what });
    }

    /// The case does not match the plugin.
    pub(crate) fn misfit(&mut self, what: String) {
        self.unsettled = true;
        self.failures.push(Failure::Misfit { what });
    }
}
