//! Terms of every part of the runner: units, durations, instants, exchanges, arrivals, frames,
//! targets, and the settings that a plan shares with the crates that act on it.
//!
//! This crate owns these types and the pure functions over them. It leaves connecting, sending and
//! reading to `load`, the definitions of metrics to `result`, and the format of a scenario to
//! `scenario`. Only [`clock`] reads the clock of a run.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![warn(missing_docs)]
#![forbid(unsafe_code)]

// The attribute of documents names this crate.
extern crate self as model;

pub mod about;
pub mod access;
pub mod adapter;
pub mod arrival;
pub mod clean;
pub mod client;
#[allow(clippy::disallowed_methods, reason = "the only clock")]
pub mod clock;
pub mod connection;
pub mod document;
pub mod duration;
pub mod exchange;
pub mod file;
pub mod frame;
pub mod generator;
pub mod glob;
mod hex;
pub mod identity;
mod nearest;
pub mod number;
mod percent;
pub mod places;
pub mod plugin;
#[allow(clippy::disallowed_methods, reason = "only this module makes private files")]
pub mod private;
pub mod random;
pub mod redact;
pub mod session;
pub mod shell;
pub mod simulation;
pub mod target;
pub mod temperature;
pub mod timings;
pub mod txtar;
pub mod units;
pub mod words;

pub use document::apply;
pub use hex::{hex, unhex};
pub use nearest::nearest;
pub use percent::percent_encoded;

/// True of a value that a file leaves out and a reader puts back.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
