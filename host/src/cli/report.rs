//! `runner report`: redraws results from the records of runs, in the forms that people and
//! programs read.

mod drawn;
mod output;

use std::path::PathBuf;
use std::process::ExitCode;

use self::drawn::Picture;
use self::output::Output;
use super::failure::{Exit, Failure, tell};
use crate::folder::{self, RunFolder, Status};
use crate::report::{csv, json, text};

/// Redraw results from the records of runs
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Folders of runs, or folders that hold some: those below are taken in the order in which
    /// they began
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// In which form
    #[arg(long, env = "RUNNER_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Draw the chart of this name, such as ttft-ecdf, as `svg` or `png`; without it all are
    /// drawn, into the folder that --output names
    #[arg(long, value_name = "NAME", env = "RUNNER_CHART")]
    chart: Option<String>,
    /// Write to this file, whole or not at all, instead of stdout (`-`)
    #[arg(long, value_name = "FILE", env = "RUNNER_OUTPUT", default_value = "-")]
    output: PathBuf,
}

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The text block
    Text,
    /// The summary, as its JSON Schema says (`runner schema summary`)
    Json,
    /// A line of JSON an exchange, as its JSON Schema says (`runner schema exchange`), in the
    /// order in which they ended
    Jsonl,
    /// A row an exchange, in the order in which they ended; what was not measured is empty
    Csv,
    /// A page with charts, in one file that needs no network; several runs lie over each other,
    /// the first is what the others are compared with
    Html,
    /// Charts as drawings
    Svg,
    /// Charts as pictures
    Png,
}

/// Runs the subcommand.
///
/// # Errors
/// Where a run cannot be read, a form cannot show what was asked, or the report cannot be written.
pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let picture = match args.format {
        Format::Svg => Some(Picture::Svg),
        Format::Png => Some(Picture::Png),
        _ => None,
    };
    if let (None, Some(chart)) = (picture, &args.chart) {
        return Err(Failure::new(
            Exit::CommandLine,
            format!(
                "--chart {chart} names a chart, which is drawn with --format svg or --format png"
            ),
        ));
    }
    let runs = open(&args.runs)?;
    if let Some(picture) = picture {
        drawn::pictures(&runs, picture, args.chart.as_deref(), &args.output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = Output::open(&args.output)?;
    match args.format {
        Format::Text => each(&runs, &mut out, |run| {
            Ok(text::text(&run.summarize(&run.facts()?)?))
        }),
        Format::Json => each(&runs, &mut out, |run| {
            json::json(&run.summarize(&run.facts()?)?).map_err(unwritable)
        }),
        Format::Jsonl => lines(only(&runs, "lines")?, &mut out),
        Format::Csv => table(only(&runs, "rows")?, &mut out),
        Format::Html => drawn::page(&runs, &mut out),
        Format::Svg | Format::Png => Ok(()),
    }?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// The runs that were named, once each, with a word about those that did not end well. All that
/// cannot be read are told at once.
fn open(named: &[PathBuf]) -> Result<Vec<RunFolder>, Failure> {
    let (mut runs, mut seen, mut wrong) = (Vec::<RunFolder>::new(), Vec::new(), Vec::new());
    for path in named {
        match folder::runs(path) {
            Err(error) => wrong.push(error.to_string()),
            Ok(found) => {
                for run in found {
                    let place = run.path().canonicalize().ok();
                    if place.is_none() || !seen.contains(&place) {
                        seen.push(place);
                        runs.push(run);
                    }
                }
            }
        }
    }
    let mut notes = Vec::new();
    for run in &runs {
        let readable = || {
            run.plan()?;
            drop(run.read()?);
            run.status()
        };
        let folder = run.path().display();
        match readable() {
            Err(error) => wrong.push(error.to_string()),
            Ok(None) => notes.push(format!(
                "note: the run in {folder} did not finish: it was killed, or goes on still; this is what it had written"
            )),
            Ok(Some(Status {
                error: Some(error), ..
            })) => notes.push(format!("note: the run in {folder} ended early: {error}")),
            Ok(Some(_)) => {}
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::several(Exit::Input, wrong));
    }
    notes.iter().for_each(tell);
    Ok(runs)
}

/// The one run of a form whose parts do not say which run they are of.
fn only<'a>(runs: &'a [RunFolder], parts: &str) -> Result<&'a RunFolder, Failure> {
    match runs {
        [run] => Ok(run),
        _ => Err(Failure::new(
            Exit::CommandLine,
            format!(
                "{} runs were named, and {parts} do not say which run they are of: give one RUN at a time",
                runs.len()
            ),
        )),
    }
}

/// Writes a part of the report for each run.
fn each(
    runs: &[RunFolder],
    out: &mut Output,
    draw: impl Fn(&RunFolder) -> Result<String, Failure>,
) -> Result<(), Failure> {
    for run in runs {
        out.write(draw(run)?.as_bytes())?;
    }
    Ok(())
}

/// Writes a run's exchanges as JSON, line by line.
fn lines(run: &RunFolder, out: &mut Output) -> Result<(), Failure> {
    for exchange in run.read()? {
        let line = serde_json::to_string(&exchange?).map_err(unwritable)?;
        out.write(line.as_bytes())?;
        if out.write(b"\n")?.is_gone() {
            break;
        }
    }
    Ok(())
}

/// Writes a run's exchanges as a table, row by row.
fn table(run: &RunFolder, out: &mut Output) -> Result<(), Failure> {
    let facts = run.facts()?;
    let mut row = Vec::new();
    let bug = |cause: std::io::Error| unwritable(cause);
    csv::header(&mut row).map_err(bug)?;
    out.write(&row)?;
    for exchange in run.read()? {
        row.clear();
        csv::row(&mut row, &facts, &exchange?).map_err(bug)?;
        if out.write(&row)?.is_gone() {
            break;
        }
    }
    Ok(())
}

fn unwritable(cause: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Bug, format!("cannot write the report: {cause}"))
}
