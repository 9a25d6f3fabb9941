//! The file of a run's devices: one line of JSON per entry, compressed. The thread that reads the
//! devices writes it during the run.
//!
//! The file only grows and is flushed every second of samples, so however the run ends, it is
//! readable up to the last flush. Its size hardly grows with the run's length. After 36,000
//! samples, or fewer of many devices, the interval is doubled, and again after half as many.
//! `devices` owns the form of an entry.

use std::path::Path;

use devices::{Entry, Recording};

use crate::growing::{self, LineFile};
use crate::record::RecordError;

/// The file's name in a run's folder.
pub const FILE: &str = "devices.jsonl.zst";

/// Writes the entries of one run.
pub struct Log(LineFile);

impl Log {
    /// Begins the file in a run's folder.
    pub fn create(folder: &Path) -> Result<Self, RecordError> {
        LineFile::create(folder, FILE).map(Log)
    }

    /// Adds an entry. After an error, as of a full disk, nothing more is written.
    pub fn write(&mut self, entry: &Entry) {
        let at = match entry {
            Entry::Sample(sample) => Some(sample.at_ns),
            // Few, and worth keeping.
            Entry::Head(_) | Entry::Failed(_) => None,
        };
        self.0.write(entry, at);
    }

    /// Ends the file. Errors: the first error of writing. Data written before it stays readable.
    pub fn finish(self) -> Result<(), RecordError> {
        self.0.finish().map(drop)
    }
}

/// Reads the record of a run's devices, up to its first damage; absent without one.
pub fn read(folder: &Path) -> Result<Option<Recording>, RecordError> {
    let mut recording = Recording::default();
    let entries = growing::read(folder, FILE, |entry| recording.enter(entry))?;
    Ok(entries.filter(|(entries, _)| *entries > 0).map(|_| recording))
}

#[cfg(test)]
mod tests {
    use super::*;
    use devices::{Device, Facts, Failed, Head, Reading, Sample};
    use model::units::Nanos;

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
                devices: vec![Some(Reading { power_w: Some(tenth as f64), ..Reading::default() })],
                host_j: None,
            })
        });
        let failed = Entry::Failed(Failed { count: 3, error: "GPU is lost".into() });
        std::iter::once(head).chain(samples).chain([failed]).collect()
    }

    fn recorded(entries: &[Entry]) -> Recording {
        let mut recording = Recording::default();
        entries.iter().cloned().for_each(|entry| recording.enter(entry));
        recording
    }

    #[test]
    fn written_file_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let mut log = Log::create(folder.path()).unwrap();
        entries().iter().for_each(|entry| log.write(entry));
        log.finish().unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(recorded(&entries())));
        assert!(Log::create(folder.path()).is_err(), "it is not written over");
    }

    #[test]
    fn killed_run_loses_at_most_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path()).unwrap();
        // Up to 2.9 s; the last flush was at 2.0 s.
        entries()[..30].iter().for_each(|entry| log.write(entry));
        let read = read(folder.path()).unwrap().unwrap();
        assert_eq!(read, recorded(&entries()[..21]));
        drop(log);
    }

    #[test]
    fn malformed_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> =
            entries().iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
        let text = format!("{}\nnonsense\n{{\"other\":1}}\n{}\n{}\n", lines[0], lines[1], lines[1]);
        let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
        std::fs::write(folder.path().join(FILE), packed).unwrap();
        let found = read(folder.path()).unwrap().unwrap();
        assert_eq!(found, recorded(&entries()[..2]), "and an instant counts once");
        std::fs::write(folder.path().join(FILE), "not compressed").unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
    }
}
