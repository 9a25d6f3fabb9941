//! The rows of a file by their numbers: JSON lines, a JSON array, CSV or Parquet, compressed or
//! not, as the file's content tells. The position of each row is kept. Compressed files and Parquet
//! cannot be read from the middle: their rows are held, up to a bound. The tasks interpret the
//! columns.

use std::io::Read;
use std::rc::Rc;

use parquet_file::Parquet;
use records::{Cut, Packing, Place, Records, cells, stream};
use runner_plugin::{Error, File, Files, Reader};
use serde_json::{Map, Value};

use crate::row::Row;

const MOST_ROWS: usize = 1 << 20;

const MOST_HELD: usize = 96 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Lines,
    Array,
    Cells,
    Parquet,
}

pub struct Table {
    /// Its name in the scenario.
    name: &'static str,
    file: Rc<dyn File>,
    format: Format,
    header: Vec<String>,
    rows: Rows,
}

enum Rows {
    /// The place where each begins, in bytes.
    Begins(Vec<(u64, Place)>),
    Held(Vec<(Box<[u8]>, Place)>),
}

impl Table {
    /// Reads through the file that the scenario calls `name`, if it exists. A CSV file whose first
    /// line does not name the first of the columns `bare` has these columns.
    pub fn open(
        files: &dyn Files,
        name: &'static str,
        bare: Option<&[&str]>,
    ) -> Result<Option<Self>, Error> {
        let Some(file) = files.open(name) else { return Ok(None) };
        let file: Rc<dyn File> = Rc::from(file);
        let mut table = Self {
            name,
            file,
            format: Format::Parquet,
            header: Vec::new(),
            rows: Rows::Begins(Vec::new()),
        };
        let read = table.index(bare);
        read.map_err(|cause| Error::InvalidInput(format!("file `{name}`: {cause}")))?;
        Ok(Some(table))
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn len(&self) -> usize {
        match &self.rows {
            Rows::Begins(begins) => begins.len(),
            Rows::Held(rows) => rows.len(),
        }
    }

    pub fn row(&self, number: usize) -> Result<Row, Error> {
        let (place, fields) = match &self.rows {
            Rows::Begins(begins) => {
                let (offset, place) = begins[number];
                (place, self.at(offset).and_then(|record| self.parse(&record)))
            }
            Rows::Held(rows) => (rows[number].1, self.parse(&rows[number].0)),
        };
        match fields {
            Ok(fields) => Ok(Row { place, fields }),
            Err(cause) => Err(self.wrong(place, &cause)),
        }
    }

    pub fn wrong(&self, place: Place, cause: &str) -> Error {
        Error::InvalidInput(format!("file `{}`, {place}: {cause}", self.name))
    }

    fn index(&mut self, bare: Option<&[&str]>) -> Result<(), String> {
        let start = self.file.read(0, 4)?;
        if start == b"PAR1" {
            return self.hold_parquet();
        }
        let packed = Packing::detect(&start);
        self.format = self.detect_format(packed)?;
        let cut = self.cut();
        let mut records = Records::new(stream(&self.file, packed), cut);
        let (mut begins, mut held, mut bytes) = (Vec::new(), Vec::new(), 0);
        loop {
            let next = records.next_record();
            let next = next.map_err(|cause| format!("{}: {cause}", records.place()))?;
            let Some(record) = next else { break };
            if self.format == Format::Cells && self.header.is_empty() {
                let first =
                    cells(&record.bytes, b',').map_err(|cause| format!("line 1: {cause}"))?;
                match bare {
                    Some(names) if !first.iter().any(|cell| cell.trim() == names[0]) => {
                        self.header = names.iter().map(|name| (*name).to_owned()).collect();
                    }
                    _ => {
                        self.header = first.iter().map(|cell| cell.trim().to_owned()).collect();
                        continue;
                    }
                }
            }
            if packed == Packing::Not {
                begins.push((record.offset, record.place));
            } else {
                bytes += record.bytes.len() + size_of::<(Box<[u8]>, Place)>();
                held.push((record.bytes.into_boxed_slice(), record.place));
            }
            within(begins.len() + held.len(), bytes, "decompress it")?;
        }
        self.rows = match packed {
            Packing::Not => Rows::Begins(begins),
            _ => Rows::Held(held),
        };
        match self.len() {
            0 => Err("expected rows, found none".to_owned()),
            _ => Ok(()),
        }
    }

    fn hold_parquet(&mut self) -> Result<(), String> {
        let mut parquet = Parquet::open(Rc::clone(&self.file))?;
        let (mut held, mut bytes) = (Vec::new(), 0);
        while let Some((number, row)) = parquet.row()? {
            let row = Value::Object(row).to_string().into_bytes();
            bytes += row.len() + size_of::<(Box<[u8]>, Place)>();
            held.push((row.into_boxed_slice(), Place::Row(number)));
            within(held.len(), bytes, "write its rows as JSON lines")?;
        }
        if held.is_empty() {
            return Err("expected rows, found none".to_owned());
        }
        self.rows = Rows::Held(held);
        Ok(())
    }

    /// The format that follows from a file's beginning.
    fn detect_format(&self, packed: Packing) -> Result<Format, String> {
        let mut stream = stream(&self.file, packed);
        let mut buffer = [0; 4096];
        loop {
            let read = stream.read(&mut buffer).map_err(|error| error.to_string())?;
            let begins = buffer[..read].trim_ascii_start();
            let begins = begins.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begins).trim_ascii_start();
            match begins.first() {
                Some(b'{') => return Ok(Format::Lines),
                Some(b'[') => return Ok(Format::Array),
                Some(_) => return Ok(Format::Cells),
                None if read == 0 => return Err("it is empty".to_owned()),
                None => {}
            }
        }
    }

    fn cut(&self) -> Cut {
        match self.format {
            Format::Array => Cut::Items,
            Format::Cells => Cut::Quoted(b','),
            Format::Lines | Format::Parquet => Cut::Lines,
        }
    }

    /// The record that begins at this byte.
    fn at(&self, offset: u64) -> Result<Vec<u8>, String> {
        let bytes = Reader::at(Rc::clone(&self.file), offset);
        let mut records = Records::starting_at(Box::new(bytes), self.cut(), offset);
        let record = records.next_record()?;
        let record = record.ok_or("the file became shorter while it was read")?;
        Ok(record.bytes)
    }

    fn parse(&self, record: &[u8]) -> Result<Map<String, Value>, String> {
        if self.format == Format::Cells {
            let cells = cells(record, b',')?;
            if cells.len() != self.header.len() {
                return Err(format!(
                    "expected a value for each of the {} columns {}, found {} values",
                    self.header.len(),
                    self.header.join(", "),
                    cells.len()
                ));
            }
            let cells = cells.into_iter().map(Value::from);
            return Ok(self.header.iter().cloned().zip(cells).collect());
        }
        serde_json::from_slice(record).map_err(|error| {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            format!("expected a whole JSON object in one line: {message}")
        })
    }
}

fn within(rows: usize, bytes: usize, otherwise: &str) -> Result<(), String> {
    if rows > MOST_ROWS {
        return Err(format!("expected at most {MOST_ROWS} rows; use a part of the file"));
    }
    if bytes > MOST_HELD {
        return Err(format!(
            "it cannot be read from its middle, and its rows are more than the {} MiB that are held; {otherwise}, or use \
             a part of it",
            MOST_HELD >> 20
        ));
    }
    Ok(())
}
