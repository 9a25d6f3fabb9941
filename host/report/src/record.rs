//! Records: one line of JSON per exchange, compressed, written by one thread during the run.
//!
//! The file only grows and is flushed every second, so however the run ends, the file is readable
//! up to the last flush. Reading tolerates an end in the middle of a line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use model::exchange::Exchange;

/// The records' file name in a run's folder.
pub const FILE: &str = "records.jsonl.zst";
/// How often the file is flushed.
const FLUSH: Duration = Duration::from_secs(1);
/// How much of a line is given to the compression at once, in bytes.
const PIECE: usize = 16 << 10;
/// A light compression: it must not compete with the run for the processor.
const LEVEL: i32 = 1;

/// Writes the records of one run.
pub struct Recorder {
    path: PathBuf,
    out: zstd::stream::write::Encoder<'static, File>,
}

/// The records could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Writing failed.
    #[error("cannot write `{path}`: {cause}; everything written before stays readable")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Reading failed.
    #[error("cannot read `{path}`: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A line is not a record.
    #[error("`{path}`, line {line} is not a record: {cause}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: String,
    },
}

impl Recorder {
    /// Begins the records of a run in its folder.
    ///
    /// # Errors
    /// Where the file cannot be made.
    pub fn create(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(FILE);
        let out = File::create_new(&path)
            .and_then(|file| zstd::stream::write::Encoder::new(file, LEVEL))
            .map_err(|cause| RecordError::Write {
                path: path.clone(),
                cause,
            })?;
        Ok(Recorder { path, out })
    }

    /// Writes every exchange it receives, passes it to `seen`, and returns when no more can come.
    ///
    /// # Errors
    /// If writing fails, typically because the disk is full. Everything flushed before stays readable.
    pub fn run<E: AsRef<Exchange>>(
        mut self,
        exchanges: &Receiver<E>,
        mut seen: impl FnMut(&Exchange),
    ) -> Result<(), RecordError> {
        let written = self.write_all(exchanges, &mut seen);
        let closed = self.out.finish().and_then(|file| file.sync_all());
        written.and(closed).map_err(|cause| RecordError::Write {
            path: self.path,
            cause,
        })
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
                    // A record may be large; it is not made in memory a second time.
                    let mut line = BufWriter::with_capacity(PIECE, &mut self.out);
                    serde_json::to_writer(&mut line, exchange)?;
                    line.write_all(b"\n")?;
                    line.flush()?;
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

/// Reads a run's records in the order in which they were written.
///
/// A file that is cut off, as after a crash, yields the records it holds.
///
/// # Errors
/// If the file cannot be opened; then, per item, if a complete line is not a record.
pub fn read(
    folder: &Path,
) -> Result<impl Iterator<Item = Result<Exchange, RecordError>>, RecordError> {
    let path = folder.join(FILE);
    let open = |cause| RecordError::Read {
        path: path.clone(),
        cause,
    };
    let file = File::open(&path).map_err(open)?;
    let decoder = zstd::stream::read::Decoder::new(file).map_err(open)?;
    Ok(Records {
        path,
        reader: BufReader::with_capacity(1 << 20, decoder),
        line: 0,
        buffer: Vec::new(),
        done: false,
    })
}

struct Records<R> {
    path: PathBuf,
    reader: R,
    line: u64,
    buffer: Vec<u8>,
    done: bool,
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Exchange, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        self.buffer.clear();
        self.line += 1;
        // An unfinished frame ends in an error, an unfinished line lacks its end: both are
        // where a crashed run stopped writing.
        let read = self.reader.read_until(b'\n', &mut self.buffer);
        if !matches!(read, Ok(n) if n > 0) || self.buffer.last() != Some(&b'\n') {
            self.done = true;
            return None;
        }
        let malformed = |cause: String| RecordError::Malformed {
            path: self.path.clone(),
            line: self.line,
            cause,
        };
        Some(match serde_json::from_slice::<Exchange>(&self.buffer) {
            Ok(exchange) if exchange.events.is_consistent() => Ok(exchange),
            Ok(_) => Err(malformed(
                "its event columns have different lengths".to_owned(),
            )),
            Err(cause) => Err(malformed(cause.to_string())),
        })
    }
}
