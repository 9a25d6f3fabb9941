//! Texts to embed: of given lengths, in batches, made of random words or of passages of a file.
#![deny(unsafe_code)]

#[cfg(test)]
mod tests;

use runner_plugin::lengths::{Distribution, Lengths, check_product};
use runner_plugin::random::Python;
use runner_plugin::requests::{TextRequest, TextRequests};
use runner_plugin::words::{Text, stream};
use runner_plugin::{Error, Prompt};
use schemars::JsonSchema;
use serde::Deserialize;

const MOST_TEXTS: u32 = 4096;

/// The user's configuration. Texts are random words, or passages of the file `data` if the scenario
/// names one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Tokens of a text: a number or a distribution.
    pub input_len: Distribution,
    /// Texts of a request: a number or a distribution.
    pub batch_size: Distribution,
}

impl Default for Config {
    fn default() -> Self {
        Self { input_len: Distribution::constant(512.0), batch_size: Distribution::constant(1.0) }
    }
}

pub type Embeddings = TextRequests<Batch>;

runner_plugin::export_dataset!(Embeddings);

pub struct Batch {
    input: Lengths,
    batch: Lengths,
}

impl TextRequest for Batch {
    const NAME: &str = "embed";

    type Config = Config;

    fn open(config: Config) -> Result<Self, Error> {
        let input = config.input_len.lengths("input-len", 1..=1 << 20)?;
        let batch = config.batch_size.lengths("batch-size", 1..=MOST_TEXTS)?;
        check_product(("batch-size", &batch), ("input-len", &input))?;
        Ok(Self { input, batch })
    }

    fn draw(&self, seed: u64, kind: u64, index: u64) -> Vec<(Python, u32)> {
        let mut random = stream(seed, kind, index);
        let count = self.batch.draw(&mut random);
        let text = |_| {
            let length = self.input.draw(&mut random);
            (stream(random.bits(64), kind, index), length)
        };
        (0..count).map(text).collect()
    }

    fn prompt(texts: Vec<Text>) -> (Prompt, u32) {
        let tokens = texts.iter().map(|text| text.tokens).fold(0, u32::saturating_add);
        (Prompt::Embedding(texts.into_iter().map(|text| text.text).collect()), tokens)
    }
}
