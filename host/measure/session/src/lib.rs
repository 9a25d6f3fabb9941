//! A run as a library: resolve a scenario into a plan, check the target, load it, and assess the
//! answers.
//!
//! Each step is a method of the step before it, so that none can be left out:
//!
//! ```text
//! Source -> resolve -> ResolvedRun -> check -> CheckedRun -> begin -> StartedRun
//!     -> load -> LoadedRun -> finish -> MeasuredRun
//! ```
//!
//! The plan of a [`ResolvedRun`] may lack the model; a [`CheckedRun`] has it. The executor of a
//! run is a parameter ([`Threads`] or [`PausedClock`]), as is the opener of connections. `finish`
//! consists of three steps, which can be taken one by one: [`SavedRun`], [`AssessedRun`],
//! [`MeasuredRun`].
//!
//! This crate owns the sequence of a run and everything that calls plugins on the way. It prints
//! nothing: the command line, the tests and other programs call the same functions and watch
//! [`live`]. It leaves the wire to `load`, the sandbox to `plugins`, the look of a result to
//! `report`, and exit codes to the command line.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![forbid(unsafe_code)]

pub mod assess;
mod authenticate;
pub mod check;
mod clean_up;
pub mod decode;
pub mod gate;
pub mod lease;
pub mod live;
mod local;
pub mod outlook;
pub mod paired;
pub mod parts;
pub mod pending;
pub mod preflight;
pub mod prepare;
pub mod probe;
pub mod prompts;
pub mod resolve;
pub mod reuse;
pub mod run;
pub mod series;
pub mod sessions;
pub mod stages;
pub mod telemetry;
mod text_tokenizer;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use check::{CheckError, CheckedRun, Note};
pub use resolve::{
    Faults, Judges, ResolvedRun, Shipped, Source, Variables, judges, limits, marked_secrets,
    resolve,
};
pub use run::{PausedClock, Threads};
pub use stages::{
    AssessedRun, BeginError, Devices, Ending, LoadedRun, MeasuredRun, Measurements, NotMeasured,
    Part, Record, SavedRun, StartedRun, Unjudged,
};
pub use text_tokenizer::TextTokenizer;
// The command line's panic hook asks this.
pub use tokenizer::is_guarded;
// The program is started again to render chat templates.
pub use tokenizer::apart as templates;

/// Locks, even after a panic of another thread: no panic leaves shared state half changed.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Exchanges for tests, as the tests of `result` have them.
#[cfg(test)]
#[path = "../../result/src/summary/fixture.rs"]
mod exchanges;
