//! Scorer for the inline accuracy of MLPerf Agentic, by `AgenticInferenceInlineScorer` of MLCommons
//! endpoints at `ea33275`.
//!
//! The reference is a table of one key, which the dataset `conversation` takes from the recorded
//! answer. The score `inline-accuracy` depends on this key:
//!
//! - `intent_codes`: 1 if the answer names one of the codes. It names a code by `intent: I042`, or
//!   else by its last `I042`. The reasoning comes before the text.
//! - `tool_calls`: the commands that answer and record share, as a part of all their commands. A
//!   command is a known program that a call of `bash` runs, without path, version and arguments.
//!
//! A turn whose record has no code and no command is not judged. MLCommons counts a failed turn as
//! 0, as a threshold does.
#![deny(unsafe_code)]

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use judging::python::split;
use judging::{reference, score, truth, unusable};
use regex_lite::Regex;
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The programs that count.
const PROGRAMS: [&str; 41] = [
    "alias", "apt", "awk", "cat", "conda", "cp", "curl", "cut", "cython", "date", "diff", "export",
    "false", "find", "git", "grep", "head", "ls", "make", "mkdir", "mv", "pip", "pylint", "pytest",
    "python", "rm", "sed", "sort", "source", "tail", "tee", "timeout", "touch", "tr", "true",
    "uniq", "unset", "wc", "which", "xargs", "yum",
];

/// Other names that count as a program.
const ALIASES: [(&str, &str); 17] = [
    (".", "source"),
    ("ag", "grep"),
    ("apt-get", "apt"),
    ("egrep", "grep"),
    ("fgrep", "grep"),
    ("gawk", "awk"),
    ("less", "cat"),
    ("locate", "find"),
    ("more", "cat"),
    ("pip3", "pip"),
    ("py", "python"),
    ("python2", "python"),
    ("python3", "python"),
    ("rg", "grep"),
    ("sphinx-build", "sphinx"),
    ("sphinx-quickstart", "sphinx"),
    ("wget", "curl"),
];

const SCORE: &str = "inline-accuracy";

const WRAPPERS: [&str; 6] = ["env", "time", "nice", "sudo", "exec", "command"];

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {}

pub struct Inline {
    intent: Regex,
    bare_intent: Regex,
    quoted: Regex,
    separator: Regex,
    assignment: Regex,
    version: Regex,
}

runner_plugin::export_scorer!(Inline);

impl Scorer for Inline {
    type Config = Config;

    fn open(_config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        let regex = |pattern| Regex::new(pattern).map_err(|error| Error::Other(error.to_string()));
        Ok(Self {
            intent: regex(r"(?i)\bintent:\s*(I\d{3})\b")?,
            bare_intent: regex(r"\bI\d{3}\b")?,
            quoted: regex(r#"'[^']*'|"(?:[^"\\]|\\.)*"|`[^`]*`"#)?,
            separator: regex(r"\|\||\||&&|;|\n")?,
            assignment: regex(r"^[A-Za-z_][A-Za-z0-9_]*=")?,
            version: regex(r"\.\d+(\.\d+)?$")?,
        })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let Value::Object(record) = &reference else {
            let expected = "a table with `intent_codes` or `tool_calls`";
            return Err(unusable(exchange, &reference, expected));
        };
        let intents = record.get("intent_codes").and_then(Value::as_array);
        let intents = intents.into_iter().flatten().filter_map(Value::as_str);
        let intents: Vec<String> =
            intents.filter(|code| !code.is_empty()).map(str::to_uppercase).collect();
        if !intents.is_empty() {
            let is_right = self.intent(exchange).is_some_and(|named| intents.contains(&named));
            return Ok(vec![truth(SCORE, is_right)]);
        }
        let calls = record.get("tool_calls").map(Value::to_string).unwrap_or_default();
        let recorded = self.commands(&calls);
        if recorded.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![score(SCORE, in_common(&recorded, &self.commands(&exchange.tool_calls)))])
    }
}

impl Inline {
    /// The intent that an answer names.
    fn intent(&self, exchange: &Exchange) -> Option<String> {
        let texts = [&exchange.reasoning, &exchange.output];
        let stated = texts.iter().find_map(|text| self.intent.captures(text)?.get(1));
        let last = || texts.iter().find_map(|text| self.bare_intent.find_iter(text).last());
        stated.or_else(last).map(|intent| intent.as_str().to_uppercase())
    }

    /// The commands of calls of tools, each with its number.
    fn commands(&self, tool_calls: &str) -> BTreeMap<&'static str, u32> {
        let mut commands = BTreeMap::new();
        for call in judging::whole(tool_calls).iter().filter(|call| call.name == "bash") {
            let named = |key| call.arguments.get(key).filter(|value| is_true(value));
            let Some(text) = named("command").or_else(|| named("cmd")).and_then(Value::as_str)
            else {
                continue;
            };
            let text = self.quoted.replace_all(text, " ");
            for stage in self.separator.split(&text) {
                let mut words = split(stage)
                    .skip_while(|word| self.assignment.is_match(word) || WRAPPERS.contains(word));
                let Some(word) = words.next() else { continue };
                let name = word.rsplit('/').next().unwrap_or(word).to_lowercase();
                if let Some(program) = program(&self.version.replace(&name, "")) {
                    *commands.entry(program).or_default() += 1;
                }
            }
        }
        commands
    }
}

fn program(name: &str) -> Option<&'static str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, program)| *program);
    alias.or_else(|| PROGRAMS.into_iter().find(|program| *program == name))
}

/// Python's truth of a JSON value.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(table) => !table.is_empty(),
    }
}

/// The commands that both sides have, as a share of all commands.
fn in_common(one: &BTreeMap<&str, u32>, other: &BTreeMap<&str, u32>) -> f64 {
    let count = |side: &BTreeMap<&str, u32>| side.values().sum::<u32>();
    let both = one.iter().map(|(name, count)| count.min(other.get(name).unwrap_or(&0)));
    let both: u32 = both.sum();
    f64::from(both) / f64::from(count(one) + count(other) - both)
}
