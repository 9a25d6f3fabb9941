//! The file that says when requests are due: read once, for its instants and its digest alike.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::ahead::seen;
use super::{Resolution, hex};
use crate::arrival::{Trace, TraceError};
use crate::plan::PlannedFile;

impl Resolution<'_> {
    /// The trace that the scenario names, and what the plan says of its file.
    pub(super) fn trace(&mut self) -> Option<(PlannedFile, Trace)> {
        let said = self.source.scenario.load.trace.file.as_ref()?;
        let path = seen(self.source, said);
        match read(&path) {
            Ok((trace, bytes, digest)) => {
                let file = PlannedFile {
                    path,
                    bytes,
                    digest,
                };
                Some((file, trace))
            }
            Err(error) => {
                let path = path.display();
                let error = match error {
                    TraceError::Read(cause) => format!("cannot read the trace `{path}`: {cause}"),
                    wrong => format!("the trace `{path}`: {wrong}"),
                };
                self.problem(&error, &said.place);
                None
            }
        }
    }
}

/// The instants of a file, its length and its SHA-256.
fn read(path: &Path) -> Result<(Trace, u64, String), TraceError> {
    let mut file = BufReader::new(Hashed {
        file: File::open(path)?,
        hash: Sha256::new(),
        bytes: 0,
    });
    let trace = Trace::read(&mut file)?;
    let Hashed { hash, bytes, .. } = file.into_inner();
    Ok((trace, bytes, hex(&hash.finalize())))
}

/// A file that is hashed while it is read.
struct Hashed {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
