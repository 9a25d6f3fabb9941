//! Shared prefixes as `prefix_repetition` of `vllm bench serve` makes them.
//!
//! NumPy's generator draws all ids, and draws again if their text has another number of tokens, so
//! the number of draws depends on the tokenizer. The shuffle, by Python's, comes last: to know the
//! first prompt, all have to be made.

use runner_plugin::random::{NumpyLegacy, Python};
use runner_plugin::{Error, Facts, Tokenizer};

use crate::config::{Form, MOST_PROMPTS, Shape};
use crate::{Content, Conversation, Population, Source, decoded, encoded};

const MENDINGS: u32 = 10;

/// The most bytes of ids that are kept: half of a plugin's memory.
const MOST_BYTES: u64 = 128 << 20;

/// Beyond this number of ids, the generator's smaller state is kept, and makes the ids again.
const LONG: usize = 640;

#[derive(Debug)]
pub(crate) struct Vllm {
    random: NumpyLegacy,
    /// Draws spare prompts, separately so that it does not affect the measured ones.
    apart: NumpyLegacy,
    population: Population,
    prefix_len: usize,
    question_len: usize,
    output_len: u32,
    prompts_per_group: u32,
    total: u32,
    /// The prompts in the order in which they are sent, if they are shuffled.
    order: Option<Vec<u32>>,
    sent: usize,
    prefixes: Vec<Vec<u32>>,
    /// The texts behind the prefix, of all prompts so far; without a shuffle of the last.
    made: Vec<IdSource>,
    made_before: usize,
}

#[derive(Debug)]
enum IdSource {
    Ids(Vec<u32>),
    From(NumpyLegacy),
}

impl Vllm {
    /// `count` is the number of requests.
    pub(crate) fn new(
        shape: &Shape,
        facts: &Facts,
        seed: u64,
        count: Option<u64>,
    ) -> Result<Self, Error> {
        let population = Population::new(facts, facts.base_size, Form::Text)?;
        let groups = u64::from(shape.groups);
        let each = match (shape.prompts_per_group, count) {
            (Some(each), _) => each.into(),
            (None, Some(count)) if count < groups => {
                return Err(Error::config(format!(
                    "the run has {count} requests and `groups` is {groups}; expected at least one request for each \
                     prefix: take more requests or fewer `groups`"
                )));
            }
            (None, Some(count)) => count / groups,
            (None, None) => {
                return Err(Error::config(
                    "`algorithm = \"vllm\"` divides the number of requests among the prefixes, and this run is not \
                     limited by a number of requests: limit it, or set `prompts-per-group`",
                ));
            }
        };
        let total = each.saturating_mul(groups);
        if total > MOST_PROMPTS {
            return Err(Error::config(format!(
                "`groups` × the prompts of each is {total}; expected at most {MOST_PROMPTS}"
            )));
        }
        let (prefix_len, question_len) = (shape.prefix.quantile(0.0), shape.question.quantile(0.0));
        let kept = if shape.shuffle { total } else { 1 };
        let bytes = 4 * groups * u64::from(prefix_len)
            + 4 * kept * u64::from(question_len).min(LONG as u64);
        if bytes > MOST_BYTES {
            return Err(Error::config(format!(
                "the token ids of all prompts take {bytes} bytes; expected at most {MOST_BYTES}: take fewer or shorter \
                 prompts, or `algorithm = \"runner\"`, which keeps none"
            )));
        }
        let order = shape.shuffle.then(|| {
            let mut order: Vec<u32> = (0..total as u32).collect();
            Python::new(seed).shuffle(&mut order);
            order
        });
        Ok(Self {
            // NumPy accepts only 32-bit seeds; of larger ones the lower half is used.
            random: NumpyLegacy::new(seed as u32),
            apart: NumpyLegacy::new(!seed as u32),
            population,
            prefix_len: prefix_len as usize,
            question_len: question_len as usize,
            output_len: shape.output.quantile(0.0),
            prompts_per_group: each as u32,
            total: total as u32,
            order,
            sent: 0,
            prefixes: Vec::new(),
            made: Vec::new(),
            made_before: 0,
        })
    }

    /// Returns the number of `count` requests that have no prompt.
    pub(crate) fn left_of(&self, count: u64) -> u64 {
        count.saturating_sub(self.total.into())
    }

    /// Makes the next prompt, and the prefix before it if it is the first of its group.
    fn make(&mut self, tokenizer: &dyn Tokenizer) {
        let next = self.made_before + self.made.len();
        if next.is_multiple_of(self.prompts_per_group as usize) {
            let prefix = mended(tokenizer, &mut self.random, &self.population, self.prefix_len);
            self.prefixes.push(prefix);
        }
        if self.order.is_none() {
            self.made_before = next;
            self.made.clear();
        }
        let before = (self.question_len > LONG).then(|| self.random.clone());
        let ids = mended(tokenizer, &mut self.random, &self.population, self.question_len);
        self.made.push(before.map_or(IdSource::Ids(ids), IdSource::From));
    }
}

impl Source for Vllm {
    fn next(&mut self, tokenizer: &dyn Tokenizer) -> Result<Option<Conversation>, Error> {
        if self.sent >= self.total as usize {
            return Ok(None);
        }
        let (at, needed) = match &self.order {
            Some(order) => (order[self.sent] as usize, self.total as usize),
            None => (self.sent, self.sent + 1),
        };
        while self.made_before + self.made.len() < needed {
            self.make(tokenizer);
        }
        self.sent += 1;
        let question = match &self.made[at - self.made_before] {
            IdSource::Ids(ids) => ids.clone(),
            IdSource::From(state) => {
                mended(tokenizer, &mut state.clone(), &self.population, self.question_len)
            }
        };
        let prefix = &self.prefixes[at / self.prompts_per_group as usize];
        let first = Content::Text(decoded(tokenizer, [&prefix[..], &question].concat()));
        Ok(Some(Conversation::single(first, self.output_len, tokenizer)))
    }

    fn spare(&mut self, tokenizer: &dyn Tokenizer) -> Result<Conversation, Error> {
        let lengths = [self.prefix_len, self.question_len];
        let ids =
            lengths.map(|length| mended(tokenizer, &mut self.apart, &self.population, length));
        let first = Content::Text(decoded(tokenizer, ids.concat()));
        Ok(Conversation::single(first, self.output_len, tokenizer))
    }
}

/// Ids, drawn, and converted to text and back until there are `length` of them: missing ids are
/// drawn, and surplus ones are cut off. After ten attempts the length stays as it is.
fn mended(
    tokenizer: &dyn Tokenizer,
    random: &mut NumpyLegacy,
    population: &Population,
    length: usize,
) -> Vec<u32> {
    let mut draw = || population.at(random.randint(0, population.size().into()) as u32);
    let mut ids: Vec<u32> = (0..length).map(|_| draw()).collect();
    let mut left = MENDINGS;
    loop {
        ids = encoded(tokenizer, &decoded(tokenizer, ids));
        if left == 0 || ids.len() == length {
            return ids;
        }
        left -= 1;
        while ids.len() < length {
            ids.push(draw());
        }
        ids.truncate(length);
    }
}
