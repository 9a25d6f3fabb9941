//! A mistyped command, or another tool's word: a word that is no command is read as a scenario, and
//! no scenario has that name.

use std::ffi::OsString;
use std::path::Path;

use super::failure::Failure;
use super::words::is_flag;
use model::nearest;

/// Names in other tools for commands here.
const ELSEWHERE: [(&str, &str); 7] = [
    ("bench", "run"),
    ("benchmark", "run"),
    ("measure", "run"),
    ("check", "scenario check"),
    ("validate", "scenario check"),
    ("diff", "compare"),
    ("ls", "report"),
];

/// Words that begin a command line of another tool, where one of the flags or words follows, and
/// the advice for the line.
#[rustfmt::skip]
const LINES: [(&str, &[&str], &str); 3] = [
    ("bench", &["serve"], "`bench serve` are words of vllm: leave them out, and the rest of the line works here"),
    ("benchmark", &["run", "--target", "--profile", "--rate-type", "--data"], "`benchmark` is guidellm's: leave it out; each of its flags that is not known here says what to write instead, and `runner guide coming-from` has them all"),
    ("profile", &["-m", "--model", "-u", "--url", "--endpoint-type"], "`profile` is AIPerf's: leave it out and write short flags in full (--model, --url); each flag that is not known here says what to write instead"),
];

/// The error of a line whose first word is probably a mistyped command, or another tool's word for
/// one.
pub(super) fn command(line: &[OsString], cli: &clap::Command) -> Option<Failure> {
    let (first, rest) = line.split_first()?;
    let word = first.to_str()?;
    let is_word =
        !word.starts_with('-') && word.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    if word.is_empty() || !is_word || Path::new(first).exists() {
        return None;
    }
    let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let folder = format!("{word}/");
    let is_scenario = |known: &str| known == word || known.starts_with(&folder);
    if names.contains(&word) || word == "help" || shipped::scenarios().any(is_scenario) {
        return None;
    }
    let wrong = |instead: String| {
        Failure::command_line(format!("there is no command and no scenario `{word}`{instead}"))
    };
    if let Some(instead) = of_another_tool(word, rest) {
        return Some(wrong(format!(": {instead}")));
    }
    let theirs = ELSEWHERE.iter().map(|(theirs, _)| *theirs);
    let near = nearest(word, names.iter().copied().chain(theirs))?;
    let elsewhere = ELSEWHERE.iter().find(|(theirs, _)| *theirs == near);
    let meant = elsewhere.map_or(near, |(_, own)| own);
    Some(wrong(format!("; did you mean `runner {meant}`? `runner --help` lists the commands")))
}

fn of_another_tool(first: &str, rest: &[OsString]) -> Option<&'static str> {
    let (.., instead) = LINES.iter().find(|(begins, known, _)| {
        *begins == first && rest.iter().any(|word| known.iter().any(|known| is_flag(word, known)))
    })?;
    Some(instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        command(&words, &crate::cli::command()).map(|failure| failure.message())
    }

    #[test]
    fn distinguishes_mistyped_commands_from_scenarios() {
        for (line, part) in [
            ("comapre a b", "did you mean `runner compare`?"),
            ("mesure", "did you mean `runner run`?"),
            ("bench chat.toml", "did you mean `runner run`?"),
            ("bench serve --model m", "`bench serve` are words of vllm"),
            ("benchmark --target http://localhost:8000", "guidellm's"),
            ("benchmark run --profile=kind=sweep", "guidellm's"),
            ("profile -m m --url localhost:8000", "AIPerf's"),
        ] {
            let hint = hint(line).unwrap_or_default();
            assert!(hint.contains(part), "{line}: {hint}");
        }
        for line in ["compare a b", "scenarios", "lmdeploy", "help"] {
            assert_eq!(hint(line), None, "{line}");
        }
    }
}
