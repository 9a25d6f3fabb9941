//! `runner store`: the index of runs. `store` owns its file; this module finds results, deletes
//! folders where the user says so, and prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::Value;

use super::artifacts::of_user;
use super::failure::{Exit, Failure, exits};
use super::print::{columns, json, tell, write_stdout};
use model::number::significant;
use model::{clean, duration, redact};
use runs::folder::RunFolder;
use store::{
    Added, Answer, Bounds, Expired, Filter, Mode, Origin, Rebuilt, Row, Store, StoreError, Stored,
};

/// Keep an index of runs, to list and query them without a look into their folders
///
/// The index is a file of SQLite with a row for each run, its figures and its tags. Run folders
/// stay the truth: `runner store rebuild` makes the index again from them. The index holds no
/// prompt, no answer, no URL and no key.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
        runner store add runs --tag version=abc123       every run below a folder, with a tag\n  \
        runner store list --model 'Qwen*' --limit 5      the newest runs of some models\n  \
        runner store show 12                             a run with its figures\n  \
        runner store query \"SELECT name, value FROM figures WHERE run = 12\"\n  \
        runner store prune --older-than 90d --keep 10    forget old runs beyond the newest ten of each kind\n\n\
        Exit codes: 0 done, 2 command line or a mistake in the SQL, 3 a run or the index cannot be read")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    Add(AddArgs),
    List(ListArgs),
    Show(ShowArgs),
    Query(QueryArgs),
    Prune(PruneArgs),
    Rebuild(RebuildArgs),
}

/// The place of the index.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Place {
    /// File of the index [default: runner/runs.db in $XDG_DATA_HOME, or in ~/.local/share]
    #[arg(long, value_name = "FILE", env = "RUNNER_STORE")]
    store: Option<PathBuf>,
}

/// The place of the index, and the form of the result.
#[derive(Clone, Debug, clap::Args)]
struct Common {
    #[command(flatten)]
    place: Place,
    /// Output format
    #[arg(long, env = "RUNNER_STORE_FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Text to read
    Text,
    /// JSON
    Json,
}

/// Add runs to the index
///
/// A path is a run's folder, a folder with runs below it, such as the folder of a lab or a sweep,
/// or another tool's result file, as `runner audit` reads it, which starts when the file was
/// written. A run that is there already is written anew and keeps its tags. Runs that have not
/// ended are left out.
#[derive(Clone, Debug, clap::Args)]
struct AddArgs {
    /// Folders of runs, folders above them, and other tools' result files
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Tag of each added run, such as version=abc123; repeatable
    #[arg(long = "tag", value_name = "NAME=VALUE", env = "RUNNER_STORE_TAG")]
    #[arg(value_delimiter = ',', value_parser = a_tag)]
    tags: Vec<(String, String)>,
    #[command(flatten)]
    common: Common,
}

/// List runs, the newest first
#[derive(Clone, Debug, clap::Args)]
struct ListArgs {
    /// Most runs to list
    #[arg(long, value_name = "N", env = "RUNNER_STORE_LIMIT", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    common: Common,
}

/// The choice of runs.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Filters {
    /// Take runs of this model; * stands for any text, here and in the other filters
    #[arg(long, value_name = "NAME", env = "RUNNER_STORE_MODEL", help_heading = "Filters")]
    model: Option<String>,
    /// Take runs of this engine
    #[arg(long, value_name = "NAME", env = "RUNNER_STORE_ENGINE", help_heading = "Filters")]
    engine: Option<String>,
    /// Take runs on this hardware
    #[arg(long, value_name = "NAME", env = "RUNNER_STORE_HARDWARE", help_heading = "Filters")]
    hardware: Option<String>,
    /// Take runs of this scenario: its name, or the beginning of its digest
    #[arg(long, value_name = "NAME", env = "RUNNER_STORE_SCENARIO", help_heading = "Filters")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    scenario: Option<String>,
}

impl Filters {
    pub(super) fn filter(&self, limit: Option<usize>) -> Filter {
        Filter {
            model: self.model.clone(),
            engine: self.engine.clone(),
            hardware: self.hardware.clone(),
            scenario: self.scenario.clone(),
            limit,
        }
    }
}

/// Show a run with its tags and all its figures
///
/// The interval of a figure is the 95 % interval for other requests of this kind, where the run
/// shows one.
#[derive(Clone, Debug, clap::Args)]
struct ShowArgs {
    /// The run's number, as in `runner store list`
    #[arg(value_name = "ID")]
    id: i64,
    #[command(flatten)]
    common: Common,
}

/// Answer a query in SQL
///
/// The tables are runs, figures, tags and confirmations; `SELECT sql FROM sqlite_schema` shows
/// their columns. The index is opened for reading only.
#[derive(Clone, Debug, clap::Args)]
struct QueryArgs {
    /// One SELECT
    #[arg(value_name = "SQL")]
    sql: String,
    /// Most rows of the answer
    #[arg(long, value_name = "N", env = "RUNNER_STORE_ROWS", default_value_t = 10_000)]
    rows: usize,
    /// Longest time for the query
    #[arg(long, value_name = "TIME", env = "RUNNER_STORE_TIMEOUT", default_value = "10s")]
    #[arg(value_parser = duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    common: Common,
}

/// Remove runs from the index: those whose folder is gone, and old ones
///
/// With both --older-than and --keep, a run is removed if both say so. Folders stay, unless
/// --delete is given; it deletes the folders of runs that these two flags remove, and names each.
#[derive(Clone, Debug, clap::Args)]
struct PruneArgs {
    /// Remove runs that started longer ago than this, such as 90d or 36h
    #[arg(long, value_name = "AGE", env = "RUNNER_STORE_OLDER_THAN", value_parser = an_age)]
    older_than: Option<Duration>,
    /// Remove runs beyond this many of the newest of each model, engine, hardware and scenario
    #[arg(long, value_name = "N", env = "RUNNER_STORE_KEEP")]
    keep: Option<usize>,
    /// Delete the folders of removed runs too
    #[arg(long, env = "RUNNER_STORE_DELETE")]
    delete: bool,
    #[command(flatten)]
    common: Common,
}

/// Make the index again from the folders of its runs and further ones
///
/// Tags and confirmations are kept. A damaged file is moved aside, and gives up the rows that can
/// still be read; name the folders of the runs if it gives none.
#[derive(Clone, Debug, clap::Args)]
struct RebuildArgs {
    /// Further folders of runs, folders above them, and other tools' result files
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    common: Common,
}

exits! {
    StoreError => Input { StoreError::Query { .. } => CommandLine, }
}

pub fn exec(args: &Args) -> Result<ExitCode, Failure> {
    match &args.command {
        Command::Add(args) => add(args),
        Command::List(args) => list(args),
        Command::Show(args) => show(args),
        Command::Query(args) => query(args),
        Command::Prune(args) => prune(args),
        Command::Rebuild(args) => rebuild(args),
    }
}

impl Place {
    /// The file of the index. Prints its name.
    fn file(&self) -> Result<PathBuf, Failure> {
        let usual = || Some(of_user("XDG_DATA_HOME", ".local/share")?.join("runs.db"));
        let file = self.store.clone().or_else(usual).ok_or_else(|| {
            Failure::command_line("no place for the index: neither XDG_DATA_HOME nor HOME is set; name a file with --store")
        })?;
        tell(format_args!("store: {}", file.display()));
        Ok(file)
    }

    pub(super) fn open(&self, mode: Mode) -> Result<Store, Failure> {
        Ok(Store::open(&self.file()?, mode)?)
    }
}

impl Common {
    fn print(&self, found: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        write_stdout(&match self.format {
            Format::Text => text(),
            Format::Json => json(found)?,
        })
    }
}

/// A tag as `NAME=VALUE`.
fn a_tag(text: &str) -> Result<(String, String), String> {
    let tag = text.split_once('=').filter(|(name, _)| !name.trim().is_empty());
    let (name, value) = tag.ok_or("expected NAME=VALUE, such as version=abc123")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}

/// A length of time, also in days.
fn an_age(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok());
    match days {
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 24 * 3600)),
        None => duration::parse(text)
            .map_err(|error| format!("{error}; days are possible too, such as 90d")),
    }
}

/// The results that were added.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Counts {
    added: u64,
    updated: u64,
    /// Runs that have not ended.
    left_out: u64,
    /// Runs whose folder is gone.
    gone: u64,
}

impl Counts {
    /// Adds the results at a path. Gathers the errors of unreadable results.
    fn add(
        &mut self,
        store: &mut Store,
        path: &Path,
        tags: impl Fn(&str) -> BTreeMap<String, String>,
        errors: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let results = match store::read(path) {
            Ok(results) => results,
            Err(error) => {
                errors.push(error.to_string());
                return Ok(());
            }
        };
        for result in results {
            match result {
                Ok(Some(entry)) => match store.add(&entry, &tags(&entry.row.path))? {
                    Added::New => self.added += 1,
                    Added::Again => self.updated += 1,
                },
                Ok(None) => self.left_out += 1,
                Err(error) => errors.push(error.to_string()),
            }
        }
        Ok(())
    }

    fn line(&self) -> String {
        let Counts { added, updated, left_out, gone } = self;
        let of = |count: &u64, words: &str| (*count > 0).then(|| format!(", {count} {words}"));
        let further = [
            of(left_out, "left out because they have not ended"),
            of(gone, "removed because their folder is gone"),
        ];
        let further: String = further.into_iter().flatten().collect();
        format!("{added} added, {updated} updated{further}\n")
    }
}

fn add(args: &AddArgs) -> Result<ExitCode, Failure> {
    // Not where the tag is parsed, whose errors repeat it.
    let is_secret = |(name, value): &&(String, String)| {
        let tag = format!("{name}={value}");
        redact::command(&tag) != tag
    };
    let refused = args.tags.iter().filter(is_secret).map(|(name, _)| {
        format!(
            "--tag {name}: the value seems to be a secret, and the index keeps none; leave it out"
        )
    });
    Failure::of_any(Exit::CommandLine, refused)?;
    let mut store = args.common.place.open(Mode::Write)?;
    let tags: BTreeMap<String, String> = args.tags.iter().cloned().collect();
    let (mut counts, mut errors) = (Counts::default(), Vec::new());
    for path in &args.paths {
        counts.add(&mut store, path, |_| tags.clone(), &mut errors)?;
    }
    args.common.print(&counts, || counts.line())?;
    Failure::of_any(Exit::Input, errors).map(|()| ExitCode::SUCCESS)
}

fn list(args: &ListArgs) -> Result<ExitCode, Failure> {
    let store = args.common.place.open(Mode::Read)?;
    let rows = store.runs(&args.filters.filter(Some(args.limit)))?;
    args.common.print(&rows, || listed(&rows))?;
    Ok(ExitCode::SUCCESS)
}

/// A table without lines.
fn table(heads: &[impl AsRef<str>], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heads.iter().map(AsRef::as_ref));
    for row in rows {
        table.add_row(row.iter().map(|cell| clean::line(cell)));
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn listed(rows: &[Row]) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let cells = |row: &Row| {
        let started = row.started.get(..16).unwrap_or(&row.started).replace('T', " ");
        let engine = [&row.key.engine, &row.engine_version];
        let engine: Vec<&str> = engine.into_iter().flatten().map(String::as_str).collect();
        vec![
            row.id.to_string(),
            started,
            row.name.clone(),
            text(&row.key.model),
            engine.join(" "),
            text(&row.key.hardware),
            row.requests.map(|requests| requests.to_string()).unwrap_or_default(),
            text(&row.verdict),
            tagged(row),
        ]
    };
    let heads =
        ["id", "started", "scenario", "model", "engine", "hardware", "requests", "verdict", "tags"];
    table(&heads, rows.iter().map(cells))
}

fn tagged(row: &Row) -> String {
    let tags = row.tags.iter().map(|(name, value)| format!("{name}={value}"));
    tags.collect::<Vec<_>>().join(", ")
}

/// A run with its figures.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Shown {
    #[serde(flatten)]
    row: Row,
    figures: Vec<Stored>,
}

fn show(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let store = args.common.place.open(Mode::Read)?;
    let row = store.run(args.id)?.ok_or_else(|| {
        let id = args.id;
        Failure::input(format!("the index has no run {id}; `runner store list` shows the numbers"))
    })?;
    let figures = store.figures(&[args.id], &[])?;
    let shown = Shown { row, figures: figures.into_iter().map(|(_, figure)| figure).collect() };
    args.common.print(&shown, || shown.text())?;
    Ok(ExitCode::SUCCESS)
}

impl Shown {
    fn text(&self) -> String {
        let row = Row { tags: BTreeMap::new(), ..self.row.clone() };
        let row = serde_json::to_value(row).unwrap_or_default();
        let facts = row.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let facts = facts.map(|(name, value)| [name.clone(), cell(value)]);
        let tags = (!self.row.tags.is_empty()).then(|| ["tags".to_owned(), tagged(&self.row)]);
        let figure = |figure: &Stored| {
            let end =
                |end: Option<f64>| end.map_or_else(|| "…".to_owned(), |end| significant(end, 4));
            let interval = match (figure.low, figure.high) {
                (None, None) => String::new(),
                (low, high) => format!("{} to {}", end(low), end(high)),
            };
            let value = format!("{} {}", significant(figure.value, 5), figure.unit);
            [figure.name.clone(), value.trim_end().to_owned(), interval]
        };
        let facts: Vec<[String; 2]> = facts.chain(tags).collect();
        let figures: Vec<[String; 3]> = self.figures.iter().map(figure).collect();
        format!("{}\n{}", columns(&facts), columns(&figures))
    }
}

fn query(args: &QueryArgs) -> Result<ExitCode, Failure> {
    let mut store = args.common.place.open(Mode::Read)?;
    let bounds = Bounds { rows: args.rows, time: args.timeout.into() };
    let answer = store.query(&args.sql, bounds)?;
    if answer.is_cut {
        tell(format_args!("note: only the first {} rows; raise --rows", answer.rows.len()));
    }
    args.common.print(&answer, || answered(&answer))?;
    Ok(ExitCode::SUCCESS)
}

fn answered(answer: &Answer) -> String {
    table(&answer.columns, answer.rows.iter().map(|row| row.iter().map(cell).collect()))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => clean::line(text).into_owned(),
        other => other.to_string(),
    }
}

/// The runs that left the index, by their paths.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Pruned {
    /// Runs whose folder was gone.
    gone: Vec<String>,
    /// Runs that were too old, or too many.
    removed: Vec<String>,
    /// Folders that were deleted.
    deleted: Vec<String>,
}

fn prune(args: &PruneArgs) -> Result<ExitCode, Failure> {
    if args.delete && args.older_than.is_none() && args.keep.is_none() {
        return Err(Failure::command_line(
            "--delete needs --older-than or --keep, which choose the runs to delete",
        ));
    }
    let mut store = args.common.place.open(Mode::Write)?;
    let gone: Vec<Row> = store.runs(&Filter::default())?.into_iter().filter(Row::is_gone).collect();
    store.remove(&ids(&gone))?;
    let before = args.older_than.map(|age| jiff::Timestamp::now().saturating_sub(age));
    let before =
        before.transpose().map_err(|_| Failure::command_line("--older-than is too long"))?;
    let mut expired = store.expired(&Expired { before, beyond: args.keep })?;
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    if args.delete {
        expired.retain(|row| match delete(row) {
            Ok(true) => {
                deleted.push(row.path.clone());
                true
            }
            Ok(false) => true,
            Err(error) => {
                errors.push(error);
                false
            }
        });
    }
    store.remove(&ids(&expired))?;
    let paths = |rows: Vec<Row>| rows.into_iter().map(|row| row.path).collect();
    let pruned = Pruned { gone: paths(gone), removed: paths(expired), deleted };
    args.common.print(&pruned, || pruned.text())?;
    Failure::of_any(Exit::Input, errors).map(|()| ExitCode::SUCCESS)
}

fn ids(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row.id).collect()
}

/// Deletes the folder of a run. Returns false for another tool's result, whose file stays.
fn delete(row: &Row) -> Result<bool, String> {
    if row.origin == Origin::Import {
        return Ok(false);
    }
    let path = row.source();
    RunFolder::at(path).status().map_err(|error| error.to_string())?;
    let deleted = fs::remove_dir_all(path).map(|()| true);
    deleted.map_err(|cause| format!("cannot delete `{}`: {cause}", path.display()))
}

impl Pruned {
    fn text(&self) -> String {
        let Pruned { gone, removed, deleted } = self;
        let lines: String = deleted.iter().map(|path| format!("deleted {path}\n")).collect();
        format!(
            "{lines}{} removed because their folder is gone, {} removed by age or number, {} folders deleted\n",
            gone.len(),
            removed.len(),
            deleted.len()
        )
    }
}

fn rebuild(args: &RebuildArgs) -> Result<ExitCode, Failure> {
    let Rebuilt { mut store, known, aside } = store::rebuild(&args.common.place.file()?)?;
    if let Some(aside) = aside {
        tell(format_args!(
            "note: the damaged file is now {}; {} runs could be read from it",
            aside.display(),
            known.len()
        ));
    }
    let (mut counts, mut errors) = (Counts::default(), Vec::new());
    let tags = |path: &str| known.get(path).cloned().unwrap_or_default();
    let sources: BTreeSet<PathBuf> =
        known.keys().map(|path| store::file_of(path).to_owned()).collect();
    for path in &sources {
        if path.exists() {
            counts.add(&mut store, path, tags, &mut errors)?;
        }
    }
    for path in &args.paths {
        counts.add(&mut store, path, tags, &mut errors)?;
    }
    let rows = store.runs(&Filter::default())?;
    let gone: Vec<Row> = rows.into_iter().filter(Row::is_gone).collect();
    store.remove(&ids(&gone))?;
    counts.gone = gone.len() as u64;
    args.common.print(&counts, || counts.line())?;
    Failure::of_any(Exit::Input, errors).map(|()| ExitCode::SUCCESS)
}
