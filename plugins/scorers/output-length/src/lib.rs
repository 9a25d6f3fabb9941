//! Scorer that checks if an answer has the requested length. If the run requested exact lengths, a
//! mean other than 1 shows that the throughput was measured on other work.
//!
//! Judges the host's token count of the answer, from any source. An exchange without a count or a
//! requested length is not judged.
#![deny(unsafe_code)]

use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Tokens by which an answer may be longer or shorter than requested and still count as
    /// correct.
    pub tolerance: u32,
}

/// Scores `output-length` (1 or 0) and `output-length-ratio` (tokens of the answer by requested
/// tokens).
pub struct OutputLength {
    tolerance: u32,
}

runner_plugin::export_scorer!(OutputLength);

impl Scorer for OutputLength {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Self { tolerance: config.tolerance })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let (Some(had), Some(target)) = (exchange.output_tokens, exchange.requested_tokens) else {
            return Ok(Vec::new());
        };
        let right = had.tokens.abs_diff(target) <= self.tolerance;
        let mut scores =
            vec![Score { name: "output-length".to_owned(), value: f64::from(u8::from(right)) }];
        if target > 0 {
            let value = f64::from(had.tokens) / f64::from(target);
            scores.push(Score { name: "output-length-ratio".to_owned(), value });
        }
        Ok(scores)
    }
}
