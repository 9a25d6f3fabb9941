//! The file of a server's own series, which the threads that sample its metrics page write during
//! the run. The crate `series` owns the entries and their thinning.

use std::path::Path;

use series::{Entry, Recording};

use crate::growing::{self, LineFile};
use crate::record::{RecordError, Written};

pub const FILE: &str = "server.jsonl.zst";

pub struct Log(LineFile);

impl Log {
    pub fn create(folder: &Path) -> Result<Self, RecordError> {
        LineFile::create(folder, FILE).map(Log)
    }

    /// Adds the entries of one page. After an error, as of a full disk, nothing more is written.
    pub fn write(&mut self, entries: &[Entry]) {
        let instant = entries.iter().find_map(|entry| match entry {
            Entry::Sample(sample) => Some(sample.at_ns),
            Entry::Head(_) | Entry::Series(_) | Entry::Failed(_) => None,
        });
        for entry in entries {
            match entry {
                // Hundreds on a first page: they go out with its sample.
                Entry::Series(_) => self.0.write(entry, Some(instant.unwrap_or_default())),
                Entry::Sample(sample) => self.0.write(entry, Some(sample.at_ns)),
                Entry::Head(_) | Entry::Failed(_) => self.0.write(entry, None),
            }
        }
    }

    /// Ends the file, and returns the counts of its lines, or the first error of writing.
    pub fn finish(self) -> Result<Written, RecordError> {
        self.0.finish()
    }
}

/// Reads the record of a server's series, up to its first damage; absent without one.
pub fn read(folder: &Path) -> Result<Option<Recording>, RecordError> {
    Ok(checked(folder, None)?.0)
}

/// Reads it likewise, and reports the damage of the file of a run that wrote these lines.
pub fn checked(
    folder: &Path,
    written: Option<&Written>,
) -> Result<(Option<Recording>, Option<String>), RecordError> {
    let mut recording = Recording::default();
    let read = growing::read(folder, FILE, |entry| recording.enter(entry))?;
    let damage = written.and_then(|written| match &read {
        None => Some(format!("`{FILE}` is missing, and the run wrote {} lines", written.count)),
        Some((_, found)) if found == written => None,
        Some((_, found)) if found.count == written.count => {
            Some(format!("lines of `{FILE}` were changed"))
        }
        Some((_, found)) => Some(format!(
            "{} lines of `{FILE}` can be read, and the run wrote {}",
            found.count, written.count
        )),
    });
    Ok((read.filter(|(entries, _)| *entries > 0).map(|_| recording), damage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::private;
    use model::units::Nanos;
    use series::{Encoder, Head};

    const SECOND: u64 = 1_000_000_000;

    fn pages(count: u64) -> Vec<Vec<Entry>> {
        let mut encoder =
            Encoder::new(Head { targets: vec!["http://a".into()], every_ns: Nanos(SECOND) });
        let head = vec![encoder.head()];
        let pages = (1..=count).map(|second| {
            let at = Nanos(second * SECOND / 2);
            encoder.page(0, (at, at), &format!("a {second}\nb{{x=\"1\"}} 7\n"))
        });
        let pages: Vec<_> = pages.collect();
        std::iter::once(head).chain(pages).collect()
    }

    fn recorded(pages: &[Vec<Entry>]) -> Recording {
        let mut recording = Recording::default();
        (pages.iter().flatten().cloned()).for_each(|entry| recording.enter(entry));
        recording
    }

    #[test]
    fn written_file_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let mut log = Log::create(folder.path()).unwrap();
        let pages = pages(9);
        pages.iter().for_each(|page| log.write(page));
        log.finish().unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(recorded(&pages)));
        assert!(Log::create(folder.path()).is_err(), "it is not written over");
    }

    #[test]
    fn changed_series_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path()).unwrap();
        pages(9).iter().for_each(|page| log.write(page));
        let written = log.finish().unwrap();
        let damage = || checked(folder.path(), Some(&written)).unwrap().1;
        assert_eq!((written.count, damage()), (12, None));
        let path = folder.path().join(FILE);
        let whole = std::fs::read(&path).unwrap();
        let text = String::from_utf8(zstd::decode_all(&*whole).unwrap()).unwrap();
        let store =
            |text: &str| private::write(&path, &zstd::encode_all(text.as_bytes(), 1).unwrap());
        store(&text).unwrap();
        assert_eq!(damage(), None, "compressed anew");
        store(&text.replace("[0,9.0]", "[0,1e9]")).unwrap();
        assert!(damage().unwrap().ends_with("were changed"));
        private::write(&path, &whole[..whole.len() - 4]).unwrap();
        assert!(damage().unwrap().contains("the run wrote 12"));
        private::write(&path, b"").unwrap();
        assert!(damage().unwrap().starts_with("0 lines"));
        std::fs::remove_file(&path).unwrap();
        assert!(damage().unwrap().contains("is missing"));
    }

    #[test]
    fn killed_run_loses_at_most_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path()).unwrap();
        // Up to 4.5 s; the last flush was at 4.0 s.
        let pages = pages(9);
        pages.iter().for_each(|page| log.write(page));
        let read = read(folder.path()).unwrap().unwrap();
        assert_eq!(read, recorded(&pages[..9]));
        drop(log);
    }

    #[test]
    fn recording_of_an_hour_is_small() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path()).unwrap();
        let mut encoder =
            Encoder::new(Head { targets: vec!["http://a".into()], every_ns: Nanos(SECOND) });
        log.write(&[encoder.head()]);
        // Like vLLM's page: some 450 series, and a third of them moves. A sixth of the hour.
        for second in 3_000..3_600u64 {
            let page: String = (0..450u64)
                .map(|n| {
                    let value = if n % 3 == 0 { second * (n + 1) } else { n };
                    format!(
                        "vllm:some_metric_number_{n}{{engine=\"0\",model_name=\"m\"}} {value}.0\n"
                    )
                })
                .collect();
            let at = Nanos(second * SECOND);
            log.write(&encoder.page(0, (at, at), &page));
        }
        log.finish().unwrap();
        let bytes = std::fs::metadata(folder.path().join(FILE)).unwrap().len();
        assert!(bytes * 6 < 8_000_000, "{bytes}");
    }
}
