//! A run as a library: resolve a scenario into a plan, check the target, load it, and assess the answers.
//!
//! This crate owns the sequence of a run and everything that calls plugins on the way. It prints nothing: the
//! command line, the tests and other programs call the same functions and watch [`live`]. It leaves the wire to
//! `load`, the sandbox to `plugins`, and what a result looks like to `report`.
#![forbid(unsafe_code)]

pub mod assess;
pub mod decode;
pub mod live;
pub mod preflight;
pub mod prepare;
pub mod resolve;
pub mod run;

/// Exchanges for tests, as those of `result` have them.
#[cfg(test)]
#[path = "../../result/src/summary/fixture.rs"]
mod exchanges;
