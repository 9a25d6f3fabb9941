//! Why there is no run: each reason names the process that it is about.

use std::fmt;

use model::units::Nanos;

use crate::clock::TooWide;

/// A process by its rank and, where it is known, its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its rank.
    pub rank: u32,
    /// Its machine: as it said itself, or as the starter says it will be.
    pub host: Option<String>,
}

impl fmt::Display for Who {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(formatter, "rank {} ({host})", self.rank),
            None => write!(formatter, "rank {}", self.rank),
        }
    }
}

/// How far a process has come before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It has not connected.
    Absent,
    /// It fetches files and prepares.
    Welcomed,
    /// It has the plan and opens connections.
    Prepared,
    /// It waits for the start.
    Ready,
    /// Its part of the run has ended.
    Finished,
}

impl Step {
    fn doing(self) -> &'static str {
        match self {
            Step::Absent => "had not connected",
            Step::Welcomed => "was fetching files and preparing",
            Step::Prepared => "was opening connections",
            Step::Ready => "was ready",
            Step::Finished => "had finished",
        }
    }
}

/// A reason why there is no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// A process never came.
    #[error("{who} did not connect within {:.0} s", after.as_secs_f64())]
    Missing {
        /// Which one.
        who: Who,
        /// How long was waited.
        after: Nanos,
    },
    /// A process came and was never ready.
    #[error("{who} was not ready within {:.0} s: it {}", after.as_secs_f64(), step.doing())]
    NotReady {
        /// Which one.
        who: Who,
        /// How far it had come.
        step: Step,
        /// How long was waited.
        after: Nanos,
    },
    /// A process speaks another version of the protocol.
    #[error(
        "{who} speaks version {theirs} of the protocol, the coordinator version {ours}: install the same runner on every machine"
    )]
    Protocol {
        /// Which one.
        who: Who,
        /// Its version.
        theirs: u32,
        /// The coordinator's.
        ours: u32,
    },
    /// A process runs another version of the program.
    #[error(
        "{who} runs version {theirs}, the coordinator version {ours}: install the same runner on every machine"
    )]
    Version {
        /// Which one.
        who: Who,
        /// Its version.
        theirs: String,
        /// The coordinator's.
        ours: String,
    },
    /// A process counts another number of processes.
    #[error(
        "{who} counts {theirs} processes, the coordinator {ours}: start all of them with the same size"
    )]
    Size {
        /// Which one.
        who: Who,
        /// Its number.
        theirs: u32,
        /// The coordinator's.
        ours: u32,
    },
    /// Two processes have the same rank.
    #[error("{first} and a second process on {second} have the same rank: give each its own")]
    Duplicate {
        /// The one that came first.
        first: Who,
        /// The other's machine.
        second: String,
    },
    /// A process made another plan.
    #[error(
        "{who} made the plan {theirs}, rank 0 the plan {ours}: the same scenario, files and variables must be on every machine"
    )]
    Plan {
        /// Which one.
        who: Who,
        /// Its plan's digest.
        theirs: String,
        /// Rank 0's.
        ours: String,
    },
    /// A process cannot take part, as it says itself.
    #[error("{who} cannot take part: {}", reasons.join("; "))]
    Declined {
        /// Which one.
        who: Who,
        /// Why.
        reasons: Vec<String>,
    },
    /// A process's connection broke before the start and did not come back.
    #[error("{who} was lost before the start, when it {}: {why}", step.doing())]
    Lost {
        /// Which one.
        who: Who,
        /// How far it had come.
        step: Step,
        /// What broke.
        why: String,
    },
    /// A clock is not known exactly enough.
    #[error("{who}: {cause}")]
    Clock {
        /// Whose.
        who: Who,
        /// Both numbers.
        cause: TooWide,
    },
    /// A process answers no questions about its clock.
    #[error("{who} answered {answers} questions about its clock; {needed} are needed")]
    NoClock {
        /// Whose.
        who: Who,
        /// How many it answered.
        answers: u64,
        /// How many are needed.
        needed: u64,
    },
    /// Something connected that is no process of this run. It may be one of those that are missing.
    #[error("{address} was turned away: {why}")]
    Stranger {
        /// Its address.
        address: String,
        /// Why.
        why: String,
    },
    /// The run was stopped before it began.
    #[error("stopped before the start: {0}")]
    Interrupted(String),
}
