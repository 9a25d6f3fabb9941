//! A file that a plugin has open: what the sandbox reads for it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A file opened by a plugin.
pub struct OpenFile {
    file: File,
    pub(super) size: u64,
}

impl OpenFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(OpenFile { file, size })
    }

    /// Reads at most `length` bytes from `offset` on.
    pub(super) fn read_at(&self, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        let left = self.size.saturating_sub(offset);
        let length = u64::from(length).min(left);
        if length == 0 {
            // Systems refuse to seek far past the end.
            return Ok(Vec::new());
        }
        let mut bytes = Vec::with_capacity(length as usize);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.take(length).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
