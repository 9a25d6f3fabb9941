//! Answers on disk, if memory is short: in unnamed files beside the records. The files are gone
//! when their answers were read or the run ends, even by a crash.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::lock;

/// The folder into which parts of answers are put.
pub(crate) struct Spool {
    pub(super) folder: PathBuf,
    state: Mutex<State>,
}

/// The size from which a new file is begun. The old one is gone when its last part was read.
const FILE_BYTES: u64 = 64 << 20;

#[derive(Default)]
struct State {
    file: Option<Arc<File>>,
    end: u64,
}

#[derive(Debug)]
pub(super) struct Extent {
    file: Arc<File>,
    at: u64,
    length: usize,
}

impl Spool {
    /// In this folder. Nothing is created before it is needed.
    pub(crate) fn new(folder: &Path) -> Self {
        Spool { folder: folder.to_owned(), state: Mutex::default() }
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<Extent> {
        let mut state = lock(&self.state);
        if state.end >= FILE_BYTES {
            *state = State::default();
        }
        let State { file, end } = &mut *state;
        let file = match file {
            Some(file) => file,
            None => file.insert(Arc::new(tempfile::tempfile_in(&self.folder)?)),
        };
        file.write_all_at(bytes, *end)?;
        let extent = Extent { file: Arc::clone(file), at: *end, length: bytes.len() };
        *end += bytes.len() as u64;
        Ok(extent)
    }
}

impl Extent {
    /// Reads the part, which is not needed again.
    pub(super) fn read(self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.length];
        self.file.read_exact_at(&mut bytes, self.at)?;
        Ok(bytes)
    }
}
