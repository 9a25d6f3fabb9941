//! A run of the processes of a fleet together.
//!
//! This module owns the order of steps. Every process reads the scenario and makes its slice of the
//! plan as an [`Agent`]. The [`Coordinator`] compares the digests of the plans, gives all one start
//! instant, and makes one run of the records. [`merge`] adds later the records on a lost agent's
//! own disk. It leaves connections to [`crate::link`], a run's steps to `session`, and arguments,
//! messages and exit codes to the command line.
//!
//! A [`Coordinator`] gets the user's wishes from a [`Monitor`] and [`Interrupts`]; between the
//! steps of an [`Agent`] its caller reads the scenario and checks the target.

mod agent;
mod combine;
mod connections;
mod coordinator;
pub mod merge;
mod plan;
mod view;

pub use agent::Agent;
pub use coordinator::{CombinedRun, Coordinator, FleetError, Monitor, NotStarted, OVER};
pub use coordinator::{Interrupts, Settings};
pub use view::Local;
