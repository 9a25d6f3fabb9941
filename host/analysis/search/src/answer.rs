//! The answer of a search: for each tier, the interval in which the highest load lies that holds,
//! and its evidence.
//!
//! The interval holds the highest load that a tier holds at, but for a probability that is half on
//! either side ([`Config::alpha`](crate::Config::alpha)). It follows from the
//! [`crossing`](statistics::crossing) of each objective over all loads, and from loads that were
//! decided by their own requests where there is none. It assumes that a tier that holds at a load
//! holds at every lower one. Where the runs contradict that, the answer says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Load;
use crate::level::Level;
use crate::slo::Tier;
use statistics::crossing::Curve;

/// The answer of a search.
#[model::apply(model::document!)]
pub struct Answer {
    /// The load that was varied.
    pub load: Load,
    /// The answer for each tier, in their order.
    pub tiers: Vec<Found>,
    /// Every load that was tried, from the lowest, confirmations after the load that they confirm.
    pub levels: Vec<Level>,
    /// The number of runs, valid or not.
    pub probes: u32,
    /// Requests of all valid runs.
    pub requests: u64,
}

/// The answer for a tier.
#[model::apply(model::document!)]
pub struct Found {
    /// The tier.
    pub tier: Tier,
    /// The lower end of the interval: the highest load that was shown to hold; absent if none was.
    /// It follows from all runs together, so it need not be a load that was tried.
    pub passed: Option<f64>,
    /// The upper end of the interval: the lowest load that was shown not to hold; absent if none
    /// was.
    pub failed: Option<f64>,
    /// The best estimate of the highest load that holds: the most likely load at which the share of
    /// bad requests is the allowed one. It lies within the interval, and needs none of its ends.
    /// Without `seems_to_fail` and `failed` it is the least that the highest load can be; absent if
    /// no load seems to hold.
    pub estimate: Option<f64>,
    /// The highest load tried that seems to hold by the share of its bad requests, shown or not.
    pub seems_to_hold: Option<f64>,
    /// The lowest load tried that seems not to.
    pub seems_to_fail: Option<f64>,
    /// For each objective, the regression over loads that the ends follow from; absent where the
    /// runs allow none, and the ends are loads that were decided by their own requests.
    pub curves: Vec<Option<Curve>>,
    /// The number of further requests that would make the interval as narrow as `width`, by the
    /// runs so far; absent if it is, or if nothing says how many.
    pub more: Option<u64>,
    /// The result of a run of its own at the lower end; absent if none was requested, or if there
    /// is no such end.
    pub again: Option<Again>,
    /// MLPerf's judgement of the highest load that seems to hold; absent if none was requested, or
    /// no load seems to hold.
    pub early_stopping: Option<EarlyStopping>,
    /// Loads between the two that could not be run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<f64>,
    /// Loads that failed although a higher one passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// The reason why the search for it ended.
    pub ended: Ended,
}

/// The result of a run of its own at the lower end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Again {
    /// Its requests alone show that the load holds.
    Shown,
    /// Its requests agree, and are too few to show it alone.
    Agrees,
    /// Its share of bad requests is more than allowed, and not by more than chance explains.
    Doubtful,
    /// It was not made, or is not valid.
    NotMade,
}

/// MLPerf's judgement of a load: [`early_stopping`](statistics::early_stopping), which takes
/// requests as independent, and assumes one look.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct EarlyStopping {
    /// The load.
    pub at: f64,
    /// Requests of all runs at the load.
    pub requests: u64,
    /// Further requests that would show that the load holds, if none of them missed a limit; 0 if
    /// the requests show it.
    pub missing: u64,
}

/// A load that failed below one that passed.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Violation {
    /// The load that failed.
    pub failed: f64,
    /// The higher load that passed.
    pub passed: f64,
}

/// The reason why the search for a tier's answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The interval is as narrow as the configured width.
    Narrow,
    /// Loads within the interval could not be run, or may have no more requests.
    Undecided,
    /// The highest load to be tried passed.
    Highest,
    /// The lowest load to be tried did not pass.
    Lowest,
    /// The number of loads or of requests was used up.
    Budget,
    /// The time was used up.
    Time,
    /// It is not complete: it is under way, or was interrupted.
    Open,
}

impl Found {
    /// The width of the interval, as a share of its lower end; absent if it has not both ends.
    pub fn width(&self) -> Option<f64> {
        Some(self.failed? / self.passed? - 1.0)
    }
}
