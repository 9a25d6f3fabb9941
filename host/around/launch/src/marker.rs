//! The file that says which engine runs, and whose it is: what a later start needs to find an
//! engine whose runner was killed.
//!
//! A marker makes a later start end processes, so it is believed only where nobody else can have
//! written it: the folder and the file belong to this user, and others may not write to them.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::family::Family;
use crate::process::{Id, Table};
use model::private;

/// The version of the format.
const VERSION: u32 = 1;

/// No marker is larger.
const LARGEST: u64 = 1 << 20;

/// No more markers of one folder are looked at.
const MOST: usize = 1_000;

const EXTENSION: &str = "engine";

/// A marker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Marker {
    version: u32,
    /// The engine's name.
    pub name: String,
    /// The command, without secrets.
    pub command: Vec<String>,
    /// The place where it listens.
    pub host: String,
    /// The port on which it listens.
    pub port: u16,
    /// The place where its output is.
    pub log: PathBuf,
    /// The time that it may take to end after SIGTERM, in seconds.
    pub stop_timeout_s: f64,
    /// The system's start in which it runs.
    pub boot: Option<String>,
    /// The namespace in which its identifiers have a meaning.
    pub namespace: Option<String>,
    /// The runner that started it.
    pub owner: Id,
    pub family: Family,
}

impl Marker {
    /// Of an engine that this process starts.
    pub fn new(
        table: &Table,
        name: String,
        command: Vec<String>,
        (host, port): (String, u16),
        log: PathBuf,
        stop_timeout_s: f64,
        family: Family,
    ) -> Self {
        Marker {
            version: VERSION,
            name,
            command,
            host,
            port,
            log,
            stop_timeout_s,
            boot: table.boot(),
            namespace: table.namespace(),
            owner: table.own(),
            family,
        }
    }

    /// The place where the marker of a launch lies.
    pub fn path(folder: &Path, launch: &str) -> PathBuf {
        folder.join(format!("{launch}.{EXTENSION}"))
    }

    /// Writes it, so that at every instant there is a whole one.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        private::own_folder(folder)?;
        let path = Marker::path(folder, &self.family.launch);
        private::replace(&path, &serde_json::to_vec_pretty(self)?)
    }

    /// Removes it. One that stays is looked at by the next start, which finds nothing then.
    pub fn remove(&self, folder: &Path) {
        let _ = fs::remove_file(Marker::path(folder, &self.family.launch));
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it cannot be read, if another user could have written it, or if it is none of this
    /// version. The text says what to do.
    pub fn read(path: &Path) -> Result<Self, String> {
        let mut text = String::new();
        let file = private::open_own(path).map_err(|error| error.to_string())?;
        let read = file.take(LARGEST).read_to_string(&mut text);
        read.map_err(|error| error.to_string())?;
        let marker: Marker = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match marker.version {
            VERSION => Ok(marker),
            other => {
                Err(format!("it has version {other}, and this runner reads version {VERSION}"))
            }
        }
    }

    /// The markers in a folder, in the order of their names.
    ///
    /// # Errors
    /// If the folder cannot be read, or another user could have put something there.
    pub fn all(folder: &Path) -> io::Result<Vec<PathBuf>> {
        match private::check_folder(folder).map_err(io::Error::from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            checked => checked?,
        }
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut paths = paths?;
        paths.retain(|path| path.extension().is_some_and(|it| it == EXTENSION));
        paths.sort();
        paths.truncate(MOST);
        Ok(paths)
    }
}
