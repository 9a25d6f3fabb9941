//! The rows of a file, in its order or shuffled. A file is never held in memory: in its order it is read in pieces;
//! shuffled, where each row begins is kept, in 8 bytes a row. Only of what cannot be read from the middle, compressed
//! files and Parquet, shuffled rows are held, up to a bound.

use std::rc::Rc;

use parquet_file::Parquet;
use runner_plugin::random::Python;
use runner_plugin::{Error, File, Files};
use serde_json::{Map, Value};

use crate::config::Format;
use crate::cut::{Cut, Record, Records, cells};
use crate::format::{Bytes, IsHeader, Packed, object, stream, told};

/// A row: its columns.
pub type Row = Map<String, Value>;

/// The most rows of a file that is shuffled: their places take this many times 8 bytes.
const MOST_ROWS: usize = 32 << 20;

/// The most bytes of rows that are held to be shuffled.
const MOST_HELD: usize = 256 << 20;

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It is the row of this number, from 1.
    Row(u64),
    /// It begins at this byte.
    Byte(u64),
}

/// A row of the file.
pub struct Found {
    /// Where it is.
    pub place: Place,
    /// The row, or why it cannot be read.
    pub row: Result<Row, String>,
}

/// A file of rows.
pub struct Source {
    /// Its name in the scenario.
    name: String,
    file: Rc<dyn File>,
    packed: Packed,
    format: Format,
    /// The names of a CSV file's columns.
    header: Vec<String>,
    order: Order,
}

enum Order {
    /// As in the file.
    File(Stream),
    /// The places of shuffled rows, and which comes next.
    Places(Vec<u64>, usize),
    /// Shuffled rows with their numbers, and which comes next.
    Held(Vec<(u64, Box<str>)>, usize),
}

/// The rows from the file's beginning.
enum Stream {
    Text(Box<Records>),
    Parquet(Box<Parquet>),
}

impl Source {
    /// Opens the file that the scenario calls `name`, in its order; `None` if there is no such file.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if its format cannot be told, or it is not in the format that was named.
    pub fn open(
        files: &dyn Files,
        name: &str,
        format: Option<Format>,
        is_header: IsHeader<'_>,
    ) -> Result<Option<Self>, Error> {
        let Some(file) = files.open(name) else {
            return Ok(None);
        };
        let file: Rc<dyn File> = Rc::from(file);
        let wrong = |what: String| Error::InvalidInput(format!("file `{name}`: {what}"));
        let start = file.read(0, 4).map_err(wrong)?;
        let packed = Packed::told(&start);
        let format = match format {
            Some(format) => format,
            None if start == b"PAR1" => Format::Parquet,
            None => told(stream(&file, packed), is_header).map_err(wrong)?,
        };
        if packed != Packed::Not && format == Format::Parquet {
            return Err(wrong(
                "a Parquet file is compressed within; decompress this one first".to_owned(),
            ));
        }
        let mut source = Self {
            name: name.to_owned(),
            order: Order::Places(Vec::new(), 0),
            file,
            packed,
            format,
            header: Vec::new(),
        };
        source.order = Order::File(source.begin()?);
        Ok(Some(source))
    }

    /// Shuffles the rows that `keep` accepts; what cannot be read is kept for its error.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if there are too many.
    pub fn shuffle(
        &mut self,
        random: &mut Python,
        mut keep: impl FnMut(&Found) -> bool,
        whole: bool,
    ) -> Result<(), Error> {
        let random_access = self.packed == Packed::Not && self.format != Format::Parquet;
        let (mut places, mut held, mut bytes) = (Vec::new(), Vec::new(), 0);
        let name = self.name.clone();
        let too_much = |what: String| {
            Err(Error::InvalidInput(format!(
                "file `{}`: {what}; set `shuffle = false`, or use a part of the file",
                name
            )))
        };
        let mut stream = self.begin()?;
        while let Some(read) = self.read(&mut stream)? {
            if whole || !random_access {
                let found = self.found(&read);
                if !keep(&found) {
                    continue;
                }
                if !random_access {
                    let row = match found.row {
                        Ok(row) => Value::Object(row).to_string(),
                        Err(what) => Value::from(what).to_string(),
                    };
                    bytes += row.len() + size_of::<(u64, Box<str>)>();
                    held.push((read.number(), row.into_boxed_str()));
                }
            }
            if random_access && let Raw::Text(record) = read {
                places.push(record.offset);
            }
            if places.len() > MOST_ROWS {
                return too_much(format!("it has more than {MOST_ROWS} rows to shuffle"));
            }
            if bytes > MOST_HELD {
                return too_much(format!(
                    "it cannot be read from its middle, and its rows are more than the {} MiB that are held to be \
                     shuffled",
                    MOST_HELD >> 20
                ));
            }
        }
        random.shuffle(&mut places);
        random.shuffle(&mut held);
        self.order = if random_access {
            Order::Places(places, 0)
        } else {
            Order::Held(held, 0)
        };
        Ok(())
    }

    /// The number of rows, if it is known.
    pub fn rows(&self) -> Option<usize> {
        match &self.order {
            Order::File(_) => None,
            Order::Places(places, _) => Some(places.len()),
            Order::Held(rows, _) => Some(rows.len()),
        }
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the file cannot be read any further.
    pub fn next(&mut self) -> Result<Option<Found>, Error> {
        let mut order = std::mem::replace(&mut self.order, Order::Places(Vec::new(), 0));
        let found = match &mut order {
            Order::File(stream) => {
                let read = self.read(stream);
                read.map(|read| read.map(|read| self.found(&read)))
            }
            Order::Places(places, at) => {
                let place = places.get(*at).copied();
                *at += usize::from(place.is_some());
                place.map(|place| self.at(place)).transpose()
            }
            Order::Held(rows, at) => {
                let row = rows.get(*at);
                *at += usize::from(row.is_some());
                Ok(row.map(|(number, row)| held(*number, row)))
            }
        };
        self.order = order;
        found
    }

    /// Takes the last of shuffled rows away; `None` if `least` or fewer are left, or the order is the file's.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn last(&mut self, least: usize) -> Result<Option<Found>, Error> {
        match &mut self.order {
            Order::Places(places, at) if places.len() > least.max(*at) => {
                let place = places.pop();
                place.map(|place| self.at(place)).transpose()
            }
            Order::Held(rows, at) if rows.len() > least.max(*at) => {
                Ok(rows.pop().map(|(number, row)| held(number, &row)))
            }
            _ => Ok(None),
        }
    }

    /// What to call a place in messages, such as `row 17`. To number a row that was found by its byte, the file is
    /// read up to there, so this is for errors and examples.
    pub fn describe(&self, place: Place) -> String {
        let number = match place {
            Place::Row(number) => number,
            Place::Byte(byte) => {
                let mut records = Records::new(stream(&self.file, self.packed), self.cut());
                loop {
                    match records.next() {
                        Ok(Some(record)) if record.offset < byte => {}
                        Ok(Some(record)) => break self.shown(record.number),
                        _ => return format!("the row at byte {byte}"),
                    }
                }
            }
        };
        format!("row {number}")
    }

    /// Whether every row has every column.
    pub fn is_table(&self) -> bool {
        matches!(self.format, Format::Csv | Format::Tsv | Format::Parquet)
    }

    /// Starts over.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn rewind(&mut self) -> Result<(), Error> {
        match &mut self.order {
            Order::File(_) => self.order = Order::File(self.begin()?),
            Order::Places(_, at) | Order::Held(_, at) => *at = 0,
        }
        Ok(())
    }

    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::InvalidInput(format!("file `{}`: {what}", self.name))
    }

    fn begin(&mut self) -> Result<Stream, Error> {
        if self.format == Format::Parquet {
            let file = Rc::clone(&self.file);
            let read = move |offset, length| file.read(offset, length);
            let opened = Parquet::open(Box::new(read), self.file.size());
            return Ok(Stream::Parquet(Box::new(
                opened.map_err(|what| self.wrong(what))?,
            )));
        }
        let mut records = Records::new(stream(&self.file, self.packed), self.cut());
        if let Some(separator) = self.separator() {
            let first = records.next().map_err(|what| self.wrong(what))?;
            let first = first.ok_or_else(|| self.wrong("expected the names of columns"))?;
            self.header = cells(&first.bytes, separator)
                .map_err(|what| self.wrong(format!("the names of columns: {what}")))?;
            for name in &mut self.header {
                *name = name.trim().to_owned();
            }
        }
        Ok(Stream::Text(Box::new(records)))
    }

    fn cut(&self) -> Cut {
        match self.format {
            Format::Json => Cut::Items,
            Format::Csv | Format::Tsv => Cut::Quoted,
            Format::Paragraphs => Cut::Paragraphs,
            Format::Jsonl | Format::Text | Format::Parquet => Cut::Lines,
        }
    }

    fn separator(&self) -> Option<u8> {
        match self.format {
            Format::Csv => Some(b','),
            Format::Tsv => Some(b'\t'),
            _ => None,
        }
    }

    /// The next row of a stream, not parsed.
    fn read(&self, stream: &mut Stream) -> Result<Option<Raw>, Error> {
        match stream {
            Stream::Text(records) => {
                let number = records.number() + 1;
                let record = records.next();
                let record = record
                    .map_err(|what| self.wrong(format!("row {}: {what}", self.shown(number))))?;
                Ok(record.map(Raw::Text))
            }
            Stream::Parquet(parquet) => {
                let row = parquet.row().map_err(|what| self.wrong(what))?;
                Ok(row.map(|(number, row)| Raw::Parsed(number, row)))
            }
        }
    }

    /// The number of a row for people: the line with the names of columns is not one.
    fn shown(&self, number: u64) -> u64 {
        number - u64::from(self.separator().is_some() && number > 0)
    }

    fn found(&self, raw: &Raw) -> Found {
        match raw {
            Raw::Text(record) => Found {
                place: Place::Row(self.shown(record.number)),
                row: self.parsed(&record.bytes),
            },
            Raw::Parsed(number, row) => Found {
                place: Place::Row(*number),
                row: Ok(row.clone()),
            },
        }
    }

    /// The row that begins at a place of the file.
    fn at(&self, place: u64) -> Result<Found, Error> {
        let bytes = Bytes {
            file: Rc::clone(&self.file),
            offset: place,
        };
        let mut records = Records::from(Box::new(bytes), self.cut(), place);
        let record = records.next().map_err(|what| self.wrong(what))?;
        let record = record.ok_or_else(|| self.wrong("it became shorter while it was read"))?;
        Ok(Found {
            place: Place::Byte(place),
            row: self.parsed(&record.bytes),
        })
    }

    fn parsed(&self, record: &[u8]) -> Result<Row, String> {
        let text = || {
            let text =
                str::from_utf8(record).map_err(|error| format!("expected UTF-8: {error}"))?;
            Ok::<_, String>(text.trim_end_matches(['\r', '\n']).to_owned())
        };
        match self.format {
            Format::Text | Format::Paragraphs => {
                let mut text = text()?;
                if self.format == Format::Paragraphs {
                    text = text.trim().to_owned();
                }
                Ok(Row::from_iter([("prompt".to_owned(), text.into())]))
            }
            Format::Csv | Format::Tsv => {
                let cells = cells(record, self.separator().unwrap_or(b','))?;
                if cells.len() > self.header.len() {
                    return Err(format!(
                        "it has {} values, and there are {} columns",
                        cells.len(),
                        self.header.len()
                    ));
                }
                let cells = cells.into_iter().map(Value::from);
                Ok(self.header.iter().cloned().zip(cells).collect())
            }
            Format::Jsonl | Format::Json | Format::Parquet => object(record),
        }
    }
}

/// A row that was read.
enum Raw {
    Text(Record),
    Parsed(u64, Row),
}

impl Raw {
    fn number(&self) -> u64 {
        match self {
            Raw::Text(record) => record.number,
            Raw::Parsed(number, _) => *number,
        }
    }
}

fn held(number: u64, row: &str) -> Found {
    let row = match serde_json::from_str(row) {
        Ok(Value::Object(row)) => Ok(row),
        Ok(Value::String(what)) => Err(what),
        _ => Err("it does not read back".to_owned()),
    };
    Found {
        place: Place::Row(number),
        row,
    }
}
