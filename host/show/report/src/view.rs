//! Views of a run's exchanges that pages and pictures show in addition to its summary:
//! distributions, the course over time, some requests in full.
//!
//! It is gathered in one pass over the records without holding them in memory: samples as
//! `statistics::spread` keeps them, and a bounded number of spans of time and requests. The kept
//! data depends on the requests' numbers, never on the order of their records.

mod course;
mod pick;
mod request;

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::ops::Range;

pub use course::{Course, grain};
pub use request::Request;

use crate::row::Row;
use model::exchange::{Exchange, Phase};
use model::units::Nanos;
use result::metric::samples::{spread, take};
use result::metric::{self, Measure, Metric, Reading};
use result::summary::RunFacts;
use statistics::{Figures, Spread};

use pick::{Even, Largest};
use runs::Reported;

/// The metrics whose distributions are drawn.
pub const DRAWN: [&str; 4] = [metric::TTFT, metric::ITL, metric::TPOT, metric::E2E];

/// Number of consecutive requests in a waterfall.
const CONSECUTIVE: u64 = 48;

/// Largest number of requests of the whole run in a waterfall.
const ROWS: usize = 80;

/// Requests that are shown for being the slowest.
const SLOWEST: usize = 12;

/// Points of a scatter plot, at most.
const DOTS: usize = 1_200;

/// The views of a run's exchanges.
#[derive(Clone, Debug)]
pub struct View {
    /// The statistics of the metrics in [`DRAWN`] that were measured, by name, in that order.
    pub distributions: Vec<(&'static str, Figures)>,
    pub course: Course,
    /// Requests that follow each other, from the middle of the run, in the order in which they were
    /// due.
    pub consecutive: Vec<Request>,
    /// Some of its requests, evenly over the run, in the order in which they were due.
    pub sampled: Vec<Request>,
    /// The requests that took longest from their due times, the slowest first.
    pub slowest: Vec<Request>,
    /// Some requests with a first token, evenly over the run, for each a point in a plot.
    pub dots: Vec<Dot>,
}

/// A request as a point in a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Seconds from the start of the measurement until it was sent.
    pub sent_s: f64,
    /// Its TTFT in milliseconds.
    pub ttft_ms: f64,
    /// Tokens of its prompt, if known.
    pub input_tokens: Option<u32>,
}

impl View {
    /// Gathers the shown data of a run. `grain` is the span of time of its course.
    ///
    /// # Errors
    /// The first error of reading.
    pub fn read<E, X>(
        facts: &RunFacts,
        reported: &Reported,
        grain: Nanos,
        exchanges: impl Iterator<Item = Result<E, X>>,
    ) -> Result<View, X>
    where
        E: Borrow<Exchange>,
    {
        let mut gather = Gather::new(facts, reported, grain);
        for exchange in exchanges {
            gather.add(exchange?.borrow());
        }
        Ok(gather.finish())
    }
}

/// The data kept of the exchanges seen so far.
struct Gather<'a> {
    facts: &'a RunFacts,
    origin: Nanos,
    spreads: Vec<(&'static Metric, Spread)>,
    course: course::Gather,
    /// One of this many requests belongs to this run.
    part: u64,
    /// The places of the requests that are shown in a row.
    middle: Range<u64>,
    consecutive: Vec<Request>,
    sampled: Even<Request>,
    slowest: Largest<Request>,
    dots: Even<Dot>,
}

impl<'a> Gather<'a> {
    fn new(facts: &'a RunFacts, reported: &Reported, grain: Nanos) -> Self {
        let summary = &reported.summary;
        let first = summary.requests.total.saturating_sub(CONSECUTIVE) / 2;
        let origin = summary.run.measure_start.unwrap_or_default();
        let drawn = DRAWN.iter().filter_map(|name| metric::by_name(name));
        Gather {
            facts,
            origin,
            spreads: drawn.map(|metric| (metric, spread(metric))).collect(),
            course: course::Gather::from_summary(summary, grain),
            part: reported.plan.slice.map_or(1, |slice| u64::from(slice.of.max(1))),
            middle: first..first + CONSECUTIVE,
            consecutive: Vec::new(),
            sampled: Even::new(ROWS),
            slowest: Largest::new(SLOWEST),
            dots: Even::new(DOTS),
        }
    }

    fn add(&mut self, exchange: &Exchange) {
        if exchange.phase == Phase::Warmup {
            return;
        }
        let reading = Row::new(self.facts, exchange).reading;
        self.course.add(&reading, self.facts);
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
                let due = one.due_s.total_cmp(&other.due_s);
                due.then(one.index.cmp(&other.index))
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
