//! A probe: one run of a search, and its outcome.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Load;
use crate::gather::Measured;
use crate::watch::Alarm;

/// A run to make.
#[model::apply(model::document!)]
pub struct Probe {
    /// Its number, from 1.
    pub number: u32,
    /// The kind of load.
    pub load: Load,
    /// Its amount.
    pub at: f64,
    /// Requests of the measurement.
    pub requests: u64,
    /// Seconds after which it sends no more requests, whatever their number; absent for no limit.
    pub seconds: Option<f64>,
    /// The run's seed, which no other run of the search has.
    pub seed: u64,
    /// The number of this run at this load, from 1. Its counts are added to the counts of the runs
    /// before.
    pub look: u32,
    /// The number of the attempt at it, from 1: a run that is not valid is made once more.
    pub attempt: u32,
    /// Its purpose.
    pub purpose: Purpose,
}

/// The purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To find a load that passes and one that fails, close enough for a curve between them.
    Bracket,
    /// To narrow the interval between them.
    Narrow,
    /// To try the lower end of the interval once more.
    Confirm,
}

/// The outcome of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The run is valid, and shows this.
    Measured(Measured),
    /// The run was stopped because its backlog grew.
    Stopped(Alarm),
    /// The run shows nothing of the server, as where this client was too slow.
    Invalid {
        /// The reason.
        why: String,
    },
}
