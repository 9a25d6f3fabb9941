//! Records: one line of JSON per exchange, compressed, written by one thread during the run.
//!
//! The file only grows and is flushed every second, so it is readable up to the last flush. Reading
//! ([`read`]) uses every readable record; [`check`](check()) tells if these are all.

mod columns;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use sha2::{Digest, Sha256};

use crate::growing::{self, Packed};
use columns::Columns;
use model::exchange::{Exchange, Phase};
use result::summary::Damage;
use zstd::stream::read::Decoder;

pub const FILE: &str = "records.jsonl.zst";
/// The time between flushes of the file.
const FLUSH: Duration = Duration::from_secs(1);
/// The part of a line that is given to the compression at once, in bytes.
const PIECE: usize = 16 << 10;
/// The longest line of a record, in bytes, well above the bound of answers.
const LONGEST_LINE: usize = 256 << 20;
/// After this number of lines in a row that are no records, the rest of a file is not read.
const MOST_UNREADABLE: u64 = 1000;

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
    /// After an error everything flushed before stays readable.
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

/// Reads a run's records in the order in which they were written: all that are readable, up to a
/// cut of the file. [`check`](check()) reports missing records.
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

/// Powers of two: the most memory that a file may ask for to be decompressed.
const WINDOW_LOG: u32 = 23;

pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
}

impl Lines<BufReader<Decoder<'static, BufReader<File>>>> {
    pub fn open(folder: &Path) -> Result<Self, RecordError> {
        Lines::of_file(&folder.join(FILE))
    }

    pub fn of_file(path: &Path) -> Result<Self, RecordError> {
        Lines::at(path).map_err(|cause| RecordError::Read { path: path.to_owned(), cause })
    }

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

    /// The next line with its end; `None` at the end. Fails if the file is damaged or cut.
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

/// The end of a run, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd<'a> {
    Wrote(&'a Written),
    /// It came to its end, but a version of the runner that did not count wrote it.
    Uncounted,
    /// It was killed, continues, or could not write any more: its file may end anywhere.
    Anywhere,
}

/// Finds the damage of a run's records; none if the file holds exactly the written records.
pub fn check(folder: &Path, ended: RunEnd<'_>) -> Result<Option<Damage>, RecordError> {
    if let RunEnd::Wrote(written) = ended
        && is_what_was_written(folder, written)?
    {
        return Ok(None);
    }
    let mut lines = Lines::open(folder)?;
    let (mut number, mut readable, mut in_a_row) = (0u64, 0u64, 0u64);
    let mut first = None;
    let mut parser = Parser::default();
    let end = loop {
        number += 1;
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break None,
            Err(cause) => break Some(format!("it breaks off in line {number}: {cause}")),
        };
        match parser.parsed(line) {
            Ok(_) => {
                readable += 1;
                in_a_row = 0;
            }
            Err(cause) => {
                first.get_or_insert_with(|| format!("line {number} is not a record: {cause}"));
                in_a_row += 1;
            }
        }
        if in_a_row >= MOST_UNREADABLE {
            break Some(format!(
                "the {MOST_UNREADABLE} lines up to line {number} are not records, so the rest was not read"
            ));
        }
    };
    // The end of a file is no damage where the run ended there.
    let end = end.filter(|_| ended != RunEnd::Anywhere || in_a_row >= MOST_UNREADABLE);
    let found = first.or(end);
    let (written, found) = match ended {
        RunEnd::Anywhere | RunEnd::Uncounted => match found {
            None => return Ok(None),
            Some(found) => (None, found),
        },
        RunEnd::Wrote(Written { count, .. }) => {
            let found = found.unwrap_or_else(|| match readable.cmp(count) {
                std::cmp::Ordering::Less => "lines were taken out of it".to_owned(),
                std::cmp::Ordering::Equal => "lines of it were changed".to_owned(),
                std::cmp::Ordering::Greater => "lines were added to it".to_owned(),
            });
            (Some(*count), found)
        }
    };
    Ok(Some(Damage { written, readable, found }))
}

fn is_what_was_written(folder: &Path, written: &Written) -> Result<bool, RecordError> {
    let mut lines = Lines::open(folder)?;
    let mut digest = Sha256::new();
    let mut count = 0;
    while let Ok(Some(line)) = lines.next_line() {
        digest.update(line);
        count += 1;
        if count > written.count {
            return Ok(false);
        }
    }
    Ok(count == written.count && model::hex(&digest.finalize()) == written.sha256)
}

// Records of several processes, made into one run's records: by one clock, in one file.

#[derive(Clone, Debug, Default)]
pub struct Part {
    pub path: PathBuf,
    /// The time by which its clock is ahead of the run's records, in nanoseconds.
    pub ahead: i128,
    /// The exchanges that are left out, because another part has them.
    pub except: HashSet<(Phase, u64)>,
}

/// Writes the records of all parts into a folder that has none, one part after the other. Returns
/// the counts of written records, and the number of measured exchanges of each part.
pub fn merge(folder: &Path, parts: &[Part]) -> Result<(Written, Vec<u64>), RecordError> {
    let mut recorder = Recorder::create(folder)?;
    let mut counts = Vec::new();
    for part in parts {
        let mut measured = 0;
        for mut exchange in readable(Lines::of_file(&part.path)?) {
            if part.except.contains(&(exchange.phase, exchange.index)) {
                continue;
            }
            exchange.shift(-part.ahead);
            measured += u64::from(exchange.phase == Phase::Measure);
            recorder.put(&exchange)?;
        }
        counts.push(measured);
    }
    Ok((recorder.close()?, counts))
}

#[cfg(test)]
mod tests {
    use super::super::record;
    use super::*;
    use model::units::Nanos;
    use tempfile::TempDir;

    fn exchange(index: u64, due: u64) -> Exchange {
        let mut exchange = crate::exchanges::reply(0, 1_000, &[]);
        exchange.index = index;
        exchange.phase = Phase::Measure;
        let by = i128::from(due) - i128::from(exchange.due.0);
        exchange.shift(by);
        exchange
    }

    #[test]
    fn instants_of_several_clocks_become_those_of_one() {
        let folders = [(0, 1000, 0), (1, 1700, 500), (2, 900, -400)].map(|(index, due, ahead)| {
            let folder = TempDir::new().unwrap();
            let mut recorder = Recorder::create(folder.path()).unwrap();
            recorder.put(&exchange(index, due)).unwrap();
            recorder.close().unwrap();
            (folder, ahead)
        });
        let mut parts: Vec<Part> = (folders.iter())
            .map(|(folder, ahead)| Part {
                path: folder.path().join(record::FILE),
                ahead: *ahead,
                ..Part::default()
            })
            .collect();
        let all = TempDir::new().unwrap();
        let (written, counts) = merge(all.path(), &parts).unwrap();
        assert_eq!((written.count, counts), (3, vec![1, 1, 1]));
        let merged: Vec<Exchange> = record::read(all.path()).unwrap().flatten().collect();
        let due: Vec<Nanos> = merged.iter().map(|exchange| exchange.due).collect();
        assert_eq!(due, [1000, 1200, 1300].map(Nanos));
        assert_eq!(merged[1], exchange(1, 1200));
        let ended = record::RunEnd::Wrote(&written);
        assert_eq!(record::check(all.path(), ended).unwrap(), None);

        // A part whose process died ends in the middle of something.
        let whole = std::fs::read(&parts[2].path).unwrap();
        std::fs::write(&parts[2].path, &whole[..whole.len() / 2]).unwrap();
        parts.rotate_right(1);
        let other = TempDir::new().unwrap();
        let (written, counts) = merge(other.path(), &parts).unwrap();
        assert_eq!((written.count, counts), (2, vec![0, 1, 1]));

        // Exchanges that one part leaves out come from another part, or from none.
        parts[1].except = [(Phase::Measure, 0), (Phase::Warmup, 1)].into();
        let left = TempDir::new().unwrap();
        let (written, counts) = merge(left.path(), &parts).unwrap();
        assert_eq!((written.count, counts), (1, vec![0, 0, 1]));
    }
}
