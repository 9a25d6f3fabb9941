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
pub mod course;
mod dataset;
mod distribution;
mod expected;
mod facts;
mod failing;
pub mod first_token;
mod gaps;
pub(crate) mod gather;
mod groups;
mod kinds;
mod lives;
mod load;
mod messages;
mod reasoning;
mod scores;
pub mod server;
pub(crate) mod sessions;
mod speculation;
mod steady;
mod survey;
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
pub use dataset::{Dataset, Remark, Treatment};
pub use devices::Devices;
pub use distribution::{Basis, Distribution};
pub use facts::Cost;
pub use facts::{Damage, Loop, Machines, NOT_SENT, Price, Rules, Run, RunFacts, Tokenizer, Used};
pub use failing::{Amount, WithFailures};
pub use first_token::FirstToken;
pub use groups::{Group, Groups};
pub use kinds::{Drafts, Reported};
pub use load::Arrivals;
pub use messages::Message;
pub use model::client::Client;
pub use reasoning::Reasoning;
pub use scores::{By, Example, Score, ScoredGroup};
pub use server::Server;
pub use sessions::{Histories, Session, Sessions};
pub use speculation::{Quarter, Speculation, TpotByAcceptance};
pub use steady::{SteadyState, Window};
pub use survey::Survey;
pub use time_slices::{TimeSlice, TimeSlices};
pub use tokens::{Comparison, Counted, LeftOut, Tokens};
pub use unjudged::{SilentScorer, Unjudged};
pub use warmup::Warmup;

use crate::finding::{Finding, Verdict};
use crate::metric::objective::Objective;
use crate::metric::{Reading, Single, objective};
use crate::threshold::Checked;
use model::exchange::{Class, Reason};
use model::units::Nanos;
use statistics::blocks::{Layout, design_effect_of};
use statistics::interval::Loads;

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
    pub fn metric(&self, name: &str) -> Option<&Distribution> {
        self.metrics.get(name)
    }
}

/// The processes of a fleet.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Fleet {
    /// Each process, by rank. Requests are dealt out in turn. In a closed loop or below a cap, they
    /// go with the users or slots that send them.
    pub agents: Vec<Agent>,
}

/// One process of a fleet.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Agent {
    /// Its rank, from 0.
    pub rank: u32,
    /// The host name of its machine.
    pub host: String,
    /// Measured requests whose records it sent.
    pub records: u64,
    /// The most by which its beginning may differ from the coordinator's start instant, in
    /// microseconds: the bound on the error of its clock. Absent if its clock was never measured.
    pub clock_bound_us: Option<f64>,
    /// The time at which its clock moved against the coordinator's by more than drift explains;
    /// absent if it never did.
    pub clock_moved: Option<Moved>,
    /// Its loss; absent if it finished.
    pub lost: Option<Lost>,
    /// True if it was lost, and the records of its own disk were taken in after the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merged: bool,
    /// The reason why its part of the run ended early, though it was not lost.
    pub error: Option<String>,
    /// Its performance as a client, if it was monitored.
    pub client: Option<Client>,
}

/// A clock that moved.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Moved {
    /// The last time at which it still agreed, in seconds since the measurement began.
    pub from_s: f64,
    /// The least by which it moved, in milliseconds.
    pub by_ms: f64,
}

/// An agent that was lost.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Lost {
    /// The time of its last message, in seconds since the measurement began.
    pub from_s: f64,
    /// The cause of the loss.
    pub why: String,
    /// Requests of its part that are not on record: whether they were sent is not known. Absent
    /// where the plan does not say how many they are.
    pub unknown: Option<u64>,
}

impl Agent {
    pub fn name(&self) -> String {
        format!("agent {} on {}", self.rank, self.host)
    }
}

/// The most names of a summary. Later ones are left out: each record has its own.
const NAMES: usize = 256;

/// A number that a server counts, over the answers that state it.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct ServerCount {
    /// The number of answers that state it, zero included.
    pub answers: u64,
    /// Their sum.
    pub total: u64,
    /// Their mean.
    pub mean: f64,
}

impl ServerCount {
    pub fn label(&self, number: impl Fn(u64) -> String) -> String {
        format!(
            "{} (mean {:.2}, of {} answers)",
            number(self.total),
            self.mean,
            number(self.answers)
        )
    }
}

#[derive(Default)]
struct ServerCounts(BTreeMap<String, ServerCount>);

impl ServerCounts {
    fn add(&mut self, counts: &BTreeMap<String, u64>) {
        for (name, count) in counts {
            if self.0.len() == NAMES && !self.0.contains_key(name) {
                continue;
            }
            let all = self.0.entry(name.clone()).or_default();
            all.answers += 1;
            all.total = all.total.saturating_add(*count);
        }
    }

    fn finish(mut self) -> BTreeMap<String, ServerCount> {
        for count in self.0.values_mut() {
            count.mean = count.total as f64 / count.answers as f64;
        }
        self.0
    }
}

/// Outcomes of the requests of the measurement.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Requests {
    /// Requests that were due.
    pub total: u64,
    /// Requests that were answered in full.
    pub successful: u64,
    /// Requests that failed, of any class of failure, including requests that were not sent.
    pub failed: u64,
    /// Requests that the client cancelled on purpose: neither successful nor failed.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cancelled: u64,
    /// Cancelled requests that were never sent, because they depend on a cancelled request.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cancelled_unsent: u64,
    /// Requests that failed by themselves, not because a request that they depend on failed; absent
    /// if all did.
    pub failed_by_themselves: Option<u64>,
    /// Requests whose first byte was written to the socket.
    pub sent: u64,
    /// Failures by class. A class that did not occur is not listed.
    pub failures: BTreeMap<Class, Failures>,
    /// `successful / (total - cancelled)`.
    pub success_share: Option<f64>,
    /// Requests that the cap on requests in flight held back by more than a millisecond, or never
    /// let go; absent without a cap.
    pub held_back: Option<u64>,
    /// Requests whose prompt and longest answer together have more tokens than the model's context.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub beyond_context: u64,
    /// Failed requests for which the server's error says that the context is too long.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub context_overflows: u64,
    /// Replies with an error status that the backend accepted and read as answers, by status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted_errors: BTreeMap<u16, u64>,
    /// Beside these, replies with the status 404 that a further request followed, because a result
    /// was not ready yet.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub accepted_not_yet: u64,
    /// Requests that waited for a connection to be opened.
    pub waited_for_connection: u64,
    /// Requests of the warm-up; no other figure includes them.
    pub warmup: u64,
    /// Requests that were sent after a lane was over for which no session was left; of the other
    /// figures, scores alone include them.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub tail: u64,
}

/// Failures of one class.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Failures {
    /// The number of failures.
    pub count: u64,
    /// Failures by HTTP status; of the class `http-status`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u16, u64>,
    /// Failures by the reason that the server gave; failures without a reason are not included.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<Reason, u64>,
    /// Index of the first failed request.
    pub first: u64,
    /// The first few kinds of messages, in the order of the requests. Messages are of one kind if
    /// they have the same status and differ only in parts with digits.
    pub messages: Vec<Message>,
    /// The number of failures with a message of another kind.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub other_messages: u64,
}

/// Time spent in each of equal spans, summed over all stays, in whole nanoseconds: their order does
/// not matter, and a long stay costs no more than a short one.
pub struct Occupancy {
    grain: Nanos,
    /// Nanoseconds in spans that were begun or ended within. Records may state any instant, many
    /// times.
    part: Vec<i128>,
    /// The change of the weights that spend a whole span there, from one span to the next.
    whole: Vec<i128>,
}

impl Occupancy {
    /// An empty count of this number of spans from zero on, each of a `grain` above zero.
    pub fn new(grain: Nanos, spans: usize) -> Self {
        Occupancy { grain, part: vec![0; spans], whole: vec![0; spans + 1] }
    }

    /// Adds the time between two instants since the first span began, up to the last span's end.
    pub fn add(&mut self, from: Nanos, to: Nanos) {
        self.add_weighed(from, to, 1);
    }

    /// The same, where each nanosecond counts this many times.
    fn add_weighed(&mut self, from: Nanos, to: Nanos, weight: u64) {
        let weight = i128::from(weight);
        let grain = i128::from(self.grain.0);
        let end = grain * self.part.len() as i128;
        let (from, to) = (i128::from(from.0).min(end), i128::from(to.0).min(end));
        if to <= from {
            return;
        }
        let (first, last) = (from / grain, (to - 1) / grain);
        if first == last {
            self.part[first as usize] += (to - from) * weight;
            return;
        }
        self.part[first as usize] += ((first + 1) * grain - from) * weight;
        self.part[last as usize] += (to - last * grain) * weight;
        self.whole[first as usize + 1] += weight;
        self.whole[last as usize] -= weight;
    }

    pub fn seconds(self) -> Vec<f64> {
        self.nanos().map(|nanos| nanos as f64 / 1e9).collect()
    }

    /// The nanoseconds spent in each span, with their weights.
    fn nanos(&self) -> impl Iterator<Item = i128> {
        let mut through = 0;
        self.part.iter().zip(&self.whole).map(move |(part, more)| {
            through += more;
            part + through * i128::from(self.grain.0)
        })
    }
}

/// The number of requests that met the run's objectives.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Goodput {
    /// Answered requests that met every objective.
    pub good: u64,
    /// `good` divided by all requests that were due. Failed and unsent requests are included,
    /// requests that were cancelled on purpose are not.
    pub slo_attainment: Option<f64>,
    /// Good requests per second.
    pub requests_per_s: Option<f64>,
    /// Their output tokens per second; absent if the tokens of any of them are unknown.
    pub output_tokens_per_s: Option<f64>,
    /// Each objective by its metric's name.
    pub objectives: BTreeMap<String, Attainment>,
}

/// The number of requests that met one objective.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Attainment {
    /// The limit in milliseconds.
    pub at_most_ms: f64,
    /// Answered requests that met it.
    pub kept: u64,
    /// Answered requests that missed it.
    pub missed: u64,
    /// Answered requests for which the metric is unknown. They do not count as good.
    pub unknown: u64,
    /// `kept` divided by the same requests.
    pub attainment: Option<f64>,
}

struct Gather {
    objectives: Vec<(String, Single, Attainment)>,
    good: u64,
    tokens: Option<u64>,
}

impl Gather {
    /// An empty judge by these objectives; `None` if there are none.
    fn new(objectives: &[Objective]) -> Option<Self> {
        let known = objectives.iter().filter_map(|objective| {
            let attainment =
                Attainment { at_most_ms: objective.at_most_ms, ..Attainment::default() };
            Some((objective.metric.clone(), objective.measure()?, attainment))
        });
        (!objectives.is_empty()).then(|| Gather {
            objectives: known.collect(),
            good: 0,
            tokens: Some(0),
        })
    }

    /// Judges a request that was answered. Gives whether it is good.
    fn add(&mut self, reading: &Reading<'_>) {
        let mut good = true;
        for (_, measure, attainment) in &mut self.objectives {
            let kept = objective::kept(*measure, attainment.at_most_ms, reading);
            match kept {
                Some(true) => attainment.kept += 1,
                Some(false) => attainment.missed += 1,
                None => attainment.unknown += 1,
            }
            good &= kept == Some(true);
        }
        if good {
            self.good += 1;
            let tokens = reading.output_tokens.map(|count| u64::from(count.tokens));
            self.tokens = self.tokens.zip(tokens).map(|(sum, more)| sum.saturating_add(more));
        }
    }

    /// `total` is the number of due, uncancelled requests; `duration` the run's seconds.
    fn finish(self, total: u64, duration: Option<f64>) -> Goodput {
        let share = |part: u64| (total > 0).then(|| part as f64 / total as f64);
        let per_s = |amount: u64| duration.map(|seconds| amount as f64 / seconds);
        let objectives = self.objectives.into_iter().map(|(metric, _, attainment)| {
            let attainment = Attainment { attainment: share(attainment.kept), ..attainment };
            (metric, attainment)
        });
        Goodput {
            good: self.good,
            slo_attainment: share(self.good),
            requests_per_s: per_s(self.good),
            output_tokens_per_s: self.tokens.and_then(per_s),
            objectives: objectives.collect(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    from: Nanos,
    to: Nanos,
}

impl Span {
    /// True if an observation at an instant is of the time within, to which the end belongs.
    fn holds(self, at: Nanos) -> bool {
        self.from < at && at <= self.to
    }

    /// The number of the equal part of the time that an instant lies in.
    fn part(self, at: Nanos, parts: usize) -> Option<usize> {
        let length = u128::from(self.to.since(self.from).0);
        let into = u128::from(at.since(self.from).0);
        let part = (self.holds(at) && length > 0).then(|| into * parts as u128 / length)?;
        // A flight that ends the time belongs to its last part.
        usize::try_from(part).ok().map(|part| part.min(parts - 1))
    }
}

#[derive(Clone, Copy)]
struct Flights<'a> {
    starts: &'a [Nanos],
    ends: &'a [Nanos],
}

impl Flights<'_> {
    /// Shows the number in flight after each change, in order; ends come before beginnings.
    fn sweep(self, mut show: impl FnMut(Nanos, u64)) {
        let (mut started, mut ended) = (0, 0);
        while ended < self.ends.len() {
            let end = self.ends[ended];
            match self.starts.get(started) {
                Some(start) if *start < end => {
                    started += 1;
                    show(*start, (started - ended) as u64);
                }
                _ => {
                    ended += 1;
                    show(end, (started - ended) as u64);
                }
            }
        }
    }

    /// Finds the median number in flight over the time in which requests were sent.
    fn median(self) -> u64 {
        let Some(last) = self.starts.last().copied() else { return 0 };
        let mut times = BTreeMap::<u64, u64>::new();
        let mut before: Option<(Nanos, u64)> = None;
        self.sweep(|at, in_flight| {
            if let Some((since, level)) = before {
                *times.entry(level).or_default() += at.min(last).since(since).0;
            }
            before = Some((at, in_flight));
        });
        let half = times.values().sum::<u64>() / 2;
        let mut sum = 0;
        let median = times.into_iter().find(|(_, time)| {
            sum += time;
            sum > half
        });
        median.map_or(0, |(level, _)| level)
    }

    /// Requests that were sent before the first answer ended.
    fn fill(self, first_answer: Option<Nanos>) -> usize {
        first_answer.map_or(0, |end| self.starts.partition_point(|start| *start < end))
    }

    /// Computes the number of independent loads: the requests after the fill, divided by the design
    /// effect of the number in flight at each sending. `None` if that number hardly varies.
    fn loads(self, layout: Layout) -> Option<Loads> {
        let mut ended = 0;
        let mut levels: Vec<u32> = Vec::with_capacity(self.starts.len());
        for (started, start) in self.starts.iter().enumerate() {
            while self.ends.get(ended).is_some_and(|end| end <= start) {
                ended += 1;
            }
            levels.push(u32::try_from(started - ended).unwrap_or(u32::MAX));
        }
        let levels = levels.get(layout.fill() as usize..)?;
        let (least, most) = (levels.iter().min()?, levels.iter().max()?);
        let (first, last) = (self.ends.first()?, self.ends.last()?);
        (most - least > 1).then(|| Loads {
            independent: levels.len() as f64 / design_effect_of(levels, layout.blocks()),
            between_ends: last.since(*first).as_millis_f64() / (self.ends.len() - 1) as f64,
        })
    }

    /// Nanoseconds in flight within the span, summed over the requests.
    fn within(self, span: Span) -> u128 {
        let upto = |instants: &[Nanos]| -> u128 {
            let within = instants.iter().map(|at| span.to.since(*at.max(&span.from)));
            within.map(|part| u128::from(part.0)).sum()
        };
        // Time since each start, less time since each end.
        upto(self.starts) - upto(self.ends)
    }

    fn peak(self) -> Option<u64> {
        let mut most = None;
        self.sweep(|_, in_flight| most = most.max(Some(in_flight)));
        most
    }
}
