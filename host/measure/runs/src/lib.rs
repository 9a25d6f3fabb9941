//! Run folders: the files of a run, and their forms. Records stream in and out, so a run of any
//! size fits in memory.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]

pub mod assessment;
pub mod environment;
#[allow(clippy::disallowed_methods, reason = "makes the folder above all runs, which people share")]
pub mod folder;
mod growing;
pub mod outlook;
pub mod probe;
#[allow(clippy::disallowed_methods, reason = "flushes by the wall")]
pub mod record;
pub mod series;
pub mod telemetry;

/// Exchanges for tests, equal to `result`'s.
#[cfg(test)]
#[path = "../../result/src/summary/fixture.rs"]
mod exchanges;

use crate::environment::Environment;
use crate::folder::Status;
use result::summary::Summary;
use scenario::plan::Plan;
use serde::{Deserialize, Serialize};

/// The place of a run among several repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Repeat {
    /// The name that the repeats of one scenario have in common, and nothing else has.
    pub group: String,
    /// The number of this one, from 1.
    pub number: u32,
    /// The planned number of repeats, or the most if they stop themselves.
    pub of: u32,
}

/// A run as its folder holds it, without its exchanges.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    pub folder: String,
    pub plan: Plan,
    pub environment: Option<Environment>,
    /// The end of the run; absent if it was killed or has not ended.
    pub status: Option<Status>,
    pub summary: Summary,
}
