//! The binary: parse, execute, print the error, exit.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = runner::cli::Cli::parse();
    match cli.exec() {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
