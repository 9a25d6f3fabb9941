//! `runner completions`: what a shell needs to complete the command line.

use std::process::ExitCode;

use clap::CommandFactory;

use super::failure::Failure;
use super::run::write_stdout;

/// Print completions for a shell
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which shell
    shell: clap_complete::Shell,
}

/// Runs the subcommand.
///
/// # Errors
/// Where stdout cannot be written.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut super::Cli::command(),
        "runner",
        &mut script,
    );
    write_stdout(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
