//! `runner schema`: prints the JSON Schemas of the files that runs write.

use std::process::ExitCode;

use super::failure::{Exit, Failure};
use super::print::write_stdout;
use report::schema::{NAMES, schema};

/// Print the JSON Schema of a result file
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which file: summary.json, or a line of records.jsonl.zst
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(NAMES))]
    name: String,
}

/// Runs the subcommand.
///
/// # Errors
/// If stdout cannot be written.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let text = schema(&args.name)
        .ok_or_else(|| Failure::new(Exit::Bug, format!("no schema `{}`", args.name)))?;
    write_stdout(&text)?;
    Ok(ExitCode::SUCCESS)
}
