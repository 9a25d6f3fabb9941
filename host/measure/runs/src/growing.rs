//! A file of a run that grows line by line during the run: JSON, compressed. It is flushed every
//! second of its entries' time, so it is readable up to the last flush, however the run ends.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::record::{Lines, RecordError, Written};
use model::private;
use model::units::Nanos;

/// The most time of entries that may be lost with the process.
const FLUSH: Nanos = Nanos(1_000_000_000);
/// A light compression: it must not compete with the run for the processor.
const LEVEL: i32 = 1;
/// After this number of lines in a row that are no entries, the rest of a file is not read.
const MOST_UNREADABLE: u32 = 1_000;

pub(crate) struct LineFile {
    path: PathBuf,
    out: Packed,
    flushed: Nanos,
    failed: Option<io::Error>,
    count: u64,
    digest: Sha256,
}

pub(crate) type Packed = zstd::stream::write::Encoder<'static, File>;

pub(crate) fn create(path: &Path) -> Result<Packed, RecordError> {
    let file = private::options().create_new(true).open(path);
    file.and_then(|file| Packed::new(file, LEVEL))
        .map_err(|cause| RecordError::Write { path: path.to_owned(), cause })
}

impl LineFile {
    pub(crate) fn create(folder: &Path, name: &str) -> Result<Self, RecordError> {
        let path = folder.join(name);
        let (out, digest) = (create(&path)?, Sha256::new());
        Ok(LineFile { path, out, flushed: Nanos::ZERO, failed: None, count: 0, digest })
    }

    /// Adds an entry; one without an instant is written out at once. Nothing after an error.
    pub(crate) fn write(&mut self, entry: &impl Serialize, at: Option<Nanos>) {
        if self.failed.is_none()
            && let Err(error) = self.add(entry, at)
        {
            self.failed = Some(error);
        }
    }

    fn add(&mut self, entry: &impl Serialize, at: Option<Nanos>) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.out.write_all(&line)?;
        self.count += 1;
        self.digest.update(&line);
        match at {
            Some(at) if at.since(self.flushed) < FLUSH => return Ok(()),
            Some(at) => self.flushed = at,
            None => {}
        }
        self.out.flush()
    }

    /// Ends the file, and returns the counts of its lines, or the first error of writing.
    pub(crate) fn finish(self) -> Result<Written, RecordError> {
        let closed = self.out.finish().and_then(|file| file.sync_all());
        let closed = self.failed.map_or(closed, Err);
        closed.map_err(|cause| RecordError::Write { path: self.path, cause })?;
        Ok(Written { count: self.count, sha256: model::hex(&self.digest.finalize()) })
    }
}

/// Reads a file's entries up to its first damage, if it exists; returns their number and the lines.
pub(crate) fn read<E: DeserializeOwned>(
    folder: &Path,
    name: &str,
    mut enter: impl FnMut(E),
) -> Result<Option<(u64, Written)>, RecordError> {
    let path = folder.join(name);
    let mut lines = match Lines::at(&path) {
        Ok(lines) => lines,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(RecordError::Read { path, cause }),
    };
    let (mut entries, mut unreadable) = (0u64, 0);
    let (mut count, mut digest) = (0, Sha256::new());
    // A run that was killed ends within a line.
    while let Ok(Some(line)) = lines.next_line() {
        count += 1;
        digest.update(line);
        match serde_json::from_slice::<E>(line) {
            Ok(entry) => {
                enter(entry);
                (entries, unreadable) = (entries + 1, 0);
            }
            Err(_) => unreadable += 1,
        }
        if unreadable >= MOST_UNREADABLE {
            break;
        }
    }
    Ok(Some((entries, Written { count, sha256: model::hex(&digest.finalize()) })))
}
