//! Files that are written completely or not at all, and the destination of a report: such a file,
//! or stdout.

use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::print::wrote;
use model::{clean, private};

/// The destination of a report. Without [`Destination::finish`], no file is left behind.
pub enum Destination {
    Stdout(BufWriter<Stdout>),
    /// A new file next to the file to replace.
    Beside {
        path: PathBuf,
        part: PathBuf,
        file: BufWriter<File>,
    },
    /// Something that is not a regular file, such as a pipe or a device, and cannot be replaced.
    Through {
        path: PathBuf,
        file: BufWriter<File>,
    },
}

impl Destination {
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Destination::Stdout(BufWriter::new(io::stdout())));
        }
        let opened = match std::fs::metadata(path) {
            Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(there) if !there.is_file() => {
                let opened = File::options().write(true).open(path);
                let path = path.to_owned();
                opened.map(|file| Destination::Through { path, file: BufWriter::new(file) })
            }
            // Replace the file that a link leads to, not the link.
            Ok(_) => path.canonicalize().and_then(|path| beside(&path)),
            Err(_) => beside(path),
        };
        opened.map_err(|cause| cannot(path, &cause))
    }

    /// Writes text, without control characters, and returns true if anyone still reads it.
    pub fn text(&mut self, part: &str) -> Result<bool, Failure> {
        self.bytes(clean::text(part).as_bytes())
    }

    /// Writes JSON, without changing its meaning, and returns true if anyone still reads it.
    pub fn json(&mut self, part: &str) -> Result<bool, Failure> {
        self.text(&clean::json(part))
    }

    /// Writes a picture or a part of it, and returns true if anyone still reads it.
    pub fn bytes(&mut self, part: &[u8]) -> Result<bool, Failure> {
        match self {
            Destination::Stdout(out) => wrote(out.write_all(part)),
            Destination::Beside { path, file, .. } | Destination::Through { path, file } => {
                let written = file.write_all(part);
                written.map_err(|cause| cannot(path, &cause))?;
                Ok(true)
            }
        }
    }

    /// Ends the report: a file appears under its name.
    pub fn finish(mut self) -> Result<(), Failure> {
        match &mut self {
            Destination::Stdout(out) => wrote(out.flush()).map(drop),
            Destination::Through { path, file } => {
                file.flush().map_err(|cause| cannot(path, &cause))
            }
            Destination::Beside { path, part, file } => {
                let placed = file.flush().and_then(|()| std::fs::rename(&part, &path));
                placed.map_err(|cause| cannot(path, &cause))
            }
        }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Destination::Beside { part, .. } = self {
            // It exists only if the report was not finished.
            let _ = std::fs::remove_file(part);
        }
    }
}

fn beside(path: &Path) -> io::Result<Destination> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut part = name.to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(part);
    let file = BufWriter::new(File::create(&part)?);
    Ok(Destination::Beside { file, path: path.to_owned(), part })
}

fn cannot(path: &Path, cause: &io::Error) -> Failure {
    Failure::write(path, "; give a writable file with --output")(cause)
}

/// Writes a file completely or not at all.
pub(super) fn replace(path: &Path, content: &[u8]) -> Result<(), Failure> {
    private::replace(path, content).map_err(Failure::write(path, ""))
}
