//! Cuts a stream of bytes into records: lines, paragraphs, records of a CSV file, items of a JSON
//! array. It finds their beginnings and ends; others read their content.

use std::fmt::{self, Display, Formatter};
use std::io::Read;

use crate::json::BYTE_ORDER_MARK;

/// Bytes to read at once where a file is read from its beginning to its end.
const PIECE: usize = 1 << 20;

/// The longest record, in bytes: a longer one is a mistake, such as a quotation mark that is never
/// closed. A plugin's 256 MiB hold its bytes, its text and the prompt at the same time.
pub const LONGEST: usize = 24 << 20;

/// The way in which records are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Lines; blank ones do not count.
    Lines,
    /// Lines of cells with this byte between them. A cell that begins with a quotation mark
    /// continues until the closing mark, also over the ends of lines.
    Quoted(u8),
    /// Paragraphs, with blank lines between them.
    Paragraphs,
    /// Commas of the file's one array.
    Items,
}

/// The place of a record in its file, shown as `line 17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It begins in the line of this number, from 1.
    Line(u64),
    /// It is the item of an array of this number, from 1, and begins in this line.
    Item(u64, u64),
    /// It is the row of a Parquet file of this number, from 1.
    Row(u64),
    /// It begins at this byte.
    Byte(u64),
}

impl Display for Place {
    fn fmt(&self, shown: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(shown, "line {line}"),
            Place::Item(item, line) => write!(shown, "item {item} (line {line})"),
            Place::Row(row) => write!(shown, "row {row}"),
            Place::Byte(byte) => write!(shown, "the row at byte {byte}"),
        }
    }
}

/// A record, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place, if the file was read from its beginning.
    pub place: Place,
    /// The line in which it begins, from 1, if the file was read from its beginning.
    pub line: u64,
    /// The place where it begins, in bytes.
    pub offset: u64,
    /// Its bytes, without the separator from the next one.
    pub bytes: Vec<u8>,
}

/// The records of a stream.
pub struct Records {
    stream: Box<dyn Read>,
    cut: Cut,
    piece: usize,
    /// Bytes that were read, and the number of consumed ones.
    kept: Vec<u8>,
    given: usize,
    /// The place where the bytes not consumed begin.
    offset: u64,
    /// The line of the first of them, from 1.
    line: u64,
    number: u64,
    stage: Stage,
}

/// The position of the stream in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Before,
    Item,
    After,
    Closed,
}

/// The state of a search for the end of a record.
#[derive(Default)]
struct Scan {
    cell: Cell,
    quoted: bool,
    escaped: bool,
    depth: u32,
    /// The line so far has only white space.
    blank: bool,
    /// A line before it has more.
    text: bool,
}

/// The position of a search in a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cell {
    /// At its beginning, where a quotation mark opens it.
    #[default]
    Start,
    /// In a cell without quotation marks around it; quotation marks inside are text.
    Bare,
    Quoted,
    /// After a mark within quotation marks: it closes them, unless another mark follows.
    Mark,
}

impl Records {
    /// The records of a stream from its beginning; a byte order mark is skipped.
    pub fn new(stream: Box<dyn Read>, cut: Cut) -> Self {
        Self {
            stream,
            cut,
            piece: PIECE,
            kept: Vec::new(),
            given: 0,
            offset: 0,
            line: 1,
            number: 0,
            stage: Stage::Before,
        }
    }

    /// The records of a stream whose first record is `offset` bytes from the file's beginning. It
    /// reads little, for few records.
    pub fn starting_at(stream: Box<dyn Read>, cut: Cut, offset: u64) -> Self {
        Self { piece: 16 << 10, offset, number: 1, stage: Stage::Item, ..Self::new(stream, cut) }
    }

    /// The place of the next record, unless blank lines are before it.
    pub fn place(&self) -> Place {
        self.place_of(self.number + 1, self.line)
    }

    fn place_of(&self, number: u64, line: u64) -> Place {
        match self.cut {
            Cut::Items => Place::Item(number, line),
            _ => Place::Line(line),
        }
    }

    /// The next record that is not blank; `None` at the end.
    ///
    /// # Errors
    /// The cause, if the stream cannot be read, or has no such records.
    pub fn next_record(&mut self) -> Result<Option<Record>, String> {
        if self.number == 0 && self.offset == 0 {
            while self.rest().len() < BYTE_ORDER_MARK.len() && self.more()? {}
            if self.rest().starts_with(BYTE_ORDER_MARK) {
                self.consume(BYTE_ORDER_MARK.len());
            }
        }
        if self.cut == Cut::Items {
            return self.item();
        }
        loop {
            let Some((end, separator)) = self.end()? else { return Ok(None) };
            let record = self.record(end);
            self.consume(separator);
            if !record.bytes.trim_ascii().is_empty() {
                self.number += 1;
                return Ok(Some(record));
            }
        }
    }

    fn item(&mut self) -> Result<Option<Record>, String> {
        if self.stage == Stage::Before {
            self.expect(b'[', "the file is not an array: expected `[`")?;
            self.stage = Stage::Item;
            if self.peek()? == Some(b']') {
                self.consume(1);
                self.stage = Stage::Closed;
            }
        }
        if self.stage == Stage::After {
            match self.peek()? {
                Some(b',') => self.consume(1),
                Some(b']') => {
                    self.consume(1);
                    self.stage = Stage::Closed;
                }
                _ => return Err("expected `,` or `]` after the item before".to_owned()),
            }
        }
        if self.stage == Stage::Closed {
            return match self.peek()? {
                None => Ok(None),
                Some(_) => Err(
                    "text follows the end of the array; expected one array, or, with `format = \"jsonl\"`, a value a line"
                        .to_owned(),
                ),
            };
        }
        self.peek()?;
        let Some((end, _)) = self.end()? else {
            return Err("the array has no end: expected `]`".to_owned());
        };
        self.stage = Stage::After;
        self.number += 1;
        Ok(Some(self.record(end)))
    }

    fn record(&mut self, end: usize) -> Record {
        let bytes = self.rest()[..end].to_vec();
        let text = bytes.len() - bytes.trim_ascii_start().len();
        let line = self.line + newlines(&bytes[..text]);
        let place = self.place_of(self.number, line);
        let record = Record { place, line, offset: self.offset, bytes };
        self.consume(end);
        record
    }

    /// The place where the next record ends, and the number of bytes that separate it from its
    /// successor; `None` if there is none.
    fn end(&mut self) -> Result<Option<(usize, usize)>, String> {
        let mut seen = Scan { blank: true, ..Scan::default() };
        let mut searched = 0;
        loop {
            let rest = self.rest();
            if let Some(end) = seen.end(self.cut, &rest[searched..]) {
                let separator = usize::from(self.cut != Cut::Items);
                return Ok(Some((searched + end, separator)));
            }
            searched = rest.len();
            if searched > LONGEST {
                let remedy = match self.cut {
                    Cut::Lines | Cut::Paragraphs => "split it into several",
                    _ => "look for a quotation mark or bracket that is not closed, or set `format`",
                };
                return Err(format!("it is longer than {} MiB; {remedy}", LONGEST >> 20));
            }
            if !self.more()? {
                let whole = searched > 0 && self.cut != Cut::Items;
                return Ok(whole.then_some((searched, 0)));
            }
        }
    }

    fn rest(&self) -> &[u8] {
        &self.kept[self.given..]
    }

    fn consume(&mut self, bytes: usize) {
        self.line += newlines(&self.kept[self.given..self.given + bytes]);
        self.given += bytes;
        self.offset += bytes as u64;
    }

    /// Peeks at the next byte that is not white space.
    fn peek(&mut self) -> Result<Option<u8>, String> {
        loop {
            let rest = self.rest();
            let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
            let blank = blank.count();
            let next = rest.get(blank).copied();
            self.consume(blank);
            if next.is_some() || !self.more()? {
                return Ok(next);
            }
        }
    }

    fn expect(&mut self, byte: u8, otherwise: &str) -> Result<(), String> {
        if self.peek()? != Some(byte) {
            return Err(otherwise.to_owned());
        }
        self.consume(1);
        Ok(())
    }

    /// Reads on; `false` at the end of the stream.
    fn more(&mut self) -> Result<bool, String> {
        self.kept.drain(..self.given);
        self.given = 0;
        // `resize` fills the piece byte by byte in a build for tests; this memory comes zeroed.
        let mut piece = vec![0; self.piece];
        let read = self.stream.read(&mut piece).map_err(|error| error.to_string())?;
        self.kept.extend_from_slice(&piece[..read]);
        // A long record is not worth many small steps.
        self.piece = PIECE.min(self.piece * 2);
        Ok(read > 0)
    }
}

impl Scan {
    /// The place where a record ends in the bytes after the seen ones.
    fn end(&mut self, cut: Cut, bytes: &[u8]) -> Option<usize> {
        match cut {
            Cut::Lines => memchr::memchr(b'\n', bytes),
            Cut::Quoted(separator) => bytes.iter().position(|byte| {
                self.cell = match (self.cell, *byte) {
                    (Cell::Quoted, b'"') => Cell::Mark,
                    (Cell::Quoted, _) => Cell::Quoted,
                    (Cell::Start | Cell::Mark, b'"') => Cell::Quoted,
                    (_, b'\n') => return true,
                    (_, byte) if byte == separator => Cell::Start,
                    _ => Cell::Bare,
                };
                false
            }),
            Cut::Paragraphs => bytes.iter().position(|byte| {
                if *byte != b'\n' {
                    self.blank &= byte.is_ascii_whitespace();
                    return false;
                }
                let end = self.blank && self.text;
                self.text |= !self.blank;
                self.blank = true;
                end
            }),
            Cut::Items => bytes.iter().position(|byte| {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' if self.quoted => self.escaped = true,
                    b'"' => self.quoted = !self.quoted,
                    _ if self.quoted => {}
                    b'[' | b'{' => self.depth += 1,
                    b',' | b']' if self.depth == 0 => return true,
                    b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                false
            }),
        }
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// The cells of a record of a CSV file, as RFC 4180 has them.
///
/// # Errors
/// The mistake, with the number of its column.
pub fn cells(record: &[u8], separator: u8) -> Result<Vec<String>, String> {
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    let mut cells = Vec::new();
    let mut cell = Vec::new();
    let mut quoted = false;
    let mut at = 0;
    while let Some(byte) = record.get(at) {
        at += 1;
        match byte {
            b'"' if quoted && record.get(at) == Some(&b'"') => {
                cell.push(b'"');
                at += 1;
            }
            b'"' if quoted => {
                quoted = false;
                if record.get(at).is_some_and(|next| *next != separator) {
                    return Err(format!(
                        "column {}: expected a separator after the closing quotation mark",
                        cells.len() + 1
                    ));
                }
            }
            b'"' if cell.is_empty() => quoted = true,
            byte if *byte == separator && !quoted => cells.push(std::mem::take(&mut cell)),
            byte => cell.push(*byte),
        }
    }
    if quoted {
        return Err(format!("column {}: a quotation mark is not closed", cells.len() + 1));
    }
    cells.push(cell);
    let text = |(at, cell): (usize, Vec<u8>)| {
        String::from_utf8(cell).map_err(|_| format!("column {}: expected UTF-8", at + 1))
    };
    cells.into_iter().enumerate().map(text).collect()
}
