//! A dataset that is steady or has one of the faults that only `runner plugin test` finds: nothing
//! traps, and no single call breaks the contract.

use runner_plugin::Treatment;
use runner_plugin::{Amount, Dataset, Error, Inputs, Message, Prompt, Remark, Role, Sample};
use schemars::JsonSchema;
use serde::Deserialize;

/// The behaviour that is configured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The fault.
    fault: Option<Fault>,
    /// Number of samples of a session; 0 is as 1.
    turns: u64,
    /// Reports its treatment of the input.
    remarks: bool,
}

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    /// Prompts contain the number of samples requested with them.
    ByLimit,
    /// Every tenth sample has the previous sample's id.
    SameId,
    /// Spare prompts are measured too.
    SpareMeasured,
    /// The last turn of a session comes after the root of the next one.
    Scattered,
    /// Turns name a sample that there is not.
    Orphans,
    /// Turns continue a conversation, but only wait for its first output.
    Hasty,
    /// Spare samples depend on others.
    SpareTurns,
    /// A sample that depends on a spare sample comes after another root.
    SpareLater,
    /// Spare samples come from the SDK, which is no fault.
    SpareDefault,
    /// The number of calls is among the remarks.
    RemarksByCall,
}

#[derive(Default)]
pub struct Unsteady {
    config: Config,
    seed: u64,
    number: u64,
    calls: u64,
    sessions: Option<u64>,
    /// True if a root stands between a spare sample and the sample that depends on it.
    between: bool,
}

/// The same samples, with the spare ones of the SDK.
struct Plain(Unsteady);

impl Dataset for Plain {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        Unsteady::open(config, seed, amount, inputs).map(Plain)
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.0.next(limit)
    }
}

runner_plugin::export_dataset!(Unsteady);

impl Unsteady {
    fn is(&self, fault: Fault) -> bool {
        self.config.fault == Some(fault)
    }

    fn sample(id: String, prompt: String) -> Sample {
        Sample { output_tokens: Some(8), ..Sample::new(id, Prompt::Text(prompt)) }
    }

    /// Sample `number`, counted from 1, in its session.
    fn at(&self, number: u64, limit: u32) -> Sample {
        let id = match (self.is(Fault::SameId), number % 10) {
            (true, 0) => number - 1,
            _ => number,
        };
        let prompt = if self.is(Fault::ByLimit) {
            format!("{number} of {limit}")
        } else {
            format!("{number} of seed {}", self.seed)
        };
        let turn = (number - 1) % self.config.turns.max(1);
        if turn == 0 {
            return Self::sample(id.to_string(), prompt);
        }
        let parent =
            if self.is(Fault::Orphans) { "nobody".to_owned() } else { (number - 1).to_string() };
        let messages = vec![Message::text(Role::User, prompt)];
        let mut sample = Sample::following(id.to_string(), &parent, 1_000_000, messages);
        if self.is(Fault::Hasty) {
            sample.after[0].point = runner_plugin::Point::FirstOutput;
        }
        sample
    }
}

impl Dataset for Unsteady {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, _inputs: Inputs) -> Result<Self, Error> {
        let sessions = amount.sessions();
        Ok(Unsteady { config, seed, sessions, ..Unsteady::default() })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.calls += 1;
        let turns = self.config.turns.max(1);
        let mut samples = Vec::new();
        if std::mem::take(&mut self.between) {
            samples.push(Self::sample("between".to_owned(), "Between.".to_owned()));
        }
        for _ in samples.len()..limit as usize {
            if self.sessions.is_some_and(|most| self.number >= most * turns) {
                break;
            }
            self.number += 1;
            // The last turn changes places with the root that follows it.
            let number = match (self.is(Fault::Scattered), self.number % turns) {
                (true, 0) => self.number + 1,
                (true, 1) if self.number > 1 => self.number - 1,
                _ => self.number,
            };
            samples.push(self.at(number, limit));
        }
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        if self.is(Fault::SpareDefault) {
            let mut plain = Plain(std::mem::take(self));
            let spare = plain.spare(limit);
            *self = plain.0;
            return spare;
        }
        if self.is(Fault::SpareLater) {
            let spare = self.next(1);
            self.between = true;
            return spare;
        }
        let prompt = |number: u32| {
            if self.is(Fault::SpareMeasured) {
                format!("{number} of seed {}", self.seed)
            } else {
                format!("spare {number}")
            }
        };
        let spare = |number: u32| {
            let mut sample = Self::sample(format!("spare-{number}"), prompt(number));
            if self.is(Fault::SpareTurns) {
                let messages = vec![Message::text(Role::User, prompt(number))];
                sample = Sample::following(sample.id, "1", 0, messages);
            }
            sample
        };
        Ok((1..=limit).map(spare).collect())
    }

    fn remarks(&self) -> Vec<Remark> {
        let remark = |what, reason: &str, count| Remark {
            what,
            reason: reason.to_owned(),
            count,
            first: Some("line 7".to_owned()),
        };
        match (self.config.remarks, self.is(Fault::RemarksByCall)) {
            (true, _) => vec![
                remark(Treatment::Dropped, "fewer than two words", 3),
                remark(Treatment::Repeated, "not enough lines", 1),
            ],
            (_, true) => vec![remark(Treatment::Dropped, "calls", self.calls)],
            _ => Vec::new(),
        }
    }
}
