//! Cuts the texts of saved runs into tokens, with the tokenizer that counted them or with another
//! one. The tokens of the engine are not on record; these are the tokenizer's.

use reader::Located;
use scenario::plan::PlannedTokenizer;
use tokenizer::Tokenizer;

use crate::resolve::tokens::tokenizer_of;
use crate::resolve::{Source, Variables};

pub struct TextTokenizer(Tokenizer);

impl TextTokenizer {
    /// The tokenizer at a path, or of a name in the local cache of the Hugging Face hub.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::open(name).map(|(tokenizer, _)| tokenizer)
    }

    /// The tokenizer of a saved run; `None` if the substitute counted, or the tokenizer changed.
    pub fn from_plan(planned: &PlannedTokenizer) -> Option<Self> {
        if planned.approximate {
            return None;
        }
        let (tokenizer, now) = Self::open(&planned.name).ok()?;
        (now.digest == planned.digest).then_some(tokenizer)
    }

    /// The tokenizer itself, for callers that cut prompts of another origin.
    pub fn into_inner(self) -> Tokenizer {
        self.0
    }

    fn open(name: &str) -> Result<(Self, PlannedTokenizer), String> {
        let mut source = Source { variables: Variables::Process, ..Source::default() };
        source.scenario.tokenizer.path = Some(Located::flag("--tokenizer", name.into()));
        let (tokenizer, planned) = tokenizer_of(&source)?;
        Ok((TextTokenizer(tokenizer), planned))
    }

    /// The number of the first token at which two texts differ, from 0; may be the end of one.
    pub fn first_difference(&self, one: &str, other: &str) -> Option<u64> {
        let texts = [one.to_owned(), other.to_owned()];
        let tokens = self.0.encode(&texts, false).ok()?;
        let [one, other] = &tokens[..] else { return None };
        let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
        (same < one.len().max(other.len())).then_some(same as u64)
    }
}
