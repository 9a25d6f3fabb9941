//! The limit on a plugin's failures in a row, which ends the run, and the record of a failure. A
//! row follows the order of sent requests: calls at their time limit are late, so rare failures
//! gather in the order in which replies end.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::lock;
use crate::parts::RunError;
use load::pace::Signal;
use model::exchange::{Class, Outcome};
use plugins::PluginError;

/// Requests or replies that a plugin may spoil in a row before the run ends.
const TOLERATED: u64 = 10;
/// Longest message kept of a failure, in bytes.
const MESSAGE_BYTES: usize = 1_000;

/// Keeps the failures of a plugin, and ends the run when too many follow one another.
#[derive(Clone)]
pub struct FailureLimit {
    /// The places of the failures among all requests, or replies.
    failed: Arc<Mutex<BTreeSet<u64>>>,
    abort_reason: Arc<Mutex<Option<RunError>>>,
    signal: Signal,
}

impl FailureLimit {
    pub fn new(signal: Signal) -> Self {
        FailureLimit { failed: Arc::default(), abort_reason: Arc::default(), signal }
    }

    /// The same, but for failures of another kind of call, which are counted separately.
    pub(crate) fn with_own_count(&self) -> Self {
        FailureLimit { failed: Arc::default(), ..self.clone() }
    }

    /// The request or reply at this place failed because of the plugin.
    pub fn count(&self, place: u64, error: &PluginError) {
        let mut failed = lock(&self.failed);
        failed.insert(place);
        let after = (place + 1..).take_while(|place| failed.contains(place));
        let before = (0..place).rev().take_while(|place| failed.contains(place));
        if before.chain(after).take(TOLERATED as usize - 1).count() as u64 + 1 >= TOLERATED {
            let reason = format!("{error} ({TOLERATED} times in a row)");
            self.abort(RunError::Aborted(reason));
        }
    }

    /// Stops the run, for a reason that will not go away.
    pub fn abort(&self, reason: RunError) {
        lock(&self.abort_reason).get_or_insert(reason);
        self.signal.stop();
    }

    /// Returns why the run was ended, if it was. Returned once.
    pub(crate) fn abort_reason(&self) -> Option<RunError> {
        lock(&self.abort_reason).take()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_follow_the_order_of_requests() {
        let limit = FailureLimit::new(Signal::for_thread());
        let error = PluginError::Contract {
            plugin: "p".to_owned(),
            call: "decode",
            what: "it fails".to_owned(),
        };
        // Every fifth of 200, all of them after the others.
        (0..40).for_each(|late| limit.count(late * 5, &error));
        assert!(limit.abort_reason().is_none());
        for place in [201, 209, 203, 204, 202, 208, 207, 206, 205] {
            limit.count(place, &error);
            limit.count(place, &error);
            assert!(limit.abort_reason().is_none());
        }
        limit.count(210, &error);
        let reason = limit.abort_reason().unwrap().to_string();
        assert!(reason.ends_with("it fails (10 times in a row)"), "{reason}");
    }
}
