//! The index of runs: a file of SQLite with a row for each run, its figures and its tags, so that a
//! thousand runs are listed without a look into their folders.
//!
//! Run folders stay the truth: the index is made again from them ([`rebuild`]). Only tags and
//! confirmations live here alone, and a damaged file gives up all that can still be read of them.
//! Several programs may write at once: SQLite's write-ahead log keeps each added run whole.
//!
//! Owns the file, its tables and the identity of a run ([`Entry`]). It leaves reading a run to
//! `runs`, points over time to `trend`, and deleting folders to the command line.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files"))]

mod entry;
mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use serde::Serialize;
use serde_json::Value;

use model::clock::Clock;
use model::units::Nanos;
use runs::folder::FolderError;
use trend::{Confirmed, Key};

pub use entry::{Entry, Results, file_of, read};
pub use file::{Mode, Rebuilt, rebuild};

#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

model::words! {
    /// The origin of a row.
    pub enum Origin {
        /// A run's folder.
        Run = "run",
        /// Another tool's result.
        Import = "import",
    }
    default Run
}

/// A run, as its row has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Row {
    /// Its number in this index; 0 before it is added.
    pub id: i64,
    pub origin: Origin,
    /// The absolute path of its folder; of another tool's result, its file.
    pub path: String,
    /// Its start, in UTC, to the millisecond.
    pub started: String,
    /// The scenario's name.
    pub name: String,
    /// The runs that it may be compared with over time.
    #[serde(flatten)]
    pub key: Key,
    /// The engine's version, as its author or the server states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// The digest of the method: the plan without servers, seeds and judgements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The plugins with their digests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugins: Option<String>,
    /// The program that measured, with its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The machine that measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Measured requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Those with an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// A figure of a run, with the 95 % interval for other requests of this kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stored {
    /// The figure's name, such as `ttft.p99`.
    pub name: String,
    pub value: f64,
    /// The lower end; absent if the run does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The unit; empty for a share or a number.
    pub unit: String,
}

/// Runs to list. An absent part takes all; in a text, `*` stands for any text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    pub model: Option<String>,
    pub engine: Option<String>,
    pub hardware: Option<String>,
    /// The scenario's name, or the beginning of its digest.
    pub scenario: Option<String>,
    pub limit: Option<usize>,
}

/// A choice of old runs: every stated part holds for them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expired {
    /// Runs that started before this instant.
    pub before: Option<jiff::Timestamp>,
    /// Runs beyond this number of the newest ones of each key.
    pub beyond: Option<usize>,
}

/// The effect of adding a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    New,
    /// Its row was there, and was written anew.
    Again,
}

/// The index cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no index of runs at `{path}`; make one with `runner store add runs`")]
    Absent { path: PathBuf },
    #[error(
        "the index of runs `{path}` is damaged: {cause}; make it again with `runner store rebuild`"
    )]
    Damaged { path: PathBuf, cause: String },
    #[error(
        "`{path}` has form {found} of the index of runs, and this program knows form {known}; use the newer runner, or name another file with --store"
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("`{path}` is a database, but no index of runs; name another file with --store")]
    Foreign { path: PathBuf },
    #[error(
        "no room to write `{path}`: {cause}; earlier rows are kept: free space and repeat the command"
    )]
    Full { path: PathBuf, cause: String },
    #[error("another program holds `{path}` for longer than {} s; repeat the command", file::PATIENCE.as_secs())]
    Busy { path: PathBuf },
    #[error("cannot use `{path}`: {cause}; name another file with --store")]
    System { path: PathBuf, cause: io::Error },
    #[error(
        "cannot use `{path}`: {cause}; check the rights and the room of its folder, or name another file with --store"
    )]
    Other { path: PathBuf, cause: rusqlite::Error },
    #[error("the query: {cause}")]
    Query { cause: String },
    #[error("`{}`: the index takes paths in UTF-8; rename the folder", path.display())]
    Path { path: PathBuf },
    #[error("{0}")]
    Import(String),
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl StoreError {
    fn of(path: &Path, cause: rusqlite::Error) -> Self {
        let path = path.to_owned();
        // The tables are strict, so a value of another type is damage.
        let is_of_another_type = matches!(
            cause,
            rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::Utf8Error(..)
        );
        match cause.sqlite_error_code() {
            _ if is_of_another_type => StoreError::Damaged { path, cause: cause.to_string() },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Damaged { path, cause: cause.to_string() }
            }
            Some(ErrorCode::DiskFull) => StoreError::Full { path, cause: cause.to_string() },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
            _ => StoreError::Other { path, cause },
        }
    }
}

/// The columns of a row, in the order in which [`row`] reads them.
const COLUMNS: &str = "id, path, started, name, model, engine, hardware, scenario, engine_version, \
    plan, plugins, program, machine, verdict, requests, successful, source";

/// The query of a list, which reads its rows in the order of an index.
fn listing() -> String {
    format!(
        "SELECT {COLUMNS} FROM runs
        WHERE (?1 IS NULL OR model GLOB ?1) AND (?2 IS NULL OR engine GLOB ?2)
            AND (?3 IS NULL OR hardware GLOB ?3)
            AND (?4 IS NULL OR name GLOB ?4 OR substr(scenario, 1, length(?5)) = ?5)
        ORDER BY started DESC, id DESC LIMIT ?6"
    )
}

fn row(from: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    let count = |place| {
        let count: Option<i64> = from.get(place)?;
        Ok::<_, rusqlite::Error>(count.and_then(|count| u64::try_from(count).ok()))
    };
    Ok(Row {
        id: from.get(0)?,
        path: from.get(1)?,
        started: from.get(2)?,
        name: from.get(3)?,
        key: key(from, 4)?,
        engine_version: from.get(8)?,
        plan: from.get(9)?,
        plugins: from.get(10)?,
        program: from.get(11)?,
        machine: from.get(12)?,
        verdict: from.get(13)?,
        requests: count(14)?,
        successful: count(15)?,
        // A newer program may know further origins.
        origin: from.get::<_, String>(16)?.parse().unwrap_or_default(),
        tags: BTreeMap::new(),
    })
}

/// The key in four columns from this one on.
fn key(from: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Key> {
    Ok(Key {
        model: from.get(first)?,
        engine: from.get(first + 1)?,
        hardware: from.get(first + 2)?,
        scenario: from.get(first + 3)?,
    })
}

impl Store {
    /// Opens the index in a file; [`Mode::Write`] makes a file that is not there. Fails if the file
    /// is no index, is damaged, or is of a newer program.
    pub fn open(path: &Path, mode: Mode) -> Result<Self, StoreError> {
        file::open(path, mode)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |cause| StoreError::of(&path, cause)
    }

    /// Adds a run or writes its row anew, in one step; given tags replace tags of their names.
    pub fn add(
        &mut self,
        entry: &Entry,
        tags: &BTreeMap<String, String>,
    ) -> Result<Added, StoreError> {
        let error = self.error();
        self.write(entry, tags).map_err(error)
    }

    fn write(&mut self, entry: &Entry, tags: &BTreeMap<String, String>) -> rusqlite::Result<Added> {
        let at_once = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(at_once)?;
        let own = &entry.row;
        let there: Option<i64> = transaction
            .query_row("SELECT id FROM runs WHERE path = ?1", [&own.path], |row| row.get(0))
            .optional()?;
        let count = |count: Option<u64>| count.and_then(|count| i64::try_from(count).ok());
        let id: i64 = transaction.query_row(
            "INSERT INTO runs (path, started, name, model, engine, hardware, scenario,
                engine_version, plan, plugins, program, machine, verdict, requests, successful, source)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
            ON CONFLICT (path) DO UPDATE SET started = ?2, name = ?3, model = ?4, engine = ?5,
                hardware = ?6, scenario = ?7, engine_version = ?8, plan = ?9, plugins = ?10,
                program = ?11, machine = ?12, verdict = ?13, requests = ?14, successful = ?15,
                source = ?16
            RETURNING id",
            params![
                own.path,
                own.started,
                own.name,
                own.key.model,
                own.key.engine,
                own.key.hardware,
                own.key.scenario,
                own.engine_version,
                own.plan,
                own.plugins,
                own.program,
                own.machine,
                own.verdict,
                count(own.requests),
                count(own.successful),
                own.origin.name(),
            ],
            |row| row.get(0),
        )?;
        transaction.execute("DELETE FROM figures WHERE run = ?1", [id])?;
        let into = "INSERT OR REPLACE INTO figures (run, name, value, low, high, unit) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut insert = transaction.prepare(into)?;
        for Stored { name, value, low, high, unit } in &entry.figures {
            insert.execute(params![id, name, value, low, high, unit])?;
        }
        drop(insert);
        let into = "INSERT OR REPLACE INTO tags (run, name, value) VALUES (?1, ?2, ?3)";
        for (name, value) in own.tags.iter().chain(tags) {
            transaction.execute(into, params![id, name, value])?;
        }
        transaction.commit()?;
        Ok(if there.is_some() { Added::Again } else { Added::New })
    }

    /// The runs that pass a filter, the newest first.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let limit = filter.limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
        let parameters = params![
            filter.model.as_deref().map(pattern),
            filter.engine.as_deref().map(pattern),
            filter.hardware.as_deref().map(pattern),
            filter.scenario.as_deref().map(pattern),
            filter.scenario,
            limit,
        ];
        self.tagged(&listing(), parameters).map_err(self.error())
    }

    pub fn run(&self, id: i64) -> Result<Option<Row>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM runs WHERE id = ?1");
        self.tagged(&sql, [id]).map(|mut rows| rows.pop()).map_err(self.error())
    }

    /// The runs of each key beyond the newest, and runs before an instant; none if none is stated.
    pub fn expired(&self, which: &Expired) -> Result<Vec<Row>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM (
                SELECT *, row_number() OVER (
                    PARTITION BY model, engine, hardware, scenario ORDER BY started DESC, id DESC
                ) AS place FROM runs
            )
            WHERE (?1 IS NOT NULL OR ?2 IS NOT NULL)
                AND (?1 IS NULL OR started < ?1) AND (?2 IS NULL OR place > ?2)
            ORDER BY started, id"
        );
        let beyond = which.beyond.and_then(|beyond| i64::try_from(beyond).ok());
        let before = which.before.map(|before| before.strftime(entry::START).to_string());
        self.tagged(&sql, params![before, beyond]).map_err(self.error())
    }

    /// Removes runs from the index, with their figures and tags; their folders stay.
    pub fn remove(&mut self, ids: &[i64]) -> Result<(), StoreError> {
        let sql = "DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?1))";
        self.connection.execute(sql, [json(ids)]).map(drop).map_err(self.error())
    }

    fn tagged(&self, sql: &str, parameters: impl rusqlite::Params) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.connection.prepare(sql)?;
        let rows = statement.query_map(parameters, row)?;
        let mut rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
        let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        let sql =
            "SELECT run, name, value FROM tags WHERE run IN (SELECT value FROM json_each(?1))";
        let mut statement = self.connection.prepare(sql)?;
        let mut tags: BTreeMap<i64, BTreeMap<String, String>> = BTreeMap::new();
        let mut found = statement.query([json(&ids)])?;
        while let Some(tag) = found.next()? {
            tags.entry(tag.get(0)?).or_default().insert(tag.get(1)?, tag.get(2)?);
        }
        for row in &mut rows {
            row.tags = tags.remove(&row.id).unwrap_or_default();
        }
        Ok(rows)
    }

    /// Figures of these runs, each with its run's number: by their names, or all without names.
    pub fn figures(&self, ids: &[i64], names: &[&str]) -> Result<Vec<(i64, Stored)>, StoreError> {
        let named = match names {
            [] => "?2 = '[]'",
            _ => "name IN (SELECT value FROM json_each(?2))",
        };
        let sql = format!(
            "SELECT run, name, value, low, high, unit FROM figures
            WHERE run IN (SELECT value FROM json_each(?1)) AND {named} ORDER BY run, name"
        );
        let read = || {
            let mut statement = self.connection.prepare(&sql)?;
            let found = statement.query_map([json(ids), json(names)], |row| {
                let [name, unit] = [row.get(1)?, row.get(5)?];
                let (value, low, high) = (row.get(2)?, row.get(3)?, row.get(4)?);
                Ok((row.get(0)?, Stored { name, value, low, high, unit }))
            })?;
            found.collect::<Result<_, _>>()
        };
        read().map_err(self.error())
    }

    /// Writes a confirming measurement down.
    pub fn confirm(&mut self, found: &Confirmed) -> Result<(), StoreError> {
        let Confirmed { key, figure, old_version, new_version, verdict, p, time } = found;
        let sql = "INSERT INTO confirmations (model, engine, hardware, scenario, figure, \
            old_version, new_version, verdict, p, time) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let parameters = params![
            key.model,
            key.engine,
            key.hardware,
            key.scenario,
            figure,
            old_version,
            new_version,
            verdict.name(),
            p,
            time,
        ];
        self.connection.execute(sql, parameters).map(drop).map_err(self.error())
    }

    /// The confirming measurements, the oldest first.
    pub fn confirmations(&self) -> Result<Vec<Confirmed>, StoreError> {
        let mut found = Vec::new();
        let read = file::each_confirmation(&self.connection, |confirmed| found.push(confirmed));
        read.map(|()| found).map_err(self.error())
    }
}

/// A list as JSON, which SQLite reads as a table.
fn json<T: Serialize + ?Sized>(list: &T) -> String {
    serde_json::to_string(list).unwrap_or_default()
}

/// A text with `*` as a pattern of SQLite, whose other signs stand for themselves.
fn pattern(text: &str) -> String {
    let sign = |sign: char| match sign {
        '[' | '?' => format!("[{sign}]"),
        other => other.to_string(),
    };
    text.chars().map(sign).collect()
}

/// The most bytes of a value, and of all values of an answer.
const VALUE_BYTES: i32 = 1_000_000;

const ANSWER_BYTES: usize = 64_000_000;

/// Steps of SQLite's machine from one look at the clock to the next: well below a millisecond.
const STEPS: i32 = 10_000;

/// The bounds of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub rows: usize,
    pub time: Nanos,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answer {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
    /// True if there are more rows than the bounds allow.
    pub is_cut: bool,
}

impl Store {
    /// Answers a query. Fails if its text is anything but one `SELECT`, or takes too long.
    pub fn query(&mut self, sql: &str, bounds: Bounds) -> Result<Answer, StoreError> {
        let error = self.error();
        let clock = Clock::start();
        let is_late = move || clock.now() > bounds.time;
        self.connection
            .progress_handler(STEPS, Some(is_late))
            .and_then(|()| self.connection.authorizer(Some(reads)))
            .map_err(&error)?;
        self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES).map_err(&error)?;
        self.answer(sql, bounds.rows).map_err(|cause| match cause.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => {
                let seconds = bounds.time.as_secs_f64();
                mistake(format!("it takes longer than {seconds} s; narrow it, or raise --timeout"))
            }
            Some(ErrorCode::AuthorizationForStatementDenied) => {
                mistake("expected one SELECT that reads the index and changes nothing".into())
            }
            Some(ErrorCode::TooBig) => {
                mistake(format!("a value has more than {VALUE_BYTES} bytes; select less"))
            }
            // A name or a word that SQLite does not know.
            Some(ErrorCode::Unknown) => mistake(cause.to_string()),
            Some(_) => error(cause),
            None => mistake(cause.to_string()),
        })
    }

    fn answer(&self, sql: &str, most: usize) -> rusqlite::Result<Answer> {
        let mut statement = self.connection.prepare(sql)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let width = columns.len();
        let mut answer = Answer { columns, rows: Vec::new(), is_cut: false };
        let mut bytes = 0;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if answer.rows.len() == most || bytes > ANSWER_BYTES {
                answer.is_cut = true;
                break;
            }
            let values = (0..width).map(|place| Ok(value(row.get_ref(place)?, &mut bytes)));
            answer.rows.push(values.collect::<rusqlite::Result<_>>()?);
        }
        Ok(answer)
    }
}

fn mistake(cause: String) -> StoreError {
    StoreError::Query { cause }
}

/// Allows the actions of a `SELECT`, and refuses every other action, such as `ATTACH`.
fn reads(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Function { .. }
        | AuthAction::Recursive => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

fn value(found: ValueRef<'_>, bytes: &mut usize) -> Value {
    *bytes += size_of::<Value>();
    match found {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => {
            *bytes += text.len();
            String::from_utf8_lossy(text).into_owned().into()
        }
        ValueRef::Blob(blob) => {
            *bytes += 2 * blob.len();
            model::hex(blob).into()
        }
    }
}
