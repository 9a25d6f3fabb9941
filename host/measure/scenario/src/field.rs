//! Values of keys: how a value is read from TOML and from flags, laid over another, and written.
//!
//! [`Value`] is a single value. [`Field`] is an entry of a table: a value that may be absent, a
//! table, a list of tables, or a table of names that the user chooses.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::key::Key;
use reader::{Config, ConfigTable, Located, Place, Reader, toml_text};

/// A value that a scenario may leave out.
pub type Maybe<T> = Option<Located<T>>;

/// A scenario's statement at a path.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The path, as TOML writes it: `target.headers.x-team`.
    pub path: String,
    pub value: String,
    /// The place of the value: a line of a file, or a flag.
    pub place: Place,
    pub secret: bool,
}

impl Entry {
    pub(crate) fn new(path: String, value: String, place: &Place) -> Self {
        Entry { path, value, place: place.clone(), secret: false }
    }
}

pub trait Value: Clone + Serialize {
    fn expected() -> String;

    /// Reads it from TOML; `expected` may describe it better than its type in messages.
    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Maybe<Self> {
        t.parsed(key, &Self::expected(), Self::parse)
    }

    fn parse(text: &str) -> Result<Self, String>;

    /// Reads all texts of a flag; the last one counts.
    fn from_flag(flag: &str, texts: &[String]) -> Result<Maybe<Self>, String> {
        let value = texts.last().map(|text| Self::parse(text)).transpose()?;
        Ok(value.map(|value| Located::flag(flag, value)))
    }

    /// The value as TOML writes it: by default, as serde does.
    fn toml(&self) -> String {
        toml_text::config(&Config::Scalar(serde_json::to_value(self).unwrap_or_default()))
    }

    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }

    /// Fills in the facts that a key's type states.
    fn declare(key: &mut Key) {
        key.check = Some(|text| Self::parse(text).map(drop));
    }
}

/// The content that a table can hold below a key.
pub trait Field: Clone + Default + Serialize {
    type Value;

    /// Adds its keys. `key` holds the table's facts about them.
    fn declare(key: Key, keys: &mut Vec<Key>);

    fn read(t: &mut Reader<'_, '_>, key: &'static str, expected: Option<&'static str>) -> Self;

    /// This with `over` laid on it.
    fn merged(self, over: Self) -> Self;

    fn is_unset(&self) -> bool {
        let mut entries = Vec::new();
        self.entries("", &mut entries);
        entries.is_empty()
    }

    /// Stores the texts of a flag, at a path within the field.
    fn say(&mut self, within: &[&str], flag: &str, texts: &[String]) -> Result<(), String>;

    fn entries(&self, path: &str, entries: &mut Vec<Entry>);

    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }
}

pub trait Table: Field {
    fn read_keys(t: &mut Reader<'_, '_>) -> Self;
}

pub(crate) fn place<T>(located: &Maybe<T>) -> Option<&Place> {
    located.as_ref().map(|located| &located.place)
}

pub(crate) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
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

    fn say(&mut self, _: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
        *self = T::from_flag(flag, texts)?;
        Ok(())
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        entries.extend(
            self.as_ref()
                .map(|located| Entry::new(path.to_owned(), located.value.toml(), &located.place)),
        );
    }

    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(located) => located.value.write(serializer),
            None => serializer.serialize_none(),
        }
    }
}

/// Free form: configuration in the terms of a plugin or the server. Its flag takes a JSON object.
impl Field for ConfigTable {
    type Value = ConfigTable;

    fn declare(mut key: Key, keys: &mut Vec<Key>) {
        key.expected = "a table of free form".to_owned();
        key.check = Some(|text| json_object(text).map(drop));
        keys.push(key);
    }

    fn read(t: &mut Reader<'_, '_>, key: &'static str, _: Option<&'static str>) -> Self {
        t.config(key)
    }

    fn merged(self, over: Self) -> Self {
        self.overlay(over)
    }

    fn say(&mut self, _: &[&str], flag: &str, texts: &[String]) -> Result<(), String> {
        for text in texts {
            let fields = json_object(text)?;
            *self = ConfigTable::from_json(fields, &Place::Flag(flag.to_owned()));
        }
        Ok(())
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        entries.extend(self.iter().map(|entry| {
            let path = below(path, &toml_text::key(&entry.key.value));
            Entry::new(path, toml_text::config(&entry.value.value), &entry.value.place)
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
        entries.extend(self.iter().map(|(name, located)| {
            Entry::new(below(path, &toml_text::key(name)), located.value.toml(), &located.place)
        }));
    }
}

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

    fn is_unset(&self) -> bool {
        self.is_none()
    }

    fn say(&mut self, _: &[&str], flag: &str, _: &[String]) -> Result<(), String> {
        Err(format!("{flag} cannot set a list of tables"))
    }

    fn entries(&self, path: &str, entries: &mut Vec<Entry>) {
        let Some(tables) = self else { return };
        let texts = tables.iter().map(|table| {
            let mut own = Vec::new();
            table.value.entries("", &mut own);
            let own = own.iter().map(|own| format!("{} = {}", own.path, own.value));
            format!("{{ {} }}", own.collect::<Vec<_>>().join(", "))
        });
        let value = format!("[{}]", texts.collect::<Vec<_>>().join(", "));
        let first = tables.first();
        entries.extend(first.map(|first| Entry::new(path.to_owned(), value, &first.place)));
    }
}
