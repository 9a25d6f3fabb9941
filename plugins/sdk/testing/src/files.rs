//! Files for a plugin under test: on disk or in memory, under the names that a scenario would give
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use runner_plugin::{File, Files};

/// The most that a file returns at once, according to the contract.
const MOST: u32 = 4 << 20;

/// Files by name.
#[derive(Clone, Debug, Default)]
pub struct Named(BTreeMap<String, Content>);

#[derive(Clone, Debug)]
enum Content {
    Disk(PathBuf),
    Memory(Vec<u8>),
}

impl Named {
    /// Adds a file on disk.
    #[must_use]
    pub fn with_path(mut self, name: &str, path: impl Into<PathBuf>) -> Self {
        self.0.insert(name.to_owned(), Content::Disk(path.into()));
        self
    }

    /// Adds a file in memory.
    #[must_use]
    pub fn with_bytes(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.insert(name.to_owned(), Content::Memory(bytes.into()));
        self
    }
}

impl Files for Named {
    fn open(&self, name: &str) -> Option<Box<dyn File>> {
        Some(Box::new(self.0.get(name)?.clone()))
    }
}

impl File for Content {
    fn size(&self) -> u64 {
        match self {
            Content::Disk(path) => fs::metadata(path).map_or(0, |found| found.len()),
            Content::Memory(bytes) => bytes.len() as u64,
        }
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, String> {
        let length = length.min(MOST);
        match self {
            Content::Memory(bytes) => {
                let start = bytes.len().min(offset as usize);
                let end = bytes.len().min(start + length as usize);
                Ok(bytes[start..end].to_vec())
            }
            Content::Disk(path) => {
                let read = || {
                    let mut file = fs::File::open(path)?;
                    file.seek(SeekFrom::Start(offset))?;
                    let mut bytes = Vec::with_capacity(length as usize);
                    file.take(length.into()).read_to_end(&mut bytes)?;
                    Ok(bytes)
                };
                read().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))
            }
        }
    }
}
