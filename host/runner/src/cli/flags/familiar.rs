//! The flags of `vllm bench serve` (0.32) and SGLang's `bench_serving` (0.5.23) that this program
//! does not have as its own. The guidellm and AIPerf flags that most of their command lines have
//! are here too.
//!
//! Each is one row of a table: it stands for keys of the scenario, or its effect holds anyway, or
//! it is refused with its replacement. This module reads them from the command line;
//! [`rows`] and [`refused`] own their meanings. They are left out of help, and in a list in the
//! guide.

pub mod line;
mod refused;
mod rows;

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches};

use super::super::failure::{Exit, Failure};
use reader::{Located, toml_text};
use scenario::Scenario;

use line::{CLIENTS, Client};
use model::adapter::Assignment;

/// A flag of another client.
#[derive(Debug)]
pub struct Row {
    /// Its name, without the dashes.
    pub long: &'static str,
    pub takes: Takes,
    /// The datasets that it is for; none is all.
    pub datasets: &'static [&'static str],
    pub means: Means,
}

/// The kind of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Whole,
    Number,
    Text,
    /// Anything, since the flag is refused.
    Anything,
}

/// Changes a scenario as a flag says, which was given that value.
type Change = fn(&mut Scenario, &str, &str) -> Result<(), String>;

/// The meaning of a flag here.
#[derive(Debug)]
pub enum Means {
    /// Its value is that key's, and with it further keys have the given values, as TOML.
    Key(&'static str, Pairs),
    /// Its value becomes the only element of that key's list.
    Only(&'static str),
    Fixed(Pairs),
    /// A further change; the text is for the guide.
    Change(Change, &'static str),
    /// Its effect holds anyway, for this reason.
    Anyway(&'static str),
    /// It is refused, with this replacement.
    Refused(&'static str),
}

pub type Pairs = &'static [(&'static str, &'static str)];

pub fn row(long: &str) -> Option<&'static Row> {
    all().find(|row| row.long == long)
}

pub fn all() -> impl Iterator<Item = &'static Row> {
    rows::ROWS.iter().chain(&refused::ROWS)
}

/// The flags on the command line, with their values.
#[derive(Clone, Debug, Default)]
pub struct Familiar(Vec<(&'static Row, Vec<String>)>);

impl Familiar {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, long: &str) -> bool {
        self.0.iter().any(|(row, _)| row.long == long)
    }

    /// A flag that only one client has, with that client; nothing where flags of several are given.
    fn alone(&self) -> Option<(&'static str, &'static Client)> {
        let mut found = CLIENTS.iter().filter_map(|client| {
            let mut alone = client.alone.iter().copied();
            alone.find(|long| self.has(long)).map(|long| (long, *client))
        });
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// The given flags that are for some datasets only, with these datasets.
    pub fn of_datasets(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        let given = self.0.iter().map(|(row, _)| (row.long, row.datasets));
        given.filter(|(_, datasets)| !datasets.is_empty())
    }

    /// Overlays their settings on a scenario. Reports refused flags, else the mistake in a value.
    pub fn lay_over(&self, mut scenario: Scenario) -> Result<Scenario, Failure> {
        let refused = self.0.iter().filter_map(|(row, values)| match row.means {
            Means::Refused(instead) => {
                let instead = refused::instead(row.long, values, instead);
                Some(format!("--{} is not supported: {instead}", row.long))
            }
            _ => None,
        });
        Failure::of_any(Exit::CommandLine, refused)?;
        for (row, values) in &self.0 {
            let flag = format!("--{}", row.long);
            let value = values.last().map_or("", String::as_str);
            let mut set = |key: &str, value: &str| {
                let (read, problems) = Scenario::assigned_by(&flag, key, value);
                scenario = std::mem::take(&mut scenario).overlay(read);
                match problems.first() {
                    Some(problem) => {
                        Err(Failure::command_line(format!("{flag}: {}", problem.message())))
                    }
                    None => Ok(()),
                }
            };
            match &row.means {
                Means::Key(key, fixed) => {
                    match row.takes {
                        Takes::Text => set(key, &toml_text::string(value))?,
                        _ => set(key, value)?,
                    }
                    fixed.iter().try_for_each(|(key, value)| set(key, value))?;
                }
                Means::Only(key) => set(key, &format!("[{}]", toml_text::string(value)))?,
                Means::Fixed(fixed) => fixed.iter().try_for_each(|(key, value)| set(key, value))?,
                Means::Change(change, _) => {
                    change(&mut scenario, &flag, value)
                        .map_err(|message| Failure::command_line(format!("{flag}: {message}")))?;
                }
                Means::Anyway(_) | Means::Refused(_) => {}
            }
        }
        Ok(scenario)
    }

    pub fn note(&self) -> Option<String> {
        let given = self.0.iter();
        let idle = given.filter(|(row, _)| matches!(row.means, Means::Anyway(_)));
        let idle: Vec<String> = idle.map(|(row, _)| format!("--{}", row.long)).collect();
        let changes = match idle.len() {
            0 => return None,
            1 => "changes nothing here: its effect holds",
            _ => "change nothing here: their effects hold",
        };
        Some(format!("{} {changes} anyway (`runner guide coming-from`)", idle.join(", ")))
    }
}

impl Row {
    fn arg(&self) -> Arg {
        let arg = Arg::new(self.long).long(self.long).hide(true);
        let takes_one = |text: &str| -> Result<String, String> { Ok(text.to_owned()) };
        match self.takes {
            Takes::Nothing => arg.action(ArgAction::SetTrue),
            Takes::Whole => arg.value_name("N").value_parser(|text: &str| {
                let number = text.parse::<u64>().map(|number| number.to_string());
                number.map_err(|cause| cause.to_string())
            }),
            Takes::Number => arg.value_name("NUMBER").value_parser(|text: &str| {
                // As TOML writes it, in which `1` is no float and `1e3` is one.
                super::finite(text).map(|number| format!("{number:?}"))
            }),
            Takes::Text => {
                arg.value_name("TEXT").allow_negative_numbers(true).value_parser(takes_one)
            }
            Takes::Anything => {
                arg.num_args(0..).allow_negative_numbers(true).action(ArgAction::Append)
            }
        }
    }

    fn given(&self, matches: &ArgMatches) -> Option<Vec<String>> {
        if self.takes == Takes::Nothing {
            return matches.get_flag(self.long).then(Vec::new);
        }
        matches.contains_id(self.long).then(|| {
            let values = matches.get_many::<String>(self.long);
            values.into_iter().flatten().cloned().collect()
        })
    }
}

rows_as_flags!(Familiar, all());

/// Flags after which other tools read a list of `NAME=VALUE`.
const LISTS: [&str; 2] = ["--header", "--metadata"];

/// A command line with such lists written out, as in `--header A=1 --header B=2`: a flag that takes
/// every word after it would take scenarios too. A word without `=`, and a word that names a file,
/// ends a list.
pub fn spread(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut spread = Vec::new();
    let mut list: Option<(&str, bool)> = None;
    for word in words {
        let text = word.to_string_lossy();
        if let Some(flag) = LISTS.iter().find(|flag| **flag == text) {
            list = Some((flag, false));
        } else if let Some((flag, begun)) = list {
            let ends = text.starts_with('-')
                || begun && (!text.contains('=') || Path::new(&word).exists());
            if begun && !ends {
                spread.push(OsString::from(flag));
            }
            list = (!ends).then_some((flag, true));
        }
        spread.push(word);
    }
    spread
}

// Flags of other clients that mean more than a value of a key: each function changes a scenario as
// its flag says.

fn located<T>(flag: &str, value: T) -> Option<Located<T>> {
    Some(Located::flag(flag, value))
}

fn config(scenario: &mut Scenario, flag: &str, key: &str, value: serde_json::Value) {
    scenario.dataset.config.set(key, Located::flag(flag, value));
}

fn unknown(value: &str, known: &str) -> String {
    format!("expected {known}, found `{value}`")
}

/// Their `--model` names the tokenizer's source; this flag gives the server's name for the model.
fn served(scenario: &mut Scenario, flag: &str, name: &str) -> Result<(), String> {
    let target = &mut scenario.target;
    let source = target.model.replace(Located::flag(flag, name.to_owned()));
    let tokenizer = &mut scenario.tokenizer.path;
    if let (Some(source), None) = (source, &tokenizer) {
        *tokenizer = Some(Located::new(source.value.into(), source.place));
    }
    Ok(())
}

/// The model's folder, where their tokenizer is from.
fn model_path(scenario: &mut Scenario, flag: &str, path: &str) -> Result<(), String> {
    let tokenizer = &mut scenario.tokenizer.path;
    if tokenizer.is_none() {
        *tokenizer = located(flag, path.into());
    }
    Ok(())
}

fn label(scenario: &mut Scenario, flag: &str, label: &str) -> Result<(), String> {
    scenario.name = located(flag, label.to_owned());
    Ok(())
}

fn tag(scenario: &mut Scenario, flag: &str, tag: &str) -> Result<(), String> {
    let tag = Located::flag(flag, tag.to_owned());
    scenario.about.notes.insert("tag".to_owned(), tag);
    Ok(())
}

fn distribution(scenario: &mut Scenario, flag: &str, name: &str) -> Result<(), String> {
    let assignment = match name {
        "uniform" => Assignment::Random,
        "distinct" => Assignment::RoundRobin,
        "skewed" => {
            return Err("`skewed` is not supported; give every sample its adapter with a column `adapter` of --dataset-name custom".to_owned());
        }
        other => return Err(unknown(other, "`uniform` or `distinct`")),
    };
    scenario.request.adapter_assignment = located(flag, assignment);
    Ok(())
}

fn mode(_: &mut Scenario, _: &str, name: &str) -> Result<(), String> {
    match name {
        "auto" | "hf" => Ok(()),
        other => Err(format!(
            "`{other}` is not supported: tokenizers are read from tokenizer.json; leave the flag out and give one with --tokenizer"
        )),
    }
}

fn custom_output(scenario: &mut Scenario, flag: &str, value: &str) -> Result<(), String> {
    if value == "-1" {
        return Ok(());
    }
    let tokens: u64 = value.parse().map_err(|_| unknown(value, "a number of tokens, or -1"))?;
    config(scenario, flag, "output-len", tokens.into());
    Ok(())
}

fn groups(scenario: &mut Scenario, _: &str, name: &str) -> Result<(), String> {
    let zipf = scenario.dataset.config.get("zipf").is_some();
    match (name, zipf) {
        ("uniform", false) | ("zipf", true) => Ok(()),
        ("uniform", true) => {
            Err("--gsp-zipf-alpha only works with `zipf`; leave one of the two out".to_owned())
        }
        ("zipf", false) => Err("`zipf` needs its exponent: --gsp-zipf-alpha NUMBER".to_owned()),
        (other, _) => Err(unknown(other, "`uniform` or `zipf`")),
    }
}

/// Sets the size of images; the other client states the height first.
fn resolution(scenario: &mut Scenario, flag: &str, name: &str) -> Result<(), String> {
    let (width, height) = match name {
        "4k" => (3840, 2160),
        "1080p" => (1920, 1080),
        "720p" => (1280, 720),
        "360p" => (640, 360),
        random if random.starts_with("random:") => {
            return Err("random sizes are distributions here: `--set 'dataset.config.width={ distribution = \"uniform\", min = 256, max = 1024 }'`, and the same for height".to_owned());
        }
        other => {
            let numbers = other.split_once('x');
            let numbers = numbers.and_then(|(height, width)| {
                Some((width.parse::<u32>().ok()?, height.parse::<u32>().ok()?))
            });
            numbers.ok_or_else(|| {
                unknown(other, "4k, 1080p, 720p, 360p, or a height and a width such as 1080x1920")
            })?
        }
    };
    let sizes = vec![serde_json::Value::from(format!("{width}x{height}"))];
    config(scenario, flag, "sizes", sizes.into());
    Ok(())
}

fn content(scenario: &mut Scenario, flag: &str, name: &str) -> Result<(), String> {
    let noise = match name {
        "random" => 1.0,
        "blank" => 0.0,
        other => return Err(unknown(other, "`random` or `blank`")),
    };
    config(scenario, flag, "noise", noise.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_out(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        let spread = spread(words).into_iter();
        let spread: Vec<_> = spread.map(|word| word.into_string().unwrap()).collect();
        spread.join(" ")
    }

    #[test]
    fn lists_of_pairs_get_a_flag_each() {
        for (line, expected) in [
            ("--header a=1 b=2 c=3 --seed 1", "--header a=1 --header b=2 --header c=3 --seed 1"),
            ("--metadata a=1 b=2 chat.toml x=3", "--metadata a=1 --metadata b=2 chat.toml x=3"),
            ("--header a: 1", "--header a: 1"),
            ("--header --metadata a=1", "--header --metadata a=1"),
            ("--set a=1 b=2", "--set a=1 b=2"),
            ("--header=a=1 b=2", "--header=a=1 b=2"),
        ] {
            assert_eq!(written_out(line), expected);
        }
    }
}
