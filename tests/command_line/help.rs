//! Texts that the program prints about itself: help, version, schemas, variables.

use std::collections::{BTreeMap, BTreeSet};

use clap::CommandFactory;

use super::transcript;
use crate::support::process::{run, runner};

/// Every command but the first, by its words, with its facts from clap.
pub(super) fn commands(cli: &clap::Command) -> Vec<(Vec<String>, clap::Command)> {
    let mut found = Vec::new();
    for command in cli.get_subcommands() {
        let word = command.get_name().to_owned();
        found.push((vec![word.clone()], command.clone()));
        for (words, nested) in commands(command) {
            found.push(([vec![word.clone()], words].concat(), nested));
        }
    }
    found
}

/// The words of the program alone, and of every command.
pub(super) fn pages(cli: &clap::Command) -> Vec<Vec<String>> {
    let nested = commands(cli).into_iter().map(|(words, _)| words);
    std::iter::once(vec![]).chain(nested).collect()
}

#[test]
fn help_of_every_subcommand() {
    let pages = pages(&runner::cli::Cli::command());
    let of_run = run(runner().args(["run", "--help"])).with_code(0).stdout;
    let of_run: BTreeSet<String> = entries(&of_run).into_iter().collect();
    for page in pages {
        let name = ["help", &page.join("-")].join("-");
        let ended = run(runner().args(&page).arg("--help")).with_code(0);
        assert_eq!(ended.stderr, "");
        let is_run = page == ["run"];
        let mut own = entries(&ended.stdout);
        own.retain(|entry| is_run || !is_flag(entry) || !of_run.contains(entry));
        transcript(name.trim_end_matches('-'), &(own.join("\n\n") + "\n"));
    }
}

/// The entries of a page: its paragraphs, but all paragraphs of a flag are one entry. The flags
/// that a command shares with `runner run` are in the snapshot of `run` alone.
fn entries(help: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for paragraph in help.trim_end().split("\n\n") {
        // A heading stands right above its first flag.
        let (heading, rest) = match paragraph.split_once('\n') {
            Some((first, rest)) if first.ends_with(':') && is_flag(rest) => (Some(first), rest),
            _ => (None, paragraph),
        };
        entries.extend(heading.map(str::to_owned));
        match entries.last_mut() {
            Some(flag) if is_flag(flag) && rest.starts_with(&" ".repeat(10)) => {
                *flag += &format!("\n\n{rest}");
            }
            _ => entries.push(rest.to_owned()),
        }
    }
    entries
}

fn is_flag(entry: &str) -> bool {
    entry.starts_with("  ") && entry.trim_start().starts_with('-')
}

#[test]
fn short_help_fits_a_screen_and_names_the_long_help() {
    let cli = runner::cli::command();
    for page in pages(&cli) {
        let help = short_help(&page);
        let lines = help.lines().count();
        assert!(lines <= 60, "{page:?} has {lines} lines:\n{help}");
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{page:?}: {widest:?}\n{help}");
        assert!(!help.contains("[env:"), "{page:?}:\n{help}");
        let mut command = cli.clone();
        for word in &page {
            command = command.find_subcommand(word).unwrap().clone();
        }
        let has_more = command.get_arguments().any(|arg| !arg.is_positional());
        if has_more {
            assert!(help.contains("--help'"), "{page:?}:\n{help}");
        }
    }
}

/// A page of `-h` as a terminal of 100 columns shows it.
fn short_help(page: &[String]) -> String {
    let words = [&["runner".to_owned()], page, &["-h".to_owned()]].concat();
    let command = runner::cli::command().term_width(100);
    let shown = command.try_get_matches_from(words).unwrap_err();
    shown.render().to_string()
}

#[test]
fn every_command_is_in_one_group() {
    let cli = runner::cli::command();
    let mut grouped: Vec<&str> =
        runner::cli::GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let mut all: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    grouped.sort_unstable();
    all.sort_unstable();
    assert_eq!(grouped, all);
}

/// Exporting a variable for one command must not change or break another.
#[test]
fn a_variable_has_one_meaning() {
    let cli = runner::cli::Cli::command();
    let all = commands(&cli).into_iter();
    let mut known = BTreeMap::new();
    let mut clashes = Vec::new();
    for (words, command) in all.chain([(vec![], cli.clone())]) {
        for arg in command.get_arguments() {
            let Some(variable) = arg.get_env() else { continue };
            let values: Vec<String> =
                arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            let help = arg.get_help().map(ToString::to_string);
            let action = format!("{:?}", arg.get_action());
            let names = arg.get_value_names().map(<[_]>::to_vec);
            let meaning = (arg.get_id().clone(), action, names, values, help);
            let (first, at) = known
                .entry(variable.to_owned())
                .or_insert_with(|| (meaning.clone(), words.clone()));
            if *first != meaning {
                let variable = variable.to_string_lossy();
                clashes.push(format!("{variable} of {at:?} and of {words:?}: {meaning:?}"));
            }
        }
    }
    assert!(clashes.is_empty(), "{}", clashes.join("\n"));
}

#[test]
fn every_flag_has_a_variable() {
    let cli = runner::cli::Cli::command();
    let nested = commands(&cli).into_iter().map(|(_, command)| command);
    for command in nested.chain([cli.clone()]) {
        for flag in command.get_arguments().filter(|arg| !arg.is_positional()) {
            let id = flag.get_id().as_str();
            // Flags of other tools are hidden: they have no name here, and so no variable.
            if ["help", "version"].contains(&id) || flag.is_hide_set() {
                continue;
            }
            let variable = flag.get_env().map(|name| name.to_string_lossy());
            let starts = variable.as_ref().is_some_and(|name| name.starts_with("RUNNER_"));
            assert!(starts, "`{}` of `{}`: {variable:?}", id, command.get_name());
        }
    }
}

#[test]
fn version() {
    let ended = run(runner().arg("--version")).with_code(0);
    assert_eq!(ended.stdout, concat!("runner ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn schemas_are_json() {
    let names = report::schema::SCHEMAS.iter().map(|(name, _)| *name);
    let names = names.chain(lab::schema::NAMES);
    let names = names.chain(verify::schema::NAMES);
    for name in names {
        let schema = run(runner().args(["schema", name])).with_code(0).json();
        assert!(schema["$schema"].is_string(), "{name}");
    }
}

#[test]
fn the_guide_lists_its_pages_and_prints_each() {
    let list = run(runner().arg("guide")).with_code(0).stdout;
    for page in runner::guide::pages::PAGES {
        assert!(list.contains(page.name), "{}: {list}", page.name);
        let printed = run(runner().args(["guide", page.name])).with_code(0).stdout;
        assert!(printed.starts_with("# "), "{}: {printed}", page.name);
    }
    let found = run(runner().args(["guide", "--find", "MT-bench"])).with_code(0).stdout;
    assert!(
        found.starts_with("scorers: ") && found.contains("\n    **Rubrics** that ship"),
        "{found}"
    );
    let found =
        run(runner().args(["guide", "ci", "--find", "benchmark_token"])).with_code(0).stdout;
    assert!(found.starts_with("ci: GitLab\n    ") && found.lines().count() == 2, "{found}");
    let wrong = run(runner().args(["guide", "--find", "no such words"])).with_code(2).stderr;
    assert!(wrong.contains("no page of the guide has `no such words`"), "{wrong}");
    run(runner().args(["guide", "loads"])).with_stderr(2, "did you mean `load`?");
}
