//! Texts to embed: of given lengths, in batches, made of random words or of passages of a file.
#![deny(unsafe_code)]

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use runner_plugin::lengths::{Distribution, Lengths, MOST_TOKENS, check_product};
use runner_plugin::words::{Words, stream};
use runner_plugin::{Amount, Dataset, ENOUGH, Error, Inputs, Prompt, Sample, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;

/// The scenario's name for the file of passages.
const FILE: &str = "data";

/// The most texts of a request.
const MOST_TEXTS: u32 = 4096;

/// Requests whose texts are made together, and the tokens after which there are no more of them.
const BATCH: u64 = 16;
const ENOUGH_TOKENS: u64 = 1 << 20;

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
        let input = config.input_len.lengths("input-len", 1..=1 << 20)?;
        let batch = config.batch_size.lengths("batch-size", 1..=MOST_TEXTS)?;
        check_product(("batch-size", &batch), ("input-len", &input))?;
        Ok(Self {
            input,
            batch,
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
        let (mut samples, mut bytes) = (Vec::new(), 0);
        let mut fruitless = 0;
        while samples.len() < limit as usize && bytes < ENOUGH && fruitless < 1000 {
            let missing = (u64::from(limit) - samples.len() as u64).min(BATCH);
            let made = self.samples("embed", 0, self.given, missing)?;
            self.given += made.len() as u64;
            let before = samples.len();
            let measured = |sample: &Sample| !self.spares.contains(&fingerprint(&sample.prompt));
            samples.extend(made.into_iter().filter(measured));
            bytes += samples[before..].iter().map(Sample::bytes).sum::<usize>();
            fruitless = if samples.len() > before { 0 } else { fruitless + 1 };
        }
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let limit = u64::from(limit);
        let samples = self.samples("embed-spare", 1, self.spared, limit)?;
        self.spared += samples.len() as u64;
        let prompts = samples.iter().map(|sample| fingerprint(&sample.prompt));
        self.spares.extend(prompts);
        Ok(samples)
    }
}

impl Embeddings {
    /// Samples of a kind, each from a generator of its own; fewer when they have [`ENOUGH_TOKENS`].
    fn samples(&self, name: &str, kind: u64, from: u64, count: u64) -> Result<Vec<Sample>, Error> {
        let mut tokens = 0;
        let mut wanted = Vec::new();
        let mut batches = Vec::new();
        for index in from..from + count {
            if tokens >= ENOUGH_TOKENS {
                break;
            }
            let before = wanted.len();
            let mut random = stream(self.seed, kind, index);
            let batch = self.batch.draw(&mut random);
            for _ in 0..batch {
                let length = self.input.draw(&mut random);
                let text = stream(random.bits(64), kind, index);
                wanted.push((text, length));
            }
            let own = wanted[before..].iter().map(|(_, length)| u64::from(*length));
            let own: u64 = own.sum();
            if own > MOST_TOKENS.into() {
                return Err(Error::InvalidConfig(format!(
                    "the texts of request {} have {own} tokens; expected at most {MOST_TOKENS} together: set a smaller \
                     `max` for the distributions",
                    index + 1
                )));
            }
            tokens += own;
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
        Ok(batches.into_iter().map(sample).collect())
    }
}

/// Equal prompts have equal fingerprints.
fn fingerprint(prompt: &Prompt) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{prompt:?}").hash(&mut hasher);
    hasher.finish()
}
