//! A run that the processes of a fleet make together.
//!
//! This module owns the order of things: every process reads the scenario and makes its slice of
//! the plan as an [`Agent`]; the [`Coordinator`] compares the digests of the plans, gives all one
//! instant to begin at, and makes one run of the records. [`merge`] takes in later what an agent
//! that was lost has on its own disk. It leaves connections to [`crate::link`], a run's steps to
//! `session`, and arguments, messages and exit codes to the command line.
//!
//! A [`Coordinator`] does all of it with what a [`Monitor`] and [`Interrupts`] tell it of the user;
//! between the steps of an [`Agent`] its caller reads the scenario and asks the target.

mod agent;
mod combine;
mod connections;
mod coordinator;
mod error;
pub mod merge;
mod plan;
mod user;
mod view;

pub use agent::Agent;
pub use coordinator::{Combined, Coordinator, Monitor, NotStarted};
pub use error::FleetError;
pub use user::{Interrupts, Settings};
pub use view::Local;
