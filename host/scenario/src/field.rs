//! What a key's value can be: how it is read from TOML and from flags, laid over another, and written.
//!
//! [`Value`] is a single value, [`Field`] whatever a table can hold: a value that may be absent, a table, a list of
//! tables, or a table of names that the user chooses.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::key::Key;
use crate::load::Arrival;
use model::adapter::Assignment;
use model::arrival::{Shape, ThinkSpread};
use model::connection::{Reuse, Timestamps, Version};
use model::duration::Span;
use model::words::{self, Word};
use reader::words::list;
use reader::{ConfigTable, Located, Place, Reader, Size, toml_text};

/// A value that a scenario may leave out.
pub type Maybe<T> = Option<Located<T>>;

/// What a scenario says at a path.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The path, as TOML writes it: `target.headers.x-team`.
    pub path: String,
    /// The value, as TOML.
    pub value: String,
    /// Where it was said.
    pub place: Place,
    /// Whether the value may be a secret.
    pub secret: bool,
}

/// A single value.
pub trait Value: Clone + Serialize {
    /// What messages say that is expected.
    fn expected() -> String;

    /// Reads it from TOML; `expected` replaces what messages say that is expected.
    fn read(
        t: &mut Reader<'_, '_>,
        key: &'static str,
        expected: Option<&'static str>,
    ) -> Maybe<Self>;

    /// Reads it from a flag.
    fn parse(text: &str) -> Result<Self, String>;

    /// Makes one of everything that a flag was given.
    fn said(flag: &str, texts: &[String]) -> Result<Maybe<Self>, String> {
        let said = texts.last().map(|text| Self::parse(text)).transpose()?;
        Ok(said.map(|value| Located::flag(flag, value)))
    }

    /// Writes it as TOML.
    fn toml(&self) -> String;

    /// Writes it into a form that serde knows.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }

    /// Fills in what a key's type says of it.
    fn declare(key: &mut Key) {
        key.check = |text| Self::parse(text).map(drop);
    }
}

/// What a table can hold below a key.
pub trait Field: Clone + Default + Serialize {
    /// What it is where it is not absent.
    type Value;

    /// Adds the keys that it stands for. `key` is what its table knows of it.
    fn declare(key: Key, keys: &mut Vec<Key>);

    /// Reads it from TOML.
    fn read(t: &mut Reader<'_, '_>, key: &'static str, expected: Option<&'static str>) -> Self;

    /// This with `over` laid on it.
    #[must_use]
    fn merged(self, over: Self) -> Self;

    /// Whether nothing is said.
    fn is_unsaid(&self) -> bool;

    /// Says what a flag was given, at a path within it.
    fn say(&mut self, within: &[&str], flag: &str, texts: &[String]) -> Result<(), String>;

    /// Adds everything that it says.
    fn entries(&self, path: &str, entries: &mut Vec<Entry>);

    /// Writes it into a form that serde knows.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }
}

/// A table of declared keys.
pub trait Table: Field {
    /// Reads all of its keys.
    fn read_keys(t: &mut Reader<'_, '_>) -> Self;
}

/// A path and a key below it.
pub(crate) fn below(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

impl<T: Value> Field for Maybe<T> {
    type Value = T;

    fn declare(mut key: Key, keys: &mut Vec<Key>) {
        key.expected = key.expects.map_or_else(T::expected, str::to_owned);
        T::declare(&mut key);
        keys.push(key);
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, expected: Option<&'static str>) -> Self {
        T::read(t, key, expected)
    }

    fn merged(self, over: Self) -> Self {
        over.or(self)
    }

    fn is_unsaid(&self) -> bool {
        self.is_none()
    }

    fn say(&mut self, _: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
        *self = T::said(flag, texts)?;
        Ok(())
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        entries.extend(self.as_ref().map(|said| Entry {
            path: path.to_owned(),
            value: said.value.toml(),
            place: said.place.clone(),
            secret: false,
        }));
    }

    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(said) => said.value.write(serializer),
            None => serializer.serialize_none(),
        }
    }
}

/// Free form: what a plugin or the server is told in its own terms. Its flag takes a JSON object.
impl Field for ConfigTable {
    type Value = ConfigTable;

    fn declare(mut key: Key, keys: &mut Vec<Key>) {
        key.expected = "a table of free form".to_owned();
        key.check = |text| json_object(text).map(drop);
        keys.push(key);
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Self {
        t.config(key)
    }

    fn merged(self, over: Self) -> Self {
        self.overlay(over)
    }

    fn is_unsaid(&self) -> bool {
        self.is_empty()
    }

    fn say(&mut self, _: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
        for text in texts {
            let fields = json_object(text)?;
            *self = ConfigTable::from_json(fields, &Place::Flag(flag.to_owned()));
        }
        Ok(())
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        entries.extend(self.iter().map(|entry| Entry {
            path: below(path, &toml_text::key(&entry.key.value)),
            value: toml_text::config(&entry.value.value),
            place: entry.value.place.clone(),
            secret: false,
        }));
    }
}

fn json_object(text: &str) -> Result<serde_json::Map<String, serde_json::Value>, String> {
    serde_json::from_str(text)
        .map_err(|cause| format!("expected a JSON object such as {{\"top_k\": 1}}: {cause}"))
}

/// Values by names that the user chooses. Its flag takes `NAME=VALUE`.
impl<T: Value> Field for BTreeMap<String, Located<T>> {
    type Value = BTreeMap<String, Located<T>>;

    fn declare(mut key: Key, keys: &mut Vec<Key>) {
        key.path = below(&key.path, "NAME");
        key.expected = T::expected();
        key.many = true;
        keys.push(key);
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Self {
        t.strings(key, T::parse).collect()
    }

    fn merged(mut self, over: Self) -> Self {
        self.extend(over);
        self
    }

    fn is_unsaid(&self) -> bool {
        self.is_empty()
    }

    fn say(&mut self, _: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
        for text in texts {
            let (name, value) = text
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or_else(|| format!("{flag} takes KEY=VALUE, found `{text}`"))?;
            let value = T::parse(value).map_err(|error| format!("{flag}: {error}"))?;
            self.insert(name.to_owned(), Located::flag(flag, value));
        }
        Ok(())
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        entries.extend(self.iter().map(|(name, said)| Entry {
            path: below(path, &toml_text::key(name)),
            value: said.value.toml(),
            place: said.place.clone(),
            secret: false,
        }));
    }
}

/// A list of tables with the same keys.
impl<T: Table> Field for Option<Vec<Located<T>>> {
    type Value = Vec<Located<T>>;

    fn declare(key: Key, keys: &mut Vec<Key>) {
        let path = format!("{}[]", key.path);
        T::declare(Key { path, ..key }, keys);
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Self {
        t.tables(key, |t, place| Located::new(T::read_keys(t), place))
    }

    fn merged(self, over: Self) -> Self {
        over.or(self)
    }

    fn is_unsaid(&self) -> bool {
        self.is_none()
    }

    fn say(&mut self, _: &[&str], flag: &str, _: &[String]) -> Result<(), String> {
        Err(format!("{flag} cannot say a list of tables"))
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        let Some(tables) = self else { return };
        let mut texts = Vec::new();
        for table in tables {
            let mut own = Vec::new();
            table.value.entries("", &mut own);
            let own = own
                .iter()
                .map(|own| format!("{} = {}", own.path, own.value));
            texts.push(format!("{{ {} }}", own.collect::<Vec<_>>().join(", ")));
        }
        entries.extend(tables.first().map(|first| Entry {
            path: path.to_owned(),
            value: format!("[{}]", texts.join(", ")),
            place: first.place.clone(),
            secret: false,
        }));
    }
}

impl Value for String {
    fn expected() -> String {
        "a string".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.string(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn toml(&self) -> String {
        toml_text::string(self)
    }
}

impl Value for bool {
    fn expected() -> String {
        "`true` or `false`".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.boolean(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "expected `true` or `false`".to_owned())
    }

    fn toml(&self) -> String {
        self.to_string()
    }

    fn declare(key: &mut Key) {
        key.switch = true;
        key.check = |text| Self::parse(text).map(drop);
    }
}

impl Value for u64 {
    fn expected() -> String {
        "a whole number of at least 0".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.integer(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: std::num::ParseIntError| error.to_string())
    }

    fn toml(&self) -> String {
        self.to_string()
    }
}

impl Value for f64 {
    fn expected() -> String {
        "a number".to_owned()
    }

    fn read(
        t: &mut Reader<'_, '_>,
        key: &'static str,
        expected: Option<&'static str>,
    ) -> Maybe<Self> {
        t.number(key, expected.unwrap_or("a number"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: std::num::ParseFloatError| error.to_string())
    }

    fn toml(&self) -> String {
        toml_text::number(*self).trim_end_matches(".0").to_owned()
    }

    /// JSON has no infinity; TOML's word for it stands in.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.is_infinite() {
            true => serializer.collect_str(self),
            false => serializer.serialize_f64(*self),
        }
    }
}

impl Value for Span {
    fn expected() -> String {
        "a duration such as \"30s\"".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.parsed(key, &Self::expected(), Self::parse)
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|error: model::duration::ParseError| error.to_string())
    }

    fn toml(&self) -> String {
        toml_text::string(&self.to_string())
    }
}

impl Value for Size {
    fn expected() -> String {
        "a size such as \"64MiB\"".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.parsed(key, &Self::expected(), Self::parse)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Size::parse(text)
    }

    fn toml(&self) -> String {
        toml_text::string(&self.to_string())
    }
}

impl Value for PathBuf {
    fn expected() -> String {
        "a path".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.parsed(key, &Self::expected(), Self::parse)
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("it is empty".to_owned()),
            path => Ok(PathBuf::from(path)),
        }
    }

    fn toml(&self) -> String {
        toml_text::string(&self.to_string_lossy())
    }
}

/// Writes a list of values as TOML.
fn toml_list<T: Value>(items: &[Located<T>]) -> String {
    let items: Vec<String> = items.iter().map(|item| item.value.toml()).collect();
    format!("[{}]", items.join(", "))
}

/// Makes a list of everything that a flag was given.
fn said_list<T: Value>(flag: &str, texts: &[String]) -> Result<Maybe<Vec<Located<T>>>, String> {
    let items: Result<Vec<Located<T>>, String> = texts
        .iter()
        .map(|text| T::parse(text).map(|value| Located::flag(flag, value)))
        .collect();
    Ok(Some(Located::flag(flag, items?)))
}

impl Value for Vec<Located<String>> {
    fn expected() -> String {
        "a string, or a list of strings".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.one_or_more(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(vec![Located::flag("", text.to_owned())])
    }

    fn said(flag: &str, texts: &[String]) -> Result<Maybe<Self>, String> {
        said_list(flag, texts)
    }

    fn toml(&self) -> String {
        match self.as_slice() {
            [only] => only.value.toml(),
            several => toml_list(several),
        }
    }

    fn declare(key: &mut Key) {
        key.many = true;
    }
}

impl Value for Vec<Located<f64>> {
    fn expected() -> String {
        "a list of numbers".to_owned()
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.numbers(key)
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(vec![Located::flag("", f64::parse(text)?)])
    }

    fn said(flag: &str, texts: &[String]) -> Result<Maybe<Self>, String> {
        said_list(flag, texts)
    }

    fn toml(&self) -> String {
        toml_list(self)
    }

    fn declare(key: &mut Key) {
        key.many = true;
        key.check = |text| f64::parse(text).map(drop);
    }
}

/// Makes values of enums whose values have names.
macro_rules! words {
    ($($Enum:ty),+) => { $(
        impl Value for $Enum {
            fn expected() -> String {
                let names: Vec<&str> = words::all::<$Enum>().collect();
                format!("one of {}", list(&names))
            }

            fn read(
                t: &mut Reader<'_, '_>,
                key: &'static str,
                _: Option<&'static str>,
            ) -> Maybe<Self> {
                t.word(key)
            }

            fn parse(text: &str) -> Result<Self, String> {
                text.parse()
            }

            fn toml(&self) -> String {
                toml_text::string(Word::name(*self))
            }

            fn declare(key: &mut Key) {
                let words = <$Enum>::ALL.iter();
                key.words = words.map(|word| (word.name(), word.about())).collect();
                key.check = |text| Self::parse(text).map(drop);
            }
        }
    )+ };
}

words!(
    Arrival,
    Assignment,
    Reuse,
    Shape,
    ThinkSpread,
    Timestamps,
    Version
);
