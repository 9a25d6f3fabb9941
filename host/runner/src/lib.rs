//! The command line of the runner, and the tools for plugin authors.
//!
//! This crate owns the user's view at a terminal: arguments, help, progress, errors, exit codes.
//! Only [`cli`] prints. It leaves the run to `session`, and every figure to `result`.
#![forbid(unsafe_code)]
#![allow(
    clippy::duplicate_mod,
    reason = "`cli::absent` stands in for each module that is not built"
)]

#[allow(clippy::disallowed_methods, reason = "writes projects, whose author shares them")]
pub mod author;
#[allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "prints, draws by the wall, and writes the files that its user names"
)]
pub mod cli;
pub mod guide;
