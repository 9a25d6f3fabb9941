//! Conversations in the format of the OpenAI API, one per line: each turn is sent with the conversation that was
//! recorded before it.
//!
//! This module selects the turns and builds their samples; `conversation` reads a line.
#![deny(unsafe_code)]

mod conversation;
mod media;

use std::collections::HashSet;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use runner_plugin::json::Lines;
use runner_plugin::{Dataset, Error, Inputs, Prompt, Sample, Tokenizer, Turn};
use schemars::JsonSchema;
use serde::Deserialize;

use conversation::{Asked, Conversation};

/// The scenario's name for the file.
const FILE: &str = "data";

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Output tokens to request. If absent, the length of the recorded answer, if there is one.
    pub output_len: Option<u32>,
    /// Which turns of a conversation to send.
    pub turns: Turns,
    /// The unit of a line's `timestamp`.
    pub timestamp: Unit,
}

/// Which turns of a conversation to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// All turns, in order.
    #[default]
    All,
    /// The last turn, with everything before it.
    Last,
}

/// The unit of a line's `timestamp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Milliseconds, as in Mooncake's traces.
    #[default]
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl Unit {
    fn nanoseconds(self) -> f64 {
        match self {
            Unit::Milliseconds => 1e6,
            Unit::Seconds => 1e9,
        }
    }
}

/// Conversations of a file, in its order.
pub struct ChatJsonl {
    config: Config,
    tokenizer: Box<dyn Tokenizer>,
    lines: Lines,
    /// Samples of a conversation that was read, not yet returned.
    ready: VecDeque<Sample>,
    /// Names of the conversations so far.
    names: HashSet<String>,
    /// The first conversation's timestamp, and the last one's arrival.
    began: Option<f64>,
    arrival: u64,
    /// Fingerprints of prompts that are not measured.
    spares: HashSet<u64>,
}

runner_plugin::export_dataset!(ChatJsonl);

impl Dataset for ChatJsonl {
    type Config = Config;

    fn open(
        config: Config,
        _seed: u64,
        _count: Option<u64>,
        inputs: Inputs,
    ) -> Result<Self, Error> {
        let Some(file) = inputs.files.open(FILE) else {
            return Err(Error::InvalidConfig(format!(
                "no conversation file: pass --dataset-path FILE, or set `{FILE} = \"FILE\"` under \
                 [dataset.files]"
            )));
        };
        Ok(Self {
            config,
            tokenizer: inputs.tokenizer,
            lines: Lines::new(file),
            ready: VecDeque::new(),
            names: HashSet::new(),
            began: None,
            arrival: 0,
            spares: HashSet::new(),
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = Vec::new();
        while samples.len() < limit as usize && self.fill()? {
            while samples.len() < limit as usize
                && let Some(sample) = self.ready.pop_front()
            {
                // A file may contain a prompt twice.
                if self.spares.is_empty() || !self.spares.contains(&fingerprint(&sample.prompt)) {
                    samples.push(sample);
                }
            }
        }
        Ok(samples)
    }

    /// Whole conversations from the beginning of the file, so that no turn of theirs is measured.
    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = Vec::new();
        while samples.len() < limit as usize && self.fill()? {
            samples.extend(self.ready.drain(..));
        }
        samples.truncate(limit as usize);
        self.spares
            .extend(samples.iter().map(|sample| fingerprint(&sample.prompt)));
        Ok(samples)
    }
}

impl ChatJsonl {
    /// Reads on until there is a sample to return; false at the end of the file.
    fn fill(&mut self) -> Result<bool, Error> {
        while self.ready.is_empty() {
            let Some((number, line)) = self.lines.line()? else {
                return Ok(false);
            };
            let samples = Conversation::read(&line)
                .and_then(|conversation| self.samples(number, conversation))
                .map_err(|what| {
                    Error::InvalidInput(format!("file `{FILE}`, line {number}: {what}"))
                })?;
            self.ready.extend(samples);
        }
        Ok(true)
    }

    /// The samples of a conversation.
    fn samples(&mut self, number: u64, conversation: Conversation) -> Result<Vec<Sample>, String> {
        let session = match &conversation.id {
            Some(id) => id.clone(),
            None => format!("line-{number}"),
        };
        if !self.names.insert(session.clone()) {
            return Err(format!(
                "`id`: there is a conversation `{session}` before this one"
            ));
        }
        let arrival = self.arrival(&conversation)?;
        let mut asked = conversation.asked();
        if self.config.turns == Turns::Last {
            asked.drain(..asked.len() - 1);
        }
        let lengths = self.lengths(&asked);
        let last = asked.len() - 1;
        let samples = asked.into_iter().zip(lengths).enumerate();
        Ok(samples
            .map(|(index, (turn, length))| Sample {
                output_tokens: length,
                reference: match (index == last, &conversation.reference) {
                    (true, Some(reference)) => Some(reference.to_string()),
                    _ => turn
                        .answer
                        .map(|answer| serde_json::Value::from(answer).to_string()),
                },
                turn: Some(Turn {
                    session: session.clone(),
                    index: index as u32,
                }),
                class: conversation.class.clone(),
                arrival,
                adapter: conversation.adapter.clone(),
                parameters: conversation
                    .parameters
                    .as_ref()
                    .map(|fields| serde_json::Value::Object(fields.clone()).to_string()),
                ..Sample::new(
                    format!("{session}/{index}"),
                    Prompt::Messages(turn.messages),
                )
            })
            .collect())
    }

    /// The number of output tokens to request for each turn.
    fn lengths(&self, asked: &[Asked]) -> Vec<Option<u32>> {
        if self.config.output_len.is_some() {
            return vec![self.config.output_len; asked.len()];
        }
        let answers: Vec<String> = asked
            .iter()
            .filter_map(|turn| turn.answer.clone())
            .collect();
        let mut counts = self.tokenizer.count(&answers, false).into_iter();
        let mut length = |turn: &Asked| turn.answer.as_ref().and_then(|_| counts.next());
        asked.iter().map(&mut length).collect()
    }

    /// The arrival of the conversation, in nanoseconds after the first one.
    fn arrival(&mut self, conversation: &Conversation) -> Result<Option<u64>, String> {
        let Some(timestamp) = conversation.timestamp else {
            return match self.began {
                None => Ok(None),
                Some(_) => {
                    Err("`timestamp` is missing; conversations before this one have one".to_owned())
                }
            };
        };
        if self.began.is_none() && self.names.len() > 1 {
            return Err("`timestamp`: conversations before this one have none".to_owned());
        }
        let began = *self.began.get_or_insert(timestamp);
        let due = ((timestamp - began) * self.config.timestamp.nanoseconds()).round();
        if due < self.arrival as f64 {
            return Err(format!(
                "`timestamp`: {timestamp} is before that of the conversation before it"
            ));
        }
        self.arrival = due as u64;
        Ok(Some(self.arrival))
    }
}

/// Equal prompts have equal fingerprints.
fn fingerprint(prompt: &Prompt) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{prompt:?}").hash(&mut hasher);
    hasher.finish()
}
