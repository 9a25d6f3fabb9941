//! The rows of a file, in its order or shuffled. A file is never held in memory. In its order it is
//! read in pieces; shuffled, the position of each row is kept, in 8 bytes a row. Compressed files
//! and Parquet cannot be read from the middle: only their shuffled rows are held, up to a bound.

use std::rc::Rc;

use parquet_file::Parquet;
pub use records::Place;
use records::{Cut, Packing, Record, Records, cells, stream};
use runner_plugin::random::Python;
use runner_plugin::{Error, File, Files, Reader, log};
use serde_json::{Map, Value};

use crate::config::Format;
use crate::format::{Names, detect, head, object};
use crate::tables;

pub type Row = Map<String, Value>;

/// The most rows of a file that is shuffled: their places take this many times 8 bytes.
const MOST_ROWS: usize = 8 << 20;

/// The most bytes of rows that are held to be shuffled.
const MOST_HELD: usize = 96 << 20;

pub struct FileRow {
    pub place: Place,
    /// The row, or why it cannot be read.
    pub row: Result<Row, String>,
}

pub struct Source {
    /// Its name in the scenario.
    name: String,
    file: Rc<dyn File>,
    packed: Packing,
    format: Format,
    /// The separator of the cells in a CSV or TSV file.
    separator: Option<u8>,
    /// The names of their columns.
    header: Vec<String>,
    order: Order,
}

enum Order {
    File(Stream),
    /// The places of shuffled rows, and which comes next.
    Places(Vec<u64>, usize),
    /// Shuffled rows with their places, and which comes next.
    Held(Vec<(Place, Box<str>)>, usize),
}

/// The rows from the file's beginning.
enum Stream {
    Text(Box<Records>),
    Parquet(Box<Parquet>),
}

impl Source {
    /// Opens the file that the scenario calls `name`, in its order, if it exists. Errors: its
    /// format is unclear, or not the configured one.
    pub fn open(
        files: &dyn Files,
        name: &str,
        format: Option<Format>,
        names: Names<'_>,
    ) -> Result<Option<Self>, Error> {
        let Some(file) = files.open(name) else { return Ok(None) };
        let file: Rc<dyn File> = Rc::from(file);
        let wrong = |cause: String| Error::InvalidInput(format!("file `{name}`: {cause}"));
        let start = file.read(0, 4).map_err(wrong)?;
        let packed = Packing::detect(&start);
        let format = match format {
            Some(format) => format,
            None if start == b"PAR1" => Format::Parquet,
            None => {
                let (format, guess) = detect(&|| stream(&file, packed), names).map_err(wrong)?;
                if let Some(guess) = guess {
                    log::info(&format!(
                        "file `{name}`: read as {guess}; if that is wrong, set `format`"
                    ));
                }
                format
            }
        };
        if packed != Packing::Not && format == Format::Parquet {
            return Err(wrong(
                "a Parquet file has its own compression; decompress this file first".to_owned(),
            ));
        }
        let separator = match format {
            Format::Csv => {
                let (head, whole) = head(&mut *stream(&file, packed)).map_err(wrong)?;
                Some(tables::separator(&head, whole, names))
            }
            Format::Tsv => Some(b'\t'),
            _ => None,
        };
        let mut source = Self {
            name: name.to_owned(),
            separator,
            order: Order::Places(Vec::new(), 0),
            file,
            packed,
            format,
            header: Vec::new(),
        };
        source.order = Order::File(source.begin()?);
        Ok(Some(source))
    }

    /// Shuffles the rows that `keep` accepts; unreadable rows are kept for their errors.
    pub fn shuffle(
        &mut self,
        random: &mut Python,
        mut keep: impl FnMut(&FileRow) -> bool,
        whole: bool,
    ) -> Result<(), Error> {
        let random_access = self.packed == Packing::Not && self.format != Format::Parquet;
        let (mut places, mut held, mut bytes) = (Vec::new(), Vec::new(), 0);
        let name = self.name.clone();
        let too_much = |cause: String| {
            Err(Error::InvalidInput(format!(
                "file `{}`: {cause}; set `shuffle = false`, or use a part of the file",
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
                        Err(cause) => Value::from(cause).to_string(),
                    };
                    bytes += row.len() + size_of::<(Place, Box<str>)>();
                    held.push((found.place, row.into_boxed_str()));
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
        self.order = if random_access { Order::Places(places, 0) } else { Order::Held(held, 0) };
        Ok(())
    }

    pub fn rows(&self) -> Option<usize> {
        match &self.order {
            Order::File(_) => None,
            Order::Places(places, _) => Some(places.len()),
            Order::Held(rows, _) => Some(rows.len()),
        }
    }

    /// The next row; `None` at the end.
    pub fn next(&mut self) -> Result<Option<FileRow>, Error> {
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
                Ok(row.map(|(place, row)| held(*place, row)))
            }
        };
        self.order = order;
        found
    }

    /// Calls `see` with the rows from the file's beginning that can be read, until it has seen
    /// enough; `true` if it has, and `false` at the end of the file.
    pub fn scan(&mut self, mut see: impl FnMut(&Row, u64) -> bool) -> Result<bool, Error> {
        let mut stream = self.begin()?;
        while let Some(raw) = self.read(&mut stream)? {
            let bytes = match &raw {
                Raw::Text(record) => record.bytes.len() as u64,
                Raw::Parsed(..) => 0,
            };
            if self.found(&raw).row.is_ok_and(|row| see(&row, bytes)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One of shuffled rows by its number in their order, from 0; `None` if it was returned before,
    /// there is none, or the order is the file's.
    pub fn look(&self, number: usize) -> Result<Option<FileRow>, Error> {
        match &self.order {
            Order::Places(places, at) if number >= *at => {
                let place = places.get(number);
                place.map(|place| self.at(*place)).transpose()
            }
            Order::Held(rows, at) if number >= *at => {
                let row = rows.get(number);
                Ok(row.map(|(place, row)| held(*place, row)))
            }
            _ => Ok(None),
        }
    }

    /// Takes shuffled rows away, by their numbers in their order from the last to the first.
    pub fn take(&mut self, numbers: &[usize]) {
        for number in numbers {
            match &mut self.order {
                Order::Places(places, _) => {
                    places.remove(*number);
                }
                Order::Held(rows, _) => {
                    rows.remove(*number);
                }
                Order::File(_) => {}
            }
        }
    }

    /// Names a place in messages, such as `line 17`, as an editor numbers it. To number a row that
    /// was found by its byte, the file is read up to there, so this is for errors and examples.
    pub fn describe(&self, place: Place) -> String {
        let Place::Byte(byte) = place else { return place.to_string() };
        let mut records = Records::new(stream(&self.file, self.packed), self.cut());
        loop {
            match records.next_record() {
                Ok(Some(record)) if record.offset < byte => {}
                Ok(Some(record)) => break record.place.to_string(),
                _ => break place.to_string(),
            }
        }
    }

    /// True if every row has every column.
    pub fn is_table(&self) -> bool {
        matches!(self.format, Format::Csv | Format::Tsv | Format::Parquet)
    }

    pub fn rewind(&mut self) -> Result<(), Error> {
        match &mut self.order {
            Order::File(_) => self.order = Order::File(self.begin()?),
            Order::Places(_, at) | Order::Held(_, at) => *at = 0,
        }
        Ok(())
    }

    fn wrong(&self, cause: impl std::fmt::Display) -> Error {
        Error::InvalidInput(format!("file `{}`: {cause}", self.name))
    }

    fn begin(&mut self) -> Result<Stream, Error> {
        if self.format == Format::Parquet {
            let file = Rc::clone(&self.file);
            let opened = Parquet::open(file).map_err(|cause| self.wrong(cause))?;
            return Ok(Stream::Parquet(Box::new(opened)));
        }
        let mut records = Records::new(stream(&self.file, self.packed), self.cut());
        if let Some(separator) = self.separator {
            let first = records.next_record().map_err(|cause| self.wrong(cause))?;
            let first = first.ok_or_else(|| self.wrong("expected the names of columns"))?;
            self.header = cells(&first.bytes, separator)
                .map_err(|cause| self.wrong(format!("the names of columns: {cause}")))?;
            for name in &mut self.header {
                *name = name.trim().to_owned();
            }
        }
        Ok(Stream::Text(Box::new(records)))
    }

    fn cut(&self) -> Cut {
        match (self.format, self.separator) {
            (Format::Json, _) => Cut::Items,
            (_, Some(separator)) => Cut::Quoted(separator),
            (Format::Paragraphs, None) => Cut::Paragraphs,
            _ => Cut::Lines,
        }
    }

    /// The next row of a stream, not parsed.
    fn read(&self, stream: &mut Stream) -> Result<Option<Raw>, Error> {
        match stream {
            Stream::Text(records) => {
                let record = records.next_record().map_err(|cause| {
                    let place = records.place();
                    Error::InvalidInput(format!("file `{}`, {place}: {cause}", self.name))
                })?;
                Ok(record.map(Raw::Text))
            }
            Stream::Parquet(parquet) => {
                let row = parquet.row().map_err(|cause| self.wrong(cause))?;
                Ok(row.map(|(number, row)| Raw::Parsed(number, row)))
            }
        }
    }

    fn found(&self, raw: &Raw) -> FileRow {
        match raw {
            Raw::Text(record) => FileRow { place: record.place, row: self.parsed(&record.bytes) },
            Raw::Parsed(number, row) => {
                FileRow { place: Place::Row(*number), row: Ok(row.clone()) }
            }
        }
    }

    /// The row that begins at a place of the file.
    fn at(&self, place: u64) -> Result<FileRow, Error> {
        let bytes = Reader::at(Rc::clone(&self.file), place);
        let mut records = Records::starting_at(Box::new(bytes), self.cut(), place);
        let record = records.next_record().map_err(|cause| self.wrong(cause))?;
        let record = record.ok_or_else(|| self.wrong("it became shorter while it was read"))?;
        Ok(FileRow { place: Place::Byte(place), row: self.parsed(&record.bytes) })
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
                let cells = cells(record, self.separator.unwrap_or(b','))?;
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

enum Raw {
    Text(Record),
    Parsed(u64, Row),
}

fn held(place: Place, row: &str) -> FileRow {
    let row = match serde_json::from_str(row) {
        Ok(Value::Object(row)) => Ok(row),
        Ok(Value::String(cause)) => Err(cause),
        _ => Err("it does not read back".to_owned()),
    };
    FileRow { place, row }
}
