//! A run's result in the forms people and programs read: the text block, JSON, a table of exchanges
//! as CSV, the blocks and files of other tools, a page with charts, and each chart as a picture; and
//! the schemas of the JSON forms. Pure: a summary or exchanges in, text out.
//!
//! This crate owns these forms, the folder of a run and its records, and comparisons of runs. It leaves every figure
//! to `result`.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "tests write files and read clocks"
    )
)]

pub mod agreed;
pub mod assessment;
pub mod chart;
pub mod charts;
pub mod compare;
pub mod compared;
pub mod compatible;
pub mod csv;
pub mod document;
pub mod environment;
#[allow(
    clippy::disallowed_methods,
    reason = "makes the folder above all runs, which people share"
)]
pub mod folder;
pub mod html;
pub mod json;
pub mod judged;
pub mod label;
pub mod markdown;
pub mod outlook;
pub mod probe;
#[allow(clippy::disallowed_methods, reason = "flushes by the wall")]
pub mod record;
pub mod repeat;
pub mod repeats;
pub mod saved;
pub mod schema;
pub mod search;
pub mod sweep;
pub mod telemetry;
pub mod text;
pub mod until;
pub mod view;
pub mod workload;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

/// Exchanges for tests, as those of `result` have them.
#[cfg(test)]
#[path = "../../../judge/result/src/summary/fixture.rs"]
mod exchanges;

use crate::environment::Environment;
use crate::folder::Status;
use result::summary::Summary;
use scenario::plan::Plan;

/// What a report needs of a run, except its exchanges.
#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    /// The name of the run's folder.
    pub folder: String,
    /// The plan.
    pub plan: Plan,
    /// Its environment; absent if it was not written.
    pub environment: Option<Environment>,
    /// How it ended; absent if it was killed or has not ended.
    pub status: Option<Status>,
    /// The summary.
    pub summary: Summary,
}

/// Foreign text on one line, without control characters: what a server or a plugin writes
/// must not break a row, nor reach a terminal as a command.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match model::clean::unsafe_to_show(c) {
            true => ' ',
            false => c,
        })
        .collect()
}
