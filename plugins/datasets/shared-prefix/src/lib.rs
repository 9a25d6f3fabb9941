//! Synthetic prompts of groups that share a prefix, to measure the benefit of a server's prefix
//! cache. The same seed and tokenizer give the prompts of the chosen Python tool.
//!
//! A sample's `input-tokens` are counted from the text that is sent, with the tokens that the model
//! adds around it, as a server counts them.
//!
//! Spare samples have prefixes of their own: a warmup leaves nothing in the cache that a measured
//! request would find.
#![deny(unsafe_code)]

mod config;
mod runner;
mod sglang;
mod source;
#[cfg(test)]
mod tests;
mod vllm;

use std::collections::{BTreeSet, VecDeque};

use runner_plugin::report::Remarks;
use runner_plugin::requests::{fill, fingerprint};
use runner_plugin::{
    Amount, Dataset, ENOUGH, Error, Inputs, Message, Prompt, Remark, Role, Sample,
};
use runner_plugin::{Tokenizer, Treatment, Turn};

use source::{Conversation, Source};

pub use config::{Algorithm, Config, Form};

pub struct SharedPrefix {
    source: Box<dyn Source>,
    tokenizer: Box<dyn Tokenizer>,
    single: bool,
    /// Samples that were made and not yet returned: later turns of a conversation.
    ready: VecDeque<Sample>,
    conversations: u64,
    spares: BTreeSet<u64>,
    remarks: Remarks,
}

runner_plugin::export_dataset!(SharedPrefix);

impl Dataset for SharedPrefix {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        let shape = config.shape()?;
        let single = shape.single;
        let facts = inputs.tokenizer.describe();
        let mut remarks = Remarks::default();
        let source: Box<dyn Source> = match config.algorithm {
            Algorithm::Sglang => Box::new(sglang::Sglang::new(&shape, &facts, seed)?),
            Algorithm::Vllm => {
                // A session is one prompt.
                let count = amount.samples().or(amount.sessions());
                let source = vllm::Vllm::new(&shape, &facts, seed, count)?;
                let left = count.map_or(0, |count| source.left_of(count));
                remarks.count(
                    Treatment::Dropped,
                    "request beyond the last multiple of `groups`: vLLM makes the same number for each prefix",
                    left,
                    String::new,
                );
                Box::new(source)
            }
            Algorithm::Runner => Box::new(runner::Runner::new(shape, &facts, seed)?),
        };
        Ok(Self {
            source,
            tokenizer: inputs.tokenizer,
            single,
            ready: VecDeque::new(),
            conversations: 0,
            spares: BTreeSet::new(),
            remarks,
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        fill(limit, || {
            if let Some(sample) = self.ready.pop_front() {
                return Ok(Some(sample));
            }
            while let Some(conversation) = self.source.next(&*self.tokenizer)? {
                if self.spares.contains(&fingerprint(&conversation.first)) {
                    self.remarks.dropped("prompt that was used for warmup", String::new);
                    continue;
                }
                self.conversations += 1;
                let name = format!("shared-prefix-{:06}", self.conversations);
                self.ready = turns(&name, conversation, self.single, &*self.tokenizer).into();
                return Ok(self.ready.pop_front());
            }
            Ok(None)
        })
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let (mut samples, mut bytes) = (Vec::new(), 0);
        for _ in 0..limit {
            if bytes >= ENOUGH {
                break;
            }
            let spare = self.source.spare(&*self.tokenizer)?;
            if self.spares.insert(fingerprint(&spare.first)) {
                let name = format!("shared-prefix-spare-{:06}", self.spares.len());
                let turns = turns(&name, spare, true, &*self.tokenizer);
                bytes += turns.iter().map(Sample::bytes).sum::<usize>();
                samples.extend(turns);
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

/// The samples of a conversation; `single` if all conversations have one turn.
fn turns(
    name: &str,
    conversation: Conversation,
    single: bool,
    tokenizer: &dyn Tokenizer,
) -> Vec<Sample> {
    let mut output_tokens = conversation.output_tokens.into_iter();
    let first = Sample {
        input_tokens: Some(conversation.input_tokens),
        output_tokens: output_tokens.next(),
        ..Sample::new(name, conversation.first.into())
    };
    if single {
        return vec![first];
    }
    let first = Sample { id: turn_id(name, 0), ..as_conversation(first, tokenizer) };
    // The host puts the conversation so far before a later question; this counts the question
    // alone.
    let counts = tokenizer.count(&conversation.later, false);
    let later = conversation.later.into_iter().zip(counts).zip(1..);
    let later = later.map(|((question, tokens), index)| Sample {
        input_tokens: Some(tokens),
        output_tokens: output_tokens.next(),
        ..later_turn(name, index, question)
    });
    std::iter::once(first)
        .chain(later)
        .zip(0..)
        .map(|(sample, index)| Sample {
            turn: Some(Turn { session: name.to_owned(), index }),
            ..sample
        })
        .collect()
}

/// A text as the first message of a conversation, with the tokens of the chat template if that is
/// known.
fn as_conversation(sample: Sample, tokenizer: &dyn Tokenizer) -> Sample {
    let Prompt::Text(text) = sample.prompt else { return sample };
    let messages = vec![Message::text(Role::User, text)];
    let counted = tokenizer.count_chat(std::slice::from_ref(&messages), None);
    Sample {
        input_tokens: counted.first().copied().flatten().or(sample.input_tokens),
        prompt: Prompt::Messages(messages),
        ..sample
    }
}

/// A later turn of a conversation, sent as soon as the turn before is answered, with that answer.
fn later_turn(name: &str, index: u32, question: String) -> Sample {
    let parent = turn_id(name, index - 1);
    let message = Message::text(Role::User, question);
    Sample::following(turn_id(name, index), &parent, 0, vec![message])
}

fn turn_id(name: &str, index: u32) -> String {
    format!("{name}-{index}")
}
