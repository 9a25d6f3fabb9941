//! The files of a recording. Owns rotation, and the file's state after a failed write.
//!
//! Each row is written with one call, so a killed process leaves whole rows. After a failed write,
//! as on a full disk, the file is cut back to its last whole row, and the next row tries again.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use model::private;

/// The file that rows go to.
pub(crate) struct RowFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// Bytes after which the next file begins.
    most: u64,
    /// The files that are full.
    full: u32,
}

impl RowFile {
    /// Begins a file that must not exist. Errors: the system's.
    pub(crate) fn begin(path: &Path, most: u64) -> io::Result<Self> {
        let file = private::options().create_new(true).open(path)?;
        Ok(RowFile { path: path.to_owned(), file, length: 0, most, full: 0 })
    }

    /// Writes a row, in the next file if this one is full. Errors: the system's; then the row is
    /// lost, and the file has whole rows.
    pub(crate) fn write(&mut self, row: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length + row.len() as u64 > self.most {
            self.rotate()?;
        }
        let written = self.file.write_all(row);
        if written.is_err() {
            self.file.set_len(self.length)?;
            io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.length))?;
            return written;
        }
        self.length += row.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let path = numbered(&self.path, self.full + 1);
        self.file = private::options().create_new(true).open(path)?;
        self.full += 1;
        self.length = 0;
        Ok(())
    }

    /// The paths of all files.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        (0..=self.full).map(|number| numbered(&self.path, number)).collect()
    }
}

/// The path of the file of this number: `traffic.jsonl`, `traffic.1.jsonl` and so on.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}.{number}.{}", extension.to_string_lossy()),
        None => format!("{stem}.{number}"),
    };
    path.with_file_name(name)
}
