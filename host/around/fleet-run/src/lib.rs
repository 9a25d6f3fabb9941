//! A run that the processes of a fleet make together.
//!
//! This crate owns the order of things: rank 0 offers the scenario and its files, every process
//! makes its slice of the plan as an [`Agent`], and the [`Coordinator`] gives them one instant to
//! begin at and makes one run of what they measured. [`merge`] takes in later what an agent that was
//! lost has on its own disk. It leaves to `fleet` how processes reach each other, to `session` what
//! a run is, and to the command line its arguments, what is printed and exit codes.
//!
//! A [`Coordinator`] does all of it with what a [`Monitor`] and [`Interrupts`] tell it of the user;
//! between the steps of an [`Agent`] its caller reads the scenario and asks the target.
#![forbid(unsafe_code)]

mod agent;
mod combine;
mod connections;
mod coordinator;
mod documents;
mod error;
pub mod merge;
mod policy;
mod user;
mod view;

pub use agent::Agent;
pub use coordinator::{Combined, Coordinator, Monitor, NotStarted};
pub use documents::ScenarioText;
pub use error::FleetError;
pub use user::{Interrupts, Settings};
pub use view::Local;
