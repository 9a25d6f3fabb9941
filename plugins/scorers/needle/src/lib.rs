//! Scorer that counts the reference's needles that an answer repeats. The rule comes from RULER
//! (NVIDIA/RULER, `scripts/eval/synthetic/constants.py`, `string_match_all`), as in EleutherAI's
//! lm-evaluation-harness 0.4.13 (`lm_eval/tasks/ruler/common_utils.py`): the share of the texts
//! that are in the answer, in lower case, after control characters have become line breaks.
//!
//! The reference is one text or a list of them. A needle's depth and the length of its haystack
//! belong into the sample's class, such as `length=32768,depth=50`: The run then has each class's
//! mean as `needle:CLASS`, for the first 1000 classes.
//!
//! A sample without a reference is not judged. Nothing is extracted, so there is no `-unparsed`.
#![deny(unsafe_code)]

use std::collections::BTreeMap;

use judging::{Part, python, reference, score, texts, truth};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// Classes with a mean of their own, at most.
const MOST_CLASSES: usize = 1000;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The part of the reply that is searched.
    pub part: Part,
    /// The key of the needles if a reference is a table.
    pub reference_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { part: Part::Answer, reference_key: "answer".to_owned() }
    }
}

/// Scores `needle`, the share of the needles found, and `needle-all`, 1 if none is missing.
pub struct Needle {
    config: Config,
    /// By class, the sum of `needle`, and the number of answers.
    classes: BTreeMap<String, (f64, f64)>,
}

runner_plugin::export_scorer!(Needle);

impl Scorer for Needle {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Self { config, classes: BTreeMap::new() })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let needles = texts(exchange, &reference, &self.config.reference_key)?;
        let text = self.config.part.text(exchange);
        let text = python::strip(&text).replace(|c| c <= '\u{1f}', "\n");
        let text = python::strip(&text).to_lowercase();
        let found = needles.iter().filter(|needle| text.contains(&needle.to_lowercase()));
        let share = found.count() as f64 / needles.len() as f64;
        if let Some(class) = &exchange.class
            && (self.classes.len() < MOST_CLASSES || self.classes.contains_key(class))
        {
            let (sum, count) = self.classes.entry(class.clone()).or_default();
            *sum += share;
            *count += 1.0;
        }
        Ok(vec![score("needle", share), truth("needle-all", share >= 1.0)])
    }

    fn finish(&mut self) -> Result<Vec<Score>, Error> {
        let mean = |(class, (sum, count)): (&String, &(f64, f64))| {
            score(&format!("needle:{class}"), sum / count)
        };
        Ok(self.classes.iter().map(mean).collect())
    }
}
