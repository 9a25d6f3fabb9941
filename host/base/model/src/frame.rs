//! Cutting a reply's bytes into frames: events of an event stream, lines, pieces with their length
//! before them, messages of gRPC, the whole body, or the bytes as they came.
//!
//! Pure: bytes and the instant at which they were read go in, frames come out, each with the
//! instant of the bytes that completed it. Text is never decoded here, and bytes are kept until a
//! line is complete, so a reply may be cut anywhere on its way. The backend reads the frames.
//!
//! Event streams are cut as the HTML standard says (LF, CR LF or CR; `data` lines joined by LF; one
//! space after the colon dropped; comments left out; U+2028 is no line end), with one leniency:
//! a last event that lacks its blank line still counts.

use memchr::memchr2;

use crate::units::Nanos;

/// The largest frame, in bytes: a guard against a server that never ends a line. Far above an
/// answer of 100,000 tokens, which servers that repeat all text in every event send in one frame.
pub const FRAME_BYTES: usize = 16 << 20;

/// The most bytes that may wait to be sent over one WebSocket: a guard against a server that does
/// not read. It is 25 minutes of speech, as 16-bit samples at 16 kHz in base64.
pub const OUTGOING_BYTES: usize = 64 << 20;

/// The name of the frame that holds the trailer fields of a reply of gRPC: a field a line,
/// `name: value`, each line with CR LF at its end.
pub const TRAILERS: &str = "trailers";

/// The length of a message of gRPC: four bytes after a byte of flags (gRPC over HTTP/2,
/// Length-Prefixed-Message).
const GRPC: LengthPrefix = LengthPrefix { skip: 1, width: 4, adjust: 0, little_endian: false };
/// The flag of trailer fields (gRPC-Web, HTTP/1.1 trailers within the body).
const GRPC_TRAILERS: u8 = 0x80;

/// The largest buffer that is kept from one frame to the next, in bytes.
const KEPT_BYTES: usize = 4 << 10;

/// The rule by which a reply is cut into frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`.
    EventStream,
    /// One frame per line; empty lines are left out.
    Lines,
    /// A frame's length comes before its bytes.
    LengthPrefixed(LengthPrefix),
    /// Messages of gRPC, and the trailer fields as a last frame named [`TRAILERS`], in the form of
    /// gRPC-Web.
    Grpc,
    /// One frame.
    Whole,
    /// One frame per read, cut wherever the network cut it.
    Raw,
}

/// The place of a frame's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthPrefix {
    /// Bytes before the length that belong to no frame.
    pub skip: usize,
    /// Bytes of the length, from 1 to 8.
    pub width: usize,
    /// Added to the stated length: negative if it includes bytes before its end.
    pub adjust: i32,
    /// True if the length's first byte is its lowest.
    pub little_endian: bool,
}

impl LengthPrefix {
    /// Length of the frame whose prefix these bytes begin with; absent if the prefix is not whole.
    fn read(&self, bytes: &[u8]) -> Option<u64> {
        let digits = bytes.get(self.skip..self.skip + self.width)?;
        let shift = |value: u64, digit: &u8| value << 8 | u64::from(*digit);
        let stated: u64 = if self.little_endian {
            digits.iter().rev().fold(0, shift)
        } else {
            digits.iter().fold(0, shift)
        };
        // A length below the bytes that it includes is no frame's, and is refused as too large.
        Some(stated.checked_add_signed(self.adjust.into()).unwrap_or(u64::MAX))
    }
}

/// One unit of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'f> {
    /// Instant at which the bytes that complete it were read.
    pub at: Nanos,
    /// The event's name, where the framing has one.
    pub name: Option<&'f str>,
    /// Its bytes.
    pub data: &'f [u8],
    /// True if the reply ended before the frame's own end, so that it may be a piece of a frame.
    pub unfinished: bool,
}

/// Frames of one reply in order, their bytes in one piece.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// The end of each frame's bytes; they begin at the end of the frame before.
    ends: Vec<u32>,
    at: Vec<Nanos>,
    /// The names of frames that have one, by position.
    names: Vec<(u32, String)>,
    /// True if the last may be a piece of a frame.
    unfinished: bool,
}

impl Frames {
    /// No frames, with room for this many with this many bytes in all.
    pub fn with_capacity(frames: usize, bytes: usize) -> Self {
        Frames {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(frames),
            at: Vec::with_capacity(frames),
            names: Vec::new(),
            unfinished: false,
        }
    }

    /// Removes all frames, and keeps their room.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.at.clear();
        self.names.clear();
        self.unfinished = false;
    }

    /// Lends bytes, ends and names to an owner; [`put_back`](Self::put_back) takes them back.
    pub fn take_parts(&mut self) -> (Vec<u8>, Vec<u32>, Vec<(u32, String)>) {
        (
            std::mem::take(&mut self.bytes),
            std::mem::take(&mut self.ends),
            std::mem::take(&mut self.names),
        )
    }

    /// Takes the parts back.
    pub fn put_back(&mut self, (bytes, ends, names): (Vec<u8>, Vec<u32>, Vec<(u32, String)>)) {
        (self.bytes, self.ends, self.names) = (bytes, ends, names);
    }

    /// The number of frames.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no frames.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all of them, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The addresses where the next frame's bytes, end and instant are written if there is room.
    pub fn next_writes(&self) -> [*const u8; 3] {
        let (ends, at) = (self.ends.as_ptr_range().end, self.at.as_ptr_range().end);
        [self.bytes.as_ptr_range().end, ends.cast(), at.cast()]
    }

    /// Returns the memory that they take, in bytes, more or less.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.at.capacity() * size_of::<Nanos>()
            + (self.names.iter())
                .map(|(_, name)| size_of::<(u32, String)>() + name.len())
                .sum::<usize>()
    }

    /// Returns the end of each frame's bytes.
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// The names of frames that have one, by position.
    pub fn names(&self) -> &[(u32, String)] {
        &self.names
    }

    /// Returns the instant at which a frame was complete, by its position.
    pub fn at(&self, position: usize) -> Nanos {
        self.at[position]
    }

    /// The last of them.
    pub fn last(&self) -> Option<Frame<'_>> {
        self.get(self.len().checked_sub(1)?)
    }

    fn get(&self, position: usize) -> Option<Frame<'_>> {
        let end = *self.ends.get(position)? as usize;
        let start = position.checked_sub(1).map_or(0, |before| self.ends[before]) as usize;
        let named = self.names.binary_search_by_key(&(position as u32), |(of, _)| *of);
        Some(Frame {
            at: self.at[position],
            name: named.ok().map(|index| self.names[index].1.as_str()),
            data: &self.bytes[start..end],
            unfinished: self.unfinished && position + 1 == self.len(),
        })
    }

    /// The frames in order.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        (0..self.len()).filter_map(|position| self.get(position))
    }

    /// Each of them alone.
    pub fn each(&self) -> impl Iterator<Item = Frames> + '_ {
        self.iter().map(|frame| {
            let mut alone = Frames::default();
            alone.push(frame.at, frame.name.map(str::to_owned), frame.data);
            alone.unfinished = frame.unfinished;
            alone
        })
    }

    /// Puts bytes that were left of earlier frames in front of the first.
    pub fn prepend(&mut self, left: &[u8]) {
        self.bytes.splice(..0, left.iter().copied());
        for end in &mut self.ends {
            // A batch is far smaller than a frame may be, and that fits.
            *end += left.len() as u32;
        }
    }

    /// Appends frames of the same reply that came later.
    pub fn append(&mut self, later: &Frames) {
        let (frames, bytes) = (self.ends.len() as u32, self.bytes.len() as u32);
        self.bytes.extend_from_slice(&later.bytes);
        // A batch is far smaller than a frame may be, and that fits.
        self.ends.extend(later.ends.iter().map(|end| bytes + end));
        self.at.extend_from_slice(&later.at);
        let names = later.names.iter();
        self.names.extend(names.map(|(position, name)| (frames + position, name.clone())));
        self.unfinished = later.unfinished;
    }

    /// Appends a frame.
    pub fn push(&mut self, at: Nanos, name: Option<String>, data: &[u8]) {
        self.bytes.extend_from_slice(data);
        if let Some(name) = name {
            self.names.push((self.len() as u32, name));
        }
        // A batch is far smaller than a frame may be, and that fits.
        self.ends.push(self.bytes.len() as u32);
        self.at.push(at);
    }
}

/// The reason why a reply cannot be cut.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame grew beyond [`FRAME_BYTES`].
    #[error("a frame of the reply is larger than {} MiB", FRAME_BYTES >> 20)]
    Oversized,
    /// A message of gRPC is compressed, or has flags that are not known.
    #[error("a gRPC message has the flags {0:#04x}: only uncompressed messages were requested")]
    Flags(u8),
}

/// Writes trailer fields in the form of gRPC-Web, as the last frame of a reply of gRPC.
pub fn trailers<'f>(fields: impl Iterator<Item = (&'f str, &'f [u8])>) -> Vec<u8> {
    let mut frame = vec![GRPC_TRAILERS, 0, 0, 0, 0];
    for (name, value) in fields {
        frame.extend_from_slice(name.as_bytes());
        frame.extend_from_slice(b": ");
        frame.extend_from_slice(value);
        frame.extend_from_slice(b"\r\n");
    }
    // Header fields are far smaller than 4 GiB.
    let length = (frame.len() - 5) as u32;
    frame[1..5].copy_from_slice(&length.to_be_bytes());
    frame
}

/// Cuts one reply.
#[derive(Debug)]
pub struct Framer {
    framing: Framing,
    line: Vec<u8>,
    after_cr: bool,
    first_line: bool,
    name: Option<String>,
    data: Vec<u8>,
    has_data: bool,
    #[cfg(test)]
    copied: usize,
}

impl Framer {
    /// A framer for one reply.
    pub fn new(framing: Framing) -> Self {
        Framer {
            framing,
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            name: None,
            data: Vec::new(),
            has_data: false,
            #[cfg(test)]
            copied: 0,
        }
    }

    /// Takes the bytes of one read; appends complete frames. Fails on a large or malformed one.
    pub fn push(
        &mut self,
        at: Nanos,
        mut bytes: &[u8],
        frames: &mut Frames,
    ) -> Result<(), FrameError> {
        match self.framing {
            Framing::EventStream | Framing::Lines => {}
            Framing::LengthPrefixed(prefix) => {
                return self.push_prefixed(prefix, at, bytes, frames);
            }
            Framing::Grpc => return self.push_prefixed(GRPC, at, bytes, frames),
            Framing::Whole => {
                self.has_data |= !bytes.is_empty();
                self.data.extend_from_slice(bytes);
                return self.check_size();
            }
            Framing::Raw => {
                if !bytes.is_empty() {
                    frames.push(at, None, bytes);
                }
                return Ok(());
            }
        }
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            if let Some(taken) = self.plain_event(at, bytes, frames) {
                bytes = &bytes[taken..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', bytes) else {
                self.extend_line(bytes);
                return self.check_size();
            };
            self.after_cr = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.end_line(at, &bytes[..end], frames);
            } else {
                self.extend_line(&bytes[..end]);
                let mut line = std::mem::take(&mut self.line);
                self.end_line(at, &line, frames);
                line.clear();
                // One long line must not take memory for the rest of the reply.
                if line.capacity() <= KEPT_BYTES {
                    self.line = line;
                }
            }
            self.check_size()?;
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Takes an event at the beginning of these bytes that is one `data` line and its blank line,
    /// both whole, as nearly all events are. Returns the number of its bytes.
    fn plain_event(&mut self, at: Nanos, bytes: &[u8], frames: &mut Frames) -> Option<usize> {
        let begins = self.framing == Framing::EventStream
            && self.line.is_empty()
            && !self.has_data
            && self.name.is_none();
        let value = bytes.strip_prefix(b"data: ").filter(|_| begins)?;
        let end = memchr2(b'\n', b'\r', value)?;
        if value.get(end..end + 2) != Some(b"\n\n") || end > FRAME_BYTES {
            return None;
        }
        self.first_line = false;
        frames.push(at, None, &value[..end]);
        Some(b"data: ".len() + end + 2)
    }

    /// Takes bytes of a reply whose frames have their length before them. `line` holds an
    /// incomplete frame; only bytes that complete it or begin the next one are copied, so however
    /// small the reads are, each byte is copied once.
    fn push_prefixed(
        &mut self,
        prefix: LengthPrefix,
        at: Nanos,
        mut bytes: &[u8],
        frames: &mut Frames,
    ) -> Result<(), FrameError> {
        let head = prefix.skip + prefix.width;
        loop {
            let from_held = !self.line.is_empty();
            if from_held && self.line.len() < head {
                bytes = self.hold(bytes, head);
            }
            let begun: &[u8] = if from_held { &self.line } else { bytes };
            let Some(length) = prefix.read(begun) else { break };
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if length > FRAME_BYTES {
                return Err(FrameError::Oversized);
            }
            let name = self.name_of(begun)?;
            let whole = head + length;
            if from_held {
                bytes = self.hold(bytes, whole);
                if self.line.len() < whole {
                    return Ok(());
                }
                frames.push(at, name, &self.line[head..]);
                self.line.clear();
            } else {
                let Some(data) = bytes.get(head..whole) else { break };
                frames.push(at, name, data);
                bytes = &bytes[whole..];
            }
        }
        let end = self.line.len() + bytes.len();
        self.hold(bytes, end);
        Ok(())
    }

    /// The name of the frame that begins with this prefix, from the flags of gRPC.
    fn name_of(&self, prefix: &[u8]) -> Result<Option<String>, FrameError> {
        match (self.framing, prefix[0]) {
            (Framing::Grpc, 0) => Ok(None),
            (Framing::Grpc, GRPC_TRAILERS) => Ok(Some(TRAILERS.to_owned())),
            (Framing::Grpc, flags) => Err(FrameError::Flags(flags)),
            _ => Ok(None),
        }
    }

    /// Appends bytes to the held bytes until `until` are held; returns the remaining bytes.
    fn hold<'b>(&mut self, bytes: &'b [u8], until: usize) -> &'b [u8] {
        let wanted = until.saturating_sub(self.line.len());
        let (taken, left) = bytes.split_at(wanted.min(bytes.len()));
        self.extend_line(taken);
        left
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        #[cfg(test)]
        {
            self.copied += bytes.len();
        }
        self.line.extend_from_slice(bytes);
    }

    /// The reply has ended; `at` is the instant at which its end was seen.
    pub fn finish(&mut self, at: Nanos, frames: &mut Frames) {
        let mut unfinished = false;
        match self.framing {
            Framing::EventStream | Framing::Lines => {}
            Framing::Whole => {
                if self.has_data {
                    self.emit(at, frames);
                }
                return;
            }
            Framing::LengthPrefixed(prefix) => return self.cut_off(prefix, at, frames),
            Framing::Grpc => return self.cut_off(GRPC, at, frames),
            Framing::Raw => return,
        }
        if !self.line.is_empty() {
            unfinished = true;
            let line = std::mem::take(&mut self.line);
            self.end_line(at, &line, frames);
        }
        if self.has_data {
            unfinished = true;
            self.emit(at, frames);
        }
        frames.unfinished = unfinished;
    }

    /// Gives the frame whose end did not come as unfinished.
    fn cut_off(&mut self, prefix: LengthPrefix, at: Nanos, frames: &mut Frames) {
        let held = std::mem::take(&mut self.line);
        if let Some(data @ [_, ..]) = held.get(prefix.skip + prefix.width..) {
            frames.push(at, None, data);
            frames.unfinished = true;
        }
    }

    /// Returns the memory that it takes for the frame that is not complete, in bytes.
    pub fn memory(&self) -> usize {
        let name = self.name.as_ref().map_or(0, String::capacity);
        self.line.capacity() + self.data.capacity() + name
    }

    /// The reply broke off; `at` is the instant at which this was seen. Unlike after its end, a
    /// whole reply is unfinished.
    pub fn break_off(&mut self, at: Nanos, frames: &mut Frames) {
        self.finish(at, frames);
        if self.framing == Framing::Whole && !frames.is_empty() {
            frames.unfinished = true;
        }
    }

    fn check_size(&self) -> Result<(), FrameError> {
        if self.line.len().max(self.data.len()) > FRAME_BYTES {
            return Err(FrameError::Oversized);
        }
        Ok(())
    }

    fn emit(&mut self, at: Nanos, frames: &mut Frames) {
        frames.push(at, self.name.take(), &self.data);
        self.data.clear();
        if self.data.capacity() > KEPT_BYTES {
            self.data = Vec::new();
        }
        self.has_data = false;
    }

    fn end_line(&mut self, at: Nanos, line: &[u8], frames: &mut Frames) {
        let line = if std::mem::take(&mut self.first_line) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if self.framing == Framing::Lines {
            if !line.trim_ascii().is_empty() {
                self.data.extend_from_slice(line);
                self.emit(at, frames);
            }
            return;
        }
        if line.is_empty() {
            if self.has_data {
                self.emit(at, frames);
            }
            self.name = None;
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(0) => return,
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => self.name = Some(String::from_utf8_lossy(value).into_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
