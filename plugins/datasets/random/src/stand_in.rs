//! Prompts for when the model's tokenizer is not known. No tool's prompts can be reproduced then;
//! these have the requested length in the stand-in's tokens, and no two begin alike.

use runner_plugin::random::NumpyGenerator;
use runner_plugin::{Error, Facts, Tokenizer};

use crate::config::{Form, Recipe};
use crate::lengths::{Draw, Lengths};
use crate::source::{AnswerRequest, Drafts, ENOUGH_TOKENS, Entry, Source, formed};

/// The stand-in's tokens are characters, so there is nothing to adjust.
const PLAIN: Recipe = Recipe { form: Form::Text, exact: false };

/// Draws every token at random from the tokens that stand for text.
#[derive(Debug)]
pub(crate) struct StandIn {
    random: NumpyGenerator,
    /// Draws spare prompts, separately so that it does not affect the measured ones.
    apart: NumpyGenerator,
    drafts: Drafts,
    /// Ids that may occur in a prompt, except `mark`.
    plain: Vec<u32>,
    /// The id with which spare prompts begin, and measured ones never do.
    mark: u32,
}

impl StandIn {
    /// `None` if the tokenizer has fewer than two ids that stand for text.
    pub(crate) fn new(
        lengths: Lengths,
        facts: &Facts,
        seed: u64,
        count: Option<u64>,
    ) -> Option<Self> {
        let special = |id: &u32| facts.special.binary_search(id).is_ok();
        let mut plain: Vec<u32> = (0..facts.vocabulary_size).filter(|id| !special(id)).collect();
        let mark = plain.pop()?;
        (!plain.is_empty()).then(|| Self {
            random: NumpyGenerator::new(seed),
            apart: NumpyGenerator::new(!seed),
            drafts: Drafts::new(lengths, 0, count),
            plain,
            mark,
        })
    }
}

fn run(random: &mut NumpyGenerator, plain: &[u32], length: u32) -> Vec<u32> {
    let last = plain.len() as u32 - 1;
    (0..length).map(|_| plain[random.draw(&(0..=last)) as usize]).collect()
}

impl Source for StandIn {
    fn next(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let (mut prompts, mut tokens) = (Vec::new(), 0);
        while prompts.len() < limit
            && tokens < ENOUGH_TOKENS
            && let Some((_, draft)) = self.drafts.next(&mut self.random)
        {
            tokens += draft.input as usize;
            prompts.push((run(&mut self.random, &self.plain, draft.input), draft.answer));
        }
        Ok(formed(tokenizer, PLAIN, prompts))
    }

    fn spare(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let lengths = self.drafts.lengths();
        let (length, output) = (lengths.longest(), lengths.longest_output());
        let mut prompts = Vec::new();
        for _ in 0..limit.min(ENOUGH_TOKENS.div_ceil(length.max(1) as usize)) {
            let mut ids = run(&mut self.apart, &self.plain, length);
            if let Some(first) = ids.first_mut() {
                *first = self.mark;
            }
            prompts.push((ids, AnswerRequest::spare(output)));
        }
        Ok(formed(tokenizer, PLAIN, prompts))
    }
}
