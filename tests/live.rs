//! A run while it goes on: what onlookers see is true, and seeing it changes nothing.
//!
//! - `exposition`: a reader of OpenMetrics' text that lets nothing pass.
//! - `figures`: snapshots of runs on virtual time, against the plan and the summary.
//! - `listening`: `--metrics-listen` on real processes.
//! - `terminal`: the dashboard and the progress line on a terminal, and plain lines without one.

mod exposition;
mod figures;
mod listening;
mod terminal;
