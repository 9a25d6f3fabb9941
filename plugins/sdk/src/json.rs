//! JSON files that may be larger than a plugin's memory: lines of JSON, and one array of many
//! items. They are read one line or item at a time, and an error names its place.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::records::{Cut, Place, Records};
use crate::{Error, File, Reader};

pub use crate::records::LONGEST;

/// Bytes with which a file of UTF-8 may begin; they mean nothing.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a value that a server may leave out or write in another way: absent then.
pub(crate) fn readable<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(value?.get()).ok()
}

/// Reads JSON, such as a line of a file.
///
/// # Errors
/// The key, the expected value, and the column in bytes: ``"`turns[2].delay`: invalid type: string
/// \"x\", expected f64, at column 30"``.
pub fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).or_else(|_| {
        // Only a mistake is worth the time that following the keys takes.
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        let read = serde_path_to_error::deserialize(&mut deserializer);
        let (key, error) = match read {
            Ok(value) => match deserializer.end() {
                Ok(()) => return Ok(value),
                Err(error) => (".".to_owned(), error),
            },
            Err(error) => (error.path().to_string(), error.into_inner()),
        };
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        let key = match &*key {
            "." | "?" => String::new(),
            key => format!("`{key}`: "),
        };
        let (line, column) = (error.line(), error.column());
        let place = match line {
            0 | 1 => format!("at column {column}"),
            _ => format!("at line {line}, column {column}"),
        };
        Err(format!("{key}{message}, {place}"))
    })
}

/// The lines of a file that are not blank, with their numbers from 1.
pub struct Lines(Records);

impl Lines {
    /// The lines of a file from its beginning.
    pub fn new(file: Box<dyn File>) -> Self {
        Lines(Records::new(Box::new(Reader::new(file)), Cut::Lines))
    }

    /// The next line, unparsed; `None` at the end of the file.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the file cannot be read, and with the number of a line that is
    /// longer than [`LONGEST`].
    pub fn line(&mut self) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let next = self.0.next_record().map_err(|cause| wrong(&self.0.place(), &cause))?;
        Ok(next.map(|record| (record.line, record.bytes)))
    }

    /// The next line as a value; `None` at the end of the file.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] with the number of a line that is not such a value, and as
    /// [`Lines::line`].
    pub fn value<T: DeserializeOwned>(&mut self) -> Result<Option<(u64, T)>, Error> {
        let Some((number, line)) = self.line()? else { return Ok(None) };
        let value = parse(&line).map_err(|cause| wrong(&Place::Line(number), &cause))?;
        Ok(Some((number, value)))
    }
}

/// The items of a file that is one array, with their numbers from 1.
pub struct Items {
    records: Records,
    number: u64,
}

impl Items {
    /// The items of a file from its beginning.
    pub fn new(file: Box<dyn File>) -> Self {
        Items { records: Records::new(Box::new(Reader::new(file)), Cut::Items), number: 0 }
    }

    /// The next item as a value; `None` after the array's end.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the file is not an array, with the number of an item that is not
    /// such a value, and if the file cannot be read.
    pub fn value<T: DeserializeOwned>(&mut self) -> Result<Option<(u64, T)>, Error> {
        let next = self.records.next_record();
        let Some(item) = next.map_err(|cause| wrong(&self.records.place(), &cause))? else {
            return Ok(None);
        };
        self.number += 1;
        let value = parse(&item.bytes).map_err(|cause| wrong(&item.place, &cause))?;
        Ok(Some((self.number, value)))
    }
}

fn wrong(place: &Place, cause: &str) -> Error {
    Error::InvalidInput(format!("{place}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that returns this many bytes at a time.
    struct Text(&'static [u8], usize);

    impl File for Text {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, String> {
            let rest = &self.0[offset as usize..];
            Ok(rest[..rest.len().min(self.1).min(length as usize)].to_vec())
        }
    }

    fn items(text: &'static str, piece: usize) -> Result<Vec<serde_json::Value>, Error> {
        let mut items = Items::new(Box::new(Text(text.as_bytes(), piece)));
        let mut all = Vec::new();
        while let Some((number, item)) = items.value()? {
            all.push(item);
            assert_eq!(number, all.len() as u64);
        }
        assert_eq!(items.value::<serde_json::Value>()?, None);
        Ok(all)
    }

    #[test]
    fn items_are_read_from_pieces_of_any_size() {
        let text = " [ {\"a\": [1, \"],{\\\"\"]} ,\n 2,\"é\" , [] ,{} ] ";
        let whole: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
        for piece in 1..=text.len() {
            assert_eq!(items(text, piece).as_ref(), Ok(&whole), "pieces of {piece}");
        }
        assert_eq!(items("[]", 1), Ok(Vec::new()));
    }

    #[test]
    fn a_missing_array_is_named_with_its_place() {
        for (text, expected) in [
            ("", "item 1 (line 1): the file is not an array: expected `[`"),
            ("{}", "item 1 (line 1): the file is not an array: expected `[`"),
            ("[1, 2", "item 2 (line 1): the array has no end: expected `]`"),
            ("[1, x]", "item 2 (line 1): expected value, at column 1"),
            ("[1,]", "item 2 (line 1): EOF while parsing a value, at column 0"),
            ("[1, }]", "item 2 (line 1): expected value, at column 1"),
        ] {
            assert_eq!(items(text, 3), Err(Error::InvalidInput(expected.to_owned())), "{text}");
        }
    }

    #[test]
    fn lines_have_their_numbers_and_mistakes_theirs() {
        for piece in 1..20 {
            let file = Text(b"{\"a\":1}\n\n  \r\n[2]\r\nx\n3", piece);
            let mut lines = Lines::new(Box::new(file));
            let mut next = || lines.value::<serde_json::Value>();
            assert_eq!(next(), Ok(Some((1, serde_json::json!({"a": 1})))));
            assert_eq!(next(), Ok(Some((4, serde_json::json!([2])))));
            let Err(Error::InvalidInput(message)) = next() else {
                panic!("it is no JSON");
            };
            assert!(message.starts_with("line 5: "), "{message}");
            assert_eq!(next(), Ok(Some((6, serde_json::json!(3)))));
            assert_eq!(next(), Ok(None));
        }
    }

    #[test]
    fn a_mistake_names_its_key_and_column() {
        #[derive(Debug, serde::Deserialize)]
        struct Row {
            #[expect(dead_code, reason = "only whether it can be read matters")]
            turns: Vec<Turn>,
        }
        #[derive(Debug, serde::Deserialize)]
        struct Turn {
            #[expect(dead_code, reason = "only whether it can be read matters")]
            delay: f64,
        }
        for (line, expected) in [
            (
                r#"{"turns": [{"delay": 1}, {"delay": "x"}]}"#,
                "`turns[1].delay`: invalid type: string \"x\", expected f64, at column 38",
            ),
            (r#"{"turns": []} x"#, "trailing characters, at column 15"),
            ("{}", "missing field `turns`, at column 2"),
        ] {
            assert_eq!(parse::<Row>(line.as_bytes()).unwrap_err(), expected);
        }
        assert!(parse::<Row>(br#"{"turns": [{"delay": 1}]}"#).is_ok());
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        for piece in 1..6 {
            let file = Text(b"\xef\xbb\xbf{}\n[1]", piece);
            let mut lines = Lines::new(Box::new(file));
            assert_eq!(lines.line(), Ok(Some((1, b"{}".to_vec()))));
            assert_eq!(lines.line(), Ok(Some((2, b"[1]".to_vec()))));
            assert_eq!(lines.line(), Ok(None));
            assert_eq!(items("\u{feff}[1]", piece), Ok(vec![serde_json::json!(1)]));
        }
    }

    #[test]
    fn a_line_or_item_that_is_too_long_is_named() {
        /// A file of one line or item that does not end.
        struct Endless(u8);
        impl File for Endless {
            fn size(&self) -> u64 {
                1 << 40
            }
            fn read(&self, _: u64, length: u32) -> Result<Vec<u8>, String> {
                Ok(vec![self.0; length as usize])
            }
        }
        let refused = |read: Result<(), Error>, place: &str| {
            assert!(
                matches!(&read, Err(Error::InvalidInput(cause)) if cause.starts_with(place)),
                "{read:?}"
            );
        };
        let line = Lines::new(Box::new(Endless(b'x'))).line();
        refused(line.map(drop), "line 1: it is longer than 24 MiB; split it into several");
        let item = Items::new(Box::new(Endless(b'['))).value::<serde_json::Value>();
        refused(item.map(drop), "item 1 (line 1): it is longer than 24 MiB; look for");
    }
}
