//! A cache between processes of artifacts that take long to make: compiled plugins and the tables
//! of tokenizers, each a tenth of a second or more. Reading them takes a few milliseconds.
//!
//! Nothing in the folder is trusted, because compiled plugins run outside any sandbox. The folder
//! must belong to the user. Each file records its kind, its source, its maker and the digest of its
//! contents. A problem with a file is never an error: the file is made anew, and the user is
//! warned. A missing or unwritable file is not even reported.
//!
//! This crate owns the folder and the headers of its files. The meaning of the contents is left to
//! the callers that store them.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]

use std::fs::{self, FileTimes};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sha2::{Digest, Sha256};

use model::private::{self, NotOwn};
use model::{clock, hex};

/// Length of the header: magic bytes, source, maker, digest of the contents.
const HEADER: usize = 16 + 3 * 32;
/// Extensions of complete and of incomplete files.
const ENDING: &str = ".artifact";
const UNFINISHED: &str = ".unfinished";
/// The size limit of all files together; beyond it, the least recently used files are removed.
const FOLDER_BYTES: u64 = 1 << 30;
const FILE_BYTES: u64 = 512 << 20;
/// Files unused for this long are removed in any case.
const UNUSED: Duration = Duration::from_secs(60 * 24 * 3600);
/// The precision of the date of the last use.
const DAY: Duration = Duration::from_secs(24 * 3600);

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Keeps caches in a folder, and creates it if needed. Call this before the first cache is opened;
/// later calls have no effect.
pub fn keep_in(folder: PathBuf) {
    let _ = FOLDER.set(folder);
}

/// The kind of artifacts that a cache holds.
#[derive(Debug)]
pub struct Kind {
    /// The magic bytes of its files. Another layout has other magic bytes.
    pub magic: &'static [u8; 16],
    /// Its name with an article, such as `a compiled plugin`.
    pub name: &'static str,
    /// Its source, such as `component`.
    pub source: &'static str,
    /// The part of the program that makes and reads it, such as `compiler`.
    pub maker: &'static str,
}

/// A folder with the artifacts of one kind and one maker.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    kind: &'static Kind,
    /// Tells builds, versions and settings of the maker apart.
    maker: [u8; 32],
}

/// The result of a search for a digest in a cache.
#[derive(Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The contents that were put there, unchanged.
    Whole(Contents),
    Nothing,
    Wrong(String),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Contents(Vec<u8>);

impl std::ops::Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0[HEADER..]
    }
}

impl Cache {
    /// The cache in the folder that was set, if any and if it can be created. Errors: a message, if
    /// other users may write to it.
    pub fn opened(kind: &'static Kind, maker: [u8; 32]) -> Result<Option<Self>, String> {
        let cache = |folder: &PathBuf| Cache::at(folder, kind, maker);
        FOLDER.get().map_or(Ok(None), cache)
    }

    /// The cache in a folder, if that can be created. Errors: a message, if other users may write
    /// to it.
    pub fn at(folder: &Path, kind: &'static Kind, maker: [u8; 32]) -> Result<Option<Self>, String> {
        match private::own_folder(folder) {
            Ok(()) => Ok(Some(Cache { folder: folder.to_owned(), kind, maker })),
            Err(NotOwn::System(_)) => Ok(None),
            Err(NotOwn::Stranger(who)) => Err(format!(
                "the cache of compiled plugins and tokenizers in {} is not used: {who}; name a folder of your own with --cache-dir",
                folder.display()
            )),
        }
    }

    /// Looks for the artifact of a source, by the SHA-256 of the source's file in hexadecimal.
    pub fn find(&self, digest: &str) -> Lookup {
        let read = match read(&self.path(digest)) {
            Ok(read) => read,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Lookup::Nothing,
            Err(cause) => Err(format!("cannot be read: {cause}")),
        };
        match read.and_then(|bytes| self.checked(digest, bytes)) {
            Ok(contents) => Lookup::Whole(contents),
            Err(what) => Lookup::Wrong(self.wrong(digest, &what)),
        }
    }

    /// Describes a mistake in the contents under a digest, for callers that find one.
    pub fn wrong(&self, digest: &str, mistake: &str) -> String {
        format!("its cached form {} {mistake}", self.path(digest).display())
    }

    /// Stores an artifact. A concurrent reader finds all of it or nothing.
    pub fn put(&self, digest: &str, contents: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut header = self.header(digest);
        header.extend(Sha256::digest(contents));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.folder.join(format!("{}-{number}{UNFINISHED}", std::process::id()));
        let written = (|| {
            let _ = fs::remove_file(&unfinished);
            let mut file = private::options().create_new(true).open(&unfinished)?;
            file.write_all(&header)?;
            file.write_all(contents)?;
            Ok(())
        })();
        let kept = written.and_then(|()| {
            fs::rename(&unfinished, self.path(digest))?;
            self.tidy()
        });
        if kept.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        kept
    }

    pub fn path(&self, digest: &str) -> PathBuf {
        let maker = hex(&self.maker[..8]);
        self.folder.join(format!("{digest}-{maker}{ENDING}"))
    }

    /// The contents of a file, or the fault of the file.
    fn checked(&self, digest: &str, bytes: Vec<u8>) -> Result<Contents, String> {
        let Kind { magic, name, source, maker } = self.kind;
        let header = self.header(digest);
        let Some((found, contents)) = bytes.split_at_checked(HEADER) else {
            return Err("is truncated".to_owned());
        };
        let (found, sum) = found.split_at(header.len());
        let of_source = magic.len()..magic.len() + 32;
        if found[..magic.len()] != **magic {
            return Err(format!("is not {name}"));
        }
        if found[of_source.clone()] != header[of_source] {
            return Err(format!("belongs to another {source}"));
        }
        if found != header {
            return Err(format!("was written by another version of the {maker}"));
        }
        if Sha256::digest(contents)[..] != *sum {
            return Err("was changed after it was written, or is truncated".to_owned());
        }
        Ok(Contents(bytes))
    }

    /// The header of a file, up to the digest of its contents.
    fn header(&self, digest: &str) -> Vec<u8> {
        let mut header = self.kind.magic.to_vec();
        header.extend((0..32).map(|at| {
            let pair = digest.get(2 * at..2 * at + 2).unwrap_or_default();
            u8::from_str_radix(pair, 16).unwrap_or_default()
        }));
        header.extend(self.maker);
        header
    }

    /// Removes files that are long unused, exceed the size limit, or were never finished.
    fn tidy(&self) -> io::Result<()> {
        let now = clock::date();
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let (Ok(metadata), true) =
                (entry.metadata(), name.ends_with(ENDING) || name.ends_with(UNFINISHED))
            else {
                continue;
            };
            let unused = now.duration_since(metadata.modified()?).unwrap_or_default();
            let most = if name.ends_with(ENDING) { UNUSED } else { DAY };
            if unused > most {
                fs::remove_file(entry.path())?;
            } else if name.ends_with(ENDING) {
                kept.push((unused, metadata.len(), entry.path()));
            }
        }
        kept.sort();
        let mut bytes = 0_u64;
        for (_, length, path) in kept {
            bytes = bytes.saturating_add(length);
            if bytes > FOLDER_BYTES {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// Reads a file that only this user may write; the inner error names the fault of the file.
fn read(path: &Path) -> io::Result<Result<Vec<u8>, String>> {
    let mut file = match private::open_own(path) {
        Ok(file) => file,
        Err(NotOwn::System(cause)) => return Err(cause),
        Err(NotOwn::Stranger(who)) => return Ok(Err(format!("is not used: {who}"))),
    };
    let metadata = file.metadata()?;
    if metadata.len() > FILE_BYTES {
        return Ok(Err(format!("is of {} bytes", metadata.len())));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    Read::by_ref(&mut file).take(FILE_BYTES).read_to_end(&mut bytes)?;
    let now = clock::date();
    if now.duration_since(metadata.modified()?).is_ok_and(|unused| unused > DAY) {
        // If its date cannot be set, the date of writing stays.
        let _ = file.set_times(FileTimes::new().set_modified(now));
    }
    Ok(Ok(bytes))
}

#[cfg(test)]
mod tests;
