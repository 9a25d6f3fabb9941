//! Texts to embed: of given lengths, in batches, made of random words or of passages of a file.
#![deny(unsafe_code)]

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use runner_plugin::lengths::{Distribution, Lengths};
use runner_plugin::words::{Words, stream};
use runner_plugin::{Amount, Dataset, Error, Inputs, Prompt, Sample, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

/// The scenario's name for the file of passages.
const FILE: &str = "data";

/// The most texts of a request.
const MOST_TEXTS: u32 = 4096;

/// Requests whose texts are made together.
const BATCH: u64 = 16;

/// The user's configuration. Texts are random words, or passages of the file `data` if the scenario names one.
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
        Self {
            input_len: Distribution::constant(512.0),
            batch_size: Distribution::constant(1.0),
        }
    }
}

/// Texts to embed.
pub struct Embeddings {
    input: Lengths,
    batch: Lengths,
    words: Words,
    tokenizer: Box<dyn Tokenizer>,
    seed: u64,
    given: u64,
    spared: u64,
    /// Fingerprints of prompts that are not measured.
    spares: HashSet<u64>,
}

runner_plugin::export_dataset!(Embeddings);

impl Dataset for Embeddings {
    type Config = Config;

    fn open(config: Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        Ok(Self {
            input: config.input_len.lengths("input-len", 1..=1 << 20)?,
            batch: config.batch_size.lengths("batch-size", 1..=MOST_TEXTS)?,
            words: match inputs.files.open(FILE) {
                Some(file) => Words::passages(FILE, &*file)?,
                None => Words::common(),
            },
            tokenizer: inputs.tokenizer,
            seed,
            given: 0,
            spared: 0,
            spares: HashSet::new(),
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = Vec::new();
        let mut fruitless = 0;
        while samples.len() < limit as usize && fruitless < 1000 {
            let missing = (u64::from(limit) - samples.len() as u64).min(BATCH);
            let made = self.samples("embed", 0, self.given, missing);
            self.given += missing;
            let before = samples.len();
            let measured = |sample: &Sample| !self.spares.contains(&fingerprint(&sample.prompt));
            samples.extend(made.into_iter().filter(measured));
            fruitless = if samples.len() > before {
                0
            } else {
                fruitless + 1
            };
        }
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let limit = u64::from(limit);
        let samples = self.samples("embed-spare", 1, self.spared, limit);
        self.spared += limit;
        let prompts = samples.iter().map(|sample| fingerprint(&sample.prompt));
        self.spares.extend(prompts);
        Ok(samples)
    }
}

impl Embeddings {
    /// Samples of a kind, each from a generator of its own.
    fn samples(&self, name: &str, kind: u64, from: u64, count: u64) -> Vec<Sample> {
        let mut wanted = Vec::new();
        let mut batches = Vec::new();
        for index in from..from + count {
            let mut random = stream(self.seed, kind, index);
            let batch = self.batch.draw(&mut random);
            for _ in 0..batch {
                let length = self.input.draw(&mut random);
                let text = stream(random.bits(64), kind, index);
                wanted.push((text, length));
            }
            batches.push((index, batch));
        }
        let mut texts = self.words.texts(&*self.tokenizer, wanted).into_iter();
        let sample = |(index, batch): (u64, u32)| {
            let own: Vec<_> = texts.by_ref().take(batch as usize).collect();
            let tokens = own.iter().map(|text| text.tokens);
            let tokens = tokens.fold(0, u32::saturating_add);
            let texts = own.into_iter().map(|text| text.text).collect();
            Sample {
                input_tokens: Some(tokens),
                ..Sample::new(format!("{name}-{:06}", index + 1), Prompt::Embedding(texts))
            }
        };
        batches.into_iter().map(sample).collect()
    }
}

/// Equal prompts have equal fingerprints.
fn fingerprint(prompt: &Prompt) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{prompt:?}").hash(&mut hasher);
    hasher.finish()
}
