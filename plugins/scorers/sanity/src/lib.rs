//! Scorer that checks if an answer is whole and readable, without a reference. An engine that is
//! broken by a wrong kernel, a bad quantization or a wrong chat template shows here first. Each
//! check is 1 where the answer has the fault:
//!
//! - `sanity-empty`: the answer is nothing but white space, and calls no tool
//! - `sanity-cut`: the finish reason says that the limit of tokens ended the answer: `length`,
//!   `limit`, `max_tokens`, `model_length`, `max_output_tokens`, `model_context_window_exceeded`,
//!   in either case
//! - `sanity-repetitive`: more than the share `repetition` of the 4-grams of words are repeats, in
//!   an answer of 50 words or more; or the answer ends in a loop
//! - `sanity-mixed-scripts`: a word has Latin and Cyrillic letters, or each of three scripts has a
//!   twentieth of the letters or more
//! - `sanity-leaked-tokens`: the answer contains a special token of a chat template, such as
//!   `<|im_end|>` or `</s>`
//! - `sanity-broken-characters`: the answer has U+FFFD, which stands for invalid bytes, a control
//!   character, or no character of Unicode
//!
//! `sane` is 1 if no check is 1; the checks under `ignore` do not count.
//!
//! The share of repeated n-grams is seq-rep-4 of Welleck et al., "Neural Text Generation with
//! Unlikelihood Training", 2020: one minus the distinct 4-grams by all. A loop is a piece of any
//! length that ends the answer at least 8 times in a row, over 64 characters or more, in its last
//! 4096 characters. This also finds repeated text without spaces. Chinese characters and Japanese
//! syllables are one script here, and a Greek letter beside no other is a symbol. The other rules
//! are this plugin's own, so there is no reference implementation.
//!
//! Every answer is judged. `sanity-cut` is left out where the server gave no finish reason. With
//! `ignore-eos`, every answer is cut: set `ignore = ["cut"]` then.
#![deny(unsafe_code)]

mod checks;
#[cfg(test)]
mod tests;

use judging::{Part, truth};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

/// A fault that an answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Nothing but white space.
    Empty,
    /// Ended by the limit of tokens.
    Cut,
    /// The same again and again.
    Repetitive,
    /// Letters of scripts that do not go together.
    MixedScripts,
    /// Special tokens of a chat template.
    LeakedTokens,
    /// Characters that stand for invalid bytes, control characters.
    BrokenCharacters,
}

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Checks that do not make an answer insane; they have their own scores all the same.
    pub ignore: Vec<Check>,
    /// The part of the reply that is checked; whether it is empty or cut is always about the whole
    /// reply.
    pub part: Part,
    /// The share of repeated 4-grams of words above which an answer is repetitive, from 0 to 1.
    pub repetition: f64,
    /// Further texts that are special tokens.
    pub special_tokens: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self { ignore: Vec::new(), part: Part::Answer, repetition: 0.5, special_tokens: Vec::new() }
    }
}

/// Scores `sane`, and one score for each check.
pub struct Sanity {
    config: Config,
}

runner_plugin::export_scorer!(Sanity);

impl Scorer for Sanity {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        let mut wrong = Vec::new();
        if !(0.0..=1.0).contains(&config.repetition) {
            let got = config.repetition;
            wrong.push(format!("key `repetition`: expected a share from 0 to 1, got {got}"));
        }
        let tokens = &config.special_tokens;
        if tokens.len() > 100 || tokens.iter().any(|token| token.is_empty() || token.len() > 100) {
            wrong.push(
                "key `special-tokens`: expected at most 100 texts of 1 to 100 bytes each"
                    .to_owned(),
            );
        }
        if !wrong.is_empty() {
            return Err(Error::InvalidConfig(wrong.join("\n")));
        }
        Ok(Self { config })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let text = self.config.part.text(exchange);
        let empty = exchange.output.trim().is_empty() && exchange.tool_calls.trim().is_empty();
        let repetitive =
            checks::repetition(&text) > self.config.repetition || checks::ends_in_a_loop(&text);
        let leaked = checks::leaks_tokens(&text)
            || (self.config.special_tokens.iter()).any(|token| text.contains(token.as_str()));
        let faults = [
            (Check::Empty, "sanity-empty", Some(empty)),
            (Check::Cut, "sanity-cut", exchange.finish.as_deref().map(judging::is_cut)),
            (Check::Repetitive, "sanity-repetitive", Some(repetitive)),
            (Check::MixedScripts, "sanity-mixed-scripts", Some(checks::mixes_scripts(&text))),
            (Check::LeakedTokens, "sanity-leaked-tokens", Some(leaked)),
            (
                Check::BrokenCharacters,
                "sanity-broken-characters",
                Some(checks::has_broken_characters(&text)),
            ),
        ];
        let insane = (faults.iter())
            .any(|(check, _, found)| *found == Some(true) && !self.config.ignore.contains(check));
        let mut scores = vec![truth("sane", !insane)];
        let known = |(_, name, found): (Check, &str, Option<bool>)| Some(truth(name, found?));
        scores.extend(faults.into_iter().filter_map(known));
        Ok(scores)
    }
}
