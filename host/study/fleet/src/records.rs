//! Records on their way to one place: an agent's file that grows, and the coordinator's copy of it.
//!
//! The file on the agent's disk is the queue. Its recorder writes it as for a run of one machine
//! and knows nothing of the coordinator, so a slow coordinator does not slow the measurement.
//! [`Outgoing`] reads written bytes that were not yet sent. [`Incoming`] appends bytes that come
//! and knows its length, and only bytes at exactly that place are taken. So a link that breaks
//! anywhere costs only time: the agent continues at the coordinator's place.
//!
//! Both do blocking input and output; `link` calls them on threads that may block.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use model::private;
use sha2::{Digest, Sha256};

use crate::wire::BODY;

/// The number of bytes that may be under way and not yet acknowledged.
pub const WINDOW: u64 = 1 << 20;

/// SHA-256 of no bytes.
pub const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Records could not be sent or kept.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error("the records' file `{path}` cannot be used: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error(
        "the coordinator has {theirs} bytes of records, and `{path}` has {ours}: the file was changed while the run went on"
    )]
    Ahead { path: PathBuf, theirs: u64, ours: u64 },
    #[error("records out of order: got byte {came}, expected {expected}")]
    Gap { came: u64, expected: u64 },
    #[error("the records have more than {most} bytes, which is the bound for one agent")]
    TooMany { most: u64 },
    #[error(
        "the records came damaged: the agent wrote {written} bytes with the SHA-256 {theirs}, here are {kept} with {ours}"
    )]
    Damaged { written: u64, theirs: String, kept: u64, ours: String },
}

/// An agent's records to send.
#[derive(Debug)]
pub struct Outgoing {
    path: PathBuf,
    file: Option<File>,
    sent: u64,
    acknowledged: u64,
}

impl Outgoing {
    /// The records at a recorder's path; the coordinator has the first `acknowledged` bytes.
    pub fn new(path: &Path, acknowledged: u64) -> Self {
        Outgoing { path: path.to_owned(), file: None, sent: acknowledged, acknowledged }
    }

    /// Notes that the coordinator has this number of bytes.
    pub fn acknowledge(&mut self, offset: u64) {
        self.acknowledged = self.acknowledged.max(offset);
        self.sent = self.sent.max(offset);
    }

    /// The next bytes to send, with their place; none if the file has no more yet, or the window is
    /// full. Fails if the file cannot be read, or is shorter than the coordinator's copy.
    pub fn piece(&mut self) -> Result<Option<(u64, Vec<u8>)>, RecordsError> {
        if self.sent - self.acknowledged >= WINDOW {
            return Ok(None);
        }
        let path = self.path.clone();
        let failed = |cause| RecordsError::File { path: path.clone(), cause };
        let file = match &mut self.file {
            Some(file) => file,
            None => match File::open(&self.path) {
                Ok(file) => self.file.insert(file),
                // The recorder has not begun.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(cause) => return Err(failed(cause)),
            },
        };
        let ours = file.metadata().map_err(failed)?.len();
        if ours < self.sent {
            return Err(RecordsError::Ahead { path, theirs: self.sent, ours });
        }
        file.seek(SeekFrom::Start(self.sent)).map_err(failed)?;
        let mut bytes = Vec::with_capacity(BODY.min((ours - self.sent) as usize));
        file.take(BODY as u64).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let offset = self.sent;
        self.sent += bytes.len() as u64;
        Ok(Some((offset, bytes)))
    }
}

/// Length and SHA-256 of a complete file. Fails if it cannot be read.
pub fn seal(path: &Path) -> Result<(u64, String), RecordsError> {
    let failed = |cause| RecordsError::File { path: path.to_owned(), cause };
    let mut file = File::open(path).map_err(failed)?;
    let mut digest = Sha256::new();
    let length = io::copy(&mut file, &mut digest).map_err(failed)?;
    Ok((length, model::hex(&digest.finalize())))
}

/// The coordinator's copy of an agent's records.
#[derive(Debug)]
pub struct Incoming {
    path: PathBuf,
    file: Option<File>,
    length: u64,
    most: u64,
    digest: Sha256,
}

impl Incoming {
    /// A copy of at most `most` bytes at a path without a file. The first bytes create the file.
    pub fn new(path: &Path, most: u64) -> Self {
        Incoming { path: path.to_owned(), file: None, length: 0, most, digest: Sha256::new() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Begins anew for an agent that was started again. Fails if the file cannot be removed.
    pub fn forget(&mut self) -> Result<(), RecordsError> {
        if self.file.take().is_some() {
            std::fs::remove_file(&self.path)
                .map_err(|cause| RecordsError::File { path: self.path.clone(), cause })?;
        }
        (self.length, self.digest) = (0, Sha256::new());
        Ok(())
    }

    /// Takes bytes at their place, and returns the new length. Bytes that are there already are
    /// skipped, because a connection that broke may have brought them. Fails if they leave a gap,
    /// are too many, or cannot be written.
    pub fn take(&mut self, offset: u64, bytes: &[u8]) -> Result<u64, RecordsError> {
        if offset > self.length {
            return Err(RecordsError::Gap { came: offset, expected: self.length });
        }
        let known = usize::try_from(self.length - offset).unwrap_or(usize::MAX);
        let Some(fresh) = bytes.get(known..).filter(|fresh| !fresh.is_empty()) else {
            return Ok(self.length);
        };
        if self.length + fresh.len() as u64 > self.most {
            return Err(RecordsError::TooMany { most: self.most });
        }
        let failed = |cause| RecordsError::File { path: self.path.clone(), cause };
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let made = private::options().create_new(true).open(&self.path);
                self.file.insert(made.map_err(failed)?)
            }
        };
        // After a write that failed halfway the next one begins where the counted bytes end.
        file.seek(SeekFrom::Start(self.length)).map_err(failed)?;
        file.write_all(fresh).map_err(failed)?;
        self.digest.update(fresh);
        self.length += fresh.len() as u64;
        Ok(self.length)
    }

    /// Checks that it is the agent's whole file. Fails if length or digest differ.
    pub fn check(&self, written: u64, sha256: &str) -> Result<(), RecordsError> {
        let ours = model::hex(&self.digest.clone().finalize());
        if written == self.length && ours == sha256 {
            return Ok(());
        }
        let theirs = sha256.chars().take(64).collect();
        Err(RecordsError::Damaged { written, theirs, kept: self.length, ours })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sends everything that can be sent; taken bytes are acknowledged.
    fn pump(outgoing: &mut Outgoing, incoming: &mut Incoming) {
        while let Some((offset, bytes)) = outgoing.piece().unwrap() {
            let length = incoming.take(offset, &bytes).unwrap();
            outgoing.acknowledge(length);
        }
    }

    proptest! {
        /// A file that grows between pieces, over links that break with pieces under way.
        #[test]
        fn the_copy_equals_the_file_over_broken_links(
            steps in prop::collection::vec((0_usize..200_000, 0_u8..4), 1..12)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let (from, to) = (folder.path().join("from"), folder.path().join("to"));
            let mut incoming = Incoming::new(&to, 1 << 30);
            let mut outgoing = Outgoing::new(&from, 0);
            prop_assert!(outgoing.piece().unwrap().is_none());
            let mut content = Vec::new();
            for (number, (grow, lost)) in steps.into_iter().enumerate() {
                content.extend((0..grow).map(|at| (at * 7 + number) as u8));
                std::fs::write(&from, &content).unwrap();
                // These pieces are sent and never come, or come without their acknowledgement.
                for piece in 0..lost {
                    if let Some((offset, bytes)) = outgoing.piece().unwrap()
                        && piece % 2 == 0 && offset == incoming.length()
                    {
                        incoming.take(offset, &bytes).unwrap();
                    }
                }
                outgoing = Outgoing::new(&from, incoming.length());
                pump(&mut outgoing, &mut incoming);
                prop_assert_eq!(incoming.length(), content.len() as u64);
            }
            let (written, sha256) = seal(&from).unwrap();
            prop_assert!(incoming.check(written, &sha256).is_ok());
            if written > 0 {
                prop_assert_eq!(std::fs::read(&to).unwrap(), content);
            }
        }
    }

    #[test]
    fn bytes_under_way_stay_within_the_window() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        std::fs::write(&path, vec![0; 3 << 20]).unwrap();
        let mut outgoing = Outgoing::new(&path, 0);
        let mut under_way = 0;
        while let Some((_, bytes)) = outgoing.piece().unwrap() {
            under_way += bytes.len() as u64;
        }
        assert_eq!(under_way, WINDOW);
        outgoing.acknowledge(1);
        assert!(outgoing.piece().unwrap().is_some());
    }

    #[test]
    fn refuses_gaps_excess_and_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy");
        let mut incoming = Incoming::new(&path, 10);
        assert_eq!(incoming.take(0, b"abcd").unwrap(), 4);
        assert_eq!(incoming.take(2, b"cdef").unwrap(), 6);
        assert_eq!(incoming.take(0, b"ab").unwrap(), 6);
        let gap = incoming.take(7, b"h").unwrap_err().to_string();
        assert!(gap.contains("got byte 7, expected 6"), "{gap}");
        let many = incoming.take(6, b"ghijklm").unwrap_err().to_string();
        assert!(many.contains("more than 10 bytes"), "{many}");
        assert_eq!(std::fs::read(&path).unwrap(), b"abcdef");
        let damaged = incoming.check(6, &"0".repeat(64)).unwrap_err().to_string();
        assert!(damaged.contains("came damaged"), "{damaged}");
        // Existing files are not overwritten.
        let error = Incoming::new(&path, 10).take(0, b"x").unwrap_err();
        assert!(matches!(error, RecordsError::File { .. }), "{error}");
    }

    #[test]
    fn forgotten_records_come_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy");
        let mut incoming = Incoming::new(&path, 10);
        incoming.take(0, b"first").unwrap();
        incoming.forget().unwrap();
        assert_eq!((incoming.length(), path.exists()), (0, false));
        assert!(incoming.check(0, NOTHING).is_ok());
        incoming.take(0, b"second").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"second");
    }

    #[test]
    fn a_shortened_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        std::fs::write(&path, b"abc").unwrap();
        let error = Outgoing::new(&path, 5).piece().unwrap_err().to_string();
        assert!(error.contains("has 5 bytes of records"), "{error}");
    }
}
