//! A dataset that misbehaves as its configuration says; by default it returns `sample 0`,
//! `sample 1` and so on.

use misdeeds::{Deed, commit};
use runner_plugin::{Amount, Continuation, Dataset, Dependency, Error, Inputs, Message, Point};
use runner_plugin::{Prompt, Remark, Role, Sample, Treatment, Turn, log};
use schemars::JsonSchema;
use serde::Deserialize;

/// The behaviour that is configured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The misdeed.
    misbehave: Option<Deed>,
    /// An invalid answer to give.
    answer: Option<Answer>,
    /// The call for it; if absent, none.
    call: Option<Call>,
    /// Only at the sample of this number.
    only_at: Option<u64>,
    /// Log all inputs.
    spill: bool,
    /// The number of the sample whose prompt ends in `!`.
    mark: Option<u64>,
    /// Samples belong to this many conversations, in turn.
    sessions: Option<u64>,
    /// Arrivals of samples, in milliseconds; later samples have none.
    arrivals: Vec<u64>,
    /// The adapter of every sample.
    adapter: Option<String>,
    /// A file to read; its contents are the first prompt.
    file: Option<String>,
    /// The offset to read it from.
    offset: u64,
    /// Number of times to open it additionally, without ever closing it.
    open_more: u32,
}

/// A call of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Call {
    /// `open`.
    Open,
    /// `next`.
    Next,
    /// `spare`.
    Spare,
    /// `remarks`.
    Remarks,
}

/// An answer that breaks the contract, or is very large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// An error of the user's configuration.
    Refuse,
    /// An error of an input file.
    Fault,
    /// One sample more than requested.
    TooMany,
    /// A million samples.
    Million,
    /// A prompt of 100 MB.
    Huge,
    /// A reference that is not JSON.
    BadReference,
    /// The id of the first sample.
    SameId,
    /// A dependency on a sample that there is not.
    Orphan,
    /// The next message of a conversation on whose end it does not depend.
    Beside,
    /// Two thousand remarks, with control characters.
    Remarks,
}

pub struct Hostile {
    config: Config,
    first: Option<String>,
    number: u64,
}

runner_plugin::export_dataset!(Hostile);

impl Dataset for Hostile {
    type Config = Config;

    fn open(config: Config, seed: u64, amount: Amount, inputs: Inputs) -> Result<Self, Error> {
        if config.spill {
            log::info(&format!("{config:?} {seed} {amount:?}"));
        }
        let first = config.file.as_deref().map(|name| {
            let file = inputs
                .files
                .open(name)
                .ok_or_else(|| Error::InvalidInput(format!("there is no file `{name}`")))?;
            for _ in 0..config.open_more {
                std::mem::forget(inputs.files.open(name));
            }
            let bytes = file.read(config.offset, u32::MAX).map_err(Error::InvalidInput)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        });
        let hostile = Hostile { first: first.transpose()?, config, number: 0 };
        hostile.tempted(Call::Open)?;
        Ok(hostile)
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.give(Call::Next, limit)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        self.give(Call::Spare, limit)
    }

    fn remarks(&self) -> Vec<Remark> {
        match self.tempted(Call::Remarks) {
            Ok(Some(Answer::Remarks)) => (0..2_000)
                .map(|number| Remark {
                    what: Treatment::Dropped,
                    reason: format!("\u{1b}[2J {number}"),
                    count: number,
                    first: Some("\u{7}".repeat(10_000)),
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

impl Hostile {
    fn tempted(&self, call: Call) -> Result<Option<Answer>, Error> {
        let config = &self.config;
        let is_there = config.only_at.is_none_or(|number| number == self.number);
        if config.call != Some(call) || !is_there {
            return Ok(None);
        }
        if let Some(deed) = config.misbehave {
            commit(deed);
        }
        match config.answer {
            Some(Answer::Refuse) => {
                Err(Error::InvalidConfig("key `call`: refused on purpose".to_owned()))
            }
            Some(Answer::Fault) => {
                Err(Error::InvalidInput("file `questions`, line 3: expected a question".to_owned()))
            }
            other => Ok(other),
        }
    }

    fn give(&mut self, call: Call, limit: u32) -> Result<Vec<Sample>, Error> {
        let limit = u64::from(limit);
        let mut samples = Vec::new();
        let mut wanted = limit;
        while (samples.len() as u64) < wanted {
            let answer = self.tempted(call)?;
            match answer {
                Some(Answer::TooMany) => wanted = limit + 1,
                Some(Answer::Million) => wanted = 1_000_000,
                _ => {}
            }
            samples.push(self.sample(answer));
        }
        Ok(samples)
    }

    fn sample(&mut self, answer: Option<Answer>) -> Sample {
        let number = self.number;
        self.number += 1;
        let mark = if self.config.mark == Some(number) { "!" } else { "" };
        let prompt = match (answer, self.first.take()) {
            (Some(Answer::Huge), _) => "x".repeat(100 << 20),
            (_, Some(first)) => first,
            _ => format!("sample {number}{mark}"),
        };
        let id = match answer {
            Some(Answer::SameId) => "sample-0".to_owned(),
            _ => format!("sample-{number}"),
        };
        let length = prompt.len();
        let depends =
            |on: &str| Dependency { sample: on.to_owned(), point: Point::FirstOutput, delay: 0 };
        let (prompt, after) = match answer {
            Some(Answer::Orphan) => (Prompt::Text(prompt), vec![depends("nobody")]),
            Some(Answer::Beside) => {
                let parent = format!("sample-{}", number.saturating_sub(1));
                let after = vec![depends(&parent)];
                let messages = vec![Message::text(Role::User, prompt)];
                (Prompt::Continuation(Continuation { parent, messages }), after)
            }
            _ => (Prompt::Text(prompt), Vec::new()),
        };
        Sample {
            after,
            input_tokens: None,
            output_tokens: u32::try_from(length).ok(),
            reference: Some(match answer {
                Some(Answer::BadReference) => "{not json".to_owned(),
                _ => number.to_string(),
            }),
            turn: (self.config.sessions).map(|of| Turn {
                session: format!("session-{}", number % of),
                index: u32::try_from(number / of).unwrap_or(u32::MAX),
            }),
            arrival: (usize::try_from(number).ok())
                .and_then(|number| self.config.arrivals.get(number))
                .map(|milliseconds| milliseconds * 1_000_000),
            adapter: self.config.adapter.clone(),
            ..Sample::new(id, prompt)
        }
    }
}
