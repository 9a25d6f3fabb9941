//! `runner completions`: prints what a shell needs to complete the command line.

use std::process::ExitCode;

use clap::CommandFactory;

use super::failure::Failure;
use super::print::write_stdout;

/// Print shell completions
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Shell to print completions for
    shell: clap_complete::Shell,
}

/// Runs the subcommand.
///
/// # Errors
/// If stdout cannot be written.
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
