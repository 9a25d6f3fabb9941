//! Finds the runs that a path names: the folder of one, or a folder that holds some, at any depth.
//! A run's folder is not searched further.

use std::io;
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::{FolderError, PLAN, RunFolder};

/// The run in this folder, or all the runs below it, in the order of their start times. Fails if
/// there is none, or if a folder cannot be listed.
pub fn runs(path: &Path) -> Result<Vec<RunFolder>, FolderError> {
    let mut found = Vec::new();
    search(path, &mut found)?;
    if found.is_empty() {
        return Err(FolderError::NoRun { path: path.to_owned() });
    }
    let mut timed = Vec::with_capacity(found.len());
    for run in found {
        timed.push((began(&run)?, run));
    }
    // Runs without a known time come last. Names order runs that began in the same instant.
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
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            FolderError::NoRun { path: path.to_owned() }
        }
        _ => FolderError::List { path: path.to_owned(), cause },
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

/// Finds the beginning of a run, to the second: from its status or, if it was killed, from its
/// folder's name.
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

/// The origin of a run's instants: see [`RunFolder::origin`].
pub(super) fn origin(run: &RunFolder) -> Result<Option<u64>, FolderError> {
    if let Some(origin) = run.status()?.and_then(|status| status.origin) {
        return Ok(Some(origin));
    }
    let stamp = began(run)?.and_then(|stamp| DateTime::strptime(super::STAMP, stamp).ok());
    let zoned = stamp.and_then(|stamp| stamp.to_zoned(TimeZone::UTC).ok());
    Ok(zoned.and_then(|zoned| u64::try_from(zoned.timestamp().as_nanosecond()).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a run's folder, with a status if it ended.
    fn run(parent: &Path, name: &str, started: Option<&str>) {
        let folder = parent.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(PLAN), "{}").unwrap();
        if let Some(started) = started {
            let status = format!(
                r#"{{"started": "{started}", "ended": "{started}", "interrupted": false}}"#
            );
            std::fs::write(folder.join("status.json"), status).unwrap();
        }
    }

    fn found(path: &Path, below: &Path) -> Vec<String> {
        let runs = runs(path).unwrap();
        let name = |run: &RunFolder| run.path().strip_prefix(below).unwrap().display().to_string();
        runs.iter().map(name).collect()
    }

    #[test]
    fn runs_below_come_in_the_order_in_which_they_began() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        run(root, "z", Some("2026-01-02T03:04:05.6Z"));
        run(root, "deep/er/a", Some("2026-01-02T03:04:06Z"));
        run(root, "20260102-030400-killed", None);
        run(root, "renamed", None);
        run(root, "z/within-a-run", Some("2020-01-01T00:00:00Z"));
        std::fs::create_dir(root.join("empty")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root, root.join("deep/circle")).unwrap();
            std::os::unix::fs::symlink(root.join("z"), root.join("deep/y")).unwrap();
        }
        let mut expected = vec!["20260102-030400-killed", "z", "deep/er/a", "renamed"];
        if cfg!(unix) {
            expected.insert(1, "deep/y");
        }
        assert_eq!(found(root, root), expected);
        assert_eq!(found(&root.join("z"), root), ["z"]);
    }

    #[test]
    fn missing_run_error_states_the_expected_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [folder.path(), &file, &folder.path().join("nowhere")] {
            let error = runs(path).unwrap_err().to_string();
            assert!(error.contains("expected a `plan.json`"), "{error}");
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }
}
