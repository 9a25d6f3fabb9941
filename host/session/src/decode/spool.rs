//! Answers on disk, for when there is no more room for them in memory: one file without a name beside the records,
//! which is gone when the run ends, however it ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where parts of answers are put.
pub(crate) struct Spool {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<File>,
    end: u64,
    /// Parts that were not read yet.
    parts: u64,
}

/// Where a part is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    at: u64,
    length: usize,
}

impl Spool {
    /// In this folder. Nothing is created before it is needed.
    pub(crate) fn new(folder: &Path) -> Self {
        Spool {
            folder: folder.to_owned(),
            state: Mutex::default(),
        }
    }

    /// Where its file is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a part.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<Extent> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { file, end, parts } = &mut *state;
        let file = match file {
            Some(file) => file,
            None => file.insert(tempfile::tempfile_in(&self.folder)?),
        };
        if *parts == 0 {
            *end = 0;
        }
        file.write_all_at(bytes, *end)?;
        let extent = Extent {
            at: *end,
            length: bytes.len(),
        };
        *end += bytes.len() as u64;
        *parts += 1;
        Ok(extent)
    }

    /// Reads a part, which is not needed again.
    pub(super) fn read(&self, extent: Extent) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parts = state.parts.saturating_sub(1);
        let Some(file) = &state.file else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let mut bytes = vec![0; extent.length];
        file.read_exact_at(&mut bytes, extent.at)?;
        Ok(bytes)
    }
}
