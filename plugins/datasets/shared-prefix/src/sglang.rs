//! Shared prefixes as `generated-shared-prefix` of SGLang's `bench_serving` makes them.
//!
//! Lengths come from NumPy's generator: lengths of all prefixes, then of all questions, then of all
//! answers. Ids come from Python's `random.choices` among the whole vocabulary, special ids
//! included: ids of all prefixes, then of all questions, then the shuffle. So the place of the
//! first prompt is known only when every id was drawn. The ids are not kept. The generator's state
//! is kept, every few thousand ids, and the ids are drawn again from there.

use std::collections::BTreeMap;

use runner_plugin::lengths::Choice;
use runner_plugin::random::{NumpyGenerator, NumpyLegacy, Python};
use runner_plugin::{Error, Facts, Tokenizer};

use crate::config::{Form, MOST_PROMPTS, Shape};
use crate::{Content, Conversation, Population, Source, decoded};

const PROMPTS_PER_GROUP: u32 = 16;

/// Ids between two states of the generator that are kept, at least: a state is as large as 625 ids.
const STRIDE: u64 = 4096;

/// The most states that are kept: 40 MiB.
const MOST_STATES: u64 = 1 << 14;

/// The most ids of all prompts together: drawing them takes seconds.
const MOST_IDS: u64 = 1 << 31;

/// The most bytes of prefixes whose text is kept.
const KEPT_BYTES: usize = 8 << 20;

#[derive(Debug)]
pub(crate) struct Sglang {
    /// The lengths of all prefixes, and then of the questions of all conversations, turn by turn.
    pieces: Vec<u32>,
    /// The generator's state before a piece, for some of them.
    states: Vec<(usize, Python)>,
    groups: usize,
    turns: usize,
    outputs: Vec<u32>,
    prefix_of: Vec<u32>,
    /// The conversations in the order in which they are sent.
    order: Vec<u32>,
    sent: usize,
    /// Texts of prefixes, as long as they are not too many.
    texts: BTreeMap<usize, String>,
    text_bytes: usize,
    population: Population,
    form: Form,
    /// Draws spare prompts, separately so that it does not affect the measured ones.
    apart: Python,
    /// The longest prefix, question and answer.
    longest: (u32, u32, u32),
}

impl Sglang {
    pub(crate) fn new(shape: &Shape, facts: &Facts, seed: u64) -> Result<Self, Error> {
        let population = Population::new(facts, facts.vocabulary_size, shape.form)?;
        let prompts_per_group = shape.prompts_per_group.unwrap_or(PROMPTS_PER_GROUP);
        let (turns, groups) = (shape.turns.quantile(0.0), shape.groups);
        let conversations = u64::from(groups) * u64::from(prompts_per_group);
        let questions = conversations * u64::from(turns);
        let longest =
            (shape.prefix.quantile(0.0), shape.question.quantile(0.0), shape.output.quantile(0.0));
        if questions > MOST_PROMPTS {
            return Err(Error::config(format!(
                "`groups` × `prompts-per-group` × `turns` is {questions}; expected at most {MOST_PROMPTS}"
            )));
        }
        let ids = u64::from(groups) * u64::from(longest.0) + questions * u64::from(longest.1);
        if ids > MOST_IDS {
            return Err(Error::config(format!(
                "all prefixes and questions together have up to {ids} tokens; expected at most {MOST_IDS}, since all are \
                 drawn before the first request: use fewer or shorter prompts, or `algorithm = \"runner\"`"
            )));
        }
        // NumPy accepts only 32-bit seeds; of larger ones the lower half is used.
        let mut numpy = NumpyLegacy::new(seed as u32);
        let mut lengths = |longest: u32, count: u64| -> Vec<u32> {
            let least = ((f64::from(longest) * shape.ratio) as u64).max(1);
            (0..count).map(|_| numpy.randint(least, u64::from(longest) + 1) as u32).collect()
        };
        let mut pieces = lengths(longest.0, groups.into());
        pieces.extend(lengths(longest.1, questions));
        let outputs = lengths(longest.2, conversations);

        let mut python = Python::new(seed);
        let mut states = vec![(0, python.clone())];
        let mut since = 0;
        for (at, length) in pieces.iter().enumerate() {
            if since >= STRIDE.max(ids / MOST_STATES) {
                states.push((at, python.clone()));
                since = 0;
            }
            skip(&mut python, *length);
            since += u64::from(*length);
        }
        let prefix_of = match shape.zipf {
            None => (0..groups)
                .flat_map(|group| std::iter::repeat_n(group, prompts_per_group as usize))
                .collect(),
            Some(exponent) => {
                let choice = Choice::zipf("zipf", groups, exponent)?;
                let mut random = NumpyGenerator::new(seed);
                let drawn = (0..conversations).map(|_| choice.draw(&mut random) as u32);
                drawn.collect()
            }
        };
        let mut order: Vec<u32> = (0..conversations as u32).collect();
        if shape.shuffle {
            python.shuffle(&mut order);
        }
        Ok(Self {
            pieces,
            states,
            groups: groups as usize,
            turns: turns as usize,
            outputs,
            prefix_of,
            order,
            sent: 0,
            texts: BTreeMap::new(),
            text_bytes: 0,
            population,
            form: shape.form,
            apart: Python::new(!seed),
            longest,
        })
    }

    fn ids(&self, first: usize, count: usize) -> Vec<Vec<u32>> {
        let state = self.states.partition_point(|(at, _)| *at <= first) - 1;
        let (from, python) = &self.states[state];
        let mut python = python.clone();
        for length in &self.pieces[*from..first] {
            skip(&mut python, *length);
        }
        self.pieces[first..first + count]
            .iter()
            .map(|length| self.population.choices(&mut python, *length))
            .collect()
    }

    fn prefix(&mut self, group: usize, tokenizer: &dyn Tokenizer) -> String {
        if let Some(text) = self.texts.get(&group) {
            return text.clone();
        }
        let text = decoded(tokenizer, self.ids(group, 1).concat());
        if self.text_bytes + text.len() > KEPT_BYTES {
            self.texts.clear();
            self.text_bytes = 0;
        }
        self.text_bytes += text.len();
        self.texts.insert(group, text.clone());
        text
    }
}

impl Source for Sglang {
    fn next(&mut self, tokenizer: &dyn Tokenizer) -> Result<Option<Conversation>, Error> {
        let Some(conversation) = self.order.get(self.sent).map(|at| *at as usize) else {
            return Ok(None);
        };
        self.sent += 1;
        let group = self.prefix_of[conversation] as usize;
        let mut questions = self.ids(self.groups + conversation * self.turns, self.turns);
        let (first, later) = match self.form {
            Form::Tokens => {
                let mut ids = self.ids(group, 1);
                ids.append(&mut questions);
                (Content::Tokens(ids.concat()), Vec::new())
            }
            Form::Text => {
                let mut texts = tokenizer.decode(&questions).into_iter();
                let question = texts.next().unwrap_or_default();
                let prefix = self.prefix(group, tokenizer);
                (Content::Text(format!("{prefix}\n\n{question}")), texts.collect())
            }
        };
        Ok(Some(Conversation {
            input_tokens: first.tokens(tokenizer),
            first,
            later,
            output_tokens: vec![self.outputs[conversation]; self.turns],
        }))
    }

    fn spare(&mut self, tokenizer: &dyn Tokenizer) -> Result<Conversation, Error> {
        let (prefix, question, output) = self.longest;
        let prefix = self.population.choices(&mut self.apart, prefix);
        let question = self.population.choices(&mut self.apart, question);
        let first = match self.form {
            Form::Tokens => Content::Tokens([prefix, question].concat()),
            Form::Text => Content::Text(tokenizer.decode(&[prefix, question]).join("\n\n")),
        };
        Ok(Conversation::single(first, output, tokenizer))
    }
}

/// Draws the ids of a piece of this length, and forgets them.
fn skip(python: &mut Python, length: u32) {
    for _ in 0..length {
        python.random();
    }
}
