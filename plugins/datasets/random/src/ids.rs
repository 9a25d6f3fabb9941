//! Runs of consecutive token ids, as `random-ids` of SGLang's `bench_serving` makes them.

use runner_plugin::random::{NumpyGenerator, NumpyLegacy};
use runner_plugin::{Error, Tokenizer};

use crate::config::Recipe;
use crate::lengths::{Draw, Lengths};
use crate::source::{AnswerRequest, Drafts, ENOUGH_TOKENS, Entry, Source, formed};

/// Prompt `i` is the ids from `offset + i` on, around the vocabulary, with special ids.
#[derive(Debug)]
pub(crate) struct Ids {
    random: NumpyLegacy,
    /// Draws spare prompts, separately so that it does not affect the measured ones.
    apart: NumpyGenerator,
    drafts: Drafts,
    vocabulary: u32,
    making: Recipe,
}

impl Ids {
    pub(crate) fn new(
        lengths: Lengths,
        vocabulary: u32,
        making: Recipe,
        seed: u64,
        count: Option<u64>,
    ) -> Self {
        Self {
            // NumPy accepts only 32-bit seeds; of larger ones the lower half is used.
            random: NumpyLegacy::new(seed as u32),
            apart: NumpyGenerator::new(seed),
            drafts: Drafts::new(lengths, vocabulary, count),
            vocabulary,
            making,
        }
    }
}

impl Source for Ids {
    fn next(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let vocabulary = u64::from(self.vocabulary);
        let (mut prompts, mut tokens) = (Vec::new(), 0);
        while prompts.len() < limit
            && tokens < ENOUGH_TOKENS
            && let Some((index, draft)) = self.drafts.next(&mut self.random)
        {
            let start = u64::from(draft.offset) + index;
            let ids = (0..u64::from(draft.input)).map(|at| ((start + at) % vocabulary) as u32);
            tokens += draft.input as usize;
            prompts.push((ids.collect(), draft.answer));
        }
        Ok(formed(tokenizer, self.making, prompts))
    }

    /// Descending runs, whereas the measured ones ascend.
    fn spare(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let lengths = self.drafts.lengths();
        let (length, output) = (lengths.longest(), lengths.longest_output());
        if length < 2 || self.vocabulary < 3 {
            return Ok(Vec::new());
        }
        let mut prompts = Vec::new();
        for _ in 0..limit.min(ENOUGH_TOKENS.div_ceil(length as usize)) {
            let start = self.apart.draw(&(0..=self.vocabulary - 1));
            prompts
                .push((descending(start, length, self.vocabulary), AnswerRequest::spare(output)));
        }
        Ok(formed(tokenizer, self.making, prompts))
    }
}

/// `length` numbers from `start` downwards, modulo `size`.
pub(crate) fn descending(start: u32, length: u32, size: u32) -> Vec<u32> {
    (0..length)
        .map(|at| {
            ((u64::from(start) + u64::from(size) - u64::from(at % size)) % u64::from(size)) as u32
        })
        .collect()
}
