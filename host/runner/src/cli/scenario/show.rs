//! `runner scenario show`: a scenario with flags laid over it and defaults filled in, as TOML.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::super::failure::Failure;
use super::super::flags::Flags;
use super::super::print::finish;
use super::super::sources::sources;
use model::plugin::Kind;
use reader::Located;
use scenario::{Entry, Scenario, Scorer};
use session::resolve::{Faults, Source};

pub fn exec(named: &[String], flags: &Flags) -> Result<ExitCode, Failure> {
    let sources = sources(named, flags)?;
    let mut faults = Faults::default();
    for source in &sources {
        if let Err(error) = source.scenario.validate() {
            faults.scenario.extend(error.problems().iter().cloned());
        }
    }
    Failure::of_faults(faults)?;
    let texts: Vec<String> = sources.into_iter().map(shown).collect();
    finish(&texts.join("\n"))
}

pub(in crate::cli) fn shown(source: Source) -> String {
    let title = source.title();
    let mut text = format!("# {title}\n");
    let mut scenario = source.scenario;
    // A name that no longer fits is left out.
    if let Some(name) = &mut scenario.name {
        name.value = title;
    }
    for named in source.plugins {
        let folder = named.value.split('/').next().unwrap_or_default();
        let kind = Kind::ALL.iter().find(|kind| kind.folder() == folder);
        match kind {
            Some(Kind::Backend) => scenario.backend.plugin = Some(named),
            Some(Kind::Dataset) => scenario.dataset.plugin = Some(named),
            Some(Kind::Scorer) => {
                let place = named.place.clone();
                let scorer = Scorer { plugin: Some(named), ..Scorer::default() };
                let scorers = scenario.scorers.get_or_insert_default();
                scorers.push(Located::new(scorer, place));
            }
            None => _ = writeln!(text, "# plugin {}  # {}", named.value, named.place),
        }
    }
    text.push_str(&toml(&scenario));
    text
}

fn toml(scenario: &Scenario) -> String {
    let entries = scenario.settled().entries();
    let mut tables: Vec<&str> = vec![""];
    for key in scenario::keys() {
        if !tables.contains(&key.table()) {
            tables.push(key.table());
        }
    }
    let mut text = String::new();
    for table in tables {
        let mut lines: Vec<[String; 2]> = entries
            .iter()
            .filter(|entry| entry.path.split_once('.').map_or("", |(first, _)| first) == table)
            .map(|entry| line(table, entry))
            .collect();
        lines.extend(unset(table, &entries));
        if lines.is_empty() {
            continue;
        }
        if !table.is_empty() {
            let _ = write!(text, "\n[{table}]\n");
        }
        let lengths = lines.iter().map(|[value, _]| value.chars().count());
        let width = lengths.filter(|length| *length < 60).max().unwrap_or(0);
        for [value, why] in lines {
            let _ = writeln!(text, "{}", format!("{value:width$}  # {why}").trim_start());
        }
    }
    text
}

fn line(table: &str, entry: &Entry) -> [String; 2] {
    let key = entry.path.strip_prefix(table).unwrap_or(&entry.path);
    let key = key.trim_start_matches('.');
    let value = format!("{key} = {}", entry.value);
    // JSON's null, which only a flag can give, is nothing to TOML.
    let readable = value.parse::<toml::Table>().is_ok();
    let value = match (entry.secret, readable) {
        (true, _) => format!("# {key}: not shown"),
        (false, false) => format!("# {value}"),
        (false, true) => value,
    };
    [value, entry.place.to_string()]
}

/// The keys of a table that are not set and whose default is no value.
fn unset(table: &str, entries: &[Entry]) -> Vec<[String; 2]> {
    let unset = scenario::keys().iter().filter(|key| {
        key.table() == table
            && !key.path.contains("[]")
            && !entries.iter().any(|entry| entry.path == key.path)
    });
    unset
        .filter_map(|key| {
            let name = key.path.strip_prefix(table).unwrap_or(&key.path);
            let name = name.trim_start_matches('.');
            Some([format!("# {name}: {}", key.otherwise?), "default".to_owned()])
        })
        .collect()
}
