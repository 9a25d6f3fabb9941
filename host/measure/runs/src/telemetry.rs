//! The file of a run's devices: one line of JSON per entry, compressed, written while the run goes
//! on by the thread that reads the devices.
//!
//! The file only grows and is flushed every second of samples, so however the run ends, it is
//! readable up to the last flush. It has a bound that hardly grows with the run's length: after
//! 36,000 samples, or fewer of many devices, the interval between two of them is doubled, and again
//! after half as many. `devices` owns what an entry is.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use devices::{Entry, Recording};

use crate::record::RecordError;
use crate::record::lines::Lines;
use model::private;
use model::units::Nanos;

/// The file's name in a run's folder.
pub const FILE: &str = "devices.jsonl.zst";
/// The most time of samples that may be lost with the process.
const FLUSH: Nanos = Nanos(1_000_000_000);
/// A light compression: it must not compete with the run for the processor.
const LEVEL: i32 = 1;
/// After so many lines in a row that are no entries, the rest of a file is not read.
const MOST_UNREADABLE: u32 = 1_000;

/// Writes the entries of one run.
pub struct Log {
    path: PathBuf,
    out: zstd::stream::write::Encoder<'static, File>,
    flushed: Nanos,
    failed: Option<io::Error>,
}

impl Log {
    /// Begins the file in a run's folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(folder: &Path) -> Result<Self, RecordError> {
        let path = folder.join(FILE);
        let out = private::options()
            .create_new(true)
            .open(&path)
            .and_then(|file| zstd::stream::write::Encoder::new(file, LEVEL));
        match out {
            Ok(out) => Ok(Log {
                path,
                out,
                flushed: Nanos::ZERO,
                failed: None,
            }),
            Err(cause) => Err(RecordError::Write { path, cause }),
        }
    }

    /// Adds an entry. After an error, as of a full disk, nothing more is written.
    pub fn write(&mut self, entry: &Entry) {
        if self.failed.is_none()
            && let Err(error) = self.add(entry)
        {
            self.failed = Some(error);
        }
    }

    fn add(&mut self, entry: &Entry) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, entry)?;
        self.out.write_all(b"\n")?;
        let is_due = match entry {
            Entry::Sample(sample) if sample.at_ns.since(self.flushed) < FLUSH => false,
            Entry::Sample(sample) => {
                self.flushed = sample.at_ns;
                true
            }
            // Few, and worth keeping.
            Entry::Head(_) | Entry::Failed(_) => true,
        };
        match is_due {
            true => self.out.flush(),
            false => Ok(()),
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first error of writing. What was written before it stays readable.
    pub fn finish(self) -> Result<(), RecordError> {
        let closed = self.out.finish().and_then(|file| file.sync_all());
        let ended = self.failed.map_or(closed, Err);
        ended.map_err(|cause| RecordError::Write {
            path: self.path,
            cause,
        })
    }
}

/// Reads the record of a run's devices, as far as it is whole; absent if there is none.
///
/// # Errors
/// If the file is there but cannot be opened.
pub fn read(folder: &Path) -> Result<Option<Recording>, RecordError> {
    let path = folder.join(FILE);
    let mut lines = match Lines::at(&path) {
        Ok(lines) => lines,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(RecordError::Read { path, cause }),
    };
    let mut recording = Recording::default();
    let (mut entries, mut unreadable) = (0u64, 0);
    // A run that was killed ends within a line.
    while let Ok(Some(line)) = lines.next_line() {
        match serde_json::from_slice::<Entry>(line) {
            Ok(entry) => {
                recording.enter(entry);
                (entries, unreadable) = (entries + 1, 0);
            }
            Err(_) => unreadable += 1,
        }
        if unreadable >= MOST_UNREADABLE {
            break;
        }
    }
    Ok((entries > 0).then_some(recording))
}

#[cfg(test)]
mod tests {
    use super::*;
    use devices::{Device, Facts, Failed, Head, Reading, Sample};

    fn entries() -> Vec<Entry> {
        let head = Entry::Head(Head {
            facts: Some(Facts {
                source: "nvml".into(),
                driver: Some("575".into()),
                devices: vec![Device::default()],
            }),
            host: Vec::new(),
            every_ns: Nanos(100_000_000),
        });
        let samples = (1..=50).map(|tenth| {
            Entry::Sample(Sample {
                at_ns: Nanos(tenth * 100_000_000),
                devices: vec![Some(Reading {
                    power_w: Some(tenth as f64),
                    ..Reading::default()
                })],
                host_j: None,
            })
        });
        let failed = Entry::Failed(Failed {
            count: 3,
            error: "GPU is lost".into(),
        });
        std::iter::once(head)
            .chain(samples)
            .chain([failed])
            .collect()
    }

    fn recorded(entries: &[Entry]) -> Recording {
        let mut recording = Recording::default();
        entries
            .iter()
            .cloned()
            .for_each(|entry| recording.enter(entry));
        recording
    }

    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let mut log = Log::create(folder.path()).unwrap();
        entries().iter().for_each(|entry| log.write(entry));
        log.finish().unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(recorded(&entries())));
        assert!(
            Log::create(folder.path()).is_err(),
            "it is not written over"
        );
    }

    #[test]
    fn a_run_that_is_killed_keeps_all_but_the_last_second() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path()).unwrap();
        // Up to 2.9 s; the last flush was at 2.0 s.
        entries()[..30].iter().for_each(|entry| log.write(entry));
        let read = read(folder.path()).unwrap().unwrap();
        assert_eq!(read, recorded(&entries()[..21]));
        drop(log);
    }

    #[test]
    fn lines_that_are_no_entries_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> = entries()
            .iter()
            .map(|entry| serde_json::to_string(entry).unwrap())
            .collect();
        let text = format!(
            "{}\nnonsense\n{{\"other\":1}}\n{}\n{}\n",
            lines[0], lines[1], lines[1]
        );
        let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
        std::fs::write(folder.path().join(FILE), packed).unwrap();
        let found = read(folder.path()).unwrap().unwrap();
        assert_eq!(
            found,
            recorded(&entries()[..2]),
            "and an instant counts once"
        );
        std::fs::write(folder.path().join(FILE), "not compressed").unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
    }
}
