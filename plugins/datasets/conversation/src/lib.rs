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

use std::collections::BTreeSet;
use std::rc::Rc;

use dialogue::sessions::{self, Sessions};
use dialogue::words::Writer;
use runner_plugin::report::Remarks;
use runner_plugin::requests::fingerprint;
use runner_plugin::{Amount, Dataset, Error, Inputs, Remark, Sample, Tokenizer};

use plan::Plan;
use source::Source;

pub use config::{Config, Format, Length, Outside, Think};

/// Drawn conversations that may be outside of the bounds one after the other, at most.
const MOST_OUTSIDE: u64 = if cfg!(test) { 1_000 } else { 10_000 };

pub struct Conversations(Sessions);

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
            return Err(Error::config(
                "`shuffle` works only with a ShareGPT file that is one JSON array; shuffle the lines of this file \
                 beforehand, such as with `shuf`, or leave the key out",
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
                let opened = opened.ok_or_else(|| Error::config("there is no file"))?;
                remarks = opened.remarks().clone();
                Box::new(opened)
            }
            _ => Box::new(lines::Lines::open(inputs.files, format)?),
        };
        let planned = Planned {
            source,
            plan,
            endless: format == Format::Synthetic,
            read: 0,
            read_since: 0,
            outside: 0,
            names: BTreeSet::new(),
            began: None,
            arrival: 0,
            base: 0,
        };
        Ok(Self(Sessions::new(Box::new(planned), "conversations", config.repeat, remarks)))
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.0.next(limit)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.0.spare(limit, "conversation-spare")
    }

    fn remarks(&self) -> Vec<Remark> {
        self.0.remarks()
    }
}

/// Conversations as sessions: with their names, their samples and their arrivals.
struct Planned {
    source: Box<dyn Source>,
    plan: Plan,
    /// True if the source never ends.
    endless: bool,
    /// Number of conversations that were read, in all and since the file began the last time, and
    /// of the last ones that were outside of the bounds.
    read: u64,
    read_since: u64,
    outside: u64,
    names: BTreeSet<u64>,
    /// Arrival of the first conversation by the file, the arrival of the last one, counted from it,
    /// and the offset of the file's arrivals after its restart.
    began: Option<u64>,
    arrival: u64,
    base: u64,
}

impl sessions::Source for Planned {
    fn next(&mut self, pass: u64, remarks: &mut Remarks) -> Result<Option<Vec<Sample>>, Error> {
        if self.endless && self.outside == MOST_OUTSIDE {
            return Err(plan::nothing(MOST_OUTSIDE, 0, remarks));
        }
        let Some(conversation) = self.source.next()? else { return Ok(None) };
        let number = self.read;
        self.read += 1;
        self.read_since += 1;
        let mut session = match &conversation.name {
            Some(name) => name.clone(),
            None => format!("conversation-{:06}", self.read_since),
        };
        if pass > 1 {
            session = format!("{session}#{pass}");
        } else if conversation.name.is_some() && !self.names.insert(fingerprint(&session)) {
            return Err(Error::InvalidInput(format!(
                "file `{}`, {}: an earlier conversation has the name `{session}` too; put all lines of a conversation \
                 together, and give each conversation its own name",
                dialogue::FILE,
                conversation.place
            )));
        }
        let arrival = conversation.arrival;
        let planned = self.plan.samples(&session, number, conversation, remarks);
        self.outside = if planned.is_some() { 0 } else { self.outside + 1 };
        let mut samples = planned.unwrap_or_default();
        if let (Some(at), Some(root)) = (arrival, samples.first_mut()) {
            root.arrival = Some(self.arrive(at, &session, remarks));
        }
        Ok(Some(samples))
    }

    fn spare(&mut self) -> Result<Option<Sample>, Error> {
        for _ in 0..MOST_OUTSIDE {
            let Some(conversation) = self.source.spare()? else { break };
            let planned = self.plan.samples("spare", 0, conversation, &mut Remarks::default());
            if let Some(root) = planned.and_then(|planned| planned.into_iter().next()) {
                return Ok(Some(root));
            }
        }
        Ok(None)
    }

    fn rewind(&mut self) -> Result<(), Error> {
        self.read_since = 0;
        self.began = None;
        self.base = self.arrival;
        self.source.rewind()
    }

    fn nothing(&self, spares: u64, remarks: &Remarks) -> Error {
        plan::nothing(self.read, spares, remarks)
    }
}

impl Planned {
    /// The arrival of a conversation, never before the previous one's.
    fn arrive(&mut self, at: u64, session: &str, remarks: &mut Remarks) -> u64 {
        let began = *self.began.get_or_insert(at);
        let arrival = self.base.saturating_add(at.saturating_sub(began));
        if arrival < self.arrival || at < began {
            let reason = "a conversation with an earlier timestamp than the previous one; it now arrives with the previous one";
            remarks.repaired(reason, || session.to_owned());
        }
        self.arrival = self.arrival.max(arrival);
        self.arrival
    }
}
