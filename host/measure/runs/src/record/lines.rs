//! The lines of a file of records, or of devices. A few bytes of a compressed file can become any
//! number of bytes, so the part in memory has a bound.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use zstd::stream::read::Decoder;

use super::{FILE, LONGEST_LINE, RecordError};

/// Powers of two: the most memory that a file may ask for to be decompressed. The recorder asks for
/// less.
const WINDOW_LOG: u32 = 23;

pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
}

impl Lines<BufReader<Decoder<'static, BufReader<File>>>> {
    /// Opens the lines of the records in a run's folder.
    pub fn open(folder: &Path) -> Result<Self, RecordError> {
        Lines::of_file(&folder.join(FILE))
    }

    pub fn of_file(path: &Path) -> Result<Self, RecordError> {
        Lines::at(path).map_err(|cause| RecordError::Read { path: path.to_owned(), cause })
    }

    /// Opens the lines of a compressed file.
    pub fn at(path: &Path) -> io::Result<Self> {
        let mut decoder = Decoder::new(File::open(path)?)?;
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(Lines::new(BufReader::with_capacity(1 << 20, decoder)))
    }
}

impl<R: BufRead> Lines<R> {
    pub fn new(reader: R) -> Self {
        Lines { reader, line: Vec::new() }
    }

    /// The next line with its end; nothing at the end of the file. Fails if the file goes on, but
    /// is damaged, or ends within a line: the last write of a run that was killed.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        loop {
            let held = self.reader.fill_buf()?;
            if held.is_empty() {
                return if self.line.is_empty() {
                    Ok(None)
                } else {
                    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ends within a line"))
                };
            }
            let end = memchr::memchr(b'\n', held);
            let taken = end.map_or(held.len(), |end| end + 1);
            if self.line.len() + taken > LONGEST_LINE {
                let words = format!("a line is longer than {} MiB", LONGEST_LINE >> 20);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
            }
            self.line.extend_from_slice(&held[..taken]);
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(Some(&self.line));
            }
        }
    }
}
