//! Views of a run's exchanges that pages and pictures show in addition to its summary:
//! distributions, the course over time, some requests in full.
//!
//! It is gathered in one pass over the records without holding them in memory: samples as
//! `statistics::spread` keeps them, and a bounded number of spans of time and requests. The kept
//! data depends on the requests' numbers, never on the order of their records.

mod course;
mod lanes;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Range;

pub use course::{Course, grain};
pub use lanes::{Bar, Lane, Lanes};

use crate::row::Row;
use model::exchange::{Class, Exchange, Outcome, Phase};
use model::session::Users;
use model::units::Nanos;
use result::metric::{self, Measure, Metric, Reading};
use result::metric::{spread, take};
use result::summary::RunFacts;
use result::summary::first_token::Split;
use statistics::{Figures, Spread};

use runs::Reported;

pub const DRAWN: [&str; 4] = [metric::TTFT, metric::ITL, metric::TPOT, metric::E2E];

/// Number of consecutive requests in a waterfall.
const CONSECUTIVE: u64 = 48;

/// Largest number of requests of the whole run in a waterfall.
const ROWS: usize = 80;

/// Requests that are shown for being the slowest.
const SLOWEST: usize = 12;

/// Points of a scatter plot, at most.
const DOTS: usize = 1_200;

#[derive(Clone, Debug)]
pub struct View {
    /// The statistics of the metrics in [`DRAWN`] that were measured, by name, in that order.
    pub distributions: Vec<(&'static str, Figures)>,
    pub course: Course,
    /// Requests that follow each other, from the middle of the run, in due order.
    pub consecutive: Vec<Request>,
    /// Some of its requests, evenly over the run, in the order in which they were due.
    pub sampled: Vec<Request>,
    /// The requests that took longest from their due times, the slowest first.
    pub slowest: Vec<Request>,
    /// Some requests with a first token, evenly over the run, for each a point in a plot.
    pub dots: Vec<Dot>,
    /// The requests by lane; absent unless users of a closed loop have sessions.
    pub lanes: Option<Lanes>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Seconds from the start of the measurement until it was sent.
    pub sent_s: f64,
    pub ttft_ms: f64,
    pub input_tokens: Option<u32>,
}

impl View {
    /// Gathers the shown data of a run. `grain` is the span of time of its course.
    pub fn read<X>(
        facts: &RunFacts,
        reported: &Reported,
        grain: Nanos,
        exchanges: impl Iterator<Item = Result<impl Borrow<Exchange>, X>>,
    ) -> Result<View, X> {
        let mut gather = Gatherer::new(facts, reported, grain);
        for exchange in exchanges {
            gather.add(exchange?.borrow());
        }
        Ok(gather.finish())
    }
}

/// The data kept of the exchanges seen so far.
struct Gatherer<'a> {
    facts: &'a RunFacts,
    origin: Nanos,
    spreads: Vec<(&'static Metric, Spread)>,
    course: course::Gatherer,
    /// One of this many requests belongs to this run.
    part: u64,
    /// The places of the requests that are shown in a row.
    middle: Range<u64>,
    consecutive: Vec<Request>,
    sampled: Even<Request>,
    slowest: Largest<Request>,
    dots: Even<Dot>,
    lanes: Option<lanes::Gatherer>,
    /// True if the warm-up began the lanes' sessions.
    has_primers: bool,
}

impl<'a> Gatherer<'a> {
    fn new(facts: &'a RunFacts, reported: &Reported, grain: Nanos) -> Self {
        let summary = &reported.summary;
        let first = summary.requests.total.saturating_sub(CONSECUTIVE) / 2;
        let origin = summary.run.measure_start.unwrap_or_default();
        let load = &reported.plan.load;
        let has_lanes =
            summary.sessions.is_some() && load.users == Users::Sessions && !load.arrival.is_open();
        let drawn = DRAWN.iter().filter_map(|name| metric::by_name(name));
        Gatherer {
            facts,
            origin,
            spreads: drawn.map(|metric| (metric, spread(metric))).collect(),
            course: course::Gatherer::from_summary(summary, grain),
            part: reported.plan.slice.map_or(1, |slice| u64::from(slice.of.max(1))),
            middle: first..first + CONSECUTIVE,
            consecutive: Vec::new(),
            sampled: Even::new(ROWS),
            slowest: Largest::new(SLOWEST),
            dots: Even::new(DOTS),
            lanes: has_lanes.then(|| lanes::Gatherer::new(origin)),
            has_primers: load.lanes.is_some(),
        }
    }

    fn add(&mut self, exchange: &Exchange) {
        if exchange.phase != Phase::Measure {
            if let Some(lanes) = self.lanes.as_mut().filter(|_| self.has_primers)
                && exchange.phase == Phase::Warmup
            {
                lanes.add(exchange, None);
            }
            return;
        }
        let reading = Row::new(self.facts, exchange).reading;
        self.course.add(&reading, self.facts);
        if let Some(lanes) = &mut self.lanes {
            lanes.add(exchange, reading.ttft());
        }
        let request = || Request::new(&reading, self.origin);
        if self.middle.contains(&(exchange.index / self.part)) {
            self.consecutive.push(request());
        }
        self.sampled.add(exchange.index, request);
        let took = exchange.ended.map(|ended| ended.since(exchange.due));
        if let Some(took) = took.filter(|_| exchange.is_ok()) {
            self.slowest.add(took, exchange.index, request);
        }
        for (metric, spread) in &mut self.spreads {
            take(metric, &reading, spread, None);
        }
        if !exchange.is_ok() {
            return;
        }
        if let (Some(sent), Some(ttft_ms)) = (exchange.sent, one(metric::TTFT, &reading)) {
            self.dots.add(exchange.index, || Dot {
                sent_s: sent.since(self.origin).as_secs_f64(),
                ttft_ms,
                input_tokens: reading.input_tokens.map(|count| count.tokens),
            });
        }
    }

    fn finish(self) -> View {
        let distributions = self.spreads.into_iter();
        let by_due = |mut requests: Vec<Request>| {
            requests.sort_by(|one, other| {
                one.due_s.total_cmp(&other.due_s).then(one.index.cmp(&other.index))
            });
            requests
        };
        View {
            distributions: distributions
                .filter_map(|(metric, spread)| Some((metric.name, spread.figures()?)))
                .collect(),
            course: self.course.finish(self.facts),
            consecutive: by_due(self.consecutive),
            sampled: by_due(self.sampled.finish()),
            slowest: self.slowest.finish(),
            dots: self.dots.finish(),
            lanes: self.lanes.map(lanes::Gatherer::finish),
        }
    }
}

/// The sample of an exchange, for a metric with one sample per exchange.
fn one(name: &str, reading: &Reading<'_>) -> Option<f64> {
    match metric::by_name(name)?.measure {
        Measure::One(measure) => measure(reading),
        Measure::Pooled(_) | Measure::Session(_) => None,
    }
}

/// A request and its phases: instants in seconds since the start, spans in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub index: u64,
    pub id: String,
    pub due_s: f64,
    /// The time for which the cap held it back; absent without a cap.
    pub queue_ms: Option<f64>,
    /// The time from when it could have been sent until it was; absent if it was not sent.
    pub send_lag_ms: Option<f64>,
    /// The part of that time that it waited for a connection; absent if it did not wait.
    pub connection_ms: Option<f64>,
    pub sent_s: Option<f64>,
    /// The time from sent to its first token.
    pub ttft_ms: Option<f64>,
    /// The parts of the time to its first token; absent if its server does not tell them.
    pub split: Option<Split>,
    /// The end of its reply, well or badly.
    pub ended_s: Option<f64>,
    /// The time from sent to the last event.
    pub e2e_ms: Option<f64>,
    pub input_tokens: Option<u32>,
    pub output_tokens: Option<u32>,
    /// The failure; absent if it was answered in full.
    pub failure: Option<Class>,
}

impl Request {
    fn new(reading: &Reading<'_>, origin: Nanos) -> Self {
        let exchange = reading.exchange;
        let second = |at: Nanos| at.since(origin).as_secs_f64();
        Request {
            index: exchange.index,
            id: exchange.sample.id.clone(),
            due_s: second(exchange.due),
            queue_ms: one(metric::QUEUE, reading),
            send_lag_ms: one(metric::SEND_LAG, reading),
            connection_ms: one(metric::CONNECTION_WAIT, reading),
            sent_s: exchange.sent.map(second),
            ttft_ms: one(metric::TTFT, reading),
            split: Split::new(reading),
            ended_s: exchange.ended.map(second),
            e2e_ms: one(metric::E2E, reading),
            input_tokens: reading.input_tokens.map(|count| count.tokens),
            output_tokens: reading.output_tokens.map(|count| count.tokens),
            failure: match &exchange.outcome {
                Outcome::Ok => None,
                Outcome::Incomplete { class, .. } => Some(*class),
            },
        }
    }

    /// Returns the end of its last phase, as far as is known.
    pub(crate) fn over_s(&self) -> f64 {
        self.ended_s.or(self.sent_s).unwrap_or(self.due_s + self.queue_ms.unwrap_or(0.0) / 1000.0)
    }
}

/// The first of each block of numbers; blocks double in length until they are few enough. Numbers
/// may have gaps, such as in a slice of a run.
struct Even<T> {
    limit: usize,
    length: u64,
    /// The number and its data, by the block's place.
    kept: BTreeMap<u64, (u64, T)>,
}

impl<T> Even<T> {
    fn new(limit: usize) -> Self {
        Even { limit, length: 1, kept: BTreeMap::new() }
    }

    fn add(&mut self, number: u64, make: impl FnOnce() -> T) {
        let block = number / self.length;
        if self.kept.get(&block).is_some_and(|(first, _)| *first <= number) {
            return;
        }
        self.kept.insert(block, (number, make()));
        while self.kept.len() > self.limit {
            self.length *= 2;
            let mut longer = BTreeMap::new();
            for (block, first) in std::mem::take(&mut self.kept) {
                longer.entry(block / 2).or_insert(first);
            }
            self.kept = longer;
        }
    }

    /// Returns the items in the order of their numbers.
    fn finish(self) -> Vec<T> {
        self.kept.into_values().map(|(_, kept)| kept).collect()
    }
}

/// The items with the largest spans of time; of equal ones, the items with the lowest numbers.
struct Largest<T> {
    limit: usize,
    kept: BTreeMap<(Nanos, std::cmp::Reverse<u64>), T>,
}

impl<T> Largest<T> {
    fn new(limit: usize) -> Self {
        Largest { limit, kept: BTreeMap::new() }
    }

    fn add(&mut self, span: Nanos, number: u64, make: impl FnOnce() -> T) {
        let key = (span, std::cmp::Reverse(number));
        let full = self.kept.len() >= self.limit;
        if full && self.kept.keys().next().is_some_and(|least| *least > key) {
            return;
        }
        self.kept.insert(key, make());
        if full {
            self.kept.pop_first();
        }
    }

    fn finish(self) -> Vec<T> {
        self.kept.into_values().rev().collect()
    }
}
