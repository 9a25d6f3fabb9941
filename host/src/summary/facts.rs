//! What a summary needs to know of a run beside its exchanges.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::column::Column;
use super::server::Server;
use crate::metric::Objective;
use crate::plugin::Kind;
use crate::plugin::sandbox::Limits;
use crate::threshold::Threshold;
use crate::units::Nanos;

/// How a run was offered: what of its plan bears on how its figures are computed and read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Run {
    /// The backend plugin's name.
    pub backend: String,
    /// How requests become due, in words: `all at once`, `poisson`, `trace`.
    pub arrival: String,
    /// Mean requests a second that the plan offers; absent where requests are not held to a rate
    /// (all at once, or each when a slot is free).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_rate: Option<f64>,
    /// Whether that is the rate from the first request to the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_rate: bool,
    /// The cap on requests in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u64>,
    /// Requests that the plan has for the measurement, where it says how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned: Option<u64>,
    /// Whether replies were asked for piece by piece.
    pub streamed: bool,
    /// Whether the server was told to go on to the length asked for.
    pub ignore_eos: bool,
    /// The percentiles to report, in percent. A summary lists them in order, and 99 always among
    /// them.
    pub percentiles: Vec<f64>,
    /// When the measurement began, on the clock of the exchanges; a summary has the first due time
    /// where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure_start: Option<Nanos>,
    /// How long after the measurement began its first request was due: with some arrivals a while.
    #[serde(default, skip_serializing_if = "is_none")]
    pub first_due: Nanos,
    /// What a request must keep to, to be good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goodput: Vec<Objective>,
    /// What the run must keep to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub thresholds: Vec<Threshold>,
    /// The tokenizer that counted tokens on this side, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<Tokenizer>,
    /// Whether certificates were taken unchecked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// The plugins that made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Used>,
    /// What they might use up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Limits>,
    /// Whether the run was stopped before its plan was done.
    pub interrupted: bool,
}

/// A plugin that a run used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Used {
    /// What it did.
    pub kind: Kind,
    /// What it calls itself.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of the component, in hexadecimal.
    pub digest: String,
}

fn is_none(span: &Nanos) -> bool {
    *span == Nanos::ZERO
}

/// A tokenizer of this side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Tokenizer {
    /// Its name, such as the file it was read from.
    pub name: String,
    /// Whether it is not the served model's own, so that its counts only estimate.
    pub approximate: bool,
}

/// The mean of one score.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Score {
    /// Mean over the answers that were judged.
    pub mean: f64,
    /// How many were.
    pub count: u64,
}

/// All that a summary takes beside the exchanges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunFacts {
    /// How the run was offered.
    pub run: Run,
    /// Tokens of answers by the tokenizer of this side, by the index of the measured exchange.
    #[serde(default)]
    pub retokenized: Column<u32>,
    /// Mean scores of answers by name. Values are finite.
    #[serde(default)]
    pub scores: BTreeMap<String, Score>,
    /// Scores of the run as a whole by name. Values are finite.
    #[serde(default)]
    pub run_scores: BTreeMap<String, f64>,
    /// How often scorers failed.
    #[serde(default)]
    pub scorer_errors: u64,
    /// How the client performed, where it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// What the server counted of itself, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
}

impl From<Run> for RunFacts {
    fn from(run: Run) -> Self {
        RunFacts {
            run,
            retokenized: Column::default(),
            scores: BTreeMap::new(),
            run_scores: BTreeMap::new(),
            scorer_errors: 0,
            client: None,
            server: None,
        }
    }
}
