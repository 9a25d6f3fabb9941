//! A lab, conducted: its engines started on this machine, its runs measured, and what happened kept
//! in its journal.
//!
//! This crate owns the order of a start ([`Experiment`]), the lab's folder ([`OpenJournal`],
//! [`opened`]), and what a trial changes in a scenario ([`Scenarios`]). It leaves to `lab` which start is next and what
//! results mean, to `launch` the processes of an engine, and to its [`Caller`] to measure a run, to
//! show [`Progress`] and to know of interrupts. This crate prints nothing.
//!
//! ```text
//! let scenarios = Scenarios::of(&lab, home, sources, shown, false)?;
//! let mut journal = OpenJournal::open(folder, &lab, &text)?;
//! let ended = Experiment::new(&lab, &scenarios, place, &caller)?.conduct(&mut journal, draw)?;
//! ```
//!
//! **After a crash** the order is the same: the journal says what was measured. An engine that had
//! no end in it ends with its lab, and is waited for.
#![forbid(unsafe_code)]

mod caller;
#[allow(clippy::disallowed_methods, reason = "dates journals and runs")]
mod date;
mod drive;
mod engine;
mod error;
mod folder;
mod keys;
mod load;
mod machine;
mod progress;
mod question;
mod running;
mod scenarios;

pub use caller::{Caller, Unmeasured};
pub use drive::Experiment;
pub use engine::Place;
pub use error::Error;
pub use folder::{KEPT, OpenJournal, opened};
pub use progress::Progress;
pub use running::Running;
pub use scenarios::Scenarios;
