//! The outlook on a run: the number, lengths and due times of its requests, and the repeated parts
//! of their prompts. This module owns the figures; `session` draws the samples, and `report` lays
//! the figures out.

use std::collections::BTreeMap;

use model::number;
use result::summary::Tokenizer;
use statistics::{Figures, Ranked};

/// Bars of a histogram, about.
const BARS: usize = 24;
/// Seconds of an hour, and the most hours that are a bar each.
const HOUR: (f64, f64) = (3600.0, 96.0);

/// The requests that a run would send.
#[model::apply(model::document!)]
pub struct Outlook {
    /// The name of the scenario.
    pub name: String,
    /// The model's name in the requests.
    pub model: String,
    /// True if that is a placeholder, because the scenario names none and no server was asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub model_is_placeholder: bool,
    /// The backend plugin, with its version.
    pub backend: String,
    /// The dataset plugin, with its version.
    pub dataset: String,
    /// The tokenizer that counts tokens on this side.
    pub tokenizer: Tokenizer,
    /// The arrival of requests, as a phrase.
    pub arrival: String,
    /// The end of the samples.
    pub end: End,
    /// Requests that would be measured.
    pub requests: u64,
    /// Requests of the warm-up, which come before and are in no other figure but the cache's.
    pub warmup: u64,
    /// Requests that cannot be written.
    pub faulty: Option<Faulty>,
    /// Bytes of all bodies.
    pub request_bytes: u64,
    /// The dependence of requests on each other.
    pub sessions: Sessions,
    /// Tokens of prompts.
    pub input: Input,
    /// Tokens that are requested.
    pub output: Output,
    /// Due times of the requests that depend on no other; absent if they depend on the answers.
    pub due: Option<Due>,
    /// Users of a closed loop.
    pub users: Option<Users>,
    /// Requests by the dataset's own classes; those without a class are not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, u64>,
    /// The part of prompts that a prefix cache without limits would find; absent if no prompt could
    /// be tokenized.
    pub cache: Option<Cache>,
    /// Tokens in flight; absent unless due times and durations are on record.
    pub in_flight: Option<InFlight>,
    /// The first sessions whose durations are on record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded_sessions: Vec<RecordedSession>,
    /// The treatment that the dataset gave to its input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// SHA-256 of a line for each request in order, with its digest as records have it: over
    /// method, path and body as the backend writes them.
    pub digest: String,
    /// The first prompts, if they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<Shown>,
}

model::words! {
    /// The reason why samples end where they end.
    pub enum End {
        /// Everything that the plan measures was drawn.
        Whole = "whole",
        /// The dataset has no more, although the plan has requests left.
        Dataset = "dataset",
        /// The limit on drawn requests was reached. A run would continue.
        Limit = "limit",
        /// The user stopped it.
        Interrupted = "interrupted",
    }
}

model::words! {
    /// Whose input is written.
    pub enum ExportFormat {
        /// The format of the datasets `custom` and `conversation`.
        Runner = "runner",
        /// The format of `vllm bench serve --dataset-name custom`: one text a line; conversations
        /// become text by the chat template.
        Vllm = "vllm",
        /// AIPerf's, one request or one conversation of several turns a line.
        Aiperf = "aiperf",
    }
    default Runner
}

/// Requests that cannot be written.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Faulty {
    /// Their number.
    pub count: u64,
    /// The reason why the first cannot be written.
    pub first: String,
}

/// The dependence of requests on each other.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Sessions {
    /// Requests that depend on no other, each with all that depend on it.
    pub count: u64,
    /// Requests per session; absent if every session is one request.
    pub requests: Option<Lengths>,
    /// Requests that several others depend on.
    pub forks: u64,
    /// The most that depend on one.
    pub widest: u64,
    /// Requests that depend on several others.
    pub joins: u64,
    /// Delays of requests after those they depend on, in seconds; absent if none depends on any.
    pub delays: Option<Lengths>,
    /// Requests with answers before them that are not known before a run; what stands in for these
    /// is in the figures.
    pub stand_ins: Option<StandIns>,
}

/// Texts that stand in for answers that are not known.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct StandIns {
    /// Requests whose prompts depend on them.
    pub requests: u64,
    /// Answers on record.
    pub recorded: u64,
    /// Texts of about the requested length.
    pub made_up: u64,
    /// Empty texts, because no length is requested.
    pub empty: u64,
}

/// Tokens of prompts.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Input {
    /// Their distribution.
    pub tokens: Option<Lengths>,
    /// Prompts that the dataset counted.
    pub by_dataset: u64,
    /// Prompts that our tokenizer counted.
    pub by_tokenizer: u64,
    /// Of these, conversations without the model's chat template, because it is not known.
    pub without_template: u64,
    /// Prompts that nobody counted, such as those with pictures.
    pub unknown: u64,
}

/// Tokens that are requested.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Output {
    /// Their distribution.
    pub tokens: Option<Lengths>,
    /// Requests that leave the length to the server.
    pub unlimited: u64,
}

/// Due times of the requests that depend on no other.
#[model::apply(model::document!)]
pub struct Due {
    /// Seconds after the beginning.
    pub seconds: Lengths,
    /// Requests per second from the first to the last; absent if all are due at once.
    pub per_second: Option<f64>,
}

/// Users of a closed loop.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Users {
    /// Their number.
    pub count: u32,
    /// The think time, as a phrase.
    pub think: Option<String>,
}

/// The part of prompts that a prefix cache without limits would find, in the order of the requests'
/// numbers.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Cache {
    /// Tokens per page.
    pub page: u32,
    /// Requests whose prompts were tokenized.
    pub requests: u64,
    /// Tokens of their prompts.
    pub tokens: u64,
    /// Of these, tokens of pages that an earlier request would have left.
    pub cached: u64,
    /// `cached / tokens`.
    pub share: f64,
    /// True if there were more pages than are remembered, so that the share may be too low.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bounded: bool,
    /// The best possible share for caches of some sizes; absent for very long plans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<CacheSize>,
}

/// The best possible share of cached tokens of a cache: no order of eviction has more.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct CacheSize {
    /// Tokens that the cache holds.
    pub tokens: u64,
    /// The share of prompt tokens that would be found.
    pub share: f64,
}

/// Tokens of requests in flight, by the recorded durations of the requests.
#[model::apply(model::document!)]
pub struct InFlight {
    /// Requests with a recorded duration.
    pub requests: u64,
    /// The most tokens of prompts and answers at a time: the KV cache that they need without
    /// shared prefixes.
    pub most_tokens: u64,
    /// The most requests at a time.
    pub most_requests: u64,
    /// The most tokens in each span of time, in seconds.
    pub spans: Vec<Bar>,
}

impl InFlight {
    /// From the start, the end and the tokens of each request, in seconds. Absent without requests.
    pub fn new(requests: &[(f64, f64, u64)]) -> Option<Self> {
        let end = requests.iter().map(|(_, end, _)| *end).fold(f64::NAN, f64::max);
        let step = number::round_step(end.max(f64::MIN_POSITIVE), BARS);
        let mut changes: Vec<(f64, i64, i64)> = (requests.iter())
            .flat_map(|(start, end, tokens)| {
                let tokens = i64::try_from(*tokens).unwrap_or(i64::MAX);
                [(*start, 1, tokens), (*end, -1, -tokens)]
            })
            .collect();
        // What ends makes room for what begins at the same instant.
        changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let (mut count, mut tokens) = (0, 0);
        let (mut most_requests, mut most_tokens) = (0, 0);
        let mut spans: Vec<Bar> = Vec::new();
        for (at, one, more) in changes {
            let place = (at / step) as usize;
            while spans.len() <= place {
                let from = spans.len() as f64 * step;
                // A request that goes on is in the next span too.
                spans.push(Bar { from, to: from + step, count: tokens as u64 });
            }
            (count, tokens) = (count + one, tokens + more);
            spans[place].count = spans[place].count.max(tokens as u64);
            (most_requests, most_tokens) = (most_requests.max(count), most_tokens.max(tokens));
        }
        (!requests.is_empty()).then_some(InFlight {
            requests: requests.len() as u64,
            most_tokens: most_tokens as u64,
            most_requests: most_requests as u64,
            spans,
        })
    }
}

/// A session at its recorded times.
#[model::apply(model::document!)]
pub struct RecordedSession {
    /// Its name in the dataset, or its first sample's.
    pub name: String,
    /// Its requests; of a session without a due time from its own beginning.
    pub requests: Vec<RecordedRequest>,
}

/// A request at its recorded time, in seconds.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct RecordedRequest {
    /// The instant when it was sent.
    pub start: f64,
    /// The end of its reply.
    pub end: f64,
    /// True if it belongs to another conversation than its session's first request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_sub_agents: bool,
}

/// One kind of treatment that a dataset gave to its input.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Remark {
    /// The treatment.
    pub what: String,
    /// The part of the input, and the reason.
    pub reason: String,
    /// The number of times.
    pub count: u64,
    /// The first of them.
    pub first: Option<String>,
}

/// A prompt to look at.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Shown {
    /// The request's number.
    pub index: u64,
    /// The sample's id.
    pub id: String,
    /// Tokens of the prompt, if they were counted.
    pub input_tokens: Option<u64>,
    /// Tokens that are requested.
    pub output_tokens: Option<u32>,
    /// The prompt, message by message.
    pub prompt: Vec<Said>,
}

/// A part of a prompt.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Said {
    /// The author's role; absent in a prompt that is no conversation.
    pub role: Option<String>,
    /// The text, or the beginning of it.
    pub text: String,
    /// The number of characters of it that are left out.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub left_out: u64,
}

/// A distribution.
#[model::apply(model::document!)]
pub struct Lengths {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The standard deviation of the population.
    pub std: f64,
    /// The smallest.
    pub min: f64,
    /// The 10th percentile.
    pub p10: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// The number of values in each span: from the smallest to the largest without a gap.
    pub bars: Vec<Bar>,
}

/// A bar of a histogram.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Bar {
    /// The smallest value in it.
    pub from: f64,
    /// The beginning of the next one; the last bar includes it.
    pub to: f64,
    /// The number of values.
    pub count: u64,
}

impl Lengths {
    /// Builds the lengths from samples; if `whole`, only whole numbers are meaningful.
    pub fn new(figures: &Figures, whole: bool) -> Self {
        let (min, max) = (figures.min(), figures.max());
        let step = number::round_step((max - min).max(f64::MIN_POSITIVE), BARS);
        let step = match max > min {
            true if whole => step.max(1.0).ceil(),
            true => step,
            false => 1.0,
        };
        Lengths::by(figures, step)
    }

    /// Times in seconds; a recording of several hours has a bar for each.
    pub fn of_times(figures: &Figures) -> Self {
        let hours = (figures.max() - figures.min()) / HOUR.0;
        let by_hour = (3.0..HOUR.1).contains(&hours);
        if by_hour { Lengths::by(figures, HOUR.0) } else { Lengths::new(figures, false) }
    }

    /// With bars of this width.
    fn by(figures: &Figures, step: f64) -> Self {
        let (min, max) = (figures.min(), figures.max());
        let first = (min / step).floor();
        let edge = |number: usize| (first + number as f64) * step;
        let mut bars = Vec::new();
        let mut before = 0;
        while before < figures.count() && bars.len() < 4 * BARS {
            let (from, to) = (edge(bars.len()), edge(bars.len() + 1));
            let until = if to > max { figures.count() } else { figures.below(to) };
            bars.push(Bar { from, to, count: until - before });
            before = until;
        }
        Lengths {
            count: figures.count(),
            mean: figures.mean(),
            std: figures.std(),
            min,
            p10: figures.percentile(10.0),
            p50: figures.percentile(50.0),
            p90: figures.percentile(90.0),
            p99: figures.percentile(99.0),
            max,
            bars,
        }
    }
}
