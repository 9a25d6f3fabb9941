//! A lab, conducted: its engines started on this machine, its runs measured, and what happened kept
//! in its journal.
//!
//! This crate owns the order of a start ([`Experiment`]), the lab's folder ([`OpenJournal`],
//! [`opened`]), what a trial changes in a scenario ([`Scenarios`]), and the figures of a previous
//! release as they are on disk ([`previous`]). It leaves to `lab` what is started next and what the
//! results mean, to `launch` the processes of an engine, and to its caller all that a person sees
//! or says: the caller is a [`Bench`], which measures a run, draws the page, hears of [`Progress`]
//! and knows of interrupts. It prints nothing.
//!
//! ```text
//! let scenarios = Scenarios::of(&lab, home, sources, shown, false)?;
//! let mut journal = OpenJournal::open(folder, &lab, &text)?;
//! let ended = Experiment::new(&lab, &scenarios, place, &bench)?.conduct(&mut journal)?;
//! ```
//!
//! **After a crash** the order is the same: the journal says what was measured, and the markers of
//! engines say what still runs.
#![forbid(unsafe_code)]

mod bench;
#[allow(clippy::disallowed_methods, reason = "dates journals and runs")]
mod date;
mod drive;
mod engine;
mod error;
mod folder;
mod journal;
mod keys;
mod load;
mod machine;
mod previous;
mod progress;
mod question;
mod scenarios;

pub use bench::{Bench, Unmeasured};
pub use drive::{Experiment, Place};
pub use engine::Running;
pub use error::Error;
pub use folder::{KEPT, opened};
pub use journal::OpenJournal;
pub use previous::read as previous;
pub use progress::Progress;
pub use scenarios::Scenarios;
