//! Agents. A session is the work of one agent: a loop of tool calls, sub-agents that it starts and
//! waits for, and the shortening of a history that is too long. Each request follows the reply, or
//! the replies, that it needs.
//!
//! This module runs through the sessions; a source reads or draws them, and `graph` makes samples
//! of their requests. A sample's `input-tokens` count its new messages, without the tokens that a
//! chat template adds, and without the answers of sub-agents, which the host puts in.
#![deny(unsafe_code)]

mod attributes;
mod config;
mod dag;
mod graph;
mod otel;
mod source;
mod synthetic;
#[cfg(test)]
mod tests;
mod trace;
mod trie;

use std::rc::Rc;

use dialogue::sessions::{Sessions, Source};
use dialogue::words::Writer;
use runner_plugin::report::Remarks;
use runner_plugin::{Amount, Dataset, Error, Inputs, Remark, Sample, Tokenizer};

pub use config::{BadToolCalls, Compaction, Config, Delays, Format, SubAgents, ToolRole};

pub struct Agents(Sessions);

runner_plugin::export_dataset!(Agents);

impl Dataset for Agents {
    type Config = Config;

    fn open(config: Config, seed: u64, _amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        config.check()?;
        let format = source::recognise(&*inputs.files, config.format)?;
        config.check_for(format)?;
        let tokenizer: Rc<dyn Tokenizer> = Rc::from(inputs.tokenizer);
        let repeat = config.repeat;
        let config = Rc::new(config);
        let source: Box<dyn Source> = match format {
            Format::Synthetic => {
                let writer = Writer::open(&*inputs.files)?;
                Box::new(synthetic::Synthetic::new(&config, seed, tokenizer, writer)?)
            }
            Format::Dag => Box::new(dag::Dag::open(&*inputs.files, config, tokenizer)?),
            Format::Otel => Box::new(otel::Otel::open(inputs.files, config, seed, tokenizer)?),
            Format::Trie => Box::new(trie::Trie::open(inputs.files, config, seed, tokenizer)?),
        };
        Ok(Self(Sessions::new(source, "sessions", repeat, Remarks::default())))
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.0.next(limit)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.0.spare(limit, "agent-spare")
    }

    fn remarks(&self) -> Vec<Remark> {
        self.0.remarks()
    }
}
