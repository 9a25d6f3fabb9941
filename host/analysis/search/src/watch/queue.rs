//! The second rule: an engine that never queues is not overloaded.
//!
//! By Little's law, the rate times the usual wait for a first token are the requests that wait, and
//! these must be more than chance explains. The rule takes times to first token, which only
//! streamed replies have, so it cannot stand in for the first one.

use super::Progress;
use model::units::Nanos;

/// Seconds that requests lately waited for their first token, as far as known.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Option<f64>);

impl Queue {
    /// Takes the usual wait.
    pub(super) fn waits(&mut self, usual: Nanos) {
        self.0 = Some(usual.as_secs_f64());
    }

    /// True if no more requests are known to wait at an instant than chance explains.
    pub(super) fn is_short(&self, progress: Progress, at: f64, chance: f64) -> bool {
        let unsent = progress.due.saturating_sub(progress.sent) as f64;
        self.0.is_some_and(|wait| unsent + progress.due as f64 / at * wait <= chance)
    }
}
