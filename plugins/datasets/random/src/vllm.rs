//! Runs of consecutive token ids whose text tokenizes to the right length, as `vllm bench serve`
//! makes them.

use runner_plugin::random::NumpyGenerator;
use runner_plugin::{Error, Facts, Tokenizer};

use crate::lengths::{Draw, Lengths};
use crate::source::{AnswerRequest, Content, Drafts, ENOUGH_TOKENS, Entry, Source};
use crate::{Form, descending};

const MENDINGS: u32 = 10;

/// Prompt `i`: the ids from `offset + i` on, without special ids, after a common prefix.
#[derive(Debug)]
pub(crate) struct Vllm {
    random: NumpyGenerator,
    /// Draws spare prompts, separately so that it does not affect the measured ones.
    apart: NumpyGenerator,
    drafts: Drafts,
    /// Ids that may occur in a prompt, ascending.
    allowed: Vec<u32>,
    /// Ids that adjusting may append are below this.
    vocabulary: u32,
    /// Number of tokens that the model adds around a text.
    added: u32,
    prefix_len: u32,
    /// Drawn after the first block.
    prefix: Option<Vec<u32>>,
    form: Form,
}

impl Vllm {
    pub(crate) fn new(
        lengths: Lengths,
        facts: &Facts,
        prefix_len: u32,
        form: Form,
        seed: u64,
        count: Option<u64>,
    ) -> Self {
        let vocabulary = facts.base_size;
        Self {
            random: NumpyGenerator::new(seed),
            apart: NumpyGenerator::new(!seed),
            drafts: Drafts::new(lengths, vocabulary, count),
            allowed: (0..vocabulary)
                .filter(|id| facts.special.binary_search(id).is_err())
                .collect(),
            vocabulary,
            added: facts.added_tokens,
            prefix_len,
            prefix: None,
            form,
        }
    }

    fn drawn(&self, text: String, ids: Vec<u32>, answer: AnswerRequest) -> Entry {
        let length = ids.len() as u32;
        match self.form {
            // The ids belong to the text, so only the tokens that the model adds are missing.
            Form::Text => {
                Entry { content: Content::Text(text), input_tokens: length + self.added, answer }
            }
            Form::Tokens => Entry { content: Content::Tokens(ids), input_tokens: length, answer },
        }
    }

    fn prefix(&mut self, tokenizer: &dyn Tokenizer) -> Vec<u32> {
        if let Some(prefix) = &self.prefix {
            return prefix.clone();
        }
        let mut prefix = Vec::new();
        if self.prefix_len > 0 {
            for _ in 0..self.prefix_len {
                let drawn = self.random.draw(&(0..=self.allowed.len() as u32 - 1));
                prefix.extend(self.allowed.get(drawn as usize));
            }
            (_, prefix) =
                mended(tokenizer, &mut self.random, prefix, self.prefix_len, self.vocabulary);
        }
        self.prefix = Some(prefix.clone());
        prefix
    }
}

impl Source for Vllm {
    fn next(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let size = self.allowed.len() as u64;
        let (mut prompts, mut tokens) = (Vec::new(), 0);
        while prompts.len() < limit && tokens < ENOUGH_TOKENS {
            // The block is drawn before the prefix, and the prefix before the first adjustment.
            self.drafts.fill(&mut self.random);
            let prefix = self.prefix(tokenizer);
            let Some((index, draft)) = self.drafts.next(&mut self.random) else { break };
            let start = u64::from(draft.offset) + index;
            let body =
                (0..u64::from(draft.input)).map(|at| self.allowed[((start + at) % size) as usize]);
            let ids = prefix.into_iter().chain(body).collect();
            let length = self.prefix_len + draft.input;
            let (text, ids) = mended(tokenizer, &mut self.random, ids, length, self.vocabulary);
            tokens += ids.len();
            prompts.push(self.drawn(text, ids, draft.answer));
        }
        Ok(prompts)
    }

    /// Descending runs without the prefix, whereas the measured ones ascend.
    fn spare(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let lengths = self.drafts.lengths();
        let (length, output) = (self.prefix_len + lengths.longest(), lengths.longest_output());
        let size = self.allowed.len() as u32;
        if length < 2 || size < 3 {
            return Ok(Vec::new());
        }
        let mut prompts = Vec::new();
        for _ in 0..limit.min(ENOUGH_TOKENS.div_ceil(length as usize)) {
            let start = self.apart.draw(&(0..=size - 1));
            let ids = descending(start, length, size)
                .into_iter()
                .map(|at| self.allowed[at as usize])
                .collect();
            let (text, ids) = mended(tokenizer, &mut self.apart, ids, length, self.vocabulary);
            prompts.push(self.drawn(text, ids, AnswerRequest::spare(output)));
        }
        Ok(prompts)
    }
}

/// Converts ids to text and back until there are `length` of them: missing ids are drawn, including
/// special ones, and surplus ones are cut off. After ten attempts the length stays as it is.
fn mended(
    tokenizer: &dyn Tokenizer,
    random: &mut NumpyGenerator,
    mut ids: Vec<u32>,
    length: u32,
    vocabulary: u32,
) -> (String, Vec<u32>) {
    let length = length as usize;
    let mut left = MENDINGS;
    loop {
        let text = tokenizer.decode(&[ids]).pop().unwrap_or_default();
        let texts = [text];
        ids = tokenizer.encode(&texts, false).pop().unwrap_or_default();
        if left == 0 || ids.len() == length {
            let [text] = texts;
            return (text, ids);
        }
        left -= 1;
        while ids.len() < length {
            ids.push(random.draw(&(0..=vocabulary - 1)));
        }
        ids.truncate(length);
    }
}
