//! What is seen of a plugin while a case runs: what came of it, and what it did wrong.

use super::expect::diff;
use super::format;
use super::report::{Checks, Failure};
use crate::PluginError;

/// After so many traps of damaged input, a case has said enough.
pub const TOLERATED: usize = 3;

/// Collects what a case sees.
pub struct Seen {
    /// What came, by the expectation's file.
    pub found: Vec<(&'static str, String)>,
    /// What the plugin did wrong.
    pub failures: Vec<Failure>,
    /// What was done.
    pub checks: Checks,
    /// Whether what did not come will not come: then its expectation must not be there.
    pub settled: bool,
}

impl Seen {
    /// Nothing yet.
    pub fn new() -> Self {
        Seen {
            found: Vec::new(),
            failures: Vec::new(),
            checks: Checks::default(),
            settled: true,
        }
    }

    /// Something that an expectation is about.
    pub fn found(&mut self, file: &'static str, text: String) {
        self.found.push((file, text));
    }

    /// The plugin returned an error or did wrong, and the case cannot go on.
    pub fn ended(&mut self, doing: &str, error: &PluginError) {
        match format::error(error) {
            Some(said) => self.found("error.txt", said),
            None => self.misbehaved(doing, error),
        }
    }

    /// The plugin trapped or broke its contract; what it would have given is not known.
    pub fn misbehaved(&mut self, doing: &str, error: &PluginError) {
        self.settled = false;
        self.failures.push(Failure::Misbehaved {
            doing: doing.to_owned(),
            error: error.to_string(),
        });
    }

    /// Whether a second time gave the same as the first; if not, notes how.
    pub fn same(&mut self, what: impl FnOnce() -> String, first: &str, second: &str) -> bool {
        if first == second {
            return true;
        }
        self.settled = false;
        self.failures.push(Failure::Unstable {
            what: what(),
            diff: diff(first, second),
        });
        false
    }

    /// The plugin gave what its contract forbids.
    pub fn breach(&mut self, what: String) {
        self.failures.push(Failure::Breach { what });
    }

    /// The case does not fit the plugin.
    pub fn misfit(&mut self, what: String) {
        self.settled = false;
        self.failures.push(Failure::Misfit { what });
    }
}
