//! Decompresses Zstandard: all frames of a stream, one after the other.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

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
