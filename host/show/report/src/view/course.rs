//! The course of a run: tokens, requests in flight, waiting requests, failures, and the server's
//! own figures, in equal spans of time.

use std::borrow::Borrow;

use crate::row::Row;
use model::exchange::{Class, Exchange, Outcome, Phase};
use model::units::Nanos;
use result::metric::Reading;
use result::summary::{Occupancy, RunFacts, Summary};

const SPANS: f64 = 180.0;

/// The span of time for runs whose longest takes this many seconds: 1, 2 or 5 times a power of ten,
/// and not less than a tenth of a second.
pub fn grain(longest_s: f64) -> Nanos {
    let mut grain = 0.1;
    let mut factors = [2.0, 2.5, 2.0].into_iter().cycle();
    while longest_s / grain > SPANS {
        grain *= factors.next().unwrap_or(10.0);
    }
    Nanos::from_secs_f64(grain)
}

/// A run's course over time. Lists have an entry a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// The length of a span in seconds.
    pub grain_s: f64,
    /// The run's length in seconds; the last span may be shorter than the others.
    pub duration_s: f64,
    /// Output tokens per second; absent if the time of no token is known.
    pub tokens_per_s: Option<Vec<f64>>,
    pub in_flight: Vec<f64>,
    /// Mean number of requests that were due and that the cap held back; absent without a cap.
    pub waiting: Option<Vec<f64>>,
    /// Requests that failed; unsent ones count at their due time.
    pub failed: Vec<u64>,
    /// Mean power of all devices together in watts; absent if it was not sampled throughout.
    pub power_w: Option<Vec<f64>>,
    /// Mean time to first token in milliseconds of the requests that were sent in a span.
    pub ttft_ms: Vec<Option<f64>>,
    /// The server's own series; empty if its metrics page was not sampled.
    pub server: series::Course,
}

impl Course {
    /// Gathers the course of a run alone. `grain` is its span of time.
    pub fn read<X>(
        facts: &RunFacts,
        summary: &Summary,
        grain: Nanos,
        exchanges: impl Iterator<Item = Result<impl Borrow<Exchange>, X>>,
    ) -> Result<Course, X> {
        let mut gather = Gatherer::from_summary(summary, grain);
        for exchange in exchanges {
            let exchange = exchange?;
            let exchange = exchange.borrow();
            if exchange.phase == Phase::Measure {
                gather.add(&Row::new(facts, exchange).reading, facts);
            }
        }
        Ok(gather.finish(facts))
    }

    /// Returns the beginning and the end of a span, in seconds.
    pub fn span(&self, place: usize) -> (f64, f64) {
        let from = place as f64 * self.grain_s;
        (from, (from + self.grain_s).min(self.duration_s))
    }
}

pub(super) struct Gatherer {
    origin: Nanos,
    duration: Nanos,
    grain: Nanos,
    tokens: Vec<u64>,
    in_flight: Occupancy,
    waiting: Option<Occupancy>,
    failed: Vec<u64>,
    /// Sums of times to first token in nanoseconds, and their number.
    ttft: Vec<(u64, u64)>,
}

impl Gatherer {
    pub(super) fn from_summary(summary: &Summary, grain: Nanos) -> Self {
        let duration = Nanos::from_secs_f64(summary.throughput.duration_s.unwrap_or(0.0));
        let grain = Nanos(grain.0.max(1));
        let spans = duration.0.div_ceil(grain.0).max(1) as usize;
        Gatherer {
            origin: summary.run.measure_start.unwrap_or_default(),
            duration,
            grain,
            tokens: vec![0; spans],
            in_flight: Occupancy::new(grain, spans),
            waiting: None,
            failed: vec![0; spans],
            ttft: vec![(0, 0); spans],
        }
    }

    pub(super) fn add(&mut self, reading: &Reading<'_>, facts: &RunFacts) {
        let exchange = reading.exchange;
        let (origin, grain, spans) = (self.origin, self.grain, self.failed.len());
        let place = |at: Nanos| ((at.since(origin).0 / grain.0) as usize).min(spans - 1);
        if exchange.is_ok() {
            reading.each_token_arrival(|at, more| {
                let sum = &mut self.tokens[place(at)];
                *sum = sum.saturating_add(more);
            });
            if let Some((sent, ttft)) = exchange.sent.zip(reading.ttft()) {
                let (sum, count) = &mut self.ttft[place(sent)];
                *sum = sum.saturating_add((ttft * 1e6).round() as u64);
                *count += 1;
            }
        }
        if let Some((sent, end)) = exchange.sent.zip(ended(exchange)) {
            self.in_flight.add(sent.since(origin), end.since(origin));
        }
        if facts.run.max_in_flight.is_some() {
            let waiting = self.waiting.get_or_insert_with(|| Occupancy::new(grain, spans));
            if let Some(until) = waited_until(exchange, origin + self.duration) {
                waiting.add(exchange.due.since(origin), until.since(origin));
            }
        }
        if exchange.has_failed() {
            self.failed[place(exchange.ended.unwrap_or(exchange.due))] += 1;
        }
    }

    pub(super) fn finish(self, facts: &RunFacts) -> Course {
        let spans = (0..self.failed.len() as u64).map(|place| {
            let from = Nanos(place.saturating_mul(self.grain.0));
            let to = (from + self.grain).min(self.duration);
            (self.origin + from, self.origin + to)
        });
        let lengths = spans.clone().map(|(from, to)| to.since(from).as_secs_f64());
        let rates = |sums: &mut dyn Iterator<Item = f64>| -> Vec<f64> {
            sums.zip(lengths.clone()).map(|(sum, length)| per(sum, length)).collect()
        };
        let mean = |occupancy: Occupancy| rates(&mut occupancy.seconds().into_iter());
        let known = self.tokens.iter().any(|tokens| *tokens > 0);
        let mut tokens = self.tokens.iter().map(|sum| *sum as f64);
        let devices = facts.devices.as_ref();
        let power = devices.and_then(|recording| recording.power_over(spans.clone()));
        let server = facts.series.as_ref().map(|recording| {
            let spans: Vec<_> = spans.collect();
            series::Course::over(recording, &spans)
        });
        let ttft_ms = self.ttft.iter().map(|(sum, count)| {
            let sum = Nanos(*sum).as_millis_f64();
            (*count > 0).then(|| sum / *count as f64)
        });
        Course {
            power_w: power,
            ttft_ms: ttft_ms.collect(),
            server: server.unwrap_or_default(),
            grain_s: self.grain.as_secs_f64(),
            duration_s: self.duration.as_secs_f64(),
            tokens_per_s: known.then(|| rates(&mut tokens)),
            in_flight: mean(self.in_flight),
            waiting: self.waiting.map(mean),
            failed: self.failed,
        }
    }
}

fn per(sum: f64, length: f64) -> f64 {
    if length > 0.0 { sum / length } else { 0.0 }
}

/// The end of a request in flight: without an end, the last sign of its reply.
fn ended(exchange: &Exchange) -> Option<Nanos> {
    let seen = exchange.events.at.last().copied().or(exchange.headers);
    exchange.ended.or(seen)
}

/// The time until which the cap held a request back; `never` if it did so to the end.
fn waited_until(exchange: &Exchange, never: Nanos) -> Option<Nanos> {
    let unsent = matches!(exchange.outcome, Outcome::Incomplete { class: Class::NotSent, .. });
    exchange.granted.or(unsent.then_some(never))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grains_are_round_and_spans_few() {
        for (seconds, grain_s) in
            [(0.0, 0.1), (18.0, 0.1), (19.0, 0.2), (60.0, 0.5), (600.0, 5.0), (7200.0, 50.0)]
        {
            assert_eq!(grain(seconds), Nanos::from_secs_f64(grain_s), "{seconds}");
        }
    }
}
