//! Decompresses Zstandard: all frames of a stream, one after the other.

use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use runner_plugin::{File, Reader};

/// The content of a stream's frames.
pub struct Frames<R: BufRead> {
    frame: Option<Box<StreamingDecoder<R, FrameDecoder>>>,
    stream: Option<R>,
}

impl<R: BufRead> Frames<R> {
    pub fn new(stream: R) -> Self {
        Self { frame: None, stream: Some(stream) }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
            }
            if let Some(frame) = self.frame.take() {
                self.stream = Some(frame.into_inner());
            }
            let Some(mut stream) = self.stream.take() else { return Ok(0) };
            if stream.fill_buf()?.is_empty() {
                self.stream = Some(stream);
                return Ok(0);
            }
            let frame = StreamingDecoder::new(stream)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            self.frame = Some(Box::new(frame));
        }
    }
}

// Compression of a file, and its content as a stream.

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
