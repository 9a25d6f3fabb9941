//! `runner export`: the columns of runs, for data frames, databases and spreadsheets, and their
//! spans, for viewers of traces.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::destination::Destination;
use super::failure::Failure;
use super::report;
use super::words::one_of;
use ::export::otlp::{self, Signal};
use ::export::{ExportError, Form, Table};

/// Export the columns of runs as Parquet, Arrow or CSV, or their spans as OTLP
///
/// A table has the same columns for every run, so several runs stand under each other, with their
/// folders' names in the column `run`. Unmeasured values are null. Parquet and Arrow hold each
/// column's unit and definition, and the verdict and findings of each run.
///
/// `--format otlp` writes the spans of requests and sessions for a collector of OpenTelemetry, at
/// most 512 in a line. Each line is the body of a POST to /v1/traces.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Folders of runs, or folders that contain runs; runs are read in the order of their start
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// Table to write
    #[arg(long, env = "RUNNER_TABLE", value_parser = one_of::<Table>(), default_value = "requests")]
    table: Table,
    /// Format of the table [default: by the ending of --output, else csv]
    #[arg(long, env = "RUNNER_TABLE_FORMAT", value_enum)]
    format: Option<Format>,
    /// File to write (complete or not at all); `-` is stdout
    #[arg(long, value_name = "FILE", env = "RUNNER_TABLE_OUTPUT", default_value = "-")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Parquet, compressed with zstd
    Parquet,
    /// Arrow IPC: the stream format on stdout and in a file that ends with .arrows, else the file
    /// format (Feather 2)
    Arrow,
    /// Lines of cells, without lists of events, definitions and units
    Csv,
    /// Lines of OTLP/JSON: spans of requests and sessions, with `--table summary` histograms
    Otlp,
}

/// The choice of table and format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Table(Form),
    Otlp(Signal),
}

impl Args {
    fn is_stdout(&self) -> bool {
        self.output == Path::new("-")
    }

    fn content(&self) -> Result<Content, Failure> {
        let ending = self.output.extension().and_then(|ending| ending.to_str());
        let ending = ending.unwrap_or_default().to_ascii_lowercase();
        let format = match self.format {
            Some(format) => format,
            None if self.is_stdout() => Format::Csv,
            None => match &*ending {
                "parquet" => Format::Parquet,
                "arrow" | "arrows" | "feather" => Format::Arrow,
                "csv" => Format::Csv,
                _ => {
                    return Err(Failure::command_line(format!(
                        "`{}`: expected a name that ends with .parquet, .arrow, .arrows, .feather or .csv; or give --format",
                        self.output.display()
                    )));
                }
            },
        };
        let form = match format {
            Format::Parquet => Form::Parquet,
            Format::Arrow if self.is_stdout() || ending == "arrows" => Form::ArrowStream,
            Format::Arrow => Form::ArrowFile,
            Format::Csv => Form::Csv,
            Format::Otlp => {
                return match self.table {
                    Table::Requests => Ok(Content::Otlp(Signal::Spans)),
                    Table::Summary => Ok(Content::Otlp(Signal::Metrics)),
                    Table::Events | Table::Series => Err(Failure::command_line(
                        "--format otlp: expected --table requests (spans) or --table summary (metrics)",
                    )),
                };
            }
        };
        Ok(Content::Table(form))
    }
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    let content = args.content()?;
    let is_text = matches!(content, Content::Table(Form::Csv) | Content::Otlp(_));
    if !is_text && args.is_stdout() && io::stdout().is_terminal() {
        return Err(Failure::command_line(
            "stdout is a terminal, and only csv and otlp are text; give a file with --output, or redirect stdout",
        ));
    }
    let runs = report::open(&args.runs)?;
    report::tell_parts(&runs)?;
    let mut out = Out { to: Destination::open(&args.output)?, stopped: None };
    let written = match content {
        Content::Table(form) => ::export::write(&mut out, form, args.table, &runs),
        Content::Otlp(signal) => otlp::write(&mut out, signal, &runs),
    };
    match (out.stopped, written) {
        // Nobody reads the rest, which is no error.
        (Some(None), _) => Ok(ExitCode::SUCCESS),
        (Some(Some(failure)), _) => Err(failure),
        (None, Err(ExportError::Run(error))) => Err(error.into()),
        (None, Err(error @ ExportError::Undated { .. })) => Err(Failure::input(error)),
        (None, Err(error)) => Err(Failure::cannot("write the table")(error)),
        (None, Ok(())) => {
            out.to.finish()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The destination as the writers of formats take it.
struct Out {
    to: Destination,
    /// Set where nothing more can be written: why, or nothing where its reader has gone.
    stopped: Option<Option<Failure>>,
}

impl Write for Out {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        match self.to.bytes(part) {
            Ok(true) => return Ok(part.len()),
            Ok(false) => self.stopped = Some(None),
            Err(failure) => self.stopped = Some(Some(failure)),
        }
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
