//! The facts that a summary needs about a run in addition to its exchanges.

use std::collections::BTreeMap;

use devices::{Devices, Recording, SteadyEnergy};
use serde::{Deserialize, Serialize};

use super::Fleet;
use super::cache::Cache;
use super::column::Column;
use super::dataset::Dataset;
use super::server::Server;
use super::steady::{SteadyState, Window};
use super::tokens::Tokens;
use super::unjudged::SilentScorer;
use crate::metric::{Objective, objective};
use crate::threshold::Threshold;
use model::client::Client;
use model::plugin::{Kind, Limits};
use model::units::Nanos;

model::words! {
    /// The kind of loop: does the server's speed decide when requests come?
    pub enum Loop {
        /// Requests come when the plan says, whatever the server does.
        Open = "open",
        /// Each user asks again after the last answer, so that a slow server gets fewer requests.
        Closed = "closed",
    }
    default Open
}

/// The rules of a published benchmark that a run is to keep.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Rules {
    /// The name of the benchmark's preset.
    pub name: String,
    /// Rules that the scenario contradicts, with its keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loosened: Vec<String>,
    /// The largest share of requests whose context may be too long; absent if the rules state none.
    pub context_overflow_most: Option<f64>,
    /// The largest share of requests that may fail otherwise; absent if the rules state none.
    pub failures_most: Option<f64>,
}

/// The parts of the plan that affect how the run's figures are computed and read.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Run {
    /// The backend plugin's name.
    pub backend: String,
    /// The way in which requests become due: `all at once`, `poisson`, `trace`.
    pub arrival: String,
    /// The loop: closed if users wait for answers before they ask again. In a closed loop,
    /// percentiles of latency have fewer samples of slow periods than of fast ones.
    pub r#loop: Loop,
    /// Mean requests per second that the plan offers; absent if requests do not follow a rate
    /// (all at once, or each when a slot is free).
    pub request_rate: Option<f64>,
    /// True if the rate is the same from the first request to the last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub even_rate: bool,
    /// The cap on requests in flight.
    pub max_in_flight: Option<u64>,
    /// The users of a closed loop, or its lanes.
    pub users: Option<u64>,
    /// The machines, as the scenario declares them.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub machines: Machines,
    /// Requests of each wave of the warm-up, if it goes on until the engine is stable.
    pub warmup_wave: Option<u64>,
    /// Number of requests that the plan has for the measurement, if it sets one.
    pub planned: Option<u64>,
    /// True if replies were requested as a stream.
    pub streamed: bool,
    /// The acceptance length of drafts that the scenario expects, in tokens per step.
    pub expected_acceptance_length: Option<f64>,
    /// The setting of the launch command with which the engine simulates the acceptance of drafts.
    pub simulated_acceptance: Option<String>,
    /// True if the request told the server to ignore the end of the text and fill the requested
    /// length.
    pub ignore_eos: bool,
    /// True if answers may end early because the backend has no field against it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unforced: bool,
    /// The most tokens of a prompt and its answer, as the server states it.
    pub context_tokens: Option<u32>,
    /// The percentiles to report, in percent. A summary lists them in order, and 99 always among
    /// them.
    pub percentiles: Vec<f64>,
    /// True if means and percentiles include requests that failed or were not sent, as infinitely
    /// late. The figures of groups and of the steady state never do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failures_as_infinite: bool,
    /// The beginning of the measurement, on the clock of the exchanges; a summary uses the first
    /// due time if this is absent.
    pub measure_start: Option<Nanos>,
    /// Time from the start of the measurement until its first request was due; some arrivals start
    /// late.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub first_due: Nanos,
    /// The requested length of the time slices that figures are also given by; absent if they were
    /// not requested.
    pub time_slice: Option<Nanos>,
    /// The objectives that a request must meet to count as good.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goodput: Vec<Objective>,
    /// The thresholds of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub thresholds: Vec<Threshold>,
    /// The tokenizer that counted tokens on the client, if any.
    pub tokenizer: Option<Tokenizer>,
    /// The rules of a published benchmark; absent if the run is by no such rules.
    pub rules: Option<Rules>,
    /// True if certificates were accepted without being checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// The plugins of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<Used>,
    /// The resource limits of the plugins.
    pub sandbox: Option<Limits>,
    /// True if the run was stopped before it completed its plan.
    pub interrupted: bool,
    /// True if histories are to hold the answers on record, and not the server's answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded_histories: bool,
    /// Options of requests that the scenario states and the backend ignores, by their keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_options: Vec<String>,
    /// The damage of its records, if the file is not as the run wrote it.
    pub damage: Option<Damage>,
    /// The damage of its record of the server's series, as text.
    pub series_damage: Option<String>,
    /// The price of the machines, if the scenario names one.
    pub cost: Option<Price>,
}

impl Run {
    /// The time per token at which answers are read, if the run has an objective on it.
    pub fn pace(&self) -> Option<Nanos> {
        objective::pace(&self.goodput)
    }
}

/// The machines that serve, as the scenario declares them.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Machines {
    /// The number of devices.
    pub devices: Option<u32>,
    /// Their power in watts, with all that is counted with them.
    pub power_w: Option<f64>,
}

/// The price of the machines, as the scenario states it.
#[model::apply(model::document!)]
pub struct Price {
    /// Per hour.
    pub per_hour: f64,
    /// The currency.
    pub currency: Option<String>,
}

/// The damage of a run's records.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Damage {
    /// Records that the run wrote, if that is known.
    pub written: Option<u64>,
    /// Records that can be read.
    pub readable: u64,
    /// The contents that were found in the file.
    pub found: String,
}

impl Damage {
    pub fn label(&self) -> String {
        let Damage { written, readable, found } = self;
        match written {
            Some(written) if readable < written => {
                let missing = written - readable;
                format!("{missing} of {written} records are missing or unreadable: {found}")
            }
            Some(written) => {
                format!("the run wrote {written} records and the file holds {readable}: {found}")
            }
            None => format!("{readable} records can be read, but {found}"),
        }
    }
}

/// A plugin that a run used.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Used {
    /// The plugin's kind.
    pub kind: Kind,
    /// The name that it gives itself.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// SHA-256 of the component, in hexadecimal.
    pub digest: String,
}

/// A tokenizer of the client.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Tokenizer {
    /// Its name, such as the file it was loaded from.
    pub name: String,
    /// True if it is not the served model's own tokenizer, so that its counts are only estimates.
    pub approximate: bool,
    /// The commit, where it comes from the local cache of the Hugging Face hub.
    pub revision: Option<String>,
    /// True if it was found under the served model's name, and the user did not name it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found: bool,
    /// Tokens of the model's chat template around one message; absent without a template.
    pub template_tokens: Option<u32>,
}

impl Tokenizer {
    /// Returns a remark to show beside its name.
    pub fn remark(&self) -> Option<&'static str> {
        match (self.approximate, self.found) {
            (true, _) => Some("approximate"),
            (false, true) => Some("found by the model's name"),
            (false, false) => None,
        }
    }

    pub fn label(&self) -> String {
        match self.remark() {
            Some(remark) => format!("{} ({remark})", self.name),
            None => self.name.clone(),
        }
    }
}

/// Everything that a summary needs in addition to the exchanges.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunFacts {
    pub run: Run,
    /// Tokens of answers by the tokenizer of this side, by the index of the measured exchange.
    #[serde(default)]
    pub retokenized: Column<u32>,
    /// Tokens of the reasoning alone, of answers that have any.
    #[serde(default, skip_serializing_if = "Column::is_empty")]
    pub reasoning: Column<u32>,
    /// Each score by its name, of each measured answer by the index of the exchange. Values are
    /// finite.
    #[serde(default)]
    pub scores: BTreeMap<String, Column<f64>>,
    /// Answers that a score's scorer failed on or was not asked about, by the index of the
    /// exchange, in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unscored: BTreeMap<String, Vec<u64>>,
    /// Answers that were not to have a score because only some were drawn for it, by the index of
    /// the exchange, in order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, Vec<u64>>,
    /// Scores of the run as a whole by name. Values are finite.
    #[serde(default)]
    pub run_scores: BTreeMap<String, f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_scorers: Vec<SilentScorer>,
    /// Measured requests that were due when the run was stopped, and have no record of their own.
    #[serde(default)]
    pub unsent: u64,
    #[serde(default)]
    pub scorer_errors: u64,
    /// The load machines that made the run together, if several did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Fleet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<Recording>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<series::Recording>,
    /// The treatment that the dataset gave to its input, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<Dataset>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
}

impl RunFacts {
    /// Tokens of an answer's reasoning text, if this side has the served model's tokenizer.
    pub(super) fn reasoning_of(&self, index: u64) -> Option<u32> {
        let tokenizer = self.run.tokenizer.as_ref();
        let is_approximate = tokenizer.is_some_and(|tokenizer| tokenizer.approximate);
        self.reasoning.get(index).filter(|_| !is_approximate)
    }

    pub(super) fn unknown(&self) -> u64 {
        let agents = self.fleet.iter().flat_map(|fleet| &fleet.agents);
        agents.filter_map(|agent| agent.lost.as_ref()).filter_map(|lost| lost.unknown).sum()
    }
}

/// The message for the requests of a lost agent that are not on record.
pub(super) const LOST_WITH_AGENT: &str =
    "the agent that had to send it was lost; whether it was sent, and answered, is not known";

/// The message in the record of a request that was never sent.
pub const NOT_SENT: &str =
    "it was due, but the run ended before a slot came free or it could be sent";

impl From<Run> for RunFacts {
    fn from(run: Run) -> Self {
        RunFacts { run, ..RunFacts::default() }
    }
}

// The devices over the measured interval, and the price of a million tokens: energy of the
// devices, energy of their host, cost. `devices` makes figures of samples; this module chooses the
// interval and the tokens.
//
// The host's energy is never added to the devices': it is of the machine that this program runs
// on, and lacks the draw of fans, disks and power supplies.

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// The cost of the measured interval, in the currency of the price.
#[model::apply(model::document!)]
pub struct Cost {
    /// The price of an hour.
    pub per_hour: f64,
    /// The currency, where the scenario says it.
    pub currency: Option<String>,
    /// The cost of the interval: its length times the price.
    pub total: Option<f64>,
    /// The cost of a million output tokens of answered requests.
    pub per_million_output_tokens: Option<f64>,
    /// The cost of a million input and output tokens together.
    pub per_million_total_tokens: Option<f64>,
}

/// Tokens of answered requests: output, and input and output together.
#[derive(Clone, Copy)]
pub(super) struct AnswerTokens {
    output: Option<u64>,
    total: Option<u64>,
}

impl AnswerTokens {
    pub(super) fn new(tokens: &Tokens) -> Self {
        let both = tokens.input.total.zip(tokens.output.total);
        AnswerTokens {
            output: tokens.output.total,
            total: both.map(|(input, output)| input.saturating_add(output)),
        }
    }
}

/// Returns the devices' figures over a measurement, with the figures of its tokens and its steady
/// window.
pub(super) fn devices(
    recording: &Recording,
    (from, to): (Nanos, Nanos),
    tokens: AnswerTokens,
    steady: Option<&SteadyState>,
) -> Devices {
    Devices {
        steady: match steady {
            Some(SteadyState::Window(window)) => steady_energy(recording, from, window),
            _ => None,
        },
        ..recording.over(from, to).for_tokens(tokens.output, tokens.total)
    }
}

fn steady_energy(recording: &Recording, origin: Nanos, window: &Window) -> Option<SteadyEnergy> {
    let at = |seconds: f64| origin + Nanos::from_secs_f64(seconds);
    let devices = recording.over(at(window.from_s), at(window.to_s));
    let energy = devices.energy_j?;
    let tokens = window.output_tokens_per_s.filter(|rate| *rate > 0.0);
    Some(SteadyEnergy {
        energy_j: Some(energy),
        mean_power_w: devices.mean_power_w,
        energy_per_million_output_tokens: tokens
            .map(|rate| energy / (rate * window.duration_s) * 1e6),
    })
}

impl Cost {
    pub(super) fn new(price: &Price, duration_s: Option<f64>, tokens: AnswerTokens) -> Self {
        let total = duration_s.map(|seconds| price.per_hour * seconds / SECONDS_PER_HOUR);
        let each = |tokens: Option<u64>| {
            let tokens = tokens.filter(|tokens| *tokens > 0)?;
            Some(total? / tokens as f64 * 1e6)
        };
        Cost {
            per_hour: price.per_hour,
            currency: price.currency.clone(),
            total,
            per_million_output_tokens: each(tokens.output),
            per_million_total_tokens: each(tokens.total),
        }
    }
}
