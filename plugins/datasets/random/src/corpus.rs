//! Texts of a ShareGPT file, cut or repeated to length, as `random` of SGLang's `bench_serving` and
//! of LMDeploy's `profile_restful_api.py` makes them.

use std::collections::VecDeque;

use runner_plugin::random::{NumpyLegacy, Python};
use runner_plugin::report::Remarks;
use runner_plugin::{Error, Tokenizer};
use sharegpt_file::Conversations;

use crate::Recipe;
use crate::lengths::Lengths;
use crate::source::{AnswerRequest, Drafts, ENOUGH_TOKENS, Entry, Source, formed};

/// Texts to tokenize in one call of the host.
const BATCH: usize = 64;

/// Length in bytes of the prefix that distinguishes a text from others.
const HEAD: usize = 64;

/// The first turns of a shuffled file, one after the other.
pub(crate) struct Corpus {
    conversations: Conversations,
    random: NumpyLegacy,
    drafts: Drafts,
    making: Recipe,
    count: Option<u64>,
    /// The conversation to take next.
    front: usize,
    /// Token ids of texts that were read and not yet used.
    ready: VecDeque<Vec<u32>>,
    /// The place where the search for spare samples continues, from the back.
    back: usize,
    /// Beginnings of the measured texts, and the position after the last; computed when needed.
    measured: Option<(Vec<Vec<u8>>, usize)>,
    /// Parts of the file that were left out.
    remarks: Remarks,
}

impl Corpus {
    pub(crate) fn new(
        mut conversations: Conversations,
        lengths: Lengths,
        making: Recipe,
        seed: u64,
        count: Option<u64>,
    ) -> Self {
        conversations.shuffle(&mut Python::new(seed));
        Self {
            back: conversations.len(),
            remarks: conversations.remarks().clone(),
            conversations,
            // NumPy accepts only 32-bit seeds; of larger ones the lower half is used.
            random: NumpyLegacy::new(seed as u32),
            drafts: Drafts::new(lengths, 0, count),
            making,
            count,
            front: 0,
            ready: VecDeque::new(),
            measured: None,
        }
    }

    /// Reads and tokenizes further texts, with the tokens that the model adds around them.
    fn read(&mut self, tokenizer: &dyn Tokenizer, wanted: usize) -> Result<(), Error> {
        while self.ready.len() < wanted {
            let mut texts = Vec::new();
            while texts.len() < BATCH.min(wanted)
                && let Some(pair) = self.conversations.read(self.front)?
            {
                self.front += 1;
                texts.push(pair.prompt);
            }
            if texts.is_empty() {
                break;
            }
            let first = self.front - texts.len();
            for (at, ids) in tokenizer.encode(&texts, true).into_iter().enumerate() {
                if ids.is_empty() {
                    self.remarks
                        .dropped("text without tokens", || self.conversations.place(first + at));
                } else {
                    self.ready.push_back(ids);
                }
            }
        }
        Ok(())
    }

    /// The measured texts: the first that are not empty, up to the run's number. The caller's check
    /// covers texts without tokens, which would shift the end.
    fn measured(&mut self) -> Result<&(Vec<Vec<u8>>, usize), Error> {
        let measured = match self.measured.take() {
            Some(measured) => measured,
            None => {
                let mut heads = Vec::new();
                let mut end = 0;
                while (heads.len() as u64) < self.count.unwrap_or(0)
                    && let Some(pair) = self.conversations.read(end)?
                {
                    end += 1;
                    if !pair.prompt.is_empty() {
                        heads.push(self.head(&pair.prompt));
                    }
                }
                (heads, end)
            }
        };
        Ok(self.measured.insert(measured))
    }

    /// The beginning of a text, no longer than a prompt is: a token has at least one byte.
    fn head(&self, text: &str) -> Vec<u8> {
        let most = HEAD.min(self.drafts.lengths().common() as usize);
        text.bytes().take(most).collect()
    }
}

impl Source for Corpus {
    fn next(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        self.read(tokenizer, limit)?;
        let (mut prompts, mut tokens) = (Vec::new(), 0);
        while prompts.len() < limit
            && tokens < ENOUGH_TOKENS
            && let Some(ids) = self.ready.pop_front()
            && let Some((_, draft)) = self.drafts.next(&mut self.random)
        {
            tokens += draft.input as usize;
            prompts.push((to_length(ids, draft.input), draft.answer));
        }
        Ok(formed(tokenizer, self.making, prompts))
    }

    /// Texts from the back of the shuffled file that do not begin like a measured text. If the
    /// measured number is unknown, at most half of the file is used.
    fn spare(&mut self, tokenizer: &dyn Tokenizer, limit: usize) -> Result<Vec<Entry>, Error> {
        let lengths = self.drafts.lengths();
        let (length, output) = (lengths.longest(), lengths.longest_output());
        let limit = limit.min(ENOUGH_TOKENS.div_ceil(length.max(1) as usize));
        let floor = match self.count {
            Some(_) => self.measured()?.1,
            None => self.conversations.len() / 2,
        };
        let mut texts = Vec::new();
        while texts.len() < limit && self.back > floor {
            self.back -= 1;
            let Some(pair) = self.conversations.read(self.back)? else { break };
            let head = self.head(&pair.prompt);
            let (heads, _) = self.measured()?;
            if !heads.iter().any(|other| alike(other, &head)) {
                texts.push(pair.prompt);
            }
        }
        let prompts = tokenizer.encode(&texts, true).into_iter().filter(|ids| !ids.is_empty());
        let prompts =
            prompts.map(|ids| (to_length(ids, length), AnswerRequest::spare(output))).collect();
        Ok(formed(tokenizer, self.making, prompts))
    }

    fn remarks(&self) -> Option<&Remarks> {
        Some(&self.remarks)
    }
}

/// True if a beginning is a prefix of the other: cut or repeated texts could be equal.
fn alike(one: &[u8], other: &[u8]) -> bool {
    one.iter().zip(other).all(|(one, other)| one == other)
}

/// Cut, or repeated and cut.
fn to_length(ids: Vec<u32>, length: u32) -> Vec<u32> {
    ids.into_iter().cycle().take(length as usize).collect()
}
