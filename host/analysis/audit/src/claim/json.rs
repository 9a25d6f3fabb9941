//! JSON as Python tools write it, and look-ups in it with errors that name the key.
//!
//! Python writes `Infinity` and `NaN`, which are not JSON: the first is read as the text `inf`, the
//! second as null.

use serde_json::{Map, Value};

use super::{Claim, Lengths, ReadError, Source, Stated, number};

pub(super) type Object = Map<String, Value>;

/// Reads JSON text with Python's additions.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| {
        // Only where it would help, so that an error keeps its place.
        let plain = without_additions(text);
        if plain == text { Err(error) } else { serde_json::from_str(&plain) }
    })
}

/// The text with `Infinity` as `"inf"` and `NaN` as `null`, except inside quotes.
fn without_additions(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (piece, length) = match first {
            '"' => (&rest[..quoted(rest)], quoted(rest)),
            _ if rest.starts_with("NaN") => ("null", 3),
            _ if rest.starts_with("-Infinity") => ("null", 9),
            _ if rest.starts_with("Infinity") => ("\"inf\"", 8),
            other => (&rest[..other.len_utf8()], other.len_utf8()),
        };
        plain.push_str(piece);
        rest = &rest[length..];
    }
    plain
}

/// The length of the quoted text at the beginning, quotes included.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Looks values up in one result's JSON, and collects values of an unexpected kind.
pub(super) struct Lookup {
    file: String,
    place: String,
    pub errors: Vec<ReadError>,
}

impl Lookup {
    pub fn new(source: &Source) -> Self {
        let line = || source.line.map(|line| format!("line {line}"));
        Lookup::at(&source.file, source.part.clone().or_else(line).unwrap_or_default())
    }

    /// A look-up in the value at `place` of a file; the place is empty for the whole file.
    pub fn at(file: &str, place: String) -> Self {
        Lookup { file: file.to_owned(), place, errors: Vec::new() }
    }

    /// The claim, or the mistakes in its source.
    pub fn finish(self, claim: Claim) -> Result<Claim, Vec<ReadError>> {
        if self.errors.is_empty() { Ok(claim) } else { Err(self.errors) }
    }

    /// States the number under a key, times the factor from its unit to ours.
    pub fn state(
        &mut self,
        claim: &mut Claim,
        (object, key): (&Object, &str),
        name: impl Into<String>,
        factor: f64,
    ) {
        if let Some(stated) = self.number(object, key) {
            claim.state(name, stated.value * factor, stated.rounding * factor);
        }
    }

    /// States the whole number under a key, which is exact.
    pub fn state_count(
        &mut self,
        claim: &mut Claim,
        (object, key): (&Object, &str),
        name: &str,
    ) -> Option<u64> {
        let count = self.count(object, key)?;
        claim.state(name, count as f64, 0.0);
        Some(count)
    }

    /// The value under a key as `take` has it, if any; reports a value that it does not take.
    pub fn value<'o, T>(
        &mut self,
        object: &'o Object,
        key: &str,
        expected: &str,
        take: impl FnOnce(&'o Value) -> Option<T>,
    ) -> Option<T> {
        let found = object.get(key).filter(|found| !found.is_null())?;
        let taken = take(found);
        if taken.is_none() {
            self.unlike(key, found, expected);
        }
        taken
    }

    pub fn number(&mut self, object: &Object, key: &str) -> Option<Stated> {
        let expected = "a number, or null if it was not measured";
        self.value(object, key, expected, Value::as_f64).map(number::in_full)
    }

    /// States the statistics of a latency that an object has by their names, each times the factor
    /// from its unit to ours. Keys that name no statistic are left alone.
    pub fn statistics(&mut self, claim: &mut Claim, object: &Object, name: &str, factor: f64) {
        for key in object.keys() {
            if let Some(statistic) = super::statistic(key) {
                self.state(claim, (object, key), format!("{name}.{statistic}"), factor);
            }
        }
    }

    pub fn count(&mut self, object: &Object, key: &str) -> Option<u64> {
        let stated = self.number(object, key)?;
        if stated.value >= 0.0 && stated.value.fract() == 0.0 && stated.value < 1e15 {
            return Some(stated.value as u64);
        }
        self.unlike(key, &object[key], "a whole number");
        None
    }

    pub fn text<'o>(&mut self, object: &'o Object, key: &str) -> Option<&'o str> {
        self.value(object, key, "text", Value::as_str)
    }

    /// The rate under a key: a number, or text such as `inf`.
    pub fn rate(&mut self, object: &Object, key: &str) -> Option<f64> {
        match object.get(key)? {
            Value::String(text) => text.parse().ok(),
            _ => self.number(object, key).map(|stated| stated.value),
        }
    }

    pub fn list<'o>(&mut self, object: &'o Object, key: &str) -> Option<&'o Vec<Value>> {
        self.value(object, key, "a list with one entry per request", Value::as_array)
    }

    /// The numbers of a list under a key, with `None` for a null in it; `None` if there is no list.
    pub fn numbers(&mut self, object: &Object, key: &str) -> Option<Vec<Option<f64>>> {
        self.list(object, key).map(|list| list.iter().map(Value::as_f64).collect())
    }

    pub fn each(
        &mut self,
        list: &[Value],
        expected: &str,
        mut read: impl FnMut(&mut Self, &Object),
    ) {
        for (index, entry) in list.iter().enumerate() {
            let whole = self.place.len();
            self.place.push_str(&format!("[{index}]"));
            match entry.as_object() {
                Some(entry) => read(self, entry),
                None => self.unlike("", entry, expected),
            }
            self.place.truncate(whole);
            if self.errors.len() > super::MOST_ERRORS {
                break;
            }
        }
    }

    pub fn object<'o>(&mut self, object: &'o Object, key: &str) -> Option<&'o Object> {
        self.value(object, key, "an object", Value::as_object)
    }

    /// Reads the object under a key, which the errors in it name.
    pub fn inner<T>(
        &mut self,
        object: &Object,
        key: &str,
        read: impl FnOnce(&mut Self, &Object) -> T,
    ) -> Option<T> {
        let inner = self.object(object, key)?;
        Some(self.within(key, |lookup| read(lookup, inner)))
    }

    /// The shortest and the longest of the lengths that an object summarises.
    pub fn lengths(&mut self, object: &Object) -> Option<Lengths> {
        let (least, most) = self.count(object, "min").zip(self.count(object, "max"))?;
        Some(Lengths { least, most })
    }

    /// Reads a part of the result, which the errors in it name.
    pub fn within<T>(&mut self, part: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let whole = self.place.clone();
        if !self.place.is_empty() {
            self.place.push('.');
        }
        self.place.push_str(part);
        let found = read(self);
        self.place = whole;
        found
    }

    pub fn missing(&mut self, key: &str, why: &str) {
        let expected = format!("expected the key `{key}`: {why}");
        self.say(None, "it is missing".into(), expected);
    }

    /// Reports a value of an unexpected kind; the key is empty where the place says it all.
    pub fn unlike(&mut self, key: &str, found: &Value, expected: &str) {
        let mut found = found.to_string();
        if found.chars().count() > 40 {
            found = found.chars().take(40).chain(['…']).collect();
        }
        self.say(Some(key), format!("found `{found}`"), format!("expected {expected}"));
    }

    fn say(&mut self, key: Option<&str>, what: String, expected: String) {
        let place = match (self.place.as_str(), key.filter(|key| !key.is_empty())) {
            ("", None) => None,
            (place, None) => Some(place.to_owned()),
            ("", Some(key)) => Some(format!("`{key}`")),
            (place, Some(key)) => Some(format!("{place}, `{key}`")),
        };
        self.errors.push(ReadError { file: self.file.clone(), place, what, expected });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_additions_are_read_outside_of_quotes() {
        let read =
            parse(r#"{"a": Infinity, "b": NaN, "c": [-Infinity], "NaN": "Infinity \" NaN"}"#);
        let wanted =
            serde_json::json!({"a": "inf", "b": null, "c": [null], "NaN": "Infinity \" NaN"});
        assert_eq!(read.unwrap(), wanted);
        assert!(parse("{\"a\": Infinite").is_err());
    }
}
