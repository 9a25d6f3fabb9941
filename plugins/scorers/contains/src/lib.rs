//! Scorer that checks if an answer contains a text, begins with it, or matches a pattern. The text
//! is the key `pattern`, or each sample's reference; of several texts one is enough.
//!
//! | `mode` | the answer | Python |
//! | --- | --- | --- |
//! | `contains` | has the text in it | `text in answer` |
//! | `prefix` | begins with the text, after white space | `answer.lstrip().startswith(text)` |
//! | `regex` | has a match of the pattern in it | `re.search(pattern, answer)` |
//!
//! Patterns have the syntax of the crate `regex-lite` 0.1, which takes time linear in the answer:
//! no look-around and no back-references; `\d`, `\w`, `\s` and `\b` mean ASCII, and `ignore-case`
//! folds ASCII alone, where the other two modes compare in lower case. A pattern has at most 1000
//! characters.
//!
//! A sample without a reference is not judged if there is no `pattern`. Nothing is extracted, so
//! there is no `-unparsed`.
#![deny(unsafe_code)]

use std::borrow::Cow;

use judging::{Part, python, reference, texts, truth};
use regex_lite::{Regex, RegexBuilder};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(test)]
mod tests;

const LONGEST_PATTERN: usize = 1000;

/// Bytes of a compiled pattern, at most, which also bounds the time per byte of an answer.
const LARGEST_PATTERN: usize = 64 * 1024;

/// The way in which the text is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Anywhere in the answer.
    #[default]
    Contains,
    /// A match of a pattern, anywhere in the answer.
    Regex,
    /// At the beginning of the answer, after white space.
    Prefix,
}

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Way in which the text is searched.
    pub mode: Mode,
    /// The text or pattern for every answer. Default: the sample's reference.
    pub pattern: Option<String>,
    /// Ignore the case of letters.
    pub ignore_case: bool,
    /// The part of the reply that is searched.
    pub part: Part,
    /// The key of the text if a reference is a table.
    pub reference_key: String,
    /// The score's name, to distinguish several patterns.
    pub name: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mode: Mode::Contains,
            pattern: None,
            ignore_case: false,
            part: Part::Answer,
            reference_key: "answer".to_owned(),
            name: "contains".to_owned(),
        }
    }
}

/// Scores `contains`, or the score that `name` names: 1 or 0.
pub struct Contains {
    config: Config,
    pattern: Option<Target>,
}

runner_plugin::export_scorer!(Contains);

impl Scorer for Contains {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        let mut wrong = Vec::new();
        if config.name.is_empty() || config.name.len() > 100 {
            wrong.push("key `name`: expected 1 to 100 bytes".to_owned());
        }
        let pattern = config.pattern.as_ref().and_then(|pattern| {
            Target::new(pattern, &config)
                .map_err(|error| wrong.push(format!("key `pattern`: {error}")))
                .ok()
        });
        if !wrong.is_empty() {
            return Err(Error::InvalidConfig(wrong.join("\n")));
        }
        Ok(Self { config, pattern })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let text = self.config.part.text(exchange);
        let found = if let Some(pattern) = &self.pattern {
            pattern.is_in(&text, &self.config)
        } else {
            let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
            let wanted: Vec<Target> = texts(exchange, &reference, &self.config.reference_key)?
                .iter()
                .map(|text| Target::new(text, &self.config))
                .collect::<Result<_, String>>()
                .map_err(|error| {
                    let id = &exchange.id;
                    Error::InvalidInput(format!("the reference of sample {id}: {error}"))
                })?;
            wanted.iter().any(|wanted| wanted.is_in(&text, &self.config))
        };
        Ok(vec![truth(&self.config.name, found)])
    }
}

enum Target {
    /// A text, in lower case if case is ignored.
    Text(String),
    Pattern(Regex),
}

impl Target {
    fn new(text: &str, config: &Config) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected a text; an empty one is in every answer".to_owned());
        }
        if config.mode != Mode::Regex {
            let folded = if config.ignore_case { text.to_lowercase() } else { text.to_owned() };
            return Ok(Target::Text(folded));
        }
        let length = text.chars().count();
        if length > LONGEST_PATTERN {
            return Err(format!(
                "expected a pattern of at most {LONGEST_PATTERN} characters, got {length}"
            ));
        }
        (RegexBuilder::new(text).case_insensitive(config.ignore_case))
            .size_limit(LARGEST_PATTERN)
            .build()
            .map(Target::Pattern)
            .map_err(|error| {
                format!("expected a pattern that regex-lite reads, got `{text}`: {error}")
            })
    }

    fn is_in(&self, answer: &str, config: &Config) -> bool {
        let text = match self {
            Target::Text(text) => text.as_str(),
            Target::Pattern(pattern) => return pattern.is_match(answer),
        };
        let answer = if config.ignore_case {
            Cow::Owned(answer.to_lowercase())
        } else {
            Cow::Borrowed(answer)
        };
        match config.mode {
            Mode::Prefix => answer.trim_start_matches(python::is_space).starts_with(text),
            Mode::Contains | Mode::Regex => answer.contains(text),
        }
    }
}
