//! Reads lines and ranges of a file through pieces of one mebibyte. Owns the limit on a line's
//! length; leaves the meaning of a line to `formats`.

use runner_plugin::json::BYTE_ORDER_MARK;
use runner_plugin::{Error, File};

/// Bytes to ask the host for at once.
const PIECE: u32 = 1 << 20;

/// The longest line: a plugin's memory must hold it with the prompt made from it. A session of a
/// thousand requests that grows to a million tokens lists eight million ids, in 48 MB.
pub(crate) const LONGEST_LINE: u64 = 64 << 20;

/// A file, and the piece of it that was read last.
pub(crate) struct Source {
    file: Box<dyn File>,
    size: u64,
    piece: Vec<u8>,
    start: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) line: u32,
}

impl Source {
    pub(crate) fn new(file: Box<dyn File>) -> Self {
        let size = file.size();
        Self { file, size, piece: Vec::new(), start: 0 }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The place where the first line is: behind a byte order mark, if there is one.
    pub(crate) fn beginning(&mut self) -> Result<Place, Error> {
        let length = self.size.min(BYTE_ORDER_MARK.len() as u64);
        let marked = self.bytes(0, length)? == BYTE_ORDER_MARK;
        Ok(Place { offset: if marked { length } else { 0 }, line: 1 })
    }

    /// The bytes from `offset` to the end of their piece; none at the end of the file.
    fn from(&mut self, offset: u64) -> Result<&[u8], Error> {
        let end = self.start + self.piece.len() as u64;
        if offset < self.start || offset >= end {
            if offset >= self.size {
                return Ok(&[]);
            }
            self.start = offset;
            self.piece = Vec::new();
            self.piece = self
                .file
                .read(offset, PIECE)
                .map_err(|cause| Error::InvalidInput(format!("byte {offset}: {cause}")))?;
            if self.piece.is_empty() {
                return Err(Error::InvalidInput(
                    "the file became shorter while it was read".to_owned(),
                ));
            }
        }
        Ok(&self.piece[(offset - self.start) as usize..])
    }

    pub(crate) fn bytes(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(length as usize);
        while (bytes.len() as u64) < length {
            let left = (length - bytes.len() as u64) as usize;
            let rest = self.from(offset + bytes.len() as u64)?;
            if rest.is_empty() {
                return Err(Error::InvalidInput(
                    "the file became shorter while it was read".to_owned(),
                ));
            }
            bytes.extend_from_slice(&rest[..rest.len().min(left)]);
        }
        Ok(bytes)
    }

    /// The line at a place, without its line break, and the place of the next; `None` at the end.
    pub(crate) fn line(&mut self, place: Place) -> Result<Option<(Vec<u8>, Place)>, Error> {
        let mut end = place.offset;
        let found = loop {
            let rest = self.from(end)?;
            if rest.is_empty() {
                break false;
            }
            if let Some(at) = memchr::memchr(b'\n', rest) {
                end += at as u64;
                break true;
            }
            end += rest.len() as u64;
            if end - place.offset > LONGEST_LINE {
                break false;
            }
        };
        if end - place.offset > LONGEST_LINE {
            return Err(Error::InvalidInput(format!(
                "line {} is longer than {} MiB: a trace has one request or session a line; split it",
                place.line,
                LONGEST_LINE >> 20
            )));
        }
        if end == place.offset && !found {
            return Ok(None);
        }
        let bytes = self.bytes(place.offset, end - place.offset)?;
        let next = Place { offset: end + u64::from(found), line: place.line.saturating_add(1) };
        Ok(Some((bytes, next)))
    }
}
