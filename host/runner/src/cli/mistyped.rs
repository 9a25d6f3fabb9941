//! A command's name with a slip in it: what is no command is read as a scenario, and no scenario is called so.

use std::ffi::OsStr;
use std::path::Path;

use clap::CommandFactory;

use super::Cli;
use super::failure::{Exit, Failure};
use model::nearest;

/// What other tools call what a command here does.
const ELSEWHERE: [(&str, &str); 7] = [
    ("bench", "run"),
    ("benchmark", "run"),
    ("measure", "run"),
    ("check", "scenario check"),
    ("validate", "scenario check"),
    ("diff", "compare"),
    ("ls", "report"),
];

/// The error of a first word that is probably a command with a slip, or another tool's word for one.
pub(super) fn command(first: &OsStr) -> Option<Failure> {
    let word = first.to_str()?;
    let is_word =
        !word.starts_with('-') && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    if word.is_empty() || !is_word || Path::new(first).exists() {
        return None;
    }
    let cli = Cli::command();
    let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let folder = format!("{word}/");
    let is_scenario = |known: &str| known == word || known.starts_with(&folder);
    if names.contains(&word) || word == "help" || shipped::scenarios().any(is_scenario) {
        return None;
    }
    let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == word);
    let meant = elsewhere
        .map(|(_, own)| *own)
        .or_else(|| nearest(word, names))?;
    Some(Failure::new(
        Exit::CommandLine,
        format!(
            "there is no command and no scenario `{word}`; did you mean `runner {meant}`? `runner --help` lists the commands"
        ),
    ))
}
