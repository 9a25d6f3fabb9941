//! Reads a TOML table key by key and collects all mistakes instead of stopping at the first.
//!
//! Responsible for types, places and unknown keys. The callers know the keys and the valid values.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use miette::NamedSource;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use crate::config::ConfigTable;
use crate::located::{Located, Place, Source};
use crate::problem::Problem;
use crate::text::{MOST_BYTES, too_large};
use crate::toml_text;
use crate::value::{config_table, deserialized, integer, number, take_value};
use crate::words::list;
use model::words::{self, Word};
use model::{duration, nearest};

/// A table that is being read. Read every key that it may have; the others are unknown.
pub struct Reader<'a, 'i> {
    reading: &'a Reading,
    table: Option<&'a DeTable<'i>>,
    path: String,
    known: Vec<&'static str>,
}

/// Converts a string; the error of `parse` is the reason of its fault.
fn converted<T>(
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> impl FnOnce(&DeValue<'_>) -> Result<T, Option<String>> {
    |value| parse(value.as_str().ok_or(None)?).map_err(Some)
}

fn not_empty(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

type Entry<'a, 'i> = (&'a Spanned<toml::de::DeString<'i>>, &'a Spanned<DeValue<'i>>);

impl<'a, 'i> Reader<'a, 'i> {
    /// Reads the whole text's table.
    pub fn new(reading: &'a Reading, table: &'a DeTable<'i>) -> Self {
        Reader { reading, table: Some(table), path: String::new(), known: Vec::new() }
    }

    fn entry(&mut self, key: &'static str) -> Option<Entry<'a, 'i>> {
        self.known.push(key);
        self.reading.note_key(&self.path, key);
        self.table?.get_key_value(key)
    }

    /// The key's full name for messages: `load.requests`.
    fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A value that `take` converts, or the message of its fault. `expected` goes into the message
    /// of a value of a wrong type, for which `take` gives no reason.
    fn value<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        take: impl FnOnce(&'a DeValue<'i>) -> Result<T, Option<String>>,
    ) -> Option<Located<T>> {
        let (_, value) = self.entry(key)?;
        let name = self.name(key);
        take_value(self.reading, &name, value, expected, take)
    }

    /// A string that `parse` converts; its error is the message of the fault.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<Located<T>> {
        self.value(key, expected, converted(parse))
    }

    pub fn string(&mut self, key: &'static str) -> Option<Located<String>> {
        self.parsed(key, "a string", not_empty)
    }

    /// A string, or a list of strings; none may be empty.
    pub fn one_or_more(&mut self, key: &'static str) -> Option<Located<Vec<Located<String>>>> {
        let name = self.name(key);
        let reading = self.reading;
        let (_, value) = self.entry(key)?;
        let string = |item: &'a Spanned<DeValue<'i>>| {
            take_value(reading, &name, item, "a string", converted(not_empty))
        };
        let Some(items) = value.get_ref().as_array() else {
            return string(value)
                .map(|item| Located { place: item.place.clone(), value: vec![item] });
        };
        take_value(reading, &name, value, "at least one", |_| {
            if items.is_empty() {
                Err(Some("an empty list".to_owned()))
            } else {
                Ok(items.iter().filter_map(string).collect())
            }
        })
    }

    /// One of the names that an enum has for its values.
    pub fn word<T: Word>(&mut self, key: &'static str) -> Option<Located<T>> {
        let names: Vec<&str> = words::all::<T>().collect();
        self.parsed(key, &format!("one of {}", list(&names)), |text| {
            T::named(text).ok_or_else(|| format!("found {text:?}"))
        })
    }

    pub fn boolean(&mut self, key: &'static str) -> Option<Located<bool>> {
        self.value(key, "`true` or `false`", |value| value.as_bool().ok_or(None))
    }

    /// A whole number, zero or more.
    pub fn integer(&mut self, key: &'static str) -> Option<Located<u64>> {
        self.value(key, "a whole number of at least 0", |value| {
            let number = u64::try_from(integer(value).ok_or(None)?);
            number.map_err(|_| {
                value
                    .as_integer()
                    .filter(|n| !n.as_str().starts_with('-'))
                    .map(|_| "it is too large".to_owned())
            })
        })
    }

    /// A number, whole or not, possibly infinite.
    pub fn number(&mut self, key: &'static str, expected: &str) -> Option<Located<f64>> {
        self.value(key, expected, |value| number(value).ok_or(None))
    }

    /// A number, or a text that stands for a value.
    pub fn number_or<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        convert: impl FnOnce(f64) -> T,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<Located<T>> {
        self.value(key, expected, |value| match value.as_str() {
            Some(text) => parse(text).map_err(Some),
            None => number(value).map(convert).ok_or(None),
        })
    }

    /// A time: a number of milliseconds, or a text with a unit.
    pub fn milliseconds(&mut self, key: &'static str) -> Option<Located<f64>> {
        let expected = "a time such as \"200ms\", or a number of milliseconds";
        self.number_or(key, expected, |number| number, duration::milliseconds)
    }

    pub fn numbers(&mut self, key: &'static str) -> Option<Located<Vec<Located<f64>>>> {
        let name = self.name(key);
        let reading = self.reading;
        Some(self.items(key, "a list of numbers")?.map(|items| {
            let number = |item| {
                take_value(reading, &name, item, "a number", |value| number(value).ok_or(None))
            };
            items.iter().filter_map(number).collect()
        }))
    }

    /// A value whose type defines how it is read.
    pub fn own<T: DeserializeOwned>(&mut self, key: &'static str) -> Option<Located<T>> {
        let (_, value) = self.entry(key)?;
        deserialized(self.reading, &self.name(key), value)
    }

    /// A list of tables whose type defines how they are read.
    pub fn own_tables<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
    ) -> Option<Vec<Located<T>>> {
        let path = self.name(key);
        let items = self.items(key, &format!("a list of tables, each under [[{path}]]"))?;
        let own = |item| deserialized(self.reading, &path, item);
        Some(items.value.iter().filter_map(own).collect())
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// Adds a mistake that only shows in several values together.
    pub fn report(&self, problem: Problem) {
        self.reading.report(problem);
    }

    /// A table of known keys. It is read even if it is absent: all keys are then absent.
    pub fn table<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Reader<'a, 'i>) -> T,
    ) -> T {
        let table = self.table_at(key);
        let path = self.name(key);
        let mut reader = Reader { reading: self.reading, table, path, known: Vec::new() };
        let read = read(&mut reader);
        reader.done();
        read
    }

    /// A list of tables with the same known keys, if it is there. `read` gets the place of each.
    pub fn tables<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Reader<'a, 'i>, Place) -> T,
    ) -> Option<Vec<T>> {
        let (path, reading) = (self.name(key), self.reading);
        let items = self.items(key, &format!("a list of tables, each under [[{path}]]"))?;
        let tables = items.value.iter().filter_map(|item| {
            let table =
                take_value(reading, &path, item, "a table", |it| it.as_table().ok_or(None))?;
            let (path, known) = (path.clone(), Vec::new());
            let mut reader = Reader { reading, table: Some(table.value), path, known };
            let read = read(&mut reader, table.place);
            reader.done();
            Some(read)
        });
        Some(tables.collect())
    }

    fn items(&mut self, key: &'static str, expected: &str) -> Option<Located<&'a DeArray<'i>>> {
        self.value(key, expected, |value| value.as_array().ok_or(None))
    }

    /// A table whose keys are the user's and whose values are strings that `parse` converts.
    pub fn strings<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> impl Iterator<Item = (String, Located<T>)> {
        let path = self.name(key);
        let reading = self.reading;
        let table = self.table_at(key);
        table.into_iter().flatten().filter_map(move |(key, value)| {
            let key = key.get_ref().as_ref();
            let name = format!("{path}.{key}");
            Some((
                key.to_owned(),
                take_value(reading, &name, value, "a string", converted(&parse))?,
            ))
        })
    }

    /// A free-form table; absent and empty are the same.
    pub fn config(&mut self, key: &'static str) -> ConfigTable {
        let Some(table) = self.table_at(key) else { return ConfigTable::default() };
        let path = self.name(key);
        let place = self.reading.sections().get(&path).cloned();
        config_table(self.reading, &path, table, place)
    }

    /// The table with that key, whose place is noted.
    fn table_at(&mut self, key: &'static str) -> Option<&'a DeTable<'i>> {
        let (at, value) = self.entry(key)?;
        let path = self.name(key);
        let DeValue::Table(table) = value.get_ref() else {
            let expected = format!("a table, under [{path}]");
            take_value::<()>(self.reading, &path, value, &expected, |_| Err(None));
            return None;
        };
        self.reading.begin(path, at.span());
        Some(table)
    }

    /// Notes every key that was not read.
    pub fn done(self) {
        let keys = self.table.into_iter().flat_map(|table| table.keys());
        for key in keys.filter(|key| !self.known.contains(&key.get_ref().as_ref())) {
            self.reading.note_unknown(&self.path, key, &self.known);
        }
    }
}

/// Reads a text's table key by key, and reports all of its mistakes. Broken syntax is reported
/// alone. `aliases` are names that other tools use, with ours.
pub fn parse_table<T>(
    name: &str,
    text: &str,
    aliases: &[(&str, &str)],
    read: impl FnOnce(&mut Reader<'_, '_>, &Reading) -> T,
) -> (Option<T>, Vec<Problem>) {
    if text.len() > MOST_BYTES {
        return (None, vec![Problem::new(format!("{name}: {}", too_large()))]);
    }
    let source: Source = Arc::new(NamedSource::new(name, text.to_owned()).with_language("TOML"));
    parse(Origin::Text(source), text, aliases, read)
}

/// Reads `key = value` as a flag gives it, key by key as [`parse_table`] does. The value is TOML;
/// text that is not TOML, or that the key does not take, is read as a string.
pub fn parse_assignment<T>(
    flag: &str,
    [key, value]: [&str; 2],
    aliases: &[(&str, &str)],
    read: impl Fn(&mut Reader<'_, '_>, &Reading) -> T,
) -> (Option<T>, Vec<Problem>) {
    // Neither part may bring further lines into the text.
    let alone = |text: &str| DeTable::parse(text).is_ok_and(|table| table.get_ref().len() == 1);
    if key.contains(['\n', '\r', '#']) || !alone(&format!("{key} = 0")) {
        let problem = Problem::new(format!("`{key}` is not the name of a key"))
            .at(Place::Flag(flag.to_owned()), "here")
            .help("write its table, a dot and its name, as in load.requests");
        return (None, vec![problem]);
    }
    let as_read = |value: &str| {
        let text = format!("{key} = {value}");
        parse(Origin::Flag(flag.to_owned()), &text, aliases, &read)
    };
    let written = alone(&format!("x = {value}")).then(|| as_read(value));
    match written {
        Some((read, problems)) if problems.is_empty() => (read, problems),
        written => {
            let text = as_read(&toml_text::string(value));
            match (written, text.1.is_empty()) {
                (Some(written), false) => written,
                _ => text,
            }
        }
    }
}

fn parse<T>(
    origin: Origin,
    text: &str,
    aliases: &[(&str, &str)],
    read: impl FnOnce(&mut Reader<'_, '_>, &Reading) -> T,
) -> (Option<T>, Vec<Problem>) {
    let reading = Reading::new(origin);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut reported = None;
        for error in errors {
            // Most further errors in a line follow from the first.
            let line =
                error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count());
            if reported.is_some() && reported == line {
                continue;
            }
            reported = line;
            // Keys that are nested too deeply have no place.
            let place = reading.place(error.span().unwrap_or(0..0));
            let problem = Problem::new(format!("not TOML: {}", error.message()));
            reading.report(problem.at(place, "here"));
        }
        return (None, reading.finish(aliases));
    }
    let mut root = Reader::new(&reading, table.get_ref());
    let value = read(&mut root, &reading);
    root.done();
    (Some(value), reading.finish(aliases))
}

/// The most unknown keys that are noted.
const MOST_UNKNOWN: usize = 1_000;

/// The state that all readers of one text share: the text, and the problems found so far.
pub struct Reading {
    origin: Origin,
    problems: RefCell<Vec<Problem>>,
    /// The possible keys with the paths of their tables, for the message on a misplaced key.
    possible: RefCell<Vec<(String, &'static str)>>,
    unknown: RefCell<Vec<Unknown>>,
    sections: RefCell<BTreeMap<String, Place>>,
}

pub enum Origin {
    /// A file, so that places are parts of its text.
    Text(Source),
    /// A flag, which is the place of everything in it.
    Flag(String),
}

struct Unknown {
    table: String,
    key: Located<String>,
    known: Vec<&'static str>,
}

impl Reading {
    pub fn new(origin: Origin) -> Self {
        Reading {
            origin,
            problems: RefCell::default(),
            possible: RefCell::default(),
            unknown: RefCell::default(),
            sections: RefCell::default(),
        }
    }

    pub fn place(&self, span: std::ops::Range<usize>) -> Place {
        match &self.origin {
            Origin::Text(source) => Place::Text { source: source.clone(), span: span.into() },
            Origin::Flag(flag) => Place::Flag(flag.clone()),
        }
    }

    pub fn report(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    pub fn note_key(&self, table: &str, key: &'static str) {
        let mut possible = self.possible.borrow_mut();
        if !possible.iter().any(|(in_table, known)| in_table == table && *known == key) {
            possible.push((table.to_owned(), key));
        }
    }

    pub fn begin(&self, table: String, at: std::ops::Range<usize>) {
        self.sections.borrow_mut().insert(table, self.place(at));
    }

    /// Notes an unknown key; `known` has the possible keys of its table.
    pub fn note_unknown(&self, table: &str, key: &Spanned<DeString<'_>>, known: &[&'static str]) {
        let mut unknown = self.unknown.borrow_mut();
        if unknown.len() == MOST_UNKNOWN {
            return;
        }
        unknown.push(Unknown {
            table: table.to_owned(),
            key: Located::new(key.get_ref().to_string(), self.place(key.span())),
            known: known.to_vec(),
        });
    }

    /// Returns where the tables that were read begin, by path.
    pub fn sections(&self) -> BTreeMap<String, Place> {
        self.sections.borrow().clone()
    }

    /// All problems. `aliases` are names that other tools use, with ours.
    pub fn finish(self, aliases: &[(&str, &str)]) -> Vec<Problem> {
        let possible = self.possible.into_inner();
        let mut problems = self.problems.into_inner();
        for Unknown { table, key, known } in self.unknown.into_inner() {
            let ours =
                aliases.iter().find(|(theirs, _)| *theirs == key.value).map(|(_, ours)| *ours);
            let home = |name: &str| {
                let found = possible.iter().find(|(_, possible)| *possible == name);
                found.map(|(home, name)| (in_table(home), *name))
            };
            let (written, here) = (&key.value, in_table(&table));
            let meant_here = ours.filter(|ours| known.contains(ours));
            let near = || nearest(written, known.iter().copied());
            // A table's name with a letter less is no table.
            let slip = || {
                let is_table = possible.iter().any(|(table, _)| table == written);
                near().filter(|_| is_table)
            };
            let problem = if let Some(meant) = slip() {
                Problem::new(format!("unknown key `{written}` {here}; did you mean `{meant}`?"))
            } else if let Some((home, _)) = home(written) {
                Problem::new(format!("unknown key `{written}` {here}; it belongs {home}"))
            } else if let Some(meant) = meant_here.or_else(near) {
                Problem::new(format!("unknown key `{written}`; did you mean `{meant}`?"))
            } else if let Some((home, name)) = ours.and_then(home) {
                Problem::new(format!("unknown key `{written}`; did you mean `{name}` {home}?"))
            } else {
                Problem::new(format!("unknown key `{written}`"))
                    .help(format!("the keys {here} are {}", list(&known)))
            };
            problems.push(problem.at(key.place, "not a key here"));
        }
        problems
    }
}

fn in_table(path: &str) -> String {
    if path.is_empty() { "at the top".to_owned() } else { format!("in [{path}]") }
}
