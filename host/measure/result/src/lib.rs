//! The results of a run's records: metrics, the summary, findings and thresholds.
//!
//! This crate owns the definitions and their samples. It is pure: records go in one by one, and a
//! summary comes out. It knows no clock, no file, no plugin and no runtime. It leaves the
//! arithmetic of samples to `statistics`, and the look of results to `report`.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![forbid(unsafe_code)]

// The tests of several crates share `summary/fixture.rs`, which names this crate from outside.
#[cfg(test)]
extern crate self as result;

pub mod agreement;
pub mod figure;
pub mod finding;
pub mod limit;
pub mod metric;
mod outcome;
pub mod prefix;
pub mod summary;
pub mod threshold;

#[cfg(test)]
mod captured;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod laboratory;
