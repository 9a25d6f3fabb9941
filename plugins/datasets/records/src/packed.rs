//! Compression of a file, and its content as a stream.

use std::io::{self, BufReader, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use runner_plugin::File;

use crate::zstd::Frames;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Not,
    Gzip,
    Zstd,
}

/// A file as a stream of its content, compressed or not.
pub struct Bytes {
    pub file: Rc<dyn File>,
    /// Position of the next read, in bytes from its beginning.
    pub offset: u64,
}

impl Read for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = u32::try_from(buffer.len()).unwrap_or(u32::MAX).min(4 << 20);
        let bytes = self.file.read(self.offset, length).map_err(io::Error::other)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }
}

pub fn stream(file: &Rc<dyn File>, packed: Packing) -> Box<dyn Read> {
    let bytes = Bytes { file: Rc::clone(file), offset: 0 };
    match packed {
        Packing::Not => Box::new(bytes),
        Packing::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 20, bytes))),
        Packing::Zstd => Box::new(Frames::new(BufReader::with_capacity(1 << 20, bytes))),
    }
}

impl Packing {
    /// The way a file that begins with these bytes is compressed.
    pub fn detect(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Packing::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
            _ => Packing::Not,
        }
    }
}
