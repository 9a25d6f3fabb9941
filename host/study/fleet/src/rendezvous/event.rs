//! Events of a run after its start, for the run's owner.

use model::units::Nanos;
use serde_json::Value;

use super::Who;
use crate::clock::ClockStep;

/// An event of the run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An agent is gone for good: its remaining requests count as not offered.
    Lost {
        who: Who,
        /// The time of its last message, by the coordinator's clock.
        from: Nanos,
        why: String,
    },
    /// A clock moved against the coordinator's.
    ClockMoved { who: Who, moved: ClockStep },
    /// An agent stopped the run, because somebody stopped it there.
    Interrupted { who: Who, why: String },
    /// Figures of an agent's part of the run.
    Live { rank: u32, figures: Value },
    /// An agent's part of the run has ended.
    Finished { rank: u32, ending: Value },
    /// Every agent has finished or is lost.
    Over,
}
