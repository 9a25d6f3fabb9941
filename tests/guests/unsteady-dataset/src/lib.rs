//! A dataset that is steady or fails in one of the ways that only `runner plugin test` finds: nothing traps and
//! nothing breaks the contract of a single call.

use runner_plugin::{Dataset, Error, Inputs, Prompt, Sample};
use schemars::JsonSchema;
use serde::Deserialize;

/// What it is told to do.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// How it fails.
    fault: Option<Fault>,
}

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    /// Prompts contain the number of samples requested with them.
    ByLimit,
    /// Every tenth sample has the id of the one before it.
    SameId,
    /// Spare prompts are measured too.
    SpareMeasured,
}

/// The samples.
pub struct Unsteady {
    fault: Option<Fault>,
    seed: u64,
    number: u64,
}

runner_plugin::export_dataset!(Unsteady);

impl Unsteady {
    fn sample(&self, id: String, prompt: String) -> Sample {
        Sample {
            id,
            prompt: Prompt::Text(prompt),
            input_tokens: None,
            output_tokens: Some(8),
            reference: None,
            turn: None,
            class: None,
            arrival: None,
            adapter: None,
            parameters: None,
        }
    }
}

impl Dataset for Unsteady {
    type Config = Config;

    fn open(
        config: Config,
        seed: u64,
        _count: Option<u64>,
        _inputs: Inputs,
    ) -> Result<Self, Error> {
        Ok(Unsteady {
            fault: config.fault,
            seed,
            number: 0,
        })
    }

    fn next(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let mut samples = Vec::new();
        for _ in 0..limit {
            self.number += 1;
            let id = match (self.fault, self.number % 10) {
                (Some(Fault::SameId), 0) => self.number - 1,
                _ => self.number,
            };
            let prompt = match self.fault {
                Some(Fault::ByLimit) => format!("{} of {limit}", self.number),
                _ => format!("{} of seed {}", self.number, self.seed),
            };
            samples.push(self.sample(id.to_string(), prompt));
        }
        Ok(samples)
    }

    fn spare(&mut self, limit: u32) -> Result<Vec<Sample>, Error> {
        let prompt = |number: u32| match self.fault {
            Some(Fault::SpareMeasured) => format!("{number} of seed {}", self.seed),
            _ => format!("spare {number}"),
        };
        Ok((1..=limit)
            .map(|number| self.sample(format!("spare-{number}"), prompt(number)))
            .collect())
    }
}
