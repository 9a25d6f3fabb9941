//! Scorer that checks if an answer's final number is the reference's, for problems such as GSM8K's.
//! The rules come from the task `gsm8k`, version 3.0, of EleutherAI's lm-evaluation-harness 0.4.13
//! (`lm_eval/tasks/gsm8k/gsm8k.yaml`, `lm_eval/filters/extraction.py`, and `exact_match` of
//! `lm_eval/api/metrics.py`).
//!
//! | score | the number of an answer |
//! | --- | --- |
//! | `final-number-strict` | the first that follows `#### `: `#### (\-?[0-9\.\,]+)` |
//! | `final-number-flexible` | the last match of `(-?[$0-9.,]{2,})\|(-?[0-9]+)` |
//!
//! Both are compared as texts with the reference, after the same four deletions in both: every `,`,
//! every `$`, everything up to the last `#### `, and a `.` at the end. So `5.0` is not `5`, and a
//! last match such as `...` is a wrong answer, as it is there. The harness cuts an answer at
//! `Question:`, `</s>` and `<|im_end|>`; set them as `request.stop` to have the same.
//!
//! A sample without a reference is not judged. An answer without a match scores 0, and the score
//! with `-unparsed` behind its name is 1.
#![deny(unsafe_code)]

use judging::{Part, reference, texts, truth};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The part of the reply that is searched.
    pub part: Part,
    /// The key of the answer if a reference is a table.
    pub reference_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { part: Part::Answer, reference_key: "answer".to_owned() }
    }
}

/// Scores `final-number-strict`, `final-number-flexible`, and an unparsed score of each.
pub struct FinalNumber {
    config: Config,
}

runner_plugin::export_scorer!(FinalNumber);

impl Scorer for FinalNumber {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Self { config })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let accepted: Vec<String> = texts(exchange, &reference, &self.config.reference_key)?
            .iter()
            .map(|text| comparable(text))
            .collect();
        let text = self.config.part.text(exchange);
        let right =
            |found: Option<&str>| found.is_some_and(|found| accepted.contains(&comparable(found)));
        let (strict, flexible) = (marked(&text), last(&text));
        Ok(vec![
            truth("final-number-strict", right(strict)),
            truth("final-number-strict-unparsed", strict.is_none()),
            truth("final-number-flexible", right(flexible)),
            truth("final-number-flexible-unparsed", flexible.is_none()),
        ])
    }
}

/// The first match of `#### (\-?[0-9\.\,]+)`, without the mark.
fn marked(text: &str) -> Option<&str> {
    text.match_indices("#### ").find_map(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let sign = usize::from(rest.starts_with('-'));
        let digits =
            run(&rest.as_bytes()[sign..], |byte| matches!(byte, b'0'..=b'9' | b'.' | b','));
        (digits > 0).then(|| &rest[..sign + digits])
    })
}

/// The last match of `(-?[$0-9.,]{2,})|(-?[0-9]+)`.
fn last(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let mut found = None;
    let mut at = 0;
    while at < bytes.len() {
        let sign = usize::from(bytes[at] == b'-');
        let rest = &bytes[at + sign..];
        let loose = run(rest, |byte| matches!(byte, b'$' | b'0'..=b'9' | b'.' | b','));
        let is_number = loose >= 2 || (loose == 1 && rest[0].is_ascii_digit());
        let end = at + sign + loose;
        if is_number {
            found = Some(&text[at..end]);
        }
        // A sign before no number may precede a number without it: the next round tries it.
        at = if is_number { end } else { at + 1 };
    }
    found
}

/// Counts the bytes before the first that does not fit.
fn run(bytes: &[u8], fits: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| fits(**byte)).count()
}

/// A text after the deletions of `regexes_to_ignore`, in their order. Letters count in either case.
fn comparable(text: &str) -> String {
    let mut text: String = text.chars().filter(|c| !matches!(c, ',' | '$')).collect();
    if let Some(at) = text.rfind("#### ") {
        text.drain(..at + "#### ".len());
    }
    // Python's `$` holds before a line break at the end, too.
    let end = text.strip_suffix('\n').unwrap_or(&text).len();
    if text[..end].ends_with('.') {
        text.remove(end - 1);
    }
    text.to_lowercase()
}
