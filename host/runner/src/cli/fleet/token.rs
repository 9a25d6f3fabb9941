//! `runner fleet token`: what the agents of a run need, and no more.

use std::path::PathBuf;
use std::process::ExitCode;

use ::fleet::token::Token;

use super::super::failure::Failure;
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
    let token = read()?;
    if !token.coordinates() {
        let words =
            "this is an agents' token already: `runner fleet token` makes one of the run's token";
        return Err(Failure::command_line(words));
    }
    write_stdout(&format!("{}\n", token.shown()))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the token of this process.
pub(super) fn read() -> Result<Token, Failure> {
    let value = std::env::var("RUNNER_FLEET_TOKEN").ok();
    let file = std::env::var_os("RUNNER_FLEET_TOKEN_FILE").map(PathBuf::from);
    Token::read(value.as_deref(), file.as_deref())
        .map_err(|error| Failure::command_line(error.to_string()))
}
