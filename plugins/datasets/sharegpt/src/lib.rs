//! Conversations of a ShareGPT file: the first turn is the prompt, the second defines the output
//! length to request. The same seed, file and tokenizer give the prompts of the chosen Python tool,
//! in its order.
//!
//! This crate selects and orders the conversations; the crate `sharegpt-file` reads the file.
#![deny(unsafe_code)]

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use runner_plugin::random::Python;
use runner_plugin::report::Remarks;
use runner_plugin::requests::fingerprint;
use runner_plugin::{Amount, Dataset, Error, Inputs, Prompt, Remark, Sample, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use sharegpt_file::{Conversations, Like, Pair};

const FILE: &str = "data";

/// Conversations to tokenize in one call of the host, unless their text is long.
const BATCH: usize = 128;

/// Bytes of text to tokenize in one call of the host.
const BATCH_BYTES: usize = 1 << 20;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The tool whose choice of conversations to reproduce exactly. `lmdeploy`
    /// (profile_restful_api.py) and `vllm` (vllm bench serve) drop conversations with fewer than 4
    /// tokens in prompt or answer, more than 1024 in the prompt or more than 2048 in both; `sglang`
    /// (bench_serving) drops those with fewer than 2 tokens. If the file has too few, `vllm`
    /// repeats some of them to reach the requested number.
    pub like: Like,
    /// Output tokens to request, instead of the length of the conversation's second turn.
    pub output_len: Option<u32>,
    /// Drop conversations with more tokens than this in prompt and answer together. Only for `like
    /// = "sglang"`.
    pub context_len: Option<u32>,
    /// Shuffle the conversations by the seed. Otherwise they come in the order of the file.
    pub shuffle: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { like: Like::default(), output_len: None, context_len: None, shuffle: true }
    }
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Its place in the shuffled file.
    position: usize,
    input_tokens: u32,
    output_tokens: u32,
    /// Fingerprint of the prompt: equal prompts have equal fingerprints.
    fingerprint: u64,
}

#[derive(Default)]
struct Examination {
    kept: Vec<Candidate>,
    /// Places in the shuffled file of the others, and why they are not.
    dropped: Vec<(usize, String)>,
}

pub struct ShareGpt {
    conversations: Conversations,
    tokenizer: Box<dyn Tokenizer>,
    bounds: Bounds,
    output_len: Option<u32>,
    count: Option<u64>,
    /// Draws repetitions, if the tool in `like` repeats.
    repetition: Option<Python>,
    /// The measured conversations, in order, as far as they are known.
    kept: Vec<Candidate>,
    /// Number of conversations that were examined for this, from the front.
    examined: usize,
    given: usize,
    /// Position where the search for spare samples continues, from the back.
    back: usize,
    spares: Vec<u64>,
    /// Remarks on the file, and on conversations left out on the way to the measured samples.
    remarks: Remarks,
}

runner_plugin::export_dataset!(ShareGpt);

impl Dataset for ShareGpt {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        let count = amount.samples();
        let bounds = Bounds::from_config(&config)?;
        let opened = Conversations::open(&*inputs.files, FILE, config.like, true)?;
        let Some(mut conversations) = opened else {
            return Err(Error::InvalidConfig(format!(
                "no conversation file: pass --dataset-path FILE, or set `{FILE} = \"FILE\"` under \
                 [dataset.files]; the usual one is ShareGPT_V3_unfiltered_cleaned_split.json"
            )));
        };
        if config.shuffle {
            conversations.shuffle(&mut Python::new(seed));
        }
        let repeats = config.like == Like::Vllm && count.is_some();
        Ok(Self {
            back: conversations.len(),
            remarks: conversations.remarks().clone(),
            conversations,
            tokenizer: inputs.tokenizer,
            bounds,
            output_len: config.output_len,
            count,
            // Seeded again, as vLLM does.
            repetition: repeats.then(|| Python::new(seed)),
            kept: Vec::new(),
            examined: 0,
            given: 0,
            spares: Vec::new(),
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let wanted = self.given.saturating_add(limit as usize);
        self.keep(wanted)?;
        if self.kept.is_empty() && limit > 0 {
            return Err(Error::InvalidInput(format!(
                "none of the {} conversations of two turns or more in the file `{FILE}` has {}",
                self.conversations.len(),
                self.bounds
            )));
        }
        let mut samples = Vec::new();
        while self.given < wanted {
            let kept = match self.kept.get(self.given) {
                Some(kept) => *kept,
                None => match self.repeated() {
                    Some(kept) => kept,
                    None => break,
                },
            };
            self.given += 1;
            samples.push(self.sample(kept, format!("sharegpt-{:06}", self.given))?);
        }
        Ok(samples)
    }

    /// From the back of the shuffled file. To know the measured conversations, this examines the
    /// run's number of them. If the number is unknown, half of the file at most is taken.
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let front = match self.count {
            Some(count) => {
                self.keep(usize::try_from(count).unwrap_or(usize::MAX))?;
                self.examined
            }
            None => self.examined.max(self.conversations.len() / 2),
        };
        let mut samples = Vec::new();
        while samples.len() < limit as usize && self.back > front {
            self.back -= 1;
            for candidate in self.examine(self.back..self.back + 1)?.kept {
                let measured =
                    self.kept.iter().any(|kept| kept.fingerprint == candidate.fingerprint);
                if !measured && !self.spares.contains(&candidate.fingerprint) {
                    self.spares.push(candidate.fingerprint);
                    let id = format!("sharegpt-spare-{:06}", self.spares.len());
                    samples.push(self.sample(candidate, id)?);
                }
            }
        }
        Ok(samples)
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.list()
    }
}

impl ShareGpt {
    /// Examines conversations from the front until `wanted` are kept, or there are no more.
    fn keep(&mut self, wanted: usize) -> Result<(), Error> {
        let measured = self.count.map_or(0, |count| usize::try_from(count).unwrap_or(usize::MAX));
        while self.kept.len() < wanted && self.examined < self.conversations.len() {
            // Rather fewer than needed: conversations beyond the last one are examined in vain.
            let missing = (wanted - self.kept.len()).min(BATCH);
            let end = self.conversations.len().min(self.examined + missing);
            let found = self.examine(self.examined..end)?;
            self.examined = end;
            for (position, reason) in found.dropped {
                self.remarks.dropped(&reason, || self.conversations.place(position));
            }
            for kept in found.kept {
                // Measured conversations are never left out: the choice of spare samples excluded
                // them.
                if self.kept.len() < measured || !self.spares.contains(&kept.fingerprint) {
                    self.kept.push(kept);
                } else {
                    self.remarks.dropped("prompt that was used for warmup", || {
                        self.conversations.place(kept.position)
                    });
                }
            }
        }
        Ok(())
    }

    /// Tokenizes conversations, and separates conversations within the bounds from the others.
    fn examine(&self, positions: Range<usize>) -> Result<Examination, Error> {
        let mut found = Examination::default();
        let mut batch = Vec::new();
        let mut bytes = 0;
        for position in positions {
            if let Some(pair) = self.conversations.read(position)? {
                bytes += pair.prompt.len() + pair.completion.len();
                batch.push((position, pair));
            }
            if bytes >= BATCH_BYTES {
                bytes = 0;
                self.tokenize(std::mem::take(&mut batch), &mut found);
            }
        }
        self.tokenize(batch, &mut found);
        Ok(found)
    }

    fn tokenize(&self, batch: Vec<(usize, Pair)>, found: &mut Examination) {
        let mut positions = Vec::new();
        let (mut prompts, mut completions) = (Vec::new(), Vec::new());
        for (position, pair) in batch {
            positions.push((position, fingerprint(&pair.prompt)));
            prompts.push(pair.prompt);
            completions.push(pair.completion);
        }
        // All three tools count the tokens that the model puts around a text, of the answer too.
        let inputs = self.tokenizer.count(&prompts, true);
        let outputs = match self.output_len {
            Some(length) => vec![length; completions.len()],
            None => self.tokenizer.count(&completions, true),
        };
        for ((position, fingerprint), (input_tokens, output_tokens)) in
            positions.into_iter().zip(inputs.into_iter().zip(outputs))
        {
            match self.bounds.broken(input_tokens, output_tokens) {
                Some(reason) => found.dropped.push((position, reason)),
                None => found.kept.push(Candidate {
                    position,
                    input_tokens,
                    output_tokens,
                    fingerprint,
                }),
            }
        }
    }

    /// A kept conversation once more, if the file has fewer than the run measures.
    fn repeated(&mut self) -> Option<Candidate> {
        let random = self.repetition.as_mut()?;
        if self.count.is_none_or(|count| self.given as u64 >= count) {
            return None;
        }
        let kept = random.choice(&self.kept).copied()?;
        self.remarks.repeated(
            "conversation, because the run has more requests than the file has usable ones",
            || self.conversations.place(kept.position),
        );
        Some(kept)
    }

    fn sample(&self, kept: Candidate, id: String) -> Result<Sample, Error> {
        let pair = self.conversations.read(kept.position)?.ok_or_else(|| {
            Error::Other(format!("there is no conversation at position {}", kept.position))
        })?;
        Ok(Sample {
            input_tokens: Some(kept.input_tokens),
            output_tokens: Some(kept.output_tokens),
            reference: Some(serde_json::Value::String(pair.completion).to_string()),
            ..Sample::new(id, Prompt::Text(pair.prompt))
        })
    }
}

/// Bounds in tokens, each inclusive; an absent one does not apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bounds {
    least_prompt: u32,
    least_answer: u32,
    most_prompt: Option<u32>,
    most_together: Option<u32>,
}

impl Bounds {
    /// The bounds of a configuration. Errors: values that the tool in `like` rejects too.
    pub(crate) fn from_config(config: &Config) -> Result<Self, Error> {
        let fixed = config.output_len;
        let least = if config.like == Like::Vllm { 1 } else { 4 };
        if let Some(length) = fixed.filter(|length| *length < least) {
            return Err(Error::InvalidConfig(format!(
                "`output-len` is {length}; expected at least {least}: set a larger one, or leave it out to request \
                 the lengths of the conversations"
            )));
        }
        if config.context_len.is_some() && config.like != Like::Sglang {
            return Err(Error::config(
                "`context-len` belongs to `like = \"sglang\"`; the other tools have their own bounds: leave it out",
            ));
        }
        Ok(match config.like {
            Like::Lmdeploy => Self {
                least_prompt: 4,
                least_answer: 4,
                most_prompt: Some(1024),
                most_together: if fixed.is_some() { None } else { Some(2048) },
            },
            Like::Vllm => Self {
                least_prompt: 4,
                least_answer: if fixed.is_some() { 0 } else { 4 },
                most_prompt: Some(1024),
                most_together: Some(2048),
            },
            Like::Sglang => Self {
                least_prompt: 2,
                least_answer: 2,
                most_prompt: None,
                most_together: config.context_len,
            },
        })
    }

    /// Returns the reason why a conversation is not within the bounds; none if it is.
    pub(crate) fn broken(&self, prompt: u32, answer: u32) -> Option<String> {
        let together = u64::from(prompt) + u64::from(answer);
        if prompt < self.least_prompt {
            return Some(format!("prompt of fewer than {} tokens", self.least_prompt));
        }
        if answer < self.least_answer {
            return Some(format!("answer of fewer than {} tokens", self.least_answer));
        }
        if let Some(most) = self.most_prompt.filter(|most| prompt > *most) {
            return Some(format!("prompt of more than {most} tokens"));
        }
        let most = self.most_together;
        most.filter(|most| together > u64::from(*most))
            .map(|most| format!("prompt and answer of more than {most} tokens"))
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} or more tokens in the prompt", self.least_prompt)?;
        if let Some(most) = self.most_prompt {
            write!(formatter, " (at most {most})")?;
        }
        write!(formatter, " and {} or more in the answer", self.least_answer)?;
        if let Some(most) = self.most_together {
            write!(formatter, " (at most {most} together)")?;
        }
        Ok(())
    }
}
