//! The load machines that made a run together, where several did: the errors of their clocks, and
//! the lost ones.

use model::client::Client;

/// The processes of a fleet.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Fleet {
    /// Each process, by rank. Requests are dealt out in turn. In a closed loop or below a cap, they
    /// go with the users or slots that send them.
    pub agents: Vec<Agent>,
}

/// One process of a fleet.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Agent {
    /// Its rank, from 0.
    pub rank: u32,
    /// The host name of its machine.
    pub host: String,
    /// Measured requests whose records it sent.
    pub records: u64,
    /// The most by which its beginning may differ from the coordinator's start instant, in
    /// microseconds: the bound on the error of its clock. Absent if its clock was never measured.
    pub clock_bound_us: Option<f64>,
    /// The time at which its clock moved against the coordinator's by more than drift explains;
    /// absent if it never did.
    pub clock_moved: Option<Moved>,
    /// Its loss; absent if it finished.
    pub lost: Option<Lost>,
    /// True if it was lost, and the records of its own disk were taken in after the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merged: bool,
    /// The reason why its part of the run ended early, though it was not lost.
    pub error: Option<String>,
    /// Its performance as a client, if it was monitored.
    pub client: Option<Client>,
}

/// A clock that moved.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Moved {
    /// The last time at which it still agreed, in seconds since the measurement began.
    pub from_s: f64,
    /// The least by which it moved, in milliseconds.
    pub by_ms: f64,
}

/// An agent that was lost.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Lost {
    /// The time of its last message, in seconds since the measurement began.
    pub from_s: f64,
    /// The cause of the loss.
    pub why: String,
    /// Requests of its part that are not on record: whether they were sent is not known. Absent
    /// where the plan does not say how many they are.
    pub unknown: Option<u64>,
}

impl Agent {
    /// Names it in messages.
    pub fn name(&self) -> String {
        format!("agent {} on {}", self.rank, self.host)
    }
}
