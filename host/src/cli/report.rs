//! `runner report`: redraws a result from a run's records.

use std::path::PathBuf;
use std::process::ExitCode;

use super::failure::{Exit, Failure, tell};
use super::run::write_stdout;
use crate::folder::{RunFolder, Status};
use crate::report::{csv, json, text};
use crate::summary::Summary;

/// Redraw results from the records of runs
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Folders of runs
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// In which form
    #[arg(long, env = "RUNNER_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The text block
    Text,
    /// The summary, as its JSON Schema says (`runner schema summary`)
    Json,
    /// A row an exchange; what was not measured is empty
    Csv,
}

/// Runs the subcommand.
///
/// # Errors
/// Where a run cannot be read.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    for run in &args.runs {
        let folder = RunFolder::at(run);
        // First, so that what is no run's folder is called so.
        folder.plan()?;
        let exchanges = folder.exchanges()?;
        match folder.status()? {
            None => tell(format_args!(
                "note: the run in {} did not finish: it was killed, or goes on still; this is what it had written",
                run.display()
            )),
            Some(Status {
                error: Some(error), ..
            }) => tell(format_args!(
                "note: the run in {} ended early: {error}",
                run.display()
            )),
            Some(_) => {}
        }
        let facts = folder.facts(&exchanges)?;
        let bug =
            |cause: String| Failure::new(Exit::Bug, format!("cannot write the report: {cause}"));
        let shown = match args.format {
            Format::Text => text::text(&Summary::of(&facts, &exchanges)),
            Format::Json => json::json(&Summary::of(&facts, &exchanges))
                .map_err(|cause| bug(cause.to_string()))?,
            Format::Csv => {
                let mut table = Vec::new();
                csv::csv(&mut table, &facts, &exchanges).map_err(|cause| bug(cause.to_string()))?;
                String::from_utf8_lossy(&table).into_owned()
            }
        };
        write_stdout(&shown)?;
    }
    Ok(ExitCode::SUCCESS)
}
