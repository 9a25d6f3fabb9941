//! The interface of all algorithms.

use runner_plugin::lengths::Stream;
use runner_plugin::report::Remarks;
use runner_plugin::{Error, Facts, Prompt, Tokenizer};

use crate::config::Form;

pub(crate) trait Source {
    /// The next conversation to measure; none ends the sequence.
    fn next(&mut self, tokenizer: &dyn Tokenizer) -> Result<Option<Conversation>, Error>;

    /// A conversation of one turn with a prefix of its own, so that measured conversations find
    /// nothing of it in the server's cache.
    fn spare(&mut self, tokenizer: &dyn Tokenizer) -> Result<Conversation, Error>;

    /// Returns remarks on its changes to prompts so far, if it counts them.
    fn remarks(&self) -> Option<&Remarks> {
        None
    }
}

/// Prefix and question, and the questions after it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
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
pub(crate) enum Content {
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

pub(crate) fn decoded(tokenizer: &dyn Tokenizer, ids: Vec<u32>) -> String {
    tokenizer.decode(&[ids]).pop().unwrap_or_default()
}

/// The ids of a text, without the ids that the model adds.
pub(crate) fn encoded(tokenizer: &dyn Tokenizer, text: &str) -> Vec<u32> {
    let ids = tokenizer.encode(&[text.to_owned()], false).pop();
    ids.unwrap_or_default()
}

/// The ids from which an algorithm draws: all below a number; or, without a known tokenizer of the
/// model, the stand-in's ids that stand for text.
#[derive(Clone, Debug)]
pub(crate) struct Population {
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
