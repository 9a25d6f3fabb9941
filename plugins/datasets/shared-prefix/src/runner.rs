//! Shared prefixes with exactly the requested tokens, of any lengths, without end.
//!
//! Every prefix and every conversation has a generator of its own, seeded from the seed and its
//! number, so that none depends on their number. Ids that stand for no text of their own are not
//! drawn. A text is used only if it tokenizes to the requested number of tokens and begins with its
//! prefix's tokens. Otherwise two prompts of a group share less in the server's cache than in their
//! texts.

use std::collections::BTreeMap;

use runner_plugin::lengths::{Choice, MOST_TOKENS, Stream};
use runner_plugin::random::{NumpyGenerator, mixed};
use runner_plugin::report::Remarks;
use runner_plugin::{Error, Facts, Tokenizer};

use crate::config::{Form, Shape};
use crate::{Content, Conversation, Population, Source, decoded, encoded};

/// The most draws and adjustments of a text.
const ATTEMPTS: u32 = 20;

/// The number of single ids that a prefix is tried with.
const PROBES: usize = 8;

/// The most ids of prefixes that are kept.
const KEPT_IDS: usize = 2 << 20;

#[derive(Clone, Copy)]
enum Purpose {
    Prefix,
    Conversation,
    Spare,
}

#[derive(Debug)]
pub(crate) struct Runner {
    seed: u64,
    shape: Shape,
    population: Population,
    /// The choice of prefixes; otherwise they take turns.
    choice: Option<Choice>,
    sent: u64,
    spared: u64,
    /// Prefixes, as long as they are not too many.
    prefixes: BTreeMap<u32, Vec<u32>>,
    kept: usize,
    remarks: Remarks,
}

impl Runner {
    pub(crate) fn new(shape: Shape, facts: &Facts, seed: u64) -> Result<Self, Error> {
        // Refuses ids of a tokenizer that is only a stand-in.
        Population::new(facts, facts.base_size, shape.form)?;
        let choice = match (shape.shuffle, shape.zipf) {
            (false, _) => None,
            (true, exponent) => Some(Choice::zipf("zipf", shape.groups, exponent.unwrap_or(0.0))?),
        };
        Ok(Self {
            seed,
            population: Population::plain(facts)?,
            shape,
            choice,
            sent: 0,
            spared: 0,
            prefixes: BTreeMap::new(),
            kept: 0,
            remarks: Remarks::default(),
        })
    }

    fn generator(&self, purpose: Purpose, number: u64) -> NumpyGenerator {
        let stream = mixed(mixed(self.seed) ^ purpose as u64);
        NumpyGenerator::new(mixed(stream ^ number))
    }

    fn prefix(&mut self, group: u32, tokenizer: &dyn Tokenizer) -> Vec<u32> {
        if let Some(ids) = self.prefixes.get(&group) {
            return ids.clone();
        }
        let mut random = self.generator(Purpose::Prefix, group.into());
        let length = self.shape.prefix.draw(&mut random);
        let name = format!("prefix {}", group + 1);
        let ids = self.root(length, &mut random, tokenizer, &name);
        if self.kept + ids.len() > KEPT_IDS {
            self.prefixes.clear();
            self.kept = 0;
        }
        self.kept += ids.len();
        self.prefixes.insert(group, ids.clone());
        ids
    }

    /// Ids to put others behind: most others leave its last token as it is.
    fn root(
        &mut self,
        length: u32,
        random: &mut NumpyGenerator,
        tokenizer: &dyn Tokenizer,
        name: &str,
    ) -> Vec<u32> {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let (ids, _) = self.behind(&[], length, random, tokenizer, || name.to_owned());
            if left == 0 || self.shape.form == Form::Tokens || self.joins(&ids, random, tokenizer) {
                return ids;
            }
        }
    }

    /// True if most texts that begin with these ids tokenize to them.
    fn joins(&self, ids: &[u32], random: &mut NumpyGenerator, tokenizer: &dyn Tokenizer) -> bool {
        let probes: Vec<Vec<u32>> =
            (0..PROBES).map(|_| [ids, &self.population.choices(random, 1)].concat()).collect();
        let read = tokenizer.encode(&tokenizer.decode(&probes), false);
        let joined = read.iter().filter(|read| read.starts_with(ids)).count();
        4 * joined >= 3 * PROBES
    }

    /// A prefix and `length` ids behind it, with their text. The text is empty if ids are sent.
    fn behind(
        &mut self,
        prefix: &[u32],
        length: u32,
        random: &mut impl Stream,
        tokenizer: &dyn Tokenizer,
        example: impl FnOnce() -> String,
    ) -> (Vec<u32>, String) {
        let whole = prefix.len() + length as usize;
        let mut ids = prefix.to_vec();
        ids.extend(self.population.choices(random, length));
        if self.shape.form == Form::Tokens {
            return (ids, String::new());
        }
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let text = decoded(tokenizer, ids);
            ids = encoded(tokenizer, &text);
            let joins = ids.starts_with(prefix);
            if joins && ids.len() == whole {
                return (ids, text);
            }
            if left == 0 {
                let reason = if joins {
                    "prompt with more or fewer tokens than drawn, since its text tokenizes differently"
                } else {
                    "prompt whose first tokens differ from its prefix, since its text tokenizes differently"
                };
                self.remarks.repaired(reason, example);
                return (ids, text);
            }
            // A joint that merges cannot be mended behind it.
            let keep = if joins { whole } else { 0 };
            ids.truncate(keep);
            if !joins {
                ids.extend(prefix);
            }
            let missing = (whole - ids.len()) as u32;
            ids.extend(self.population.choices(random, missing));
        }
    }

    /// A conversation behind a prefix; `name` is for remarks.
    fn conversation(
        &mut self,
        prefix: &[u32],
        turns: u32,
        mut random: NumpyGenerator,
        tokenizer: &dyn Tokenizer,
        name: &str,
    ) -> Result<Conversation, Error> {
        let question = self.shape.question.draw(&mut random);
        let mut output_tokens = vec![self.shape.output.draw(&mut random)];
        let mut left = u64::from(MOST_TOKENS) - prefix.len().min(MOST_TOKENS as usize) as u64;
        let mut spend = |tokens: u32| {
            left = left.checked_sub(tokens.into()).ok_or_else(|| {
                Error::config(format!(
                    "{name} has more than {MOST_TOKENS} tokens: set a smaller `max` for the distributions"
                ))
            })?;
            Ok::<_, Error>(())
        };
        spend(question)?;
        let (ids, text) = self.behind(prefix, question, &mut random, tokenizer, || name.to_owned());
        let mut later = Vec::new();
        for turn in 1..turns {
            let question = self.shape.question.draw(&mut random);
            spend(question)?;
            output_tokens.push(self.shape.output.draw(&mut random));
            let named = || format!("{name}, turn {}", turn + 1);
            later.push(self.behind(&[], question, &mut random, tokenizer, named).1);
        }
        let first = match self.shape.form {
            Form::Text => Content::Text(text),
            Form::Tokens => Content::Tokens(ids),
        };
        Ok(Conversation { input_tokens: first.tokens(tokenizer), first, later, output_tokens })
    }
}

impl Source for Runner {
    fn next(&mut self, tokenizer: &dyn Tokenizer) -> Result<Option<Conversation>, Error> {
        let number = self.sent;
        self.sent += 1;
        let mut random = self.generator(Purpose::Conversation, number);
        let group = match &self.choice {
            Some(choice) => choice.draw(&mut random) as u32,
            None => (number % u64::from(self.shape.groups)) as u32,
        };
        let turns = self.shape.turns.draw(&mut random);
        let prefix = self.prefix(group, tokenizer);
        let name = format!("conversation {}", number + 1);
        self.conversation(&prefix, turns, random, tokenizer, &name).map(Some)
    }

    fn spare(&mut self, tokenizer: &dyn Tokenizer) -> Result<Conversation, Error> {
        let mut random = self.generator(Purpose::Spare, self.spared);
        self.spared += 1;
        let length = self.shape.prefix.draw(&mut random);
        let name = format!("spare {}", self.spared);
        let prefix = self.root(length, &mut random, tokenizer, &name);
        self.conversation(&prefix, 1, random, tokenizer, &name)
    }

    fn remarks(&self) -> Option<&Remarks> {
        Some(&self.remarks)
    }
}
