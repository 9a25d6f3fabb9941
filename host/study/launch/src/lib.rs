//! An engine as processes of this machine: started, waited for, watched and stopped.
//!
//! This crate owns an engine's processes and their output. Its callers decide how to ask an engine
//! whether it is ready ([`Engine::ready`] takes the questions), which engine to start with which
//! options, and what to show.
//!
//! The order of calls:
//!
//! 1. [`Engine::start`] refuses an occupied port, and starts the command in a process group of its
//!    own.
//! 2. [`Engine::ready`] asks until the engine answers; the engine's death ends the wait at once.
//! 3. [`Engine::death`] resolves when the engine dies during a run.
//! 4. [`Engine::stop`] ends it: SIGTERM, then SIGKILL, until no process is left, its port is
//!    free, and so is the memory of its devices. An [`Engine`] that is dropped is killed.
//!
//! **Which processes are the engine's.** A process identifier is reused, and workers leave the
//! group of the process that started them, so neither is enough. A process belongs to the engine in
//! five cases:
//!
//! - it is the started process: same identifier and same start time;
//! - it has the launch's identifier in its environment;
//! - it writes to the launch's log;
//! - it was seen as a descendant of such a process;
//! - it is in a group that has such a process.
//!
//! Other processes get no signal.
//!
//! **A killed runner** takes its engine with it: a [`parent`] watch ends the engine's group and all
//! processes with the launch's identifier.
//!
//! A program that ends by itself, such as a benchmark client, is [`run`] to its end.
//!
//! A container is a launch command too: `docker run --rm --init …` hands SIGTERM on. SIGKILL does
//! not reach the processes in a container, which then show as a port that does not become free.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![forbid(unsafe_code)]

mod end;
mod engine;
mod exit;
mod leader;
mod log;
pub mod parent;
mod port;
mod process;
mod program;
mod spec;
#[cfg(test)]
mod tests;

pub use end::{EngineProcess, Means, Memory, Stop};
pub use engine::{Check, Engine, Killer, NotReady, StartError};
pub use exit::{Class, Death, Exit};
pub use port::{OccupiedPort, check as check_port};
pub use program::{NotRun, ProgramOutput, run, version};
pub use spec::{Spec, Value, is_withheld};

/// The variable with the launch's identifier in every process of an engine.
pub const LAUNCH_ID: &str = "RUNNER_LAUNCH_ID";
