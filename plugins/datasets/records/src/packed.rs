//! Compression of a file, and its content as a stream.

use std::io::{BufReader, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use runner_plugin::{File, Reader};

use crate::zstd::Frames;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Not,
    Gzip,
    Zstd,
}

/// A file as a stream of its content, compressed or not.
pub fn stream(file: &Rc<dyn File>, packed: Packing) -> Box<dyn Read> {
    let bytes = Reader::new(Rc::clone(file));
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
