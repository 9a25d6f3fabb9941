//! The file of a run's devices, which the thread that reads the devices writes during the run.
//! After 36,000 samples, or fewer of many devices, the interval is doubled, and again after half as
//! many.

use std::path::Path;

use devices::{Entry, Recording};

use crate::growing::{self, LineFile};
use crate::record::RecordError;

pub const FILE: &str = "devices.jsonl.zst";
pub struct Log(LineFile);

impl Log {
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

    /// Ends the file, or returns the first error of writing.
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
    use devices::{Device, Facts, Head, Reading, Sample};
    use model::units::Nanos;

    fn entries() -> [Entry; 2] {
        let head = Entry::Head(Head {
            facts: Some(Facts {
                source: "nvml".into(),
                driver: Some("575".into()),
                devices: vec![Device::default()],
            }),
            host: Vec::new(),
            every_ns: Nanos(100_000_000),
        });
        let sample = Entry::Sample(Sample {
            at_ns: Nanos(100_000_000),
            devices: vec![Some(Reading { power_w: Some(1.0), ..Reading::default() })],
            host_j: None,
        });
        [head, sample]
    }

    fn recorded(entries: &[Entry]) -> Recording {
        let mut recording = Recording::default();
        entries.iter().cloned().for_each(|entry| recording.enter(entry));
        recording
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
        assert_eq!(found, recorded(&entries()), "and an instant counts once");
        std::fs::write(folder.path().join(FILE), "not compressed").unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
    }
}
