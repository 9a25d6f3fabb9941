//! Reasons why there is no run: each names its process.

use std::collections::BTreeSet;
use std::fmt;

use model::units::Nanos;
use serde_json::Value;

use crate::clock::TooWide;

/// A process by its rank and, where it is known, its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    pub rank: u32,
    /// Its machine: by its own report, or by the starter's plan.
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

/// Progress of a process before the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It has not connected.
    #[default]
    Absent,
    /// It prepares.
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
            Step::Welcomed => "was preparing",
            Step::Prepared => "was opening connections",
            Step::Ready => "was ready",
            Step::Finished => "had finished",
        }
    }
}

/// A reason why there is no run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("{who} did not connect within {:.0} s", after.as_secs_f64())]
    Missing { who: Who, after: Nanos },
    #[error("{who} was not ready within {:.0} s: it {}", after.as_secs_f64(), step.doing())]
    NotReady { who: Who, step: Step, after: Nanos },
    #[error(
        "{who} speaks version {theirs} of the protocol, the coordinator version {ours}: install the same runner on every machine"
    )]
    Protocol { who: Who, theirs: u32, ours: u32 },
    #[error(
        "{who} runs version {theirs}, the coordinator version {ours}: install the same runner on every machine"
    )]
    Version { who: Who, theirs: String, ours: String },
    #[error(
        "{who} counts {theirs} processes, the coordinator {ours}: start all of them with the same size"
    )]
    Size { who: Who, theirs: u32, ours: u32 },
    #[error("{first} and a second process on {second} have the same rank: give each its own")]
    Duplicate { first: Who, second: String },
    #[error(
        "{who} made another plan than rank 0: {differs}; the same command line, scenario, files and variables must be on every machine"
    )]
    Plan { who: Who, differs: String },
    #[error("{who} cannot take part: {}", reasons.join("; "))]
    Declined { who: Who, reasons: Vec<String> },
    #[error("{who} was lost before the start, when it {}: {why}", step.doing())]
    Lost { who: Who, step: Step, why: String },
    #[error("{who}: {cause}")]
    Clock { who: Who, cause: TooWide },
    #[error("{who} answered {answers} questions about its clock; {needed} are needed")]
    NoClock { who: Who, answers: u64, needed: u64 },
    #[error("{address} was turned away: {why}")]
    Stranger { address: String, why: String },
    #[error("stopped before the start: {0}")]
    Interrupted(String),
}

/// The number of differences of two plans to name.
const MOST_DIFFERENCES: usize = 4;
/// The longest value of a plan to show, in letters.
const LONGEST_VALUE: usize = 60;

/// The difference between an agent's plan and rank 0's: of their parts, else of their digests.
pub(super) fn differences(theirs: &Value, ours: &Value, digests: (&str, &str)) -> String {
    let mut all = Vec::new();
    let parts = |plan: &Value| plan.as_object().cloned().unwrap_or_default();
    let (theirs, ours) = (parts(theirs), parts(ours));
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for name in names {
        let (theirs, ours) = (theirs.get(name), ours.get(name));
        if theirs != ours {
            all.push(format!("{name} is {}, on rank 0 {}", value(theirs), value(ours)));
        }
    }
    let more = all.len().saturating_sub(MOST_DIFFERENCES);
    all.truncate(MOST_DIFFERENCES);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    if all.is_empty() {
        format!("its digest is {}, rank 0's is {}", digests.0, digests.1)
    } else {
        all.join("; ")
    }
}

/// A value in few letters, of one line.
fn value(value: Option<&Value>) -> String {
    let Some(value) = value else { return "not set".to_owned() };
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut letters = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut short: String = letters.by_ref().take(LONGEST_VALUE).collect();
    if letters.next().is_some() {
        short.push('…');
    }
    short
}
