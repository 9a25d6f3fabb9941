//! Private files and folders of the user. Runs, labs and fleets hold prompts, answers, messages of
//! servers and engines, and process ids that a later start ends. A user who shares a run opens it
//! to others, as with `chmod -R g+rX`.
//!
//! The runner writes all of its own files through this module. A file that the user names, such as
//! a page with `--output`, has the mode of the user's umask.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const FILE: u32 = 0o600;
const FOLDER: u32 = 0o700;
/// The mode's bits by which others than the owner may write.
const OTHERS_WRITE: u32 = 0o022;

/// The reason why a file or a folder is not taken for the user's own.
#[derive(Debug, thiserror::Error)]
pub enum NotOwn {
    /// The system does not show it, or does not make it.
    #[error("{0}")]
    System(#[from] io::Error),
    /// Another user could have put it there, or could change it; the text names the user.
    #[error("{0}")]
    Stranger(String),
}

impl From<NotOwn> for io::Error {
    fn from(error: NotOwn) -> Self {
        match error {
            NotOwn::System(cause) => cause,
            NotOwn::Stranger(who) => io::Error::new(io::ErrorKind::PermissionDenied, who),
        }
    }
}

/// Returns options that open a file for writing, with the mode of a new file; see [`create`] for a
/// file that may be there.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(FILE);
    options
}

/// Opens a file for writing and empties it. Errors: the system's.
pub fn create(path: &Path) -> io::Result<File> {
    closed_to_others(options().create(true).truncate(true).open(path)?)
}

/// Opens a file for writing at its end. Errors: the system's.
pub fn append(path: &Path) -> io::Result<File> {
    closed_to_others(options().append(true).create(true).open(path)?)
}

/// Writes a file, over one that is there. Errors: the system's. Then the file may be there in part.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    create(path)?.write_all(content)
}

/// Writes a file so that at every instant, and after a crash, the old or the new content is whole.
/// Only one process may write it at once. Errors: the system's, and the old content remains.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let part = part(path);
    let written = (|| {
        match fs::remove_file(&part) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        // A new file has its mode from the beginning, and is no link to elsewhere.
        let mut file = options().create_new(true).open(&part)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&part, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

/// Returns the path of a file while it is written.
fn part(path: &Path) -> PathBuf {
    let mut part = OsString::from(path);
    part.push(".part");
    part.into()
}

/// Makes a folder that is not there yet. Errors: the system's, also if it is there.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER).create(path)
}

/// Makes a folder if it is not there. Folders above it get the usual mode. Errors: the system's.
pub fn folder(path: &Path) -> io::Result<()> {
    let made = match create_folder(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            create_folder(path)
        }
        made => made,
    };
    match made {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// As [`folder`], for content that is trusted because of its place: a folder that another user
/// made, or may write to, is refused. Errors: the system's, or who else could have put something
/// there.
pub fn own_folder(path: &Path) -> Result<(), NotOwn> {
    folder(path)?;
    check_folder(path)
}

/// Checks that a folder is this user's alone to write to. Errors: the system's, or who else could
/// have put something there.
pub fn check_folder(path: &Path) -> Result<(), NotOwn> {
    // Neither the folder nor a link to it may be a stranger's.
    for found in [fs::symlink_metadata(path)?, fs::metadata(path)?] {
        check(&found)?;
    }
    Ok(())
}

/// Opens a file for reading that is trusted because of its author. Errors: the system's, or who
/// else could have written it.
pub fn open_own(path: &Path) -> Result<File, NotOwn> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(NotOwn::Stranger("it is not a regular file".to_owned()));
    }
    check(&found)?;
    Ok(file)
}

/// Checks that no other user could have written it.
fn check(found: &Metadata) -> Result<(), NotOwn> {
    let user = rustix::process::geteuid().as_raw();
    let who = if found.uid() != user {
        format!("it belongs to user {}, but this is user {user}", found.uid())
    } else if !found.is_symlink() && found.mode() & OTHERS_WRITE != 0 {
        // A link has no mode of its own.
        format!("other users may write to it (mode {:03o})", found.mode() & 0o777)
    } else {
        return Ok(());
    };
    Err(NotOwn::Stranger(who))
}

/// A file that was there may have had another mode.
fn closed_to_others(file: File) -> io::Result<File> {
    let found = file.metadata()?;
    let mode = found.mode() & 0o777;
    // A device such as /dev/null is not ours to close. Users share a file for reading only.
    if found.is_file() && mode & OTHERS_WRITE != 0 {
        file.set_permissions(fs::Permissions::from_mode(mode & !OTHERS_WRITE))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
