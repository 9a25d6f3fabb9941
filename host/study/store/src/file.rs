//! The file of the index: making, opening, checking and moving it aside.
//!
//! A new file is made beside its place and then linked there, so that a file under its name is
//! always whole. Its form is a number in its header; a program refuses forms that it does not know.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io};

use rusqlite::{Connection, OpenFlags};

use crate::{Store, StoreError, key};
use model::private;
use trend::{Confirmed, Verdict};

/// The time to wait for other programs that write.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The mark of an index of runs in the header of SQLite: `runs` in ASCII.
const MARK: i64 = 0x7275_6e73;

/// The form of the tables.
const FORM: i64 = 1;

const TABLES: &str = "
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, started TEXT NOT NULL,
    name TEXT NOT NULL, model TEXT, engine TEXT, hardware TEXT, scenario TEXT NOT NULL,
    engine_version TEXT, plan TEXT, plugins TEXT, program TEXT, machine TEXT, verdict TEXT,
    requests INTEGER, successful INTEGER, source TEXT NOT NULL
) STRICT;
CREATE INDEX runs_by_start ON runs (started, id);
CREATE INDEX runs_by_key ON runs (model, engine, hardware, scenario, started, id);
CREATE TABLE figures (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL,
    value REAL NOT NULL, low REAL, high REAL, unit TEXT NOT NULL, PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE tags (
    run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, name TEXT NOT NULL,
    value TEXT NOT NULL, PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE confirmations (
    id INTEGER PRIMARY KEY AUTOINCREMENT, model TEXT, engine TEXT, hardware TEXT,
    scenario TEXT NOT NULL, figure TEXT NOT NULL, old_version TEXT NOT NULL,
    new_version TEXT NOT NULL, verdict TEXT NOT NULL, p REAL NOT NULL, time TEXT NOT NULL
) STRICT;
";

/// The use of an opened index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read,
    Write,
}

pub(crate) fn open(path: &Path, mode: Mode) -> Result<Store, StoreError> {
    if !path.exists() {
        match mode {
            Mode::Read => return Err(StoreError::Absent { path: path.to_owned() }),
            Mode::Write => create(path)?,
        }
    }
    let store = Store { connection: connect(path, mode)?, path: path.to_owned() };
    let number = |name: &str| {
        let read = store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map_err(store.error())
    };
    let (mark, form) = (number("application_id")?, number("user_version")?);
    if mark != MARK {
        // A file without a byte is a database without tables to SQLite.
        return Err(match fs::metadata(path) {
            Ok(found) if found.len() == 0 => {
                StoreError::Damaged { path: path.to_owned(), cause: "the file is empty".into() }
            }
            _ => StoreError::Foreign { path: path.to_owned() },
        });
    }
    if form != FORM {
        return Err(StoreError::Newer { path: path.to_owned(), found: form, known: FORM });
    }
    Ok(store)
}

fn connect(path: &Path, mode: Mode) -> Result<Connection, StoreError> {
    let rights = match mode {
        Mode::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Mode::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
    };
    let error = |cause| StoreError::of(path, cause);
    let flags = rights | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(error)?;
    connection.busy_timeout(PATIENCE).map_err(error)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(error)?;
    // After a crash of the machine the last runs may lack; their folders do not.
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(error)?;
    Ok(connection)
}

/// Makes an empty index, unless another program is faster.
fn create(path: &Path) -> Result<(), StoreError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let system = |cause| StoreError::System { path: path.to_owned(), cause };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private::folder(folder).map_err(system)?;
    }
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let part = with(path, &format!(".{}-{number}.part", std::process::id()));
    private::options().create_new(true).open(&part).map_err(system)?;
    let made = connect(&part, Mode::Write).and_then(|connection| {
        let batch = format!(
            "PRAGMA journal_mode = WAL; BEGIN; {TABLES} PRAGMA application_id = {MARK}; \
            PRAGMA user_version = {FORM}; COMMIT;"
        );
        connection.execute_batch(&batch).map_err(|cause| StoreError::of(path, cause))
    });
    let placed = made.and_then(|()| match fs::hard_link(&part, path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems have no links.
        Err(_) if !path.exists() => fs::rename(&part, path).map_err(system),
        _ => Ok(()),
    });
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(with(&part, end));
    }
    placed
}

/// A path with an end after its name.
fn with(path: &Path, end: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(end);
    path.into()
}

/// An index to be made again: its runs are to be added.
#[derive(Debug)]
pub struct Rebuilt {
    pub store: Store,
    /// The folders of the runs that it had, with their tags.
    pub known: BTreeMap<String, BTreeMap<String, String>>,
    /// The new place of the damaged file; absent if the file was whole.
    pub aside: Option<PathBuf>,
}

/// Prepares an index to be made again. A damaged file is moved aside, and an empty index with its
/// confirmations takes its place. Fails if the file is of another program, or of a newer one.
pub fn rebuild(path: &Path) -> Result<Rebuilt, StoreError> {
    let is_whole = |store: Store| {
        let checked = store.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0));
        let checked: String = checked.map_err(store.error())?;
        match checked.as_str() {
            "ok" => Ok(store),
            wrong => Err(StoreError::Damaged { path: path.to_owned(), cause: wrong.to_owned() }),
        }
    };
    match open(path, Mode::Write).and_then(is_whole) {
        Ok(store) => {
            let known = read_known(&store.connection);
            Ok(Rebuilt { store, known, aside: None })
        }
        Err(StoreError::Damaged { .. }) => {
            let mut confirmed: Vec<Confirmed> = Vec::new();
            let known = connect(path, Mode::Write).map(|old| {
                // The part before the damage is all there is.
                let _ = each_confirmation(&old, |one| confirmed.push(one));
                read_known(&old)
            });
            let aside = move_aside(path)?;
            let mut store = open(path, Mode::Write)?;
            confirmed.iter().try_for_each(|one| store.confirm(one))?;
            Ok(Rebuilt { store, known: known.unwrap_or_default(), aside: Some(aside) })
        }
        Err(error) => Err(error),
    }
}

/// Reads the paths of runs and their tags, as many as a damaged file gives: the table and the index
/// of its paths lie in different pages.
fn read_known(connection: &Connection) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut runs: BTreeMap<i64, String> = BTreeMap::new();
    let mut read = |sql: &str| {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            runs.insert(row.get(0)?, row.get(1)?);
        }
        Ok::<(), rusqlite::Error>(())
    };
    // The part before the damage is all there is.
    let _ = read("SELECT id, path FROM runs NOT INDEXED");
    let _ = read("SELECT id, path FROM runs ORDER BY path");
    let tags = |id: i64| {
        let mut statement = connection.prepare("SELECT name, value FROM tags WHERE run = ?1")?;
        let tags = statement.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        tags.collect::<rusqlite::Result<_>>()
    };
    runs.into_iter().map(|(id, path)| (path, tags(id).unwrap_or_default())).collect()
}

/// Calls a function with each confirming measurement, the oldest first.
pub(crate) fn each_confirmation(
    connection: &Connection,
    mut found: impl FnMut(Confirmed),
) -> rusqlite::Result<()> {
    let sql = "SELECT model, engine, hardware, scenario, figure, old_version, new_version, \
        verdict, p, time FROM confirmations ORDER BY id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let verdict: String = row.get(7)?;
        // A newer program may know further verdicts.
        let Ok(verdict) = verdict.parse::<Verdict>() else { continue };
        found(Confirmed {
            key: key(row, 0)?,
            figure: row.get(4)?,
            old_version: row.get(5)?,
            new_version: row.get(6)?,
            verdict,
            p: row.get(8)?,
            time: row.get(9)?,
        });
    }
    Ok(())
}

/// Renames a file and its log: a log left behind would be read into the new file.
fn move_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let names = std::iter::once(String::new()).chain((2..).map(|number| format!("-{number}")));
    let mut free = names.map(|number| with(path, &format!(".damaged{number}")));
    let aside = free.find(|path| !path.exists()).unwrap_or_else(|| with(path, ".damaged"));
    for end in ["", "-wal", "-shm"] {
        match fs::rename(with(path, end), with(&aside, end)) {
            Err(cause) if end.is_empty() || cause.kind() != io::ErrorKind::NotFound => {
                return Err(StoreError::System { path: path.to_owned(), cause });
            }
            _ => {}
        }
    }
    Ok(aside)
}
