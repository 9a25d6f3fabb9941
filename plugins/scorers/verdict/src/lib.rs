//! The verdict of a model that judges others, read from its answer. The judge prompts of MT-Bench
//! ask for these forms (lm-sys/FastChat, `fastchat/llm_judge/data/judge_prompts.jsonl`): `[[7]]`
//! for a grade, and `[[A]]`, `[[B]]` or `[[C]]` for the better of two answers, C being a tie.
//!
//! - `grade`: the number in double brackets, or in single ones after `Rating:` as FastChat accepts
//!   it
//! - `choice`: 1 for the first answer, 0 for the second, 0.5 for a tie
//!
//! The last verdict of an answer counts, because judges repeat the requested form before they use
//! it. FastChat takes the first grade, and A before B before C at any place. A grade outside of the
//! scale is no verdict, and neither is moved into it.
//!
//! An answer that the limit of tokens cut has no verdict, even with brackets: the judge may have
//! repeated the form, or quoted the judged text, before its own verdict.
//!
//! An answer without a verdict has no `grade` and no `choice`, so no mean counts it as bad. Its
//! score with `-unparsed` after the name is 1. No reference is needed.
#![deny(unsafe_code)]

use judging::{Part, is_cut, score, truth};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// The form of a verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// A number on the scale.
    #[default]
    Grade,
    /// One of two answers, or a tie.
    Choice,
}

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Form of a verdict.
    pub form: Form,
    /// The part of the reply that is searched.
    pub part: Part,
    /// The lowest grade.
    pub lowest: f64,
    /// The highest grade.
    pub highest: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { form: Form::Grade, part: Part::Answer, lowest: 1.0, highest: 10.0 }
    }
}

/// Scores `grade` or `choice`, and whether there was none.
pub struct Verdict {
    config: Config,
}

runner_plugin::export_scorer!(Verdict);

impl Scorer for Verdict {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        let Config { lowest, highest, .. } = &config;
        // Not true of numbers that are none, either.
        let is_scale = lowest < highest && (highest - lowest).is_finite();
        if is_scale {
            Ok(Self { config })
        } else {
            Err(Error::InvalidConfig(format!(
                "`lowest` is {lowest} and `highest` is {highest}; the lowest grade must be below the highest"
            )))
        }
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let is_whole = !exchange.finish.as_deref().is_some_and(is_cut);
        let text = self.config.part.text(exchange);
        let (name, found) = match self.config.form {
            Form::Grade => ("grade", self.grade(&text)),
            Form::Choice => ("choice", choice(&text)),
        };
        let found = found.filter(|_| is_whole);
        let unparsed = truth(&format!("{name}-unparsed"), found.is_none());
        Ok(found.map(|value| score(name, value)).into_iter().chain([unparsed]).collect())
    }
}

impl Verdict {
    /// The last number in double brackets, else in single ones after `Rating:`, if on the scale.
    fn grade(&self, text: &str) -> Option<f64> {
        let Config { lowest, highest, .. } = self.config;
        let number = |inner: &str| number(inner, highest);
        let grade = bracketed(text).find_map(number);
        let grade = grade.or_else(|| after_rating(text).find_map(number))?;
        (lowest..=highest).contains(&grade).then_some(grade)
    }
}

fn choice(text: &str) -> Option<f64> {
    bracketed(text).find_map(|inner| match inner {
        "A" | "a" => Some(1.0),
        "B" | "b" => Some(0.0),
        "C" | "c" => Some(0.5),
        _ => None,
    })
}

/// Finds the texts in double brackets, the last first.
fn bracketed(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.rfind("]]")?;
        let begin = rest[..end].rfind("[[")?;
        let inner = &rest[begin + 2..end];
        rest = &rest[..begin];
        Some(inner.trim())
    })
}

/// Texts in single brackets after `Rating:`, in any case, also with emphasis, the last first.
fn after_rating(text: &str) -> impl Iterator<Item = &str> {
    const MARK: &str = "rating:";
    // ASCII letters alone change, so places stay the same.
    let lower = text.to_ascii_lowercase();
    let places: Vec<usize> = lower.rmatch_indices(MARK).map(|(at, _)| at).collect();
    places.into_iter().filter_map(move |at| {
        let rest = &text[at + MARK.len()..];
        let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '*');
        let inner = rest.strip_prefix('[')?;
        Some(inner[..inner.find(']')?].trim())
    })
}

/// A decimal number, which may state the scale's end as in `7/10`.
fn number(text: &str, highest: f64) -> Option<f64> {
    let plain = |text: &str| {
        let text = text.trim();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_plain = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        is_plain.then(|| text.parse::<f64>().ok()).flatten()
    };
    match text.split_once('/') {
        None => plain(text),
        Some((grade, of)) => plain(grade).filter(|_| plain(of) == Some(highest)),
    }
}
