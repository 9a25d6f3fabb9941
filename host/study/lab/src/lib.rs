//! The lab: engines, their options and models, tried on scenarios, and the choice of the best.
//!
//! This crate owns the lab file ([`Lab::parse`]), its trials ([`Trial`]), the strategies
//! ([`next`]), and the objective and the tests that choose a winner. It also owns the journal's
//! format ([`Event`], [`Results`]), the time of a stage ([`progress`]), the findings of a lab
//! ([`findings`]), and its page ([`page`]), which `report` draws. It is pure: values in, values
//! out. Its caller starts engines, makes runs, reads the lab file and the scenarios, appends events
//! to the journal, and asks [`next`] after each start of an engine:
//!
//! ```text
//! let lab = Lab::parse(path, &text)?;
//! let mut results = Results::from_events(&Journal::read(journal.as_bytes())?.events);
//! while let Next::Run(starts) = next(&lab, &scenarios, &results) {
//!     // Start the first engine, make its runs, append the events, and add each to the results.
//! }
//! page::page(&findings::lab_report(&lab, &scenarios, &results)).markdown()
//! ```
//!
//! **The statistics.** A stage runs its trials in interleaved rounds, the baseline in each. One
//! start of an engine serves all scenarios of a round, so the unit of every test is a start: the
//! mean of the logarithms of its scenarios. A model of trial and round removes the effect of a
//! round on all trials, and estimates the error from all trials together. Dunnett's distribution
//! gives the intervals of all comparisons of a stage. Fresh runs confirm the choice, because the
//! best of many was lucky.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![forbid(unsafe_code)]

// Tests and the benchmark share the simulated labs, which name this crate from outside.
#[cfg(test)]
extern crate self as lab;

pub mod condition;
pub mod estimate;
pub mod expand;
pub mod file;
pub mod findings;
mod hidden;
pub mod journal;
pub mod judge;
pub mod keys;
#[cfg(test)]
mod limits;
pub mod measured;
pub mod objective;
mod options;
pub mod page;
mod read;
pub mod schema;
pub mod stat;
pub mod strategy;
pub mod study;
pub mod template;
pub mod walk;

#[cfg(test)]
#[path = "../../../measure/result/src/summary/fixture.rs"]
mod exchanges;
#[cfg(test)]
mod tests;

pub use estimate::progress;
pub use expand::{Trial, TrialId, digest};
pub use file::{Engine, Lab, Model};
pub use journal::{Event, Journal, Results, RunKey};
pub use measured::Measured;
pub use strategy::{next, study};
pub use study::{LabEnd, Next, Scenario, Start};
