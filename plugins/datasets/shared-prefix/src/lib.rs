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
#[cfg(test)]
mod tests;
mod vllm;

use std::collections::{BTreeSet, VecDeque};

use runner_plugin::lengths::Stream;
use runner_plugin::report::Remarks;
use runner_plugin::requests::{fill, fingerprint};
use runner_plugin::{
    Amount, Dataset, ENOUGH, Error, Facts, Inputs, Message, Prompt, Remark, Role, Sample,
    Tokenizer, Treatment, Turn,
};

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
    // The host puts the conversation before a later question; this counts the question alone.
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

/// A text as a conversation's first message, with the chat template's tokens if known.
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

// The interface of all algorithms.

trait Source {
    /// The next conversation to measure; none ends the sequence.
    fn next(&mut self, tokenizer: &dyn Tokenizer) -> Result<Option<Conversation>, Error>;

    /// A conversation of one turn with a prefix that no measured conversation finds in the cache.
    fn spare(&mut self, tokenizer: &dyn Tokenizer) -> Result<Conversation, Error>;

    /// Returns remarks on its changes to prompts so far, if it counts them.
    fn remarks(&self) -> Option<&Remarks> {
        None
    }
}

/// Prefix and question, and the questions after it.
#[derive(Debug, PartialEq, Eq)]
struct Conversation {
    pub(crate) first: Content,
    /// Tokens of the first prompt as the server counts them.
    pub(crate) input_tokens: u32,
    pub(crate) later: Vec<String>,
    /// Output tokens to request in each turn.
    pub(crate) output_tokens: Vec<u32>,
}

impl Conversation {
    /// A conversation of one turn.
    pub(crate) fn single(first: Content, output_tokens: u32, tokenizer: &dyn Tokenizer) -> Self {
        let (input_tokens, later) = (first.tokens(tokenizer), Vec::new());
        Self { first, input_tokens, later, output_tokens: vec![output_tokens] }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Content {
    Text(String),
    Tokens(Vec<u32>),
}

impl Content {
    /// Its tokens as the server counts them: with the tokens that the model adds around a text.
    pub(crate) fn tokens(&self, tokenizer: &dyn Tokenizer) -> u32 {
        match self {
            Content::Text(text) => {
                let counts = tokenizer.count(std::slice::from_ref(text), true);
                counts.first().copied().unwrap_or_default()
            }
            Content::Tokens(ids) => ids.len() as u32,
        }
    }
}

impl From<Content> for Prompt {
    fn from(content: Content) -> Self {
        match content {
            Content::Text(text) => Prompt::Text(text),
            Content::Tokens(ids) => Prompt::Tokens(ids),
        }
    }
}

fn decoded(tokenizer: &dyn Tokenizer, ids: Vec<u32>) -> String {
    tokenizer.decode(&[ids]).pop().unwrap_or_default()
}

/// The ids of a text, without the ids that the model adds.
fn encoded(tokenizer: &dyn Tokenizer, text: &str) -> Vec<u32> {
    let ids = tokenizer.encode(&[text.to_owned()], false).pop();
    ids.unwrap_or_default()
}

/// The ids from which an algorithm draws: all below a number; or, without a known tokenizer of the
/// model, the stand-in's ids that stand for text.
#[derive(Clone, Debug)]
struct Population {
    below: u32,
    plain: Option<Vec<u32>>,
}

impl Population {
    /// All ids below `below`. Errors: [`Error::InvalidConfig`] if there are none, or if ids are to
    /// be sent that only the stand-in has.
    pub(crate) fn new(facts: &Facts, below: u32, form: Form) -> Result<Self, Error> {
        if facts.approximate {
            if form == Form::Tokens {
                return Err(Error::config(
                    "`as = \"tokens\"` needs the ids of the model's own tokenizer: pass --tokenizer, or send text",
                ));
            }
            return Self::plain(facts);
        }
        if below == 0 {
            return Err(no_tokens());
        }
        Ok(Self { below, plain: None })
    }

    pub(crate) fn plain(facts: &Facts) -> Result<Self, Error> {
        let special = |id: &u32| facts.special.binary_search(id).is_ok();
        let plain: Vec<u32> = (0..facts.base_size).filter(|id| !special(id)).collect();
        if plain.is_empty() {
            return Err(no_tokens());
        }
        Ok(Self { below: plain.len() as u32, plain: Some(plain) })
    }

    pub(crate) fn size(&self) -> u32 {
        self.below
    }

    pub(crate) fn at(&self, place: u32) -> u32 {
        self.plain
            .as_ref()
            .map_or(place, |plain| plain.get(place as usize).copied().unwrap_or_default())
    }

    /// `count` ids, as Python's `random.choices` draws them.
    pub(crate) fn choices(&self, random: &mut impl Stream, count: u32) -> Vec<u32> {
        let size = f64::from(self.below);
        (0..count).map(|_| self.at((random.random() * size) as u32)).collect()
    }
}

fn no_tokens() -> Error {
    Error::config("the tokenizer has no tokens to draw from: pass the model's own with --tokenizer")
}
