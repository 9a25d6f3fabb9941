//! Results in the forms that people and programs read: the text block, JSON, a table of exchanges
//! as CSV, the blocks and files of other tools, a page with charts, and each chart as a picture. It
//! also has the schemas of the JSON forms. Pure: a summary, exchanges or a comparison in, text out.
//!
//! This crate owns these forms. It leaves every figure to `result`, comparisons to `compare`, and
//! files to `runs`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]

pub mod agreed;
pub mod build;
pub mod chart;
pub mod charts;
pub mod compared;
pub mod compatible;
pub mod csv;
pub mod document;
pub mod json;
pub mod label;
pub mod outlook;
#[cfg(feature = "studies")]
pub mod over_time;
pub mod page;
pub mod probe;
pub mod published;
pub mod repeats;
pub mod row;
pub mod schema;
pub mod search;
mod sections;
mod sure;
pub mod sweep;
pub mod text;
pub mod time_slices;
#[cfg(feature = "studies")]
pub mod verified;
pub mod view;
pub mod workload;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

/// Runs that are compared, as the tests of `compare` have them.
#[cfg(test)]
#[path = "../../../analysis/compare/src/fixture.rs"]
mod comparisons;
/// Exchanges for tests, the same as in `result`.
#[cfg(test)]
#[path = "../../../measure/result/src/summary/fixture.rs"]
mod exchanges;

/// Foreign text on one line, without control characters: text from a server or a plugin must not
/// break a row, nor reach a terminal as a command.
fn plain(text: &str) -> String {
    text.chars().map(|c| if model::clean::unsafe_to_show(c) { ' ' } else { c }).collect()
}
