//! The first rule: an engine that fills is not overloaded.
//!
//! Until the first answers have ended, the backlog grows at the rate at which requests come. So
//! nothing is compared before the run has lasted eight times as long as the first answers took,
//! which are the shortest where answers differ. While longer ones are still to end, answers end
//! ever faster; where an engine is overloaded, they end as fast as it can. So a growth counts only
//! where no more answers end in the fourth quarter than in the second, but for chance. This holds
//! of every run, whether its replies are streamed or not.

use super::Progress;

/// Requests whose end gives the duration of the first answers.
const EARLY: u64 = 20;
/// The factor by which the run must have lasted longer than these answers.
const FILLED: f64 = 8.0;
/// Standard deviations of the difference between two numbers of answers that show that they end
/// ever faster.
const RISING: f64 = 2.0;

/// The times at which the first requests were due, and at which the same number had ended.
#[derive(Clone, Debug, Default)]
pub(super) struct First {
    due: Option<f64>,
    ended: Option<f64>,
}

impl First {
    /// Takes the progress at an instant, and the last instant.
    pub(super) fn sample(&mut self, progress: Progress, before: f64, at: f64) {
        if progress.due >= EARLY {
            self.due.get_or_insert(before);
        }
        if progress.ended >= EARLY {
            self.ended.get_or_insert(at);
        }
    }

    /// True if the run has lasted long enough by then to be compared.
    pub(super) fn is_past(&self, at: f64) -> bool {
        let took = self.ended.zip(self.due).map(|(ended, due)| ended - due);
        took.is_some_and(|took| at >= FILLED * took)
    }
}

/// True if more answers ended in the later quarter than in the earlier one, beyond chance.
pub(super) fn end_ever_faster(earlier: f64, later: f64) -> bool {
    later - earlier > RISING * (later + earlier).sqrt()
}
