//! Records: one line of JSON per exchange, compressed, written by one thread during the run.
//!
//! The file only grows and is flushed every second, so however the run ends, the file is readable
//! up to the last flush. Reading ([`read`]) uses every record that can be read; [`check`](check())
//! says whether those are all that were written.

mod check;
mod columns;
pub(crate) mod lines;
mod merge;

use std::io::{self, BufRead, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use sha2::{Digest, Sha256};

use crate::growing::{self, Packed};
use columns::Columns;
use lines::Lines;
use model::exchange::Exchange;

pub use check::{RunEnd, check};
pub use merge::{Part, merge};

/// The records' file name in a run's folder.
pub const FILE: &str = "records.jsonl.zst";
/// The time between flushes of the file.
const FLUSH: Duration = Duration::from_secs(1);
/// The part of a line that is given to the compression at once, in bytes.
const PIECE: usize = 16 << 10;
/// The longest line of a record, in bytes. Answers have a bound well below it, even if each of
/// their letters is escaped.
const LONGEST_LINE: usize = 256 << 20;
/// After this number of lines in a row that are no records, the rest of a file is not searched for
/// one.
const MOST_UNREADABLE: u64 = 1000;

/// Writes the records of one run.
pub struct Recorder {
    path: PathBuf,
    out: Packed,
    count: u64,
    digest: Sha256,
}

/// The number and the digest of the records that a run wrote: they show if a file was damaged or
/// changed.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Written {
    /// The number of records.
    pub count: u64,
    /// SHA-256 of their lines, before compression, in hexadecimal.
    pub sha256: String,
}

/// The records could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot write `{path}`: {cause}; everything written before stays readable")]
    Write { path: PathBuf, cause: io::Error },
    #[error("cannot read `{path}`: {cause}")]
    Read { path: PathBuf, cause: io::Error },
}

impl Recorder {
    /// Begins the records of a run in its folder.
    pub fn create(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(FILE);
        Ok(Recorder { out: growing::create(&path)?, path, count: 0, digest: Sha256::new() })
    }

    /// Writes every exchange it receives, passes it to `seen`, and returns when no more can come.
    /// Fails if writing fails, typically because the disk is full. Everything flushed before stays
    /// readable.
    pub fn run<E: AsRef<Exchange>>(
        mut self,
        exchanges: &Receiver<E>,
        mut seen: impl FnMut(&Exchange),
    ) -> Result<Written, RecordError> {
        let written = self.write_all(exchanges, &mut seen);
        let path = self.path.clone();
        let closed = self.close();
        written.map_err(|cause| RecordError::Write { path, cause })?;
        closed
    }

    fn put(&mut self, exchange: &Exchange) -> Result<(), RecordError> {
        self.write(exchange).map_err(|cause| RecordError::Write { path: self.path.clone(), cause })
    }

    fn close(self) -> Result<Written, RecordError> {
        let closed = self.out.finish().and_then(|file| file.sync_all());
        closed.map_err(|cause| RecordError::Write { path: self.path, cause })?;
        Ok(Written { count: self.count, sha256: model::hex(&self.digest.finalize()) })
    }

    fn write(&mut self, exchange: &Exchange) -> io::Result<()> {
        let written = Line { out: &mut self.out, digest: &mut self.digest, length: 0 };
        // A record may be large; it is not made in memory a second time.
        let mut line = BufWriter::with_capacity(PIECE, written);
        serde_json::to_writer(&mut line, exchange)?;
        line.write_all(b"\n")?;
        line.flush()?;
        self.count += 1;
        Ok(())
    }

    fn write_all<E: AsRef<Exchange>>(
        &mut self,
        exchanges: &Receiver<E>,
        seen: &mut impl FnMut(&Exchange),
    ) -> io::Result<()> {
        let mut dirty = false;
        let mut flushed = std::time::Instant::now();
        loop {
            match exchanges.recv_timeout(FLUSH) {
                Ok(exchange) => {
                    let exchange = exchange.as_ref();
                    seen(exchange);
                    self.write(exchange)?;
                    dirty = true;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if dirty && flushed.elapsed() >= FLUSH {
                self.out.flush()?;
                dirty = false;
                flushed = std::time::Instant::now();
            }
        }
    }
}

/// Passes a record's line on, and takes its digest.
struct Line<'a, W> {
    out: &'a mut W,
    digest: &'a mut Sha256,
    length: usize,
}

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let written = self.out.write(piece)?;
        self.digest.update(&piece[..written]);
        self.length += written;
        if self.length > LONGEST_LINE {
            let words = format!("a record is larger than {} MiB", LONGEST_LINE >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, words));
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads a run's records in the order in which they were written.
///
/// Yields every readable record. A file that is cut off, as after a crash, yields the records
/// before the cut, and lines that are not records are skipped. [`check`](check()) reports missing
/// records.
pub fn read(
    folder: &Path,
) -> Result<impl Iterator<Item = Result<Exchange, RecordError>>, RecordError> {
    Ok(readable(Lines::open(folder)?).map(Ok))
}

/// Reads the records among these lines. The lines are not compressed.
pub fn in_lines(lines: impl BufRead) -> impl Iterator<Item = Exchange> {
    readable(Lines::new(lines))
}

fn readable(mut lines: Lines<impl BufRead>) -> impl Iterator<Item = Exchange> {
    let mut unreadable = 0;
    let mut parser = Parser::default();
    std::iter::from_fn(move || {
        while unreadable < MOST_UNREADABLE {
            match parser.parsed(lines.next_line().ok()??) {
                Ok(exchange) => {
                    unreadable = 0;
                    return Some(exchange);
                }
                Err(_) => unreadable += 1,
            }
        }
        None
    })
}

/// Reads records from lines, one after the other.
#[derive(Default)]
pub(crate) struct Parser {
    columns: Columns,
}

impl Parser {
    /// The record in a line. Fails if the line is no record.
    pub fn parsed(&mut self, line: &[u8]) -> Result<Exchange, String> {
        let read = match self.columns.parsed(line) {
            Some(exchange) => Ok(exchange),
            None => serde_json::from_slice::<Exchange>(line),
        };
        match read {
            Ok(exchange) if exchange.events.is_consistent() => Ok(exchange),
            Ok(_) => Err("its event columns have different lengths".to_owned()),
            Err(cause) => Err(cause.to_string()),
        }
    }
}
