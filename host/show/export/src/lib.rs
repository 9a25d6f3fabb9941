//! Columns of runs as Arrow, Parquet and CSV, for analysis in data frames, databases and
//! spreadsheets; and spans of runs for viewers of traces ([`otlp`]).
//!
//! This crate owns the tables, their columns and these forms. It leaves every figure to `result`,
//! the columns of a request to `report::row`, and the place of a table to the command line.
//!
//! A table has the same columns whatever the run, so tables of several runs fit under each other; a
//! column `run` names the run. A value that was not measured is null, never zero. Names are the
//! names in results and in `runner report --format csv`, with `_` for `-` and the unit at the end.
//! Instants are whole nanoseconds since the run's origin, as records have them.
//!
//! Records stream through: memory holds a batch of rows at once, and for Parquet a row group before
//! it is compressed. Their bounds are in `batch` and `sink`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files"))]

mod batch;
mod events;
pub mod otlp;
mod requests;
mod schema;
mod series;
mod sink;
mod summary;

#[cfg(test)]
mod tests;

/// Exchanges for tests, the same as in `result`.
#[cfg(test)]
#[path = "../../../measure/result/src/summary/fixture.rs"]
mod exchanges;

use std::io::{self, Write};

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use batch::Batch;
use result::summary::RunFacts;
use runs::Reported;
use runs::folder::{FolderError, RunFolder};
use schema::Head;
use sink::Sink;

model::names! {
    /// A table of a run.
    pub enum Table {
        /// A row for each request, in the order in which they ended.
        Requests = "requests",
        /// A row for each output event of each request.
        Events = "events",
        /// A row for each figure, with its 95 % interval and its definition.
        Summary = "summary",
        /// A row for each value over time: throughput, load, failures, devices.
        Series = "series",
    }
}

impl Table {
    fn heads(self, form: Form) -> Vec<Head> {
        match self {
            Table::Requests => requests::heads(form),
            Table::Events => events::heads(),
            Table::Summary => summary::heads(),
            Table::Series => series::heads(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Parquet, compressed with zstd.
    Parquet,
    /// Arrow's stream format, for pipes.
    ArrowStream,
    /// Arrow's file format, also known as Feather 2.
    ArrowFile,
    /// Lines of cells, without lists of events, descriptions and units.
    Csv,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Run(#[from] FolderError),
    #[error("{0}")]
    Write(#[from] io::Error),
    #[error("{0}")]
    Arrow(#[from] ArrowError),
    #[error("{0}")]
    Parquet(#[from] ParquetError),
    /// Spans need a date, and the run has none.
    #[error(
        "`{run}` has no status.json, and its name has no date; name the folder as in 20260102-030405-{run}"
    )]
    Undated { run: String },
}

struct Run<'a> {
    label: String,
    folder: &'a RunFolder,
    facts: RunFacts,
    reported: Reported,
}

/// Writes a table of these runs, run by run, in the order of their records.
pub fn write(
    out: impl Write + Send,
    form: Form,
    table: Table,
    folders: &[RunFolder],
) -> Result<(), ExportError> {
    let runs = read(folders)?;
    let heads = table.heads(form);
    let schema = schema::schema(table, &heads, &runs)?;
    let mut batch = Batch::new(Sink::open(out, form, &schema)?, schema, &heads);
    for run in &runs {
        match table {
            Table::Requests => requests::write(run, form, &mut batch),
            Table::Events => events::write(run, &mut batch),
            Table::Summary => summary::write(run, &mut batch),
            Table::Series => series::write(run, &mut batch),
        }?;
    }
    batch.finish()
}

fn read(folders: &[RunFolder]) -> Result<Vec<Run<'_>>, ExportError> {
    let labels = labels(folders);
    let runs = folders.iter().zip(labels).map(|(folder, label)| {
        let facts = folder.facts()?;
        let reported = folder.reported_with(&facts)?;
        Ok(Run { label, folder, facts, reported })
    });
    runs.collect()
}

/// The names of runs: their folders', or their paths where two folders have the same name.
fn labels(folders: &[RunFolder]) -> Vec<String> {
    let named = |folder: &RunFolder| {
        // A path such as `.` has no name.
        let path = folder.path().canonicalize().ok()?;
        Some(path.file_name()?.to_string_lossy().into_owned())
    };
    let path = |folder: &RunFolder| folder.path().display().to_string();
    let names = folders.iter().map(|folder| named(folder).unwrap_or_else(|| path(folder)));
    let names: Vec<String> = names.collect();
    let is_apart = (1..names.len()).all(|at| !names[..at].contains(&names[at]));
    if is_apart { names } else { folders.iter().map(path).collect() }
}
