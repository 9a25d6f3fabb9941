//! The user's configuration, and which keys go together.

use runner_plugin::Error;
use runner_plugin::lengths::{Distribution, Lengths, MOST_TOKENS};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Algorithm that makes prompts, by default `sglang`. `sglang` and `vllm` give the prompts of
    /// the tool, character by character, for the same seed and tokenizer; `runner` gives exact
    /// lengths from any distribution, and as many prompts as the run takes.
    pub algorithm: Algorithm,
    /// Number of prefixes. By default 64; with `vllm` 10.
    pub groups: Option<u32>,
    /// Number of prompts for each prefix. With `sglang` 16 by default. With `vllm` by default the
    /// run's requests divided by the prefixes. Not with `runner`, whose prompts do not end.
    pub prompts_per_group: Option<u32>,
    /// Length of a prefix in tokens, a number or, with `runner`, a distribution. By default 2048;
    /// with `vllm` 256.
    pub prefix_len: Option<Distribution>,
    /// Length in tokens of the question after the prefix, and of each later turn; a number or, with
    /// `runner`, a distribution. By default 128; with `vllm` 256.
    pub question_len: Option<Distribution>,
    /// Output tokens to request, a number or, with `runner`, a distribution. By default 256; with
    /// `vllm` 128.
    pub output_len: Option<Distribution>,
    /// Draw all lengths from (ratio × length) to (length). Only with `sglang`; 1, the default,
    /// makes them exact.
    pub range_ratio: Option<f64>,
    /// Choose each prompt's prefix by Zipf's law with this exponent, rather than equally often. The
    /// first prefix is in the most prompts, the n-th in 1 / n^exponent as many. Not with `vllm`.
    pub zipf: Option<f64>,
    /// Turns of a conversation, a number or, with `runner`, a distribution: each later turn is
    /// another question, sent after the previous answer. By default 1. Not with `vllm`.
    pub turns: Option<Distribution>,
    /// Shuffle the prompts. Otherwise the prompts of one prefix follow each other; with `runner`,
    /// the prefixes take turns.
    pub shuffle: bool,
    /// Send the prompt as `text`, the default, or as token ids (`tokens`). With `vllm`, and with
    /// several turns, it is text.
    #[serde(rename = "as")]
    pub form: Form,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Sglang,
            groups: None,
            prompts_per_group: None,
            prefix_len: None,
            question_len: None,
            output_len: None,
            range_ratio: None,
            zipf: None,
            turns: None,
            shuffle: true,
            form: Form::Text,
        }
    }
}

/// The algorithm that makes prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// As `generated-shared-prefix` of SGLang's `bench_serving`.
    Sglang,
    /// As `prefix_repetition` of `vllm bench serve`.
    Vllm,
    /// Prefix and prompt have exactly the requested tokens, and a prompt's first tokens are its
    /// prefix's.
    Runner,
}

/// The form in which a prompt is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// As text. The server may count a different number of tokens than were drawn.
    Text,
    /// As token ids, if the server accepts them.
    Tokens,
}

/// The longest part of a prompt, in tokens.
const LONGEST: u32 = MOST_TOKENS;

const MOST_TURNS: u32 = 10_000;

/// The most prompts of a sequence that ends: for each, its lengths and its place are kept.
pub(crate) const MOST_PROMPTS: u64 = 1 << 22;

/// A configuration that was checked, with the defaults of its algorithm.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) groups: u32,
    pub(crate) prompts_per_group: Option<u32>,
    pub(crate) prefix: Lengths,
    pub(crate) question: Lengths,
    pub(crate) output: Lengths,
    pub(crate) turns: Lengths,
    pub(crate) ratio: f64,
    pub(crate) zipf: Option<f64>,
    pub(crate) shuffle: bool,
    pub(crate) form: Form,
    pub(crate) single: bool,
}

impl Config {
    /// Checks everything that does not depend on the tokenizer and the number of requests.
    pub(crate) fn shape(&self) -> Result<Shape, Error> {
        self.belongs()?;
        let vllm = self.algorithm == Algorithm::Vllm;
        let groups = self.groups.unwrap_or(if vllm { 10 } else { 64 });
        for (key, number) in
            [("groups", Some(groups)), ("prompts-per-group", self.prompts_per_group)]
        {
            if number == Some(0) {
                return Err(Error::config(format!("`{key}` is 0; expected at least 1")));
            }
        }
        let lengths = |key: &str, given: &Option<Distribution>, default: u32, most: u32| {
            let given = given.clone().unwrap_or(Distribution::constant(default.into()));
            if given.as_constant().is_none() && self.algorithm != Algorithm::Runner {
                return Err(Error::config(format!(
                    "`{key}` is a distribution, which belongs to `algorithm = \"runner\"`: set a number, or use that \
                     algorithm"
                )));
            }
            given.lengths(key, 1..=most)
        };
        let ratio = self.range_ratio.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&ratio) {
            return Err(Error::config(format!(
                "`range-ratio` is {ratio}; expected a number from 0 to 1 (all lengths exact)"
            )));
        }
        if let Some(zipf) = self.zipf
            && !(zipf.is_finite() && zipf > 0.0)
        {
            return Err(Error::config(format!("`zipf` is {zipf}; expected more than 0")));
        }
        let one = |number: &Distribution| number.as_constant() == Some(1.0);
        let single = self.turns.as_ref().is_none_or(one);
        if self.form == Form::Tokens && !single {
            return Err(Error::config(
                "`as = \"tokens\"` cannot carry a conversation of several turns: leave `turns` out, or send text",
            ));
        }
        let usual = if vllm { 256 } else { 2048 };
        let prefix = lengths("prefix-len", &self.prefix_len, usual, LONGEST)?;
        let usual = if vllm { 256 } else { 128 };
        let question = lengths("question-len", &self.question_len, usual, LONGEST)?;
        let turns = lengths("turns", &self.turns, 1, MOST_TURNS)?;
        let questions = u64::from(turns.quantile(0.999)) * u64::from(question.quantile(0.999));
        let all = u64::from(prefix.quantile(0.999)) + questions;
        if all > MOST_TOKENS.into() {
            return Err(Error::config(format!(
                "`prefix-len` and `question-len` × `turns` give conversations of up to {all} tokens; expected at most \
                 {MOST_TOKENS}: set smaller numbers, or a `max` for a distribution"
            )));
        }
        Ok(Shape {
            groups,
            prompts_per_group: self.prompts_per_group,
            prefix,
            question,
            output: lengths("output-len", &self.output_len, if vllm { 128 } else { 256 }, LONGEST)?,
            turns,
            ratio,
            zipf: self.zipf,
            shuffle: self.shuffle,
            form: self.form,
            single,
        })
    }

    fn belongs(&self) -> Result<(), Error> {
        use Algorithm::{Runner, Sglang, Vllm};
        let belongs: [(&str, bool, &[Algorithm]); 5] = [
            ("prompts-per-group", self.prompts_per_group.is_some(), &[Sglang, Vllm]),
            ("range-ratio", self.range_ratio.is_some(), &[Sglang]),
            ("zipf", self.zipf.is_some(), &[Sglang, Runner]),
            ("turns", self.turns.is_some(), &[Sglang, Runner]),
            ("as = \"tokens\"", self.form == Form::Tokens, &[Sglang, Runner]),
        ];
        for (key, given, algorithms) in belongs {
            if given && !algorithms.contains(&self.algorithm) {
                let names: Vec<String> = algorithms
                    .iter()
                    .map(|each| format!("`algorithm = \"{}\"`", each.name()))
                    .collect();
                return Err(Error::config(format!(
                    "`{key}` belongs to {}: leave it out",
                    names.join(" and ")
                )));
            }
        }
        if self.algorithm == Runner && self.zipf.is_some() && !self.shuffle {
            return Err(Error::config(
                "`zipf` draws the prefixes at random, and with `shuffle = false` they take turns: leave one of them out",
            ));
        }
        Ok(())
    }
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Algorithm::Sglang => "sglang",
            Algorithm::Vllm => "vllm",
            Algorithm::Runner => "runner",
        }
    }
}
