//! The values of a column, a page at a time.

use std::collections::VecDeque;
use std::io::Read;
use std::rc::Rc;

use runner_plugin::File;
use serde_json::Value;

use crate::schema::{Chunk, Leaf};
use crate::thrift::{self, Input};
use crate::values::{hybrid, values};

/// The longest page, in bytes, compressed or not. Writers make pages of about one MiB.
const LONGEST: usize = 256 << 20;

/// The most values of a page. Writers put at most some ten thousand into one.
const MOST_VALUES: usize = 16 << 20;

const PIECE: u64 = 1 << 20;

pub struct Column {
    file: Rc<dyn File>,
    leaf: Leaf,
    chunk: Chunk,
    /// The offset of the next bytes to read, and the bytes that were read.
    at: u64,
    kept: Vec<u8>,
    dictionary: Vec<Value>,
    /// The number of values, missing ones included, the pages so far had.
    seen: u64,
    /// Definition and repetition levels of the rest of the page, and its values.
    levels: VecDeque<(u16, u16)>,
    present: VecDeque<Value>,
}

impl Column {
    pub fn new(file: Rc<dyn File>, leaf: Leaf, chunk: Chunk) -> Self {
        Self {
            file,
            leaf,
            chunk,
            at: chunk.start,
            kept: Vec::new(),
            dictionary: Vec::new(),
            seen: 0,
            levels: VecDeque::new(),
            present: VecDeque::new(),
        }
    }

    /// The definition and repetition level of the next value; `None` at the end.
    pub fn peek(&mut self) -> Result<Option<(u16, u16)>, String> {
        while self.levels.is_empty() {
            if self.seen >= self.chunk.values {
                return Ok(None);
            }
            self.page()?;
        }
        Ok(self.levels.front().copied())
    }

    /// Takes the next value; `None` if it is missing.
    pub fn take(&mut self) -> Result<Option<Value>, String> {
        let level = self.peek()?;
        let Some((def, _)) = level else {
            return Err("a column ends before the others".to_owned());
        };
        self.levels.pop_front();
        if def < self.leaf.def {
            return Ok(None);
        }
        let value = self.present.pop_front();
        value.map(Some).ok_or_else(|| "a page is damaged".to_owned())
    }

    /// Makes sure that this many bytes are kept, or the bytes to the end of the chunk.
    fn fill(&mut self, length: usize) -> Result<(), String> {
        while self.kept.len() < length && self.at < self.chunk.end {
            let missing = (length - self.kept.len()) as u64;
            let wanted = missing.max(PIECE).min(self.chunk.end - self.at).min(4 * PIECE);
            let piece = self.file.read(self.at, wanted as u32)?;
            if piece.is_empty() {
                return Err("it ends within a column".to_owned());
            }
            self.at += piece.len() as u64;
            self.kept.extend(piece);
        }
        Ok(())
    }

    fn page(&mut self) -> Result<(), String> {
        let damaged = || "the head of a page is damaged".to_owned();
        // A head is small, but may have statistics with two values.
        let mut wanted = 1 << 10;
        let (kind, sizes, of, length) = loop {
            self.fill(wanted)?;
            if let Some((head, length)) = thrift::read(&self.kept) {
                let size = |id| {
                    let size = head.int(id).and_then(|size| usize::try_from(size).ok());
                    size.filter(|size| *size <= LONGEST).ok_or_else(|| {
                        format!("a page is damaged, or longer than {} MiB", LONGEST >> 20)
                    })
                };
                let kind = head.int(1).ok_or_else(damaged)?;
                let sizes = (size(2)?, size(3)?);
                let own = match kind {
                    0 => head.field(5),
                    2 => head.field(7),
                    3 => head.field(8),
                    _ => None,
                };
                break (kind, sizes, own.map(|own| PageFacts::read(own, kind == 3)), length);
            }
            if self.kept.len() < wanted || wanted >= 16 << 20 {
                return Err(damaged());
            }
            wanted *= 4;
        };
        let (whole, packed) = sizes;
        self.fill(length + packed)?;
        if self.kept.len() < length + packed {
            return Err("it ends within a page".to_owned());
        }
        let page = self.kept[length..length + packed].to_vec();
        self.kept.drain(..length + packed);
        match (kind, of) {
            (2, Some(of)) => {
                let bytes = unpacked(self.chunk.codec, &page, whole)?;
                self.dictionary = values(&self.leaf, 0, &bytes, of.count(whole)?, &[])?;
            }
            (0, Some(of)) => {
                let bytes = unpacked(self.chunk.codec, &page, whole)?;
                self.data(&of, &bytes)?;
            }
            (3, Some(of)) => {
                let (rep, def) = (of.rep, of.def);
                let levels = rep.checked_add(def).filter(|levels| *levels <= page.len());
                let (levels, rest) = page.split_at(levels.ok_or_else(damaged)?);
                let rest = if of.packed {
                    let whole = whole.checked_sub(levels.len()).ok_or_else(damaged)?;
                    unpacked(self.chunk.codec, rest, whole)?
                } else {
                    rest.to_vec()
                };
                let count = of.count(LONGEST)?;
                let reps = self.levels(&levels[..rep], self.leaf.rep, count)?;
                let defs = self.levels(&levels[rep..], self.leaf.def, count)?;
                self.keep(of.encoding, defs, reps, &rest)?;
            }
            // A page of an index.
            _ => {}
        }
        Ok(())
    }

    /// A page whose levels come with their lengths, before the values.
    fn data(&mut self, of: &PageFacts, bytes: &[u8]) -> Result<(), String> {
        let damaged = || "a page is damaged".to_owned();
        let count = of.count(LONGEST)?;
        let mut input = Input { bytes, at: 0 };
        let mut levels = |highest: u16| {
            if highest == 0 {
                return Ok(vec![0; count]);
            }
            let length = input.take(4).and_then(|length| length.try_into().ok());
            let length = u32::from_le_bytes(length.ok_or_else(damaged)?);
            let levels = input.take(length as usize).ok_or_else(damaged)?;
            self.levels(levels, highest, count)
        };
        let reps = levels(self.leaf.rep)?;
        let defs = levels(self.leaf.def)?;
        let rest = &bytes[input.at..];
        self.keep(of.encoding, defs, reps, rest)
    }

    fn levels(&self, bytes: &[u8], highest: u16, count: usize) -> Result<Vec<u32>, String> {
        let width = u16::BITS - highest.leading_zeros();
        hybrid(bytes, width, count).ok_or_else(|| "the levels of a page are damaged".to_owned())
    }

    fn keep(
        &mut self,
        encoding: i64,
        defs: Vec<u32>,
        reps: Vec<u32>,
        bytes: &[u8],
    ) -> Result<(), String> {
        let highest = u32::from(self.leaf.def);
        let present = defs.iter().filter(|def| **def == highest).count();
        self.seen += defs.len() as u64;
        self.present = values(&self.leaf, encoding, bytes, present, &self.dictionary)?.into();
        let levels = defs.into_iter().zip(reps);
        self.levels = levels.map(|(def, rep)| (def as u16, rep as u16)).collect();
        Ok(())
    }
}

/// The facts about its values in the head of a page.
struct PageFacts {
    count: i64,
    encoding: i64,
    /// Bytes of levels, in the second version of pages.
    rep: usize,
    def: usize,
    packed: bool,
}

impl PageFacts {
    fn read(head: &thrift::Value<'_>, newer: bool) -> Self {
        let length = |id| head.int(id).and_then(|length| usize::try_from(length).ok());
        Self {
            count: head.int(1).unwrap_or(0),
            encoding: head.int(if newer { 4 } else { 2 }).unwrap_or(-1),
            def: length(5).unwrap_or(0),
            rep: length(6).unwrap_or(0),
            packed: head.field(7) != Some(&thrift::Value::Bool(false)),
        }
    }

    fn count(&self, most: usize) -> Result<usize, String> {
        let count = usize::try_from(self.count).ok();
        // A value takes no less than a bit, unless all are missing or the same.
        let count = count.filter(|count| *count <= most.saturating_mul(8).min(MOST_VALUES));
        count.ok_or_else(|| "a page has an impossible number of values".to_owned())
    }
}

/// The content of a page of `whole` bytes.
fn unpacked(codec: i64, bytes: &[u8], whole: usize) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("a page cannot be decompressed: {error}");
    let unpacked = match codec {
        0 => bytes.to_vec(),
        1 => {
            if snap::raw::decompress_len(bytes).map_err(|error| failed(&error))? > whole {
                return Err(failed(&"it is longer than stated"));
            }
            let mut decoder = snap::raw::Decoder::new();
            decoder.decompress_vec(bytes).map_err(|error| failed(&error))?
        }
        2 => stretched(flate2::read::MultiGzDecoder::new(bytes), whole)
            .map_err(|error| failed(&error))?,
        6 => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(bytes);
            let decoder = decoder.map_err(|error| failed(&error))?;
            stretched(decoder, whole).map_err(|error| failed(&error))?
        }
        other => {
            let name = match other {
                3 => "LZO",
                4 => "Brotli",
                5 | 7 => "LZ4",
                _ => "an unknown codec",
            };
            return Err(format!(
                "its pages are compressed by {name}; write it with Snappy, gzip or Zstandard, or without compression"
            ));
        }
    };
    if unpacked.len() == whole {
        Ok(unpacked)
    } else {
        Err(failed(&"its length differs from the stated one"))
    }
}

fn stretched(stream: impl Read, whole: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(whole as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
