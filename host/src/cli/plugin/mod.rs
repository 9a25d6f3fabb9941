//! `runner plugin`: what the authors of plugins need, one file a subcommand.

pub mod test;

use std::process::ExitCode;

use super::failure::Failure;

/// Make, build, check and test plugins
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    Test(test::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// What went wrong, with the exit code that it means.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Test(args) => test::exec(args),
    }
}
