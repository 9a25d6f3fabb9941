//! The summary of a run: every reported figure, computed from the run's exchanges and the facts
//! of its plan, and from nothing else.
//!
//! It reads the exchanges twice and keeps none: `survey` finds the start of the measurement and the
//! requests in flight, `gather` counts and sums. Memory grows by 16 bytes per request during the
//! first pass, by 24 in runs that offer a rate. The second pass needs memory per request only where
//! requests depend on each other: 48 bytes.
//!
//! The result does not depend on the order of the exchanges. So the records of several load
//! generators can be merged and summarised as one run. `metric` defines the metrics, `outcome` adds
//! findings, verdict and thresholds, `report` lays the figures out.
//!
//! Besides a counter for each second, this data grows with a run:
//!
//! | for | bytes per request |
//! | --- | --- |
//! | the peak in flight and the steady window, during the first pass | 16 |
//! | the gaps between due times, in the first pass, if the plan offers a rate | 8 |
//! | the number in flight at each sending, in an open loop | 8 |
//! | the answer's tokens by our tokenizer | 4 |
//! | each score | 8 |
//! | the answers that scorers judged, during the second pass | 40 |
//! | its place in a session, if any request depends on another or is a turn | 48 |
//! | being sent in the first quarter of the run, in 100 000 at most | 32 |
//! | TTFT, TPOT and E2E latency by time slice, with `report.slice` | 24 |
//! | the prompt's place and send time, with `report.cache` | some 70 |
//!
//! Everything else has a bound. A metric with one sample per request keeps up to 100 000 samples,
//! and counts in a histogram beyond; the number alone decides, so order and slices change nothing.
//! A metric with samples for each token is always counted, within 1/2048 of the exact percentile.
//! Groups are at most 25 of each kind, kinds of failure 64, and time slices 1000.

mod agents;
mod backlog;
pub mod cache;
pub mod cold;
mod column;
pub(crate) mod confidence;
mod counts;
pub mod course;
mod dataset;
mod distribution;
mod expected;
mod facts;
mod failing;
pub mod first_token;
pub mod fleet;
mod flights;
mod gaps;
pub(crate) mod gather;
mod goodput;
mod groups;
mod kinds;
mod lives;
mod load;
mod messages;
mod occupancy;
mod reasoning;
mod requests;
mod scores;
pub mod server;
pub(crate) mod sessions;
mod speculation;
mod steady;
mod survey;
pub mod telemetry;
mod time_slices;
mod tokens;
mod unjudged;
pub mod warmup;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use ::series::ServerSeries;
pub use agents::{Agents, Source};
pub use backlog::Backlog;
pub use cold::ColdStart;
pub use column::Column;
pub use confidence::{Bounds, Confidence, HEADLINE, LEAST_LOADS, RateConfidence, Rates, Same};
pub use counts::ServerCount;
pub use dataset::{Dataset, Remark, Treatment};
pub use devices::Devices;
pub use distribution::{Basis, Distribution};
pub use facts::{Damage, Loop, Machines, NOT_SENT, Price, Rules, Run, RunFacts, Tokenizer, Used};
pub use failing::{Amount, WithFailures};
pub use first_token::FirstToken;
pub use fleet::Fleet;
pub use goodput::{Attainment, Goodput};
pub use groups::{Group, Groups};
pub use kinds::{Drafts, Reported};
pub use load::Arrivals;
pub use messages::Message;
pub use model::client::Client;
pub use occupancy::Occupancy;
pub use reasoning::Reasoning;
pub use requests::{Failures, Requests};
pub use scores::{By, Example, Score, ScoredGroup};
pub use server::Server;
pub use sessions::{Histories, Session, Sessions};
pub use speculation::{Quarter, Speculation, TpotByAcceptance};
pub use steady::{SteadyState, Window};
pub use survey::Survey;
pub use telemetry::Cost;
pub use time_slices::{TimeSlice, TimeSlices};
pub use tokens::{Comparison, Counted, LeftOut, Tokens};
pub use unjudged::{SilentScorer, Unjudged};
pub use warmup::Warmup;

use crate::finding::{Finding, Verdict};
use crate::threshold::Checked;

/// The result of a run. A figure that was not measured is absent, never zero.
#[model::apply(model::document!)]
pub struct Summary {
    /// The load of the run, and settings that affect its figures.
    pub run: Run,
    /// The verdict on the measurement: the severity of its worst finding.
    pub verdict: Verdict,
    /// Reasons to doubt the measurement.
    pub findings: Vec<Finding>,
    /// The run's thresholds, and if each of them holds; absent if the run has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Checked>,
    /// Outcomes of the requests.
    pub requests: Requests,
    /// Token counts and their sources.
    pub tokens: Tokens,
    /// Further counts of the server for each request, by name, over the answers that state them;
    /// absent if none does.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, ServerCount>,
    /// Throughput.
    pub throughput: Throughput,
    /// The evenness with which requests were due and sent; absent if the plan offers no rate.
    pub arrivals: Option<Arrivals>,
    /// The number of requests in flight.
    pub concurrency: Concurrency,
    /// The parts of the time to first token, by this client's clock and the server's own timings;
    /// absent if no reply states timings.
    pub first_token: Option<FirstToken>,
    /// The same as means, by the server's series; absent if its pages do not tell, or if one server
    /// does everything and replies state timings.
    pub first_token_by_series: Option<first_token::BySeries>,
    /// Requests that depend on each other; absent if none does, and no request is a turn of a
    /// conversation.
    pub sessions: Option<Sessions>,
    /// The agents of a closed loop of sessions; absent for any other load.
    pub agents: Option<Agents>,
    /// Histories in front of requests; absent if none has one.
    pub histories: Option<Histories>,
    /// Figures by turn, class and adapter, of requests that state them.
    #[serde(default, skip_serializing_if = "Groups::is_empty")]
    pub groups: Groups,
    /// The treatment that the dataset gave to its input; absent if it changed nothing, or did not
    /// report it.
    pub dataset: Option<Dataset>,
    /// Figures by time slice; absent if they were not requested, or nothing ended.
    pub time_slices: Option<TimeSlices>,
    /// The number of requests that met the run's objectives; absent if the run has none.
    pub goodput: Option<Goodput>,
    /// The run's figures while requests in flight were steady; absent if nothing was in flight.
    pub steady_state: Option<SteadyState>,
    /// The warm-up that lasts until the engine is stable; absent for other warm-ups.
    pub warmup: Option<Warmup>,
    /// The cold start of the run, if there was one.
    pub cold_start: Option<ColdStart>,
    /// The load machines that made the run together; absent if one did.
    pub fleet: Option<Fleet>,
    /// The performance of this client; absent if it was not monitored.
    pub client: Option<Client>,
    /// The server's own metrics; absent if they were not requested.
    pub server: Option<Server>,
    /// The server's own series over the measurement; absent if its metrics page was not sampled.
    pub server_series: Option<ServerSeries>,
    /// The activity and power of the devices during the measurement; absent if they were not
    /// sampled.
    pub devices: Option<Devices>,
    /// The cost of the measurement; absent if the scenario names no price.
    pub cost: Option<Cost>,
    /// The part of the prompts that repeats, and the part that the server found in its prefix
    /// cache; absent if it was not requested.
    pub cache: Option<cache::Cache>,
    /// The distribution of each metric that was measured, by name.
    pub metrics: BTreeMap<String, Distribution>,
    /// Scores of the answers by name: means over the judged answers, with their certainty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<String, Score>,
    /// Scores of the run as a whole, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub run_scores: BTreeMap<String, f64>,
    /// Scorers that gave no score.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent_scorers: Vec<SilentScorer>,
    /// The number of times that scorers failed to judge.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub scorer_errors: u64,
}

/// Throughput. Only answered requests and their tokens count.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Throughput {
    /// Seconds from the start of the measurement to the end of its last exchange, failed ones
    /// included.
    pub duration_s: Option<f64>,
    /// Answered requests per second.
    pub requests_per_s: Option<f64>,
    /// Their input tokens per second.
    pub input_tokens_per_s: Option<f64>,
    /// Their output tokens per second.
    pub output_tokens_per_s: Option<f64>,
    /// Input and output tokens together per second.
    pub total_tokens_per_s: Option<f64>,
    /// Most output tokens in any of the whole seconds that follow the start of the measurement.
    /// Tokens, not events: if the server does not state the tokens of an event, the answer's tokens
    /// are distributed over its events by their bytes. Absent if replies were not streamed, and in
    /// runs shorter than a second.
    pub peak_output_tokens_per_s: Option<f64>,
    /// Seconds of sound in their answers, per second: many streams together give more than one.
    pub audio_s_per_s: Option<f64>,
    /// Seconds of sound in their prompts, per second, as the dataset measured it: RTFx of the Open
    /// ASR Leaderboard, which divides the sums.
    pub input_audio_s_per_s: Option<f64>,
    /// Requests sent per second: `(sent - 1) / (last sent - first sent)`.
    pub sent_requests_per_s: Option<f64>,
    /// Requests due per second: `(due - 1) / (last due - first due)`.
    pub due_requests_per_s: Option<f64>,
    /// Share of the duration that passed after the last request was sent, while the server drained.
    /// Throughput over the run includes this time. Absent if all requests were due at once and in
    /// flight at once.
    pub drain_share: Option<f64>,
    /// Confidence intervals of the rates over the run; absent if fewer than 20 requests were
    /// answered.
    pub confidence: Option<RateConfidence>,
}

/// The number of requests in flight.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Concurrency {
    /// Sum of `e2e` over the answered requests, divided by the duration: SGLang's concurrency.
    pub mean: Option<f64>,
    /// Sum of the time in flight over all requests, failed ones included, divided by the
    /// duration.
    pub mean_in_flight: Option<f64>,
    /// Most requests in flight at one instant, including failed ones.
    pub peak: Option<u64>,
    /// The number of independent loads that the run holds: requests divided by the design effect of
    /// the number in flight when each was sent. A run of few of them shows few of the states that
    /// the engine can be in. Absent where the number in flight does not vary, as in a closed loop,
    /// and in runs of few requests.
    pub independent: Option<f64>,
    /// The growth of the number of waiting requests while requests were due; for runs at one rate.
    pub backlog: Option<Backlog>,
}

impl Summary {
    /// The distribution of the metric of that name, if it was measured.
    pub fn metric(&self, name: &str) -> Option<&Distribution> {
        self.metrics.get(name)
    }
}
