//! `runner report`: redraws a result from a run's records.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use super::failure::{Exit, Failure, tell};
use super::run::{write_stdout, wrote};
use crate::folder::{RunFolder, Status};
use crate::report::{csv, json, text};
use crate::summary::RunFacts;

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
    /// A row an exchange, in the order in which they ended; what was not measured is empty
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
        drop(folder.read()?);
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
        let facts = folder.facts()?;
        match args.format {
            Format::Text => write_stdout(&text::text(&folder.summarize(&facts)?))?,
            Format::Json => {
                let shown = json::json(&folder.summarize(&facts)?).map_err(|cause| {
                    Failure::new(Exit::Bug, format!("cannot write the report: {cause}"))
                })?;
                write_stdout(&shown)?;
            }
            Format::Csv => table(&folder, &facts)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the table to stdout, row by row.
fn table(folder: &RunFolder, facts: &RunFacts) -> Result<(), Failure> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    wrote(csv::header(&mut out))?;
    for exchange in folder.read()? {
        let exchange = exchange?;
        if wrote(csv::row(&mut out, facts, &exchange))?.is_gone() {
            return Ok(());
        }
    }
    wrote(out.flush()).map(drop)
}
