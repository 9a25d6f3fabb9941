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
mod texts;
mod trace;
mod trie;

use std::collections::VecDeque;
use std::rc::Rc;

use dialogue::FILE;
use dialogue::spares::Spares;
use dialogue::words::Writer;
use runner_plugin::report::Remarks;
use runner_plugin::requests::fill;
use runner_plugin::{Amount, Dataset, Error, Inputs, Remark, Sample, Tokenizer};

use source::Source;

pub use config::{BadToolCalls, Compaction, Config, Delays, Format, SubAgents, ToolRole};

pub struct Agents {
    source: Box<dyn Source>,
    repeat: bool,
    /// Samples of a session that were not yet returned.
    ready: VecDeque<Sample>,
    pass: u64,
    /// Number of sessions that are measured, in all and since the file began the last time.
    used: u64,
    used_since: u64,
    spares: Spares,
    remarks: Remarks,
}

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
        Ok(Self {
            source,
            repeat,
            ready: VecDeque::new(),
            pass: 1,
            used: 0,
            used_since: 0,
            spares: Spares::default(),
            remarks: Remarks::default(),
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        fill(limit, || Ok(if self.fill()? { self.ready.pop_front() } else { None }))
    }

    /// First requests of sessions that are not measured.
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.spares.take(limit, "agent-spare", || Ok(self.source.spare()?.map(Some)))
    }

    fn remarks(&self) -> Vec<Remark> {
        self.remarks.list()
    }
}

impl Agents {
    /// Reads on until there is a sample to return; `false` at the end.
    fn fill(&mut self) -> Result<bool, Error> {
        while self.ready.is_empty() {
            // The first pass counted the omissions and changes.
            let mut again = Remarks::default();
            let remarks = match self.pass {
                1 => &mut self.remarks,
                _ => &mut again,
            };
            let Some(samples) = self.source.next(self.pass, remarks)? else {
                if self.used == 0 {
                    return Err(self.nothing());
                }
                if !self.repeat || self.used_since == 0 {
                    return Ok(false);
                }
                self.source.rewind()?;
                self.pass += 1;
                self.used_since = 0;
                continue;
            };
            let Some(root) = samples.first() else {
                continue;
            };
            if self.spares.has(root) {
                remarks.dropped("a prompt that was used for warmup", || root.id.clone());
                continue;
            }
            if self.pass > 1 {
                let reason = "fewer sessions in the file than the run measures";
                self.remarks.repeated(reason, || root.id.clone());
            }
            self.used += 1;
            self.used_since += 1;
            self.ready.extend(samples);
        }
        Ok(true)
    }

    fn nothing(&self) -> Error {
        let reasons: Vec<String> = self
            .remarks
            .list()
            .into_iter()
            .map(|remark| format!("{}: {}", remark.reason, remark.count))
            .collect();
        Error::InvalidInput(if reasons.is_empty() && self.spares.count > 0 {
            format!(
                "all {} sessions of the file `{FILE}` were used for warmup: warm up with fewer requests, or use a larger \
                 file",
                self.spares.count
            )
        } else if reasons.is_empty() {
            format!("the file `{FILE}` has no sessions")
        } else {
            format!(
                "no session of the file `{FILE}` can be used ({}): use another file",
                reasons.join("; ")
            )
        })
    }
}
