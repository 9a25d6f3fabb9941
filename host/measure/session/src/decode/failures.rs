//! Failures: how many in a row a plugin may cause before the run ends, and what is recorded of one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::parts::RunError;
use load::pace::Signal;
use model::exchange::{Class, Outcome};
use plugins::PluginError;

/// Requests or replies that a plugin may spoil in a row before the run ends.
const TOLERATED: u32 = 10;
/// Longest message kept of a failure, in bytes.
const MESSAGE_BYTES: usize = 1_000;

/// Counts consecutive failures of a plugin, and ends the run when there are too many.
#[derive(Clone)]
pub struct FailureLimit {
    in_a_row: Arc<AtomicU32>,
    abort_reason: Arc<Mutex<Option<RunError>>>,
    signal: Signal,
}

impl FailureLimit {
    /// For one run.
    pub fn new(signal: Signal) -> Self {
        FailureLimit { in_a_row: Arc::default(), abort_reason: Arc::default(), signal }
    }

    /// The same, but for failures of another kind of call, which are counted separately.
    pub(crate) fn with_own_count(&self) -> Self {
        FailureLimit { in_a_row: Arc::default(), ..self.clone() }
    }

    /// A request was written, or a reply read to its end.
    pub fn reset(&self) {
        if self.in_a_row.load(Ordering::Relaxed) != 0 {
            self.in_a_row.store(0, Ordering::Relaxed);
        }
    }

    /// It failed because of the plugin.
    pub fn count(&self, error: &PluginError) {
        if self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= TOLERATED {
            let reason = format!("{error} ({TOLERATED} times in a row)");
            self.abort(RunError::Aborted(reason));
        }
    }

    /// Stops the run, for a reason that will not go away.
    pub fn abort(&self, reason: RunError) {
        self.abort_reason
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .get_or_insert(reason);
        self.signal.stop();
    }

    /// Returns why the run was ended, if it was. Returned once.
    pub(crate) fn abort_reason(&self) -> Option<RunError> {
        self.abort_reason.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }
}

/// A failure without a reason from a server, with its message cut to a length fit for a record.
pub fn failed(class: Class, message: &str) -> Outcome {
    Outcome::Incomplete { class, reason: None, message: fit(message) }
}

/// A message cut to a length fit for a record.
pub fn fit(message: &str) -> String {
    let cut = message.floor_char_boundary(message.len().min(MESSAGE_BYTES));
    message[..cut].to_owned()
}
