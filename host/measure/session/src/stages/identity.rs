//! The identity of a run, drawn when it begins.

use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest, Sha256};

use model::identity::RunId;
use scenario::plan::Plan;

/// Draws the identity of a run. In virtual time, where each run must be the same, it follows from
/// the seed and the start of the run. So it does if the system has no random numbers.
pub(super) fn identity(plan: &Plan, started: &jiff::Timestamp, is_in_real_time: bool) -> RunId {
    let mut bytes = [0; 16];
    if !is_in_real_time || SystemRandom::new().fill(&mut bytes).is_err() {
        let part = plan.slice.map_or(0, |slice| slice.index);
        let digest = Sha256::digest(format!("{} {started} {part}", plan.load.seed));
        if let Some(first) = digest.first_chunk() {
            bytes = *first;
        }
    }
    RunId::new(bytes)
}
