//! Reads a whole text: its syntax first, then its keys.

use std::sync::Arc;

use miette::NamedSource;
use toml::de::DeTable;

use crate::located::{Place, Source};
use crate::problem::Problem;
use crate::reader::Reader;
use crate::reading::{Origin, Reading};
use crate::text::{MOST_BYTES, too_large};
use crate::toml_text;

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
