//! Finds the runs that a path names: the folder of one, or a folder that holds some, at whatever
//! depth. What lies in a run's folder is the run's and is not searched.

use std::io;
use std::path::{Path, PathBuf};

use super::{FolderError, PLAN, RunFolder};

/// The run whose folder this is, or all the runs below it, in the order in which they began.
///
/// # Errors
/// Where there is none, or a folder cannot be listed.
pub fn runs(path: &Path) -> Result<Vec<RunFolder>, FolderError> {
    let mut found = Vec::new();
    search(path, &mut found)?;
    if found.is_empty() {
        return Err(FolderError::NoRun {
            path: path.to_owned(),
        });
    }
    let mut timed = Vec::with_capacity(found.len());
    for run in found {
        timed.push((began(&run)?, run));
    }
    // Runs without a known time come last. Names settle what began in the same instant.
    timed.sort_by(|(a, run), (b, other)| {
        (a.is_none(), a, run.path()).cmp(&(b.is_none(), b, other.path()))
    });
    Ok(timed.into_iter().map(|(_, run)| run).collect())
}

fn search(path: &Path, found: &mut Vec<RunFolder>) -> Result<(), FolderError> {
    if path.join(PLAN).is_file() {
        found.push(RunFolder::at(path));
        return Ok(());
    }
    let cannot = |cause: io::Error| match cause.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FolderError::NoRun {
            path: path.to_owned(),
        },
        _ => FolderError::List {
            path: path.to_owned(),
            cause,
        },
    };
    let mut below: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let kind = entry.file_type().map_err(cannot)?;
        // A link to a run is followed, one to any other folder is not: it may lead in a circle.
        let linked = kind.is_symlink() && entry.path().join(PLAN).is_file();
        if kind.is_dir() || linked {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|path| search(path, found))
}

/// When a run began, to the second: as it says, or, where it was killed, as its folder's name does.
fn began(run: &RunFolder) -> Result<Option<String>, FolderError> {
    if let Some(status) = run.status()?
        && let Ok(started) = status.started.parse::<jiff::Timestamp>()
    {
        return Ok(Some(started.strftime(super::STAMP).to_string()));
    }
    let name = run.path().file_name().map(|name| name.to_string_lossy());
    let stamp = name.as_deref().and_then(|name| name.get(..15));
    let is_stamp = |stamp: &&str| {
        stamp.bytes().enumerate().all(|(place, byte)| match place {
            8 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    };
    Ok(stamp.filter(is_stamp).map(str::to_owned))
}
