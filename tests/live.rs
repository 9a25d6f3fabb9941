//! A run while it goes on: the display is true, and changes nothing.
//!
//! - `exposition`: a strict parser of OpenMetrics' text.
//! - `figures`: snapshots of runs on virtual time, against the plan and the summary.
//! - `file`: lines of progress for programs.
//! - `listening`: `--metrics-listen` on real processes.
//! - `terminal`: the dashboard and the progress line on a terminal, and plain lines without one.

pub mod exposition;
mod figures;
mod file;
pub mod listening;
pub mod terminal;
