//! Format of a file, detected from its content: a plugin does not see the name of a file.

use std::io::Read;

use records::{Cut, Records};
use serde_json::Value;

use crate::columns::Header;
use crate::config::Format;
use crate::source::Row;
use crate::tables;

/// A function that interprets the names in a first line.
pub type Names<'a> = &'a dyn Fn(&[String]) -> Header;

/// The number of bytes of a file that are examined for the form of a table.
const HEAD: u64 = 64 << 10;

/// The format that follows from a file's beginning, and the reason if it is a guess.
pub fn detect(
    stream: &dyn Fn() -> Box<dyn Read>,
    header: Names<'_>,
) -> Result<(Format, Option<String>), String> {
    let mut records = Records::new(stream(), Cut::Lines);
    let Some(first) = records.next_record()? else { return Err("it is empty".to_owned()) };
    let line = first.bytes.trim_ascii();
    let format = match line.first() {
        Some(b'{') if object(line).is_ok() => Format::Jsonl,
        Some(b'{') => {
            return Err(
                "it begins with `{`, but its first line is not an object; expected an object a line, or one array \
                 of objects"
                    .to_owned(),
            );
        }
        // A list of messages a line, or an array over many lines.
        Some(b'[') if object(line).is_ok() => match records.next_record()? {
            None if serde_json::from_slice::<Vec<Value>>(line).is_ok_and(|items| {
                items.is_empty() || !items.iter().all(|item| item.get("role").is_some())
            }) =>
            {
                Format::Json
            }
            _ => Format::Jsonl,
        },
        Some(b'[') => Format::Json,
        Some(b'"') if serde_json::from_slice::<String>(line).is_ok() => Format::Jsonl,
        _ => {
            drop(records);
            let (head, whole) = head(&mut *stream())?;
            return tables::detect(&head, whole, header)
                .map(|(format, guess)| (format, Some(guess)));
        }
    };
    Ok((format, None))
}

/// The beginning of a stream, and true if it is all of it.
pub fn head(stream: &mut dyn Read) -> Result<(Vec<u8>, bool), String> {
    let mut head = Vec::new();
    let read = stream.take(HEAD + 1).read_to_end(&mut head);
    read.map_err(|error| error.to_string())?;
    let whole = head.len() as u64 <= HEAD;
    head.truncate(HEAD as usize);
    Ok((head, whole))
}

/// A row of JSON: an object, a text as a prompt, or a list as a conversation.
pub fn object(text: &[u8]) -> Result<Row, String> {
    let value = serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        format!("{message} (at byte {})", error.column())
    })?;
    match value {
        Value::Object(row) => Ok(row),
        Value::String(text) => Ok(Row::from_iter([("prompt".to_owned(), text.into())])),
        Value::Array(items) if items.iter().all(Value::is_object) => {
            Ok(Row::from_iter([("messages".to_owned(), items.into())]))
        }
        _ => Err("expected an object, a text, or a list of messages".to_owned()),
    }
}
