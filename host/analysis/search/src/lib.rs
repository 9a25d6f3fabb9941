//! Searches for the highest load that meets objectives, and sweeps over loads: they choose the next
//! run, and evaluate the runs so far.
//!
//! This crate owns the objectives of a search ([`slo`]), the evidence of one run on them
//! ([`gather`]), its control by simulation ([`control`]), the test at one load ([`decide`]), the
//! detector that stops an over-saturated run ([`watch`]), the search itself ([`Search`]), lists of
//! loads with their curve, knee and Pareto front ([`sweep`]), and the rules of published benchmarks
//! ([`preset`]). It is pure: values in, values out, and every value can be written to a journal. It
//! leaves making the runs, clocks, files and pages to others, the definitions of metrics to
//! `result`, the simulated engine to `simulator`, and the regression over all loads and the bounds
//! at one to `statistics`.
//!
//! **Use of a search.** [`Search::next`] gives a [`Probe`]. Make a run of that load with that
//! number of requests and that seed, and give its progress to a [`watch::Watch`] if it is at a
//! rate. Judge its records with a [`gather::Gather`], which takes the backlog of the run's summary.
//! Report it as measured, as stopped, or as invalid if its findings say so, write the [`Report`] to
//! the journal, and ask again until there is an [`Answer`]. [`Search::resume`] takes the reports of
//! a journal.
//!
//! **The statistics.** An objective such as `ttft.p99 < 500ms` allows one request in a hundred to
//! be bad: to fail, to be due and not sent, or to miss the limit, counted from when it was due.
//! Requests are bad together, so counts carry a design effect, and a simulation on the same
//! requests takes most of it away. Close to the highest load the odds of a miss are a power of
//! the load. The interval has every load that a likelihood ratio test over all loads does not
//! rule out. Where no regression is possible, Clopper and Pearson's bounds decide a load by its
//! own requests; undecided is never a pass. Close to capacity a short run looks healthy
//! throughout, so a pass at a rate also takes a number of independent loads. Each run has a fresh
//! seed, and the runs of a load are pooled.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![forbid(unsafe_code)]

// The benchmark shares `laboratory.rs`, which names this crate from outside.
#[cfg(test)]
extern crate self as search;

pub mod answer;
pub mod config;
pub mod control;
pub mod decide;
pub mod decision;
pub mod gather;
pub mod level;
mod machine;
pub mod preset;
mod probe;
pub mod slo;
pub mod sweep;
pub mod watch;

pub use answer::Answer;
pub use config::{Config, Load};
pub use machine::{Report, Search, Step, Unexpected};
pub use probe::{Outcome, Probe, Purpose};

#[cfg(test)]
mod laboratory;
