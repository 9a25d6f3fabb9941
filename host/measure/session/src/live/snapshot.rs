//! The state of a run at one instant, for display: figures that do not change any more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cells::{Buckets, Quantiles};
use devices::{Facts, Sample};
use load::vitals::Load;
use model::exchange::Class;
use model::units::Nanos;
use scenario::plan::Amount;

model::names! {
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[repr(u8)]
    pub enum Phase {
        /// Requests are written and connections opened.
        Preparing = "preparing",
        /// Requests are sent that are not counted.
        WarmUp = "warm-up",
        /// Requests are sent that are counted.
        Measuring = "measuring",
        /// Nothing more is sent; waiting for the last replies.
        Draining = "draining",
        /// Everything is on record.
        Over = "over",
    }
    default Preparing
}

/// The way in which the run was stopped, if it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    #[default]
    No,
    /// Nothing more is sent.
    Finishing,
    /// Replies under way are abandoned.
    Aborting,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Failures {
    pub count: u64,
    /// The last message. Without secrets.
    pub latest: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Of the requests that ended in the last seconds ([`super::cells::RECENT_S`]).
    pub recent: Option<Quantiles>,
    /// Of all; absent without a sample.
    pub whole: Option<Quantiles>,
    pub buckets: Buckets,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Counts {
    pub phase: Phase,
    pub stopped: Stop,
    /// Time that it has been measuring; absent before.
    pub elapsed: Option<Nanos>,
    /// Requests that were ready before the first was sent.
    pub ready: u64,
    /// Warm-up requests that are over.
    pub warmup: u64,
    /// Measured requests that were due; absent where the plan does not say beforehand.
    pub due: Option<u64>,
    /// Measured requests that were given to a worker to send.
    pub given_out: u64,
    /// Requests whose replies have not ended, of the warm-up too.
    pub in_flight: u64,
    /// Due requests that wait, mostly for the cap; absent if due times are unknown.
    pub waiting: Option<u64>,
    /// Measured requests that are over and answered.
    pub answered: u64,
    /// Sessions of several requests that are over.
    pub sessions: u64,
    /// The number of ended requests that were handed to a socket.
    pub sent: u64,
    /// Ended requests that were cancelled on purpose.
    pub cancelled: u64,
    pub failed: BTreeMap<Class, Failures>,
    /// Tokens of the answered requests' prompts, where known.
    pub input_tokens: u64,
    /// Tokens of their answers, where known without a tokenizer.
    pub output_tokens: u64,
    /// Tokens of all replies since the measurement began: as reported in events, or one per event.
    pub tokens_seen: u64,
}

impl Counts {
    pub fn failures(&self) -> u64 {
        self.failed.values().map(|failures| failures.count).sum()
    }

    pub fn over(&self) -> u64 {
        self.answered + self.cancelled + self.failures()
    }
}

/// A run at one instant. Figures about ended exchanges lag by the length of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    pub counts: Counts,
    pub ttft: Latency,
    pub itl: Latency,
    /// Time per further token.
    pub tpot: Latency,
    pub e2e: Latency,
    /// Lateness of the requests' sending.
    pub send_lag: Latency,
    /// The devices and their last sample; absent before the first sample, and after the run.
    pub devices: Option<(Facts, Sample)>,
    /// The levels on the server's metrics page; absent if no page was read, or not the last one.
    pub server: Option<series::Levels>,
    /// Use of cores by this client's threads in the last second, if known. Of several processes
    /// the busiest thread of each name.
    pub load: Option<Load>,
    /// The processes that make the run, by rank; none for a run of one process.
    pub agents: Vec<Agent>,
}

model::names! {
    /// The standing of a process of a fleet, the worst first.
    pub enum Standing {
        /// It is gone for good.
        Lost = "lost",
        /// Nothing came of it for a while, or nothing yet.
        Silent = "silent",
        Reporting = "reporting",
        /// Its part of the run is over, and all of it is here.
        Finished = "finished",
    }
}

/// A process of a fleet, as it was heard last.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub rank: u32,
    /// Its machine's name; absent before it greeted.
    pub host: Option<String>,
    pub standing: Standing,
    pub age: Option<Nanos>,
    /// Measured requests of its own that were answered, and that failed.
    pub answered: u64,
    pub failed: u64,
    /// Requests of its own whose replies have not ended; absent where it is lost.
    pub in_flight: Option<u64>,
    /// Use of cores by its threads in its last second; absent if it does not say.
    pub load: Option<Load>,
}

impl Snapshot {
    /// The share of the measurement that is over, from 0 to 1.
    pub fn share(&self, amount: Amount) -> f64 {
        let share = match amount {
            Amount::Requests(requests) => self.counts.over() as f64 / requests.max(1) as f64,
            // The number of their requests is unknown.
            Amount::Sessions(sessions) => self.counts.sessions as f64 / sessions.max(1) as f64,
            Amount::Duration(span) => {
                let elapsed = self.counts.elapsed.unwrap_or_default();
                elapsed.as_secs_f64() / span.as_secs_f64().max(1e-9)
            }
        };
        share.min(1.0)
    }

    /// The estimated time left; absent if it cannot be estimated yet.
    pub fn left(&self, amount: Amount) -> Option<Nanos> {
        /// Too little data for an estimate.
        const EARLY: f64 = 0.02;
        let elapsed = self.counts.elapsed?;
        let share = self.share(amount);
        let left = match amount {
            Amount::Duration(span) => span.since(elapsed),
            Amount::Requests(_) | Amount::Sessions(_) if share > EARLY => {
                Nanos::from_secs_f64(elapsed.as_secs_f64() * (1.0 - share) / share)
            }
            Amount::Requests(_) | Amount::Sessions(_) => return None,
        };
        (share < 1.0 && self.counts.phase == Phase::Measuring).then_some(left)
    }
}
