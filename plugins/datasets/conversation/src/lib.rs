//! Conversations of several turns. Each is a session: the first turn is its root, and each further
//! turn follows the answer to its predecessor, after the user's think time. A turn carries only its
//! new messages; the host puts the history before them, with the answers that were given or the
//! recorded ones.
//!
//! This module runs through the conversations and names them; a source reads or draws them, and
//! `plan` makes samples of them. A sample's `input-tokens` count its new messages, without the
//! tokens that a chat template adds.
#![deny(unsafe_code)]

mod config;
mod lines;
mod plan;
mod sharegpt;
mod source;
mod synthetic;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use dialogue::spares::Spares;
use dialogue::words::Writer;
use runner_plugin::report::Remarks;
use runner_plugin::requests::{fill, fingerprint};
use runner_plugin::{Amount, Dataset, Error, Inputs, Remark, Sample, Tokenizer};

use config::invalid;
use plan::Plan;
use source::Source;

pub use config::{Config, Format, Length, Outside, Think};

/// Drawn conversations that may be outside of the bounds one after the other, at most.
const MOST_OUTSIDE: u64 = 10_000;

pub struct Conversations {
    source: Box<dyn Source>,
    plan: Plan,
    repeat: bool,
    /// True if the source never ends.
    endless: bool,
    /// Samples of a conversation that were not yet returned.
    ready: VecDeque<Sample>,
    /// Number of conversations that were read, in all and since the file began the last time.
    read: u64,
    read_since: u64,
    pass: u64,
    /// Number of conversations that are measured so far.
    used: u64,
    /// Number of conversations used since the file began the last time.
    used_since: u64,
    spares: Spares,
    names: BTreeSet<u64>,
    /// Arrival of the first conversation by the file, the arrival of the last one, counted from it,
    /// and the offset of the file's arrivals after its restart.
    began: Option<u64>,
    arrival: u64,
    base: u64,
    remarks: Remarks,
}

runner_plugin::export_dataset!(Conversations);

impl Dataset for Conversations {
    type Config = Config;

    fn open(config: Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        config.check()?;
        let (format, lines) = source::recognise(&*inputs.files, config.format)?;
        config.check_for(format)?;
        let tokenizer: Rc<dyn Tokenizer> = Rc::from(inputs.tokenizer);
        let plan = Plan::new(&config, format, seed, tokenizer.clone())?;
        if lines && config.shuffle == Some(true) {
            return Err(invalid(
                "`shuffle` works only with a ShareGPT file that is one JSON array; shuffle the lines of this file \
                 beforehand, such as with `shuf`, or leave the key out"
                    .to_owned(),
            ));
        }
        let mut remarks = Remarks::default();
        let source: Box<dyn Source> = match format {
            Format::Synthetic => {
                let writer = Writer::open(&*inputs.files)?;
                Box::new(synthetic::Synthetic::new(&config, seed, tokenizer, writer)?)
            }
            Format::Sharegpt if !lines => {
                let shuffle = config.shuffle.unwrap_or(true);
                let opened = sharegpt::ShareGpt::open(&*inputs.files, shuffle, seed)?;
                let opened = opened.ok_or_else(|| invalid("there is no file".to_owned()))?;
                remarks = opened.remarks().clone();
                Box::new(opened)
            }
            _ => Box::new(lines::Lines::open(inputs.files, format)?),
        };
        Ok(Self {
            source,
            plan,
            repeat: config.repeat,
            endless: format == Format::Synthetic,
            ready: VecDeque::new(),
            read: 0,
            read_since: 0,
            pass: 1,
            used: 0,
            used_since: 0,
            spares: Spares::default(),
            names: BTreeSet::new(),
            began: None,
            arrival: 0,
            base: 0,
            remarks,
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        fill(limit, || Ok(if self.fill()? { self.ready.pop_front() } else { None }))
    }

    /// First turns of conversations that are not measured.
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.spares.take(limit, "conversation-spare", || {
            let Some(conversation) = self.source.spare()? else {
                return Ok(None);
            };
            let planned = self.plan.samples("spare", 0, conversation, &mut Remarks::default());
            Ok(Some(planned.and_then(|planned| planned.into_iter().next())))
        })
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.list()
    }
}

impl Conversations {
    /// Reads on until there is a sample to return; `false` at the end.
    fn fill(&mut self) -> Result<bool, Error> {
        let before = self.read;
        while self.ready.is_empty() {
            // A file ends; synthetic conversations do not.
            let outside = self.endless && self.read - before == MOST_OUTSIDE;
            if outside {
                return Err(plan::nothing(MOST_OUTSIDE, 0, &self.remarks));
            }
            let Some(conversation) = self.source.next()? else {
                if self.used == 0 {
                    return Err(plan::nothing(self.read, self.spares.count, &self.remarks));
                }
                if !self.repeat || self.used_since == 0 {
                    return Ok(false);
                }
                self.source.rewind()?;
                self.pass += 1;
                self.read_since = 0;
                self.began = None;
                self.base = self.arrival;
                self.used_since = 0;
                continue;
            };
            let number = self.read;
            self.read += 1;
            self.read_since += 1;
            let mut session = match &conversation.name {
                Some(name) => name.clone(),
                None => format!("conversation-{:06}", self.read_since),
            };
            if self.pass > 1 {
                session = format!("{session}#{}", self.pass);
            } else if conversation.name.is_some() && !self.names.insert(fingerprint(&session)) {
                return Err(Error::InvalidInput(format!(
                    "file `{}`, {}: an earlier conversation has the name `{session}` too; put all lines of a \
                     conversation together, and give each conversation its own name",
                    dialogue::FILE,
                    conversation.place
                )));
            }
            // The first pass counted the dropped conversations.
            let mut again = Remarks::default();
            let remarks = if self.pass > 1 { &mut again } else { &mut self.remarks };
            let arrival = conversation.arrival;
            let Some(mut samples) = self.plan.samples(&session, number, conversation, remarks)
            else {
                continue;
            };
            if samples.first().is_some_and(|first| self.spares.has(first)) {
                remarks.dropped("a prompt that was used for warmup", || session.clone());
                continue;
            }
            if self.pass > 1 {
                let reason = "fewer conversations in the file than the run measures";
                self.remarks.repeated(reason, || session.clone());
            }
            if let (Some(at), Some(root)) = (arrival, samples.first_mut()) {
                root.arrival = Some(self.arrive(at, &session));
            }
            self.used += 1;
            self.used_since += 1;
            self.ready.extend(samples);
        }
        Ok(true)
    }

    /// The arrival of a conversation, never before the previous one's.
    fn arrive(&mut self, at: u64, session: &str) -> u64 {
        let began = *self.began.get_or_insert(at);
        let arrival = self.base.saturating_add(at.saturating_sub(began));
        if (arrival < self.arrival || at < began) && self.pass == 1 {
            let reason = "a conversation with an earlier timestamp than the previous one; it now arrives with the previous one";
            self.remarks.repaired(reason, || session.to_owned());
        }
        self.arrival = self.arrival.max(arrival);
        self.arrival
    }
}
