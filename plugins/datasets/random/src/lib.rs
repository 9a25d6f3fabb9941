//! Synthetic prompts of given lengths, and pieces of texts. The same seed, number of prompts and
//! tokenizer give the prompts of the chosen Python tool.
//!
//! The tools draw all lengths before all offsets, for all prompts of the run. So the prompts equal
//! theirs only if the run's number of requests is known beforehand, and only up to that number.
//! Further prompts, and prompts of a run that is limited by time, are drawn in the same way in
//! blocks of 1024.
//!
//! A sample's `input-tokens` are counted from the text that is sent, with the tokens that the model
//! adds around it, as a server counts them. The tools report the requested number instead.
#![deny(unsafe_code)]

mod config;
mod corpus;
mod exact;
mod ids;
mod lengths;
mod source;
mod stand_in;
#[cfg(test)]
mod tests;
mod text;
mod vllm;

use std::collections::BTreeSet;

use runner_plugin::report::Remarks;
use runner_plugin::requests::fingerprint;
use runner_plugin::{Amount, Dataset, ENOUGH, Error, Inputs, Remark, Sample, Tokenizer};
use sharegpt_file::{Conversations, Like};

use source::{Entry, Source};

pub use config::{Class, Config, Form, Ratio};

/// The scenario's name for a ShareGPT file.
const FILE: &str = "data";

/// The scenario's name for a text.
const TEXT: &str = "text";

pub struct Random {
    source: Box<dyn Source>,
    tokenizer: Box<dyn Tokenizer>,
    given: u64,
    spares: BTreeSet<u64>,
    classes: Vec<String>,
    remarks: Remarks,
}

runner_plugin::export_dataset!(Random);

impl Dataset for Random {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        let count = amount.samples();
        config.check()?;
        let source = source(&config, seed, count, &inputs)?;
        Ok(Self {
            source,
            tokenizer: inputs.tokenizer,
            given: 0,
            spares: BTreeSet::new(),
            classes: config.classes.into_iter().map(|class| class.name).collect(),
            remarks: Remarks::default(),
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let (mut samples, mut bytes) = (Vec::new(), 0);
        while samples.len() < limit as usize && bytes < ENOUGH {
            let drawn = self.source.next(&*self.tokenizer, limit as usize - samples.len())?;
            if drawn.is_empty() {
                break;
            }
            for drawn in drawn {
                if self.spares.contains(&fingerprint(&drawn.content)) {
                    self.remarks.dropped(
                        "prompt that was used for warmup; later prompts shift by one",
                        String::new,
                    );
                    continue;
                }
                self.given += 1;
                let id = format!("random-{:06}", self.given);
                let sample = self.sample(id, drawn);
                bytes += sample.bytes();
                samples.push(sample);
            }
        }
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = Vec::new();
        for drawn in self.source.spare(&*self.tokenizer, limit as usize)? {
            if self.spares.insert(fingerprint(&drawn.content)) {
                let id = format!("random-spare-{:06}", self.spares.len());
                samples.push(self.sample(id, drawn));
            }
        }
        Ok(samples)
    }

    fn remarks(&self) -> Vec<Remark> {
        let mut remarks = self.remarks.list();
        remarks.extend(self.source.remarks().map(Remarks::list).unwrap_or_default());
        remarks
    }
}

impl Random {
    fn sample(&self, id: String, drawn: Entry) -> Sample {
        let class = drawn.answer.class.map(|class| class as usize);
        Sample {
            input_tokens: Some(drawn.input_tokens),
            output_tokens: Some(drawn.answer.output_tokens),
            class: class.and_then(|class| self.classes.get(class).cloned()),
            ..Sample::new(id, drawn.content.into())
        }
    }
}

fn source(
    config: &Config,
    seed: u64,
    count: Option<u64>,
    inputs: &Inputs,
) -> Result<Box<dyn Source>, Error> {
    let facts = inputs.tokenizer.describe();
    let lengths = lengths::Lengths::from_config(config, facts.added_tokens, seed)?;
    if config.form == Form::Tokens && facts.approximate {
        return Err(Error::config(
            "`as = \"tokens\"` needs the ids of the model's own tokenizer: pass --tokenizer, or send text",
        ));
    }
    // LMDeploy drops empty texts before it shuffles; SGLang skips them later.
    let keep_empty = config.way() != Like::Lmdeploy;
    if let Some(conversations) =
        Conversations::open(&*inputs.files, FILE, config.way(), keep_empty)?
    {
        if inputs.files.open(TEXT).is_some() {
            return Err(Error::config(format!(
                "prompts are cut from the file `{FILE}` or from the file `{TEXT}`, not from both: leave one of them out"
            )));
        }
        if config.way() == Like::Vllm {
            return Err(Error::config(format!(
                "`like = \"vllm\"` draws token ids and reads no file: leave `{FILE}` out, or take `like = \"sglang\"`"
            )));
        }
        if conversations.is_empty() {
            return Err(Error::InvalidInput(format!(
                "the file `{FILE}` has no conversation of two turns or more: use a file of the ShareGPT format"
            )));
        }
        return Ok(Box::new(corpus::Corpus::new(
            conversations,
            lengths,
            config.making(),
            seed,
            count,
        )));
    }
    if let Some(file) = inputs.files.open(TEXT) {
        if config.like.is_some() {
            return Err(Error::config(format!(
                "no tool cuts prompts from a text: leave `like` out, or the file `{TEXT}`"
            )));
        }
        let text = text::Text::new(TEXT, file, lengths, config.making(), seed, count)?;
        return Ok(Box::new(text));
    }
    if config.way() == Like::Lmdeploy {
        return Err(Error::config(format!(
            "`like = \"lmdeploy\"` cuts its prompts from a ShareGPT file: pass --dataset-path FILE, or set \
             `{FILE} = \"FILE\"` under [dataset.files], or take `like = \"sglang\"`"
        )));
    }
    let no_vocabulary = || {
        Error::config(
            "the tokenizer has no tokens to draw from: pass the model's own with --tokenizer",
        )
    };
    if facts.approximate {
        let stand_in =
            stand_in::StandIn::new(lengths, &facts, seed, count).ok_or_else(no_vocabulary)?;
        return Ok(Box::new(stand_in));
    }
    let usable = (0..facts.base_size).any(|id| facts.special.binary_search(&id).is_err());
    if !usable {
        return Err(no_vocabulary());
    }
    Ok(match config.way() {
        Like::Vllm => {
            Box::new(vllm::Vllm::new(lengths, &facts, config.prefix_len, config.form, seed, count))
        }
        Like::Sglang | Like::Lmdeploy => {
            Box::new(ids::Ids::new(lengths, facts.base_size, config.making(), seed, count))
        }
    })
}
