//! A lab, conducted: its engines started on this machine, its runs measured, and each step recorded
//! in its journal.
//!
//! This crate owns the order of a start ([`Experiment`]), the lab's folder ([`OpenJournal`],
//! [`opened`]), and a trial's changes to a scenario ([`Scenarios`]). `lab` chooses the next start
//! and interprets results, `launch` owns the processes of an engine, and its [`Caller`] measures a
//! run, shows [`Progress`] and knows of interrupts. This crate prints nothing.
//!
//! ```text
//! let scenarios = Scenarios::new(&lab, home, sources, shown, false)?;
//! let mut journal = OpenJournal::open(folder, &lab, &text)?;
//! let ended = Experiment::new(&lab, &scenarios, place, &caller)?.conduct(&mut journal, draw)?;
//! ```
//!
//! **After a crash** the order is the same: the journal has the measurements. An engine without an
//! end in it ends with its lab, and is waited for.
#![forbid(unsafe_code)]

mod drive;
mod engine;
mod error;
mod folder;
mod machine;
mod running;
mod scenarios;

pub use drive::{Caller, Experiment, NoResult, Order};
pub use engine::Place;
pub use error::Error;
pub use folder::{KEPT, OpenJournal, opened};
pub use running::{Progress, Running};
pub use scenarios::Scenarios;

/// The present date, in the clock of this machine.
#[allow(clippy::disallowed_methods, reason = "dates journals and runs")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
