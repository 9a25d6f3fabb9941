//! Scorer that checks if an answer equals the sample's reference. Only the answer counts, not the
//! reasoning before it; a sample without a reference is not judged.
#![deny(unsafe_code)]

use judging::{reference, texts, truth};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Ignore white space around the answer and the reference.
    pub strip: bool,
    /// Ignore the case of letters.
    pub ignore_case: bool,
    /// The key of the answer if a reference is a table.
    pub reference_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { strip: true, ignore_case: false, reference_key: "answer".to_owned() }
    }
}

pub struct ExactMatch {
    config: Config,
}

runner_plugin::export_scorer!(ExactMatch);

impl Scorer for ExactMatch {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Self { config })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let accepted = texts(exchange, &reference, &self.config.reference_key)?;
        let answer = self.comparable(&exchange.output);
        let right = accepted.iter().any(|accepted| self.comparable(accepted) == answer);
        Ok(vec![truth("exact-match", right)])
    }
}

impl ExactMatch {
    fn comparable(&self, text: &str) -> String {
        let text = if self.config.strip { text.trim() } else { text };
        if self.config.ignore_case { text.to_lowercase() } else { text.to_owned() }
    }
}
