//! A file's lines, read in pieces, so that the file may be larger than the plugin's memory.

use runner_plugin::{Error, File};

/// Bytes to ask the host for at once.
const PIECE: u32 = 1 << 20;

/// Lines that are not blank, with their numbers from 1.
pub struct Lines {
    file: Box<dyn File>,
    offset: u64,
    /// Bytes that were read, and how many of them were given.
    kept: Vec<u8>,
    given: usize,
    number: u64,
}

impl Lines {
    /// The lines of a file from its beginning.
    pub fn new(file: Box<dyn File>) -> Self {
        Lines {
            file,
            offset: 0,
            kept: Vec::new(),
            given: 0,
            number: 0,
        }
    }

    /// The next line; `None` at the end of the file.
    pub fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        loop {
            let rest = &self.kept[self.given..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            if end.is_none() && self.offset < self.file.size() {
                self.read()?;
                continue;
            }
            if rest.is_empty() {
                return Ok(None);
            }
            let line = rest[..end.unwrap_or(rest.len())].to_vec();
            self.given += line.len() + usize::from(end.is_some());
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Ok(Some((self.number, line)));
            }
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        self.kept.drain(..self.given);
        self.given = 0;
        let piece = self
            .file
            .read(self.offset, PIECE)
            .map_err(Error::InvalidInput)?;
        if piece.is_empty() {
            return Err(Error::InvalidInput(
                "the file became shorter while it was read".to_owned(),
            ));
        }
        self.offset += piece.len() as u64;
        self.kept.extend(piece);
        Ok(())
    }
}
