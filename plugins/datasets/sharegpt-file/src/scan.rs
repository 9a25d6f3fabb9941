//! Passes over JSON without keeping it: a file comes in pieces, values are skipped, and a fault
//! knows its place.
//!
//! Strings are skipped, not read: a mistake inside one (an unknown escape, a broken character)
//! shows when it is read for use.

use runner_plugin::json::BYTE_ORDER_MARK;
use runner_plugin::{Error, File};

/// Bytes to read at once: small enough for a cache, large enough that calls do not count.
const PIECE: u32 = 1 << 20;

const DEEPEST: u32 = 128;

/// A mistake in a file, and its place.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Bytes before it.
    offset: u64,
    /// The conversation it lies in, counted from 1; 0 where it lies in none.
    conversation: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The file ends where this was expected.
    Cut(&'static str),
    Unexpected {
        expected: &'static str,
        found: u8,
    },
    /// JSON, but something else than a conversation.
    Shape(String),
    Deep,
    Unreadable(String),
}

impl Fault {
    /// JSON, but something else than a conversation.
    pub(crate) fn shape(offset: u64, cause: String) -> Self {
        Self { offset, conversation: 0, kind: Kind::Shape(cause) }
    }

    /// As a sentence for the user. Reads the file up to the fault once more, to count its lines.
    pub(crate) fn explain(self, file: &dyn File, name: &str) -> Error {
        let place = match line_at(file, self.offset) {
            Some(line) => format!("byte {}, line {}", grouped(self.offset), grouped(line)),
            None => format!("byte {}", grouped(self.offset)),
        };
        let within = match self.conversation {
            0 => String::new(),
            number => format!("in conversation {} ", grouped(number)),
        };
        Error::InvalidInput(match self.kind {
            Kind::Cut(_) if self.offset == 0 => {
                format!(
                    "the file `{name}` is empty; expected a JSON array of conversations: download it again"
                )
            }
            Kind::Cut(expected) => {
                let inside = match self.conversation {
                    0 => "before its closing `]`".to_owned(),
                    number => format!("inside conversation {}", grouped(number)),
                };
                format!(
                    "the file `{name}` ends {inside} ({place}), where {expected} was expected: \
                     the file is incomplete; download it again"
                )
            }
            Kind::Unexpected { expected, found } => format!(
                "the file `{name}` is not valid JSON {within}({place}): expected {expected}, found {}{}",
                shown(found),
                advice(self.offset, self.conversation, found),
            ),
            Kind::Shape(mistake) => format!(
                "the file `{name}` has {mistake} {within}({place}); expected entries like \
                 {{\"conversations\": [{{\"from\": \"human\", \"value\": \"…\"}}, {{\"from\": \"gpt\", \"value\": \"…\"}}]}}: \
                 use a file of the ShareGPT format"
            ),
            Kind::Deep => format!(
                "the file `{name}` is nested more than {DEEPEST} levels deep {within}({place}): \
                 use a file of the ShareGPT format"
            ),
            Kind::Unreadable(cause) => {
                format!("the file `{name}` cannot be read at {place}: {cause}")
            }
        })
    }
}

/// Advises on a byte that cannot stand at its place.
fn advice(offset: u64, conversation: u64, found: u8) -> &'static str {
    match (conversation, found) {
        (0, b'{') if offset < 16 => {
            "; convert a file with one conversation a line into one array, such as with `jq --slurp .`"
        }
        (0, _) if offset < 16 => "; look whether it is another file or a saved web page",
        _ => ": the file is damaged; download it again",
    }
}

fn shown(byte: u8) -> String {
    match byte {
        b' '..=b'~' => format!("`{}`", char::from(byte)),
        _ => format!("the byte 0x{byte:02X}"),
    }
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The line of the byte at `offset`, from 1; `None` where the file cannot be read.
fn line_at(file: &dyn File, offset: u64) -> Option<u64> {
    let mut line = 1;
    let mut at = 0;
    while at < offset {
        let piece = file.read(at, u64::from(PIECE).min(offset - at) as u32).ok()?;
        if piece.is_empty() {
            break;
        }
        line += memchr::memchr_iter(b'\n', &piece).count() as u64;
        at += piece.len() as u64;
    }
    Some(line)
}

/// The offset in `text` of a line and a column, both counted from 1 and the column in bytes.
pub(crate) fn offset_of(text: &[u8], line: usize, column: usize) -> usize {
    let start = match line.checked_sub(2) {
        Some(before) => memchr::memchr_iter(b'\n', text).nth(before).map_or(0, |at| at + 1),
        None => 0,
    };
    (start + column).min(text.len())
}

/// A place in a file, which only moves forward.
pub(crate) struct Scanner<'a> {
    file: &'a dyn File,
    piece: Vec<u8>,
    at: usize,
    /// Position in the file where the piece begins.
    start: u64,
    /// The conversation that is being passed over, counted from 1; 0 for none.
    pub(crate) conversation: u64,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(file: &'a dyn File) -> Self {
        Self { file, piece: Vec::new(), at: 0, start: 0, conversation: 0 }
    }

    /// Passes over a byte order mark at the beginning of the file.
    pub(crate) fn mark(&mut self) -> Result<(), Fault> {
        for byte in BYTE_ORDER_MARK {
            if self.peek()? != Some(*byte) {
                break;
            }
            self.step();
        }
        Ok(())
    }

    pub(crate) fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    fn fault(&self, kind: Kind) -> Fault {
        Fault { offset: self.offset(), conversation: self.conversation, kind }
    }

    /// A fault for JSON of another shape, that begins at `offset`.
    pub(crate) fn misshapen(&self, offset: u64, cause: &str) -> Fault {
        Fault { offset, conversation: self.conversation, kind: Kind::Shape(cause.to_owned()) }
    }

    /// A fault at the byte ahead, or at the end of the file.
    pub(crate) fn unexpected(&self, expected: &'static str) -> Fault {
        match self.piece.get(self.at) {
            Some(found) => self.fault(Kind::Unexpected { expected, found: *found }),
            None => self.fault(Kind::Cut(expected)),
        }
    }

    /// Returns the rest of the piece, or the next piece; empty at the end of the file.
    fn rest(&mut self) -> Result<&[u8], Fault> {
        if self.at == self.piece.len() {
            self.start += self.piece.len() as u64;
            self.at = 0;
            // The old piece is given back before the next one comes.
            self.piece = Vec::new();
            self.piece = self
                .file
                .read(self.start, PIECE)
                .map_err(|cause| self.fault(Kind::Unreadable(cause)))?;
        }
        Ok(&self.piece[self.at..])
    }

    pub(crate) fn peek(&mut self) -> Result<Option<u8>, Fault> {
        Ok(self.rest()?.first().copied())
    }

    /// Passes over white space and gives the byte after it.
    pub(crate) fn after_space(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            let rest = self.rest()?;
            if rest.is_empty() {
                return Ok(None);
            }
            match rest.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
                Some(space) => {
                    let byte = rest[space];
                    self.at += space;
                    return Ok(Some(byte));
                }
                None => self.at = self.piece.len(),
            }
        }
    }

    pub(crate) fn step(&mut self) {
        self.at += 1;
    }

    /// Passes over white space and `byte`.
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Fault> {
        if self.after_space()? == Some(byte) {
            self.step();
            return Ok(());
        }
        Err(self.unexpected(expected))
    }

    /// Passes over a string whose opening quote lies behind; returns its number of bytes.
    pub(crate) fn string(&mut self) -> Result<u64, Fault> {
        const EXPECTED: &str = "the rest of a string";
        let start = self.offset();
        loop {
            let rest = self.rest()?;
            if rest.is_empty() {
                return Err(self.unexpected(EXPECTED));
            }
            match memchr::memchr2(b'"', b'\\', rest) {
                None => self.at = self.piece.len(),
                Some(found) if rest[found] == b'"' => {
                    self.at += found + 1;
                    return Ok(self.offset() - 1 - start);
                }
                Some(found) => {
                    self.at += found + 1;
                    if self.peek()?.is_none() {
                        return Err(self.unexpected(EXPECTED));
                    }
                    self.step();
                }
            }
        }
    }

    /// Passes over a key and its colon; its bytes as they stand in the file come into `key`.
    fn key(&mut self, key: &mut Vec<u8>) -> Result<(), Fault> {
        key.clear();
        self.expect(b'"', "a key in quotes")?;
        loop {
            let rest = self.rest()?;
            let Some(byte) = rest.first().copied() else {
                return Err(self.unexpected("the rest of a key"));
            };
            // Far longer than any key that matters, so it is another key.
            if key.len() > 64 {
                self.string()?;
                break;
            }
            self.step();
            match byte {
                b'"' => break,
                b'\\' => {
                    key.push(byte);
                    if let Some(escaped) = self.peek()? {
                        key.push(escaped);
                        self.step();
                    }
                }
                _ => key.push(byte),
            }
        }
        self.expect(b':', "`:` after a key")
    }

    /// Passes over an object; `member` is called behind each key and must pass over its value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(b'{', "`{`")?;
        if self.after_space()? == Some(b'}') {
            self.step();
            return Ok(());
        }
        let mut key = Vec::new();
        loop {
            self.key(&mut key)?;
            member(self, &key)?;
            match self.after_space()? {
                Some(b',') => self.step(),
                Some(b'}') => {
                    self.step();
                    return Ok(());
                }
                _ => return Err(self.unexpected("`,` or `}`")),
            }
            self.after_space()?;
        }
    }

    /// Passes over an array whose bracket is ahead; `element` gets the index and passes over each.
    pub(crate) fn array(
        &mut self,
        mut element: impl FnMut(&mut Self, u64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(b'[', "`[`")?;
        if self.after_space()? == Some(b']') {
            self.step();
            return Ok(());
        }
        for index in 0.. {
            self.after_space()?;
            element(self, index)?;
            match self.after_space()? {
                Some(b',') => self.step(),
                Some(b']') => {
                    self.step();
                    break;
                }
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
        Ok(())
    }

    pub(crate) fn value(&mut self) -> Result<(), Fault> {
        self.nested(0)
    }

    fn nested(&mut self, depth: u32) -> Result<(), Fault> {
        if depth == DEEPEST {
            return Err(self.fault(Kind::Deep));
        }
        match self.after_space()? {
            Some(b'"') => {
                self.step();
                self.string().map(drop)
            }
            Some(b'{') => self.object(|scanner, _| scanner.nested(depth + 1)),
            Some(b'[') => self.array(|scanner, _| scanner.nested(depth + 1)),
            // Python's reader takes `NaN` and `Infinity` too.
            Some(b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'N' | b'I') => self.word(),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Passes over a number, or a word such as `true`.
    fn word(&mut self) -> Result<(), Fault> {
        let mut word = Vec::new();
        let start = (self.offset(), self.peek()?);
        while let Some(byte @ (b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')) =
            self.peek()?
        {
            if word.len() < 512 {
                word.push(byte);
            }
            self.step();
        }
        let number = || std::str::from_utf8(&word).is_ok_and(|word| word.parse::<f64>().is_ok());
        match &word[..] {
            b"true" | b"false" | b"null" | b"NaN" | b"Infinity" | b"-Infinity" => Ok(()),
            [b'-' | b'0'..=b'9', ..] if number() => Ok(()),
            // A word may be broken because the file ends in it.
            _ if self.peek()?.is_none() => Err(self.unexpected("the rest of a value")),
            _ => Err(Fault {
                offset: start.0,
                conversation: self.conversation,
                kind: Kind::Unexpected { expected: "a value", found: start.1.unwrap_or_default() },
            }),
        }
    }
}
