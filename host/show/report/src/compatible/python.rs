//! JSON as Python's `json.dumps` writes it: on one line, with a space after commas and colons,
//! ASCII only. Infinity, for which JSON has no word, is Python's `Infinity`.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// An object under way: names and values. A name that comes again has its value replaced, as in
/// Python.
#[derive(Default)]
pub(super) struct Object(Vec<(String, String)>);

impl Object {
    /// Adds a field.
    pub(super) fn field(&mut self, name: &str, value: impl Serialize) {
        let value = text(&value);
        self.raw(name, &value);
    }

    /// Adds a field if it was measured.
    pub(super) fn measured(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.field(name, value);
        }
    }

    /// Adds a number that may be infinite.
    pub(super) fn number(&mut self, name: &str, value: f64) {
        match value.is_finite() {
            true => self.field(name, value),
            false => self.raw(name, "Infinity"),
        }
    }

    fn raw(&mut self, name: &str, value: &str) {
        let value = value.to_owned();
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// The object, without a newline.
    pub(super) fn finish(self) -> String {
        let fields = self.0.iter();
        let fields: Vec<String> = fields
            .map(|(name, value)| format!("{}: {value}", text(name)))
            .collect();
        format!("{{{}}}", fields.join(", "))
    }
}

fn text(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, Dumps));
    debug_assert!(written.is_ok(), "{written:?}");
    String::from_utf8(out).unwrap_or_default()
}

struct Dumps;

impl Formatter for Dumps {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if fragment.is_ascii() {
            return out.write_all(fragment.as_bytes());
        }
        let mut ascii = String::with_capacity(fragment.len() * 2);
        for c in fragment.chars() {
            if c.is_ascii() {
                ascii.push(c);
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
        out.write_all(ascii.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_json_dumps_writes_it() {
        let mut object = Object::default();
        object.field("é", "a\n\"ü\" 😀");
        object.number("rate", f64::INFINITY);
        object.number("peak", 1.0);
        object.field("more", 1);
        object.number("peak", 303.0);
        object.measured("absent", None::<f64>);
        object.field("list", [Some(1), None]);
        object.field("of", std::collections::BTreeMap::from([("a", 1), ("b", 2)]));
        // json.dumps({"é": "a\n\"ü\" 😀", "rate": math.inf, "peak": 303.0, "more": 1, "list": [1,
        // None], "of": {"a": 1, "b": 2}})
        assert_eq!(
            object.finish(),
            r#"{"\u00e9": "a\n\"\u00fc\" \ud83d\ude00", "rate": Infinity, "peak": 303.0, "more": 1, "list": [1, null], "of": {"a": 1, "b": 2}}"#
        );
    }
}
