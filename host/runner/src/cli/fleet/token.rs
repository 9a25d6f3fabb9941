//! `runner fleet token`: what the agents of a run need, and no more.

use std::process::ExitCode;

use super::super::failure::{Exit, Failure};
use super::super::print::write_stdout;

/// Print the agents' token that belongs to the run's token
///
/// It reads the run's token as rank 0 does, from RUNNER_FLEET_TOKEN or the file that
/// RUNNER_FLEET_TOKEN_FILE names. With what it prints in RUNNER_FLEET_TOKEN, a process can be any
/// rank but 0: a load machine that others have got into cannot play rank 0 for the rest. It is a
/// secret too, since whoever has it can join the run.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:\n  \
        openssl rand -hex 32 > run.token\n  \
        RUNNER_FLEET_TOKEN_FILE=run.token runner fleet token > agents.token\n\n\
        Keep run.token on the machine of rank 0, and give agents.token to the others.")]
pub(super) struct Args {}

/// Prints it.
pub(super) fn exec() -> Result<ExitCode, Failure> {
    let token = super::token()?;
    if !token.coordinates() {
        let words =
            "this is an agents' token already: `runner fleet token` makes one of the run's token";
        return Err(Failure::new(Exit::CommandLine, words));
    }
    write_stdout(&format!("{}\n", token.shown()))?;
    Ok(ExitCode::SUCCESS)
}
