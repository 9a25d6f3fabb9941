//! Reads a whole text: its syntax first, then its keys.

use std::sync::Arc;

use miette::NamedSource;
use toml::de::DeTable;

use crate::problem::Problem;
use crate::reader::Reader;
use crate::reading::Reading;
use crate::said::Source;

/// Reads a text's table key by key, and tells everything that is wrong with it; nothing is read where its syntax
/// is broken. `aliases` are names that other tools use, with ours.
pub fn parse_table<T>(
    name: &str,
    text: &str,
    aliases: &[(&str, &str)],
    read: impl FnOnce(&mut Reader<'_, '_>, &Reading) -> T,
) -> (Option<T>, Vec<Problem>) {
    let source: Source = Arc::new(NamedSource::new(name, text.to_owned()).with_language("TOML"));
    let reading = Reading::new(source);
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let mut told = None;
        for error in errors {
            // What follows an error in its line is mostly said because of it.
            let line = error
                .span()
                .map(|span| text[..span.start.min(text.len())].matches('\n').count());
            if told.is_some() && told == line {
                continue;
            }
            told = line;
            let place = error.span().map(|span| reading.place(span));
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
