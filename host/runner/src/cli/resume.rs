//! Resuming from a folder: the folder keeps the original command, so that `--resume FOLDER` needs
//! nothing else.
//!
//! The folder keeps the command's words without their secrets, the words for variables of the
//! environment, the folder that paths start from, and the scenario's text. Secrets are never
//! kept: keys come from the environment again, and a header has to be given again.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};
use serde::{Deserialize, Serialize};

use super::destination::replace;
use super::failure::Failure;
use super::flags::familiar::spread;
use super::print::json;
use super::sources::Text;
use super::variables;
use super::words::is_flag;
use model::private;
use model::redact::{self, Known};
use model::target::REDACTED;

const FILE: &str = "command.json";

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct SavedCommand {
    /// The words after `runner COMMAND`, without secrets.
    words: Vec<String>,
    /// The folder from which relative paths start.
    directory: PathBuf,
    /// The scenario's text; absent without one, and where something in it looks like a secret: then
    /// the file is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scenario: Option<Text>,
}

/// The words of this process's command line: words for variables of the environment, and the given
/// words, without secrets.
pub(super) fn words(command: fn() -> Command) -> Vec<String> {
    let all: Vec<OsString> = spread(std::env::args_os());
    let given = all.iter().skip(2).map(|word| word.to_string_lossy());
    let mut words = of_environment(command, &all);
    words.extend(redact::command_line(given.map(|word| word.into_owned())));
    words
}

/// Keeps the words of a command in the folder that it made, without the secrets that plugins mark.
pub(super) fn keep(
    folder: &Path,
    words: Vec<String>,
    scenario: Option<&Text>,
    marked: &Known,
) -> Result<(), Failure> {
    let Ok(directory) = std::env::current_dir() else { return Ok(()) };
    let is_public = |text: &&Text| {
        let shown = marked.redact_owned(redact::command(&text.text));
        shown == text.text && !text.has_headers()
    };
    let saved = SavedCommand {
        words: words.into_iter().map(|word| marked.redact_owned(word)).collect(),
        directory,
        scenario: scenario.filter(is_public).cloned(),
    };
    replace(&folder.join(FILE), json(&saved)?.as_bytes())
}

/// The flags that variables of the environment stand for, as words, without secrets.
fn of_environment(command: fn() -> Command, all: &[OsString]) -> Vec<String> {
    let Ok((command, matches)) = variables::read(command, all) else { return Vec::new() };
    let Some((name, matches)) = matches.subcommand() else { return Vec::new() };
    let own = command.find_subcommand(name);
    let arguments = own.into_iter().flat_map(Command::get_arguments);
    let word = |argument: &clap::Arg| word_for(argument, matches);
    let words: Vec<String> = arguments.filter_map(word).collect();
    redact::command_line(words)
}

fn word_for(argument: &clap::Arg, matches: &ArgMatches) -> Option<String> {
    let by_variable =
        matches.value_source(argument.get_id().as_str()) == Some(ValueSource::EnvVariable);
    let long = argument.get_long()?;
    if !by_variable || argument.is_hide_env_values_set() || long == "resume" {
        return None;
    }
    let value = std::env::var(argument.get_env()?).ok()?;
    let id = argument.get_id().as_str();
    match argument.get_action() {
        ArgAction::SetTrue => matches.get_flag(id).then(|| format!("--{long}")),
        _ => Some(format!("--{long}={value}")),
    }
}

/// The error that a study cannot be resumed from this file.
pub(super) fn impossible(path: &Path, cause: &dyn Display, instead: &str) -> Failure {
    Failure::input(format!("cannot resume `{}`: {cause}; name {instead}", path.display()))
}

/// The words of a folder's original command, followed by the words of this one, which override
/// them, and the scenario's text if it was saved. Paths start from the original command's
/// directory. Something secret has to be given again.
pub(super) fn resumed(
    command: &str,
    folder: &Path,
) -> Result<(Vec<OsString>, Option<Text>), Failure> {
    let path = folder.join(FILE);
    let instead = format!("the folder of a {command}, or give its scenario and original flags");
    let wrong = |cause: &dyn Display| impossible(&path, cause, &instead);
    // The saved command runs as this user's own, so nobody else may have written it.
    let file = private::open_own(&path).map_err(|cause| wrong(&cause))?;
    let text = std::io::read_to_string(file).map_err(|cause| wrong(&cause))?;
    let saved: SavedCommand = serde_json::from_str(&text).map_err(|cause| wrong(&cause))?;
    let folder = std::path::absolute(folder).map_err(|cause| wrong(&cause))?;
    let all: Vec<OsString> = spread(std::env::args_os());
    let now: Vec<OsString> = all.iter().skip(2).cloned().collect();
    let (kept, secrets) = without_secrets(saved.words);
    let again = |flag: &&String| !now.iter().any(|word| is_flag(word, flag));
    let missing: Vec<&str> = secrets.iter().filter(again).map(String::as_str).collect();
    if !missing.is_empty() {
        return Err(Failure::command_line(format!(
            "the {command} in `{}` has {}, whose value may be secret and is not saved; give it again",
            folder.display(),
            missing.join(" and ")
        )));
    }
    std::env::set_current_dir(&saved.directory)
        .map_err(|cause| wrong(&format!("it began in `{}`: {cause}", saved.directory.display())))?;
    let mut words: Vec<OsString> = all.into_iter().take(2).collect();
    words.extend(kept.into_iter().map(OsString::from));
    words.extend(now);
    words.extend([OsString::from("--resume"), folder.into()]);
    Ok((words, saved.scenario))
}

fn without_secrets(words: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut secrets) = (Vec::<String>::new(), Vec::new());
    for word in words {
        if !word.contains(REDACTED) {
            kept.push(word);
            continue;
        }
        let flag = match word.split_once('=') {
            Some((flag, _)) if flag.starts_with("--") => Some(flag.to_owned()),
            _ => kept.pop_if(|last| last.starts_with("--")),
        };
        secrets.extend(flag);
    }
    (kept, secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_secrets_again() {
        let line = ["--rates", "1,2", "--header", "x-key: sesame", "chat.toml"];
        let words = redact::command_line(line.map(str::to_owned));
        assert!(!words.concat().contains("sesame"), "{words:?}");
        let (kept, secrets) = without_secrets(words);
        assert_eq!(kept, ["--rates", "1,2", "chat.toml"]);
        assert_eq!(secrets, ["--header"]);
        let words = redact::command_line(["--header=x-key: sesame".to_owned()]);
        assert_eq!(without_secrets(words).1, ["--header"]);
    }
}
