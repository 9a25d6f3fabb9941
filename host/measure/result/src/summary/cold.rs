//! A cold start: whether the requests of the beginning met an engine that was not ready yet, which
//! compiled, or had caches to fill or clocks to raise.
//!
//! **The first wave** is the requests that were sent before the first answer had ended. An engine
//! that starts idle and is ready is never further behind than later. It reads the prompts of a
//! burst one after the other, at least as fast as it does between answers. So a start is cold if
//! the request of the first wave whose first token came k-th waited more than twice as long as the
//! longest later wait and k - 1 turns at the later rate of first tokens. In a queue that fills, the
//! first ones wait less than later ones, and only the steps show it.
//!
//! An empty prefix cache is no cold start: prompts that later ones have in common with it must be
//! read once. So each prompt of the wave, up to the k-th, is allowed the time of a full reading.
//! The pace is the pace of the prompt whose first token came first. That pace is at most a slow
//! engine's.
//!
//! **The first steps** took longer than the same work took later (`statistics::start`), and make
//! the mean E2E latency of the run more than 1 % longer.
//!
//! Later is after the first quarter of the time in which requests were sent, and after the first
//! answer. Loads whose rate changes by plan have no first wave, because later waits are of another
//! load.

use std::collections::BinaryHeap;

use super::facts::Run;
use super::lives::ArrivalKind;
use super::survey::SurveyResult;
use crate::metric::Reading;
use model::units::Nanos;

/// Later requests without which nothing is compared.
const LEAST_LATER: u64 = 20;
/// The factor by which a wait exceeds any wait that a ready engine can explain.
const TIMES: f64 = 2.0;
/// Seconds that a wait must be longer, so that a connection or a first page is no cold start.
const FLOOR: f64 = 0.1;
/// Seconds for a token of a prompt at most, 2,000 a second, for prompts that later ones are not
/// read like: the engine may keep their beginnings.
const READING: f64 = 0.000_5;
/// The factor by which the mean E2E latency must be longer with the requests of slow first steps
/// than without them. So the first reading of shared prefixes is no cold start of the engine.
const MATTERS: f64 = 1.01;
/// The most requests of the beginning that are kept one by one.
const MOST_KEPT: usize = 100_000;

model::words! {
    /// The part of a run's beginning that shows a cold start.
    pub enum Shown {
        /// Requests of the first wave waited longer than an engine that is ready explains.
        FirstWave = "first-wave",
        /// The engine's steps took longer than the same work took later.
        FirstSteps = "first-steps",
    }
}

/// A cold start, and the run's figures without its requests.
#[model::apply(model::document!)]
pub struct ColdStart {
    /// The evidence.
    pub shown: Shown,
    /// Number of answered requests that met it.
    pub requests: u64,
    /// The lowest index among them.
    pub first: u64,
    /// The highest index among them.
    pub last: u64,
    /// Seconds from the start of the measurement until it was over: until the last first token of
    /// these requests, or until steps took their later time.
    pub until_s: f64,
    /// For a first wave, the longest wait among them divided by the longest later wait. For first
    /// steps, the time of a step divided by the later time of the same work.
    pub times: f64,
    /// The longest wait of these requests from sending to first token, in milliseconds; to the end
    /// of the answer where replies are not streamed.
    pub longest_wait_ms: f64,
    /// The longest wait of the requests after it, in milliseconds.
    pub longest_later_wait_ms: f64,
    /// The mean wait over the run, in milliseconds.
    pub wait_ms: f64,
    /// The mean wait without these requests, in milliseconds.
    pub wait_without_ms: f64,
    /// The mean E2E latency over the run, in milliseconds.
    pub e2e_ms: f64,
    /// The mean E2E latency without these requests, in milliseconds.
    pub e2e_without_ms: f64,
}

/// An answered request of the beginning, ordered by its time of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Early {
    sent: Nanos,
    index: u64,
    wait: Nanos,
    took: Nanos,
    /// Tokens of its prompt; 0 where they are not known.
    prompt: u32,
}

/// Sums over requests, in whole numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    wait: u128,
    took: u128,
}

impl Sums {
    fn add(&mut self, own: &Early) {
        self.count += 1;
        self.wait += u128::from(own.wait.0);
        self.took += u128::from(own.took.0);
    }

    fn without(self, other: Sums) -> Sums {
        Sums {
            count: self.count - other.count,
            wait: self.wait - other.wait,
            took: self.took - other.took,
        }
    }

    /// The mean wait and the mean latency, in milliseconds.
    fn means(self) -> (f64, f64) {
        let mean = |sum: u128| sum as f64 / self.count as f64 / 1e6;
        (mean(self.wait), mean(self.took))
    }
}

pub(super) struct Gather {
    origin: Nanos,
    /// The instant before which the requests of the first wave were sent.
    wave: Option<Nanos>,
    /// The instant from which requests are later ones.
    later: Nanos,
    early: BinaryHeap<Early>,
    all: Sums,
    longest: Nanos,
    /// The number of later requests, and the instants of their first and last first tokens.
    later_count: u64,
    began: Option<(Nanos, Nanos)>,
}

impl Gather {
    /// An empty gatherer; `None` if nothing was answered.
    pub(super) fn new(run: &Run, surveyed: &SurveyResult) -> Option<Self> {
        let (first, last) = surveyed.first_sent.zip(surveyed.last_sent)?;
        let answer = surveyed.first_answer?;
        let quarter = Nanos(first.0.saturating_add(last.since(first).0 / 4));
        let is_even = ArrivalKind::from_run(run, surveyed) == ArrivalKind::Closed || run.even_rate;
        Some(Gather {
            origin: surveyed.origin,
            wave: is_even.then_some(answer),
            later: quarter.max(answer),
            early: BinaryHeap::new(),
            all: Sums::default(),
            longest: Nanos::ZERO,
            later_count: 0,
            began: None,
        })
    }

    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let Some([sent, first, end]) = reading.life() else { return };
        let first = if reading.streamed { first } else { end };
        let own = Early {
            sent,
            index: reading.exchange.index,
            wait: first.since(sent),
            took: end.since(sent),
            prompt: reading.input_tokens.map_or(0, |count| count.tokens),
        };
        self.all.add(&own);
        if sent < self.later {
            self.early.push(own);
            if self.early.len() > MOST_KEPT {
                self.early.pop();
            }
            return;
        }
        self.longest = self.longest.max(own.wait);
        self.later_count += 1;
        let (earliest, latest) = self.began.unwrap_or((first, first));
        self.began = Some((earliest.min(first), latest.max(first)));
    }

    /// The cold start, if any. `steps` has the seconds with longer first steps, and the factor.
    pub(super) fn finish(self, steps: Option<(f64, f64)>) -> Option<ColdStart> {
        if self.later_count < LEAST_LATER {
            return None;
        }
        self.first_wave().or_else(|| {
            let (until_s, factor) = steps?;
            let until = Nanos(self.origin.0 + Nanos::from_secs_f64(until_s).0);
            let met = self.early.iter().filter(|own| own.sent < until);
            let found = self.cold_start(Shown::FirstSteps, met, until_s, Some(factor));
            found.filter(|cold| cold.e2e_ms > MATTERS * cold.e2e_without_ms)
        })
    }

    fn first_wave(&self) -> Option<ColdStart> {
        let answer = self.wave?;
        let (from, to) = self.began?;
        let seconds = to.since(from).as_secs_f64();
        let turn = seconds / (self.later_count - 1).max(1) as f64;
        let mut wave: Vec<&Early> = (self.early.iter()).filter(|own| own.sent < answer).collect();
        wave.sort_unstable_by_key(|own| (own.sent + own.wait, own.index));
        let first = wave.first()?;
        let pace = first.wait.as_secs_f64() / f64::from(first.prompt.max(1));
        let pace = pace.min(READING);
        let mut explained = self.longest.as_secs_f64();
        let cold = wave.iter().any(|own| {
            let reading = pace * f64::from(own.prompt);
            let limit = TIMES * (explained + reading) + FLOOR;
            explained += turn.max(reading);
            own.wait.as_secs_f64() > limit
        });
        let last = wave.last().filter(|_| cold)?;
        let until = (last.sent + last.wait).since(self.origin).as_secs_f64();
        self.cold_start(Shown::FirstWave, wave.into_iter(), until, None)
    }

    fn cold_start<'a>(
        &self,
        shown: Shown,
        met: impl Iterator<Item = &'a Early>,
        until_s: f64,
        factor: Option<f64>,
    ) -> Option<ColdStart> {
        let mut own = Sums::default();
        let (mut first, mut last, mut longest) = (u64::MAX, 0, Nanos::ZERO);
        for request in met {
            own.add(request);
            first = first.min(request.index);
            last = last.max(request.index);
            longest = longest.max(request.wait);
        }
        if own.count == 0 {
            return None;
        }
        let (wait_ms, e2e_ms) = self.all.means();
        let (wait_without_ms, e2e_without_ms) = self.all.without(own).means();
        let longest_wait_ms = longest.as_millis_f64();
        let longest_later_wait_ms = self.longest.as_millis_f64();
        Some(ColdStart {
            shown,
            requests: own.count,
            first,
            last,
            until_s,
            // A later wait of nothing is one below the clock's resolution.
            times: factor.unwrap_or(longest_wait_ms / longest_later_wait_ms.max(1e-6)),
            longest_wait_ms,
            longest_later_wait_ms,
            wait_ms,
            wait_without_ms,
            e2e_ms,
            e2e_without_ms,
        })
    }
}
