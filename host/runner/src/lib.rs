//! The command line of the runner, and the tools for plugin authors.
//!
//! This crate owns what a person at a terminal sees: arguments, help, progress, errors, exit codes.
//! Only [`cli`] prints. It leaves the run to `session`, and every figure to `result`.
#![forbid(unsafe_code)]

pub mod author;
pub mod cli;
pub mod guide;
