//! The binary: parse, execute, print the error, exit.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    model::clock::since_process_began();
    let cli = runner::cli::Cli::read();
    match cli.exec() {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
