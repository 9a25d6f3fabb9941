//! The one pass over a run's exchanges.

use std::collections::BTreeMap;

use super::load::Load;
use super::tokens::TokenSums;
use super::{Concurrency, Distribution, Failures, Requests, RunFacts, Summary, Throughput};
use super::{Run, percentile_name};
use crate::exchange::{Exchange, FailureClass, Outcome, Phase};
use crate::finding::Verdict;
use crate::metric::{CATALOGUE, Measure, Of, Reading};
use crate::stats::Sorted;
use crate::units::Nanos;

/// How many distinct messages of a class of failure are kept.
const MESSAGES: usize = 3;

/// A wait at the cap no longer than this is the pacer's, not the cap's.
const WAITED: Nanos = Nanos(1_000_000);

/// Everything that is kept of the exchanges seen so far.
pub(super) struct Gather<'a> {
    facts: &'a RunFacts,
    requests: Requests,
    held_back: u64,
    /// By class, each distinct message with the lowest index at which it occurred.
    messages: BTreeMap<FailureClass, BTreeMap<String, u64>>,
    tokens: TokenSums,
    load: Load,
    /// Samples of each metric of the catalogue.
    samples: Vec<Vec<f64>>,
}

impl<'a> Gather<'a> {
    pub(super) fn new(facts: &'a RunFacts) -> Self {
        Gather {
            facts,
            requests: Requests::default(),
            held_back: 0,
            messages: BTreeMap::new(),
            tokens: TokenSums::default(),
            load: Load::new(facts.run.measure_start),
            samples: CATALOGUE.iter().map(|_| Vec::new()).collect(),
        }
    }

    pub(super) fn add(&mut self, exchange: &Exchange) {
        if exchange.phase == Phase::Warmup {
            self.requests.warmup += 1;
            return;
        }
        let retokenized = self.facts.retokenized.get(&exchange.index).copied();
        let reading = Reading::new(exchange, self.facts.run.streamed, retokenized);
        self.count(exchange);
        self.load.add(&reading);
        if exchange.is_ok() {
            self.tokens.add(&reading, retokenized);
        }
        for (metric, samples) in CATALOGUE.iter().zip(&mut self.samples) {
            if metric.of == Of::Answered && !exchange.is_ok() {
                continue;
            }
            match metric.measure {
                Measure::One(measure) => samples.extend(measure(&reading)),
                Measure::Many(measure) => measure(&reading, samples),
            }
        }
    }

    fn count(&mut self, exchange: &Exchange) {
        self.requests.total += 1;
        self.requests.sent += u64::from(exchange.sent.is_some());
        let mut held_back = exchange
            .granted
            .is_some_and(|granted| granted.since(exchange.due) > WAITED);
        match &exchange.outcome {
            Outcome::Ok => self.requests.successful += 1,
            Outcome::Failed { class, message } => {
                self.requests.failed += 1;
                self.requests.failures.entry(*class).or_default().count += 1;
                held_back |= *class == FailureClass::NotSent;
                let seen = self.messages.entry(*class).or_default();
                match seen.get_mut(message) {
                    Some(first) => *first = exchange.index.min(*first),
                    None => drop(seen.insert(message.clone(), exchange.index)),
                }
            }
        }
        self.held_back += u64::from(held_back);
    }

    pub(super) fn finish(self) -> Summary {
        let run = Run {
            percentiles: percentiles(&self.facts.run),
            ..self.facts.run.clone()
        };
        let mut requests = self.requests;
        for (class, messages) in self.messages {
            let mut by_index: Vec<_> = messages.into_iter().map(|(text, at)| (at, text)).collect();
            by_index.sort_unstable();
            let messages = by_index
                .into_iter()
                .take(MESSAGES)
                .map(|(_, text)| text)
                .collect();
            let failures: &mut Failures = requests.failures.entry(class).or_default();
            failures.messages = messages;
        }
        requests.success_share =
            (requests.total > 0).then(|| requests.successful as f64 / requests.total as f64);
        requests.held_back = run.max_in_flight.map(|_| self.held_back);

        let tokens = self.tokens.finish(run.streamed);
        let duration = self.load.duration();
        let per_s = |amount: u64| duration.map(|seconds| amount as f64 / seconds);
        let total = tokens
            .input
            .total
            .zip(tokens.output.total)
            .map(|(i, o)| i.saturating_add(o));
        let throughput = Throughput {
            duration_s: duration,
            requests_per_s: per_s(requests.successful),
            input_tokens_per_s: tokens.input.total.and_then(per_s),
            output_tokens_per_s: tokens.output.total.and_then(per_s),
            total_tokens_per_s: total.and_then(per_s),
            peak_output_tokens_per_s: self.load.peak_tokens().map(|tokens| tokens as f64),
            sent_requests_per_s: self.load.sent.per_second(),
            due_requests_per_s: self.load.due.per_second(),
        };
        let concurrency = Concurrency {
            mean: duration.map(|seconds| self.load.answered_seconds() / seconds),
            mean_in_flight: duration.map(|seconds| self.load.in_flight_seconds() / seconds),
            peak: self.load.peak_in_flight(),
        };
        let metrics = CATALOGUE
            .iter()
            .zip(self.samples)
            .filter_map(|(metric, samples)| {
                let sorted = Sorted::new(samples)?;
                let distribution =
                    Distribution::of(&sorted, metric.unit.symbol(), &run.percentiles);
                Some((metric.name.to_owned(), distribution))
            })
            .collect();
        Summary {
            run,
            verdict: Verdict::Valid,
            findings: Vec::new(),
            requests,
            tokens,
            throughput,
            concurrency,
            metrics,
            scores: self.facts.scores.clone(),
            run_scores: self.facts.run_scores.clone(),
        }
    }
}

impl Distribution {
    fn of(sorted: &Sorted, unit: &str, percentiles: &[f64]) -> Self {
        Distribution {
            unit: unit.to_owned(),
            count: sorted.count(),
            mean: sorted.mean(),
            std: sorted.std(),
            min: sorted.min(),
            max: sorted.max(),
            median: sorted.median(),
            percentiles: percentiles
                .iter()
                .map(|&percent| (percentile_name(percent), sorted.percentile(percent)))
                .collect(),
        }
    }
}

/// The percentiles asked for, in order and once each, with 99 among them: the layout of the text
/// block has it.
fn percentiles(run: &Run) -> Vec<f64> {
    let mut percentiles = run.percentiles.clone();
    percentiles.push(99.0);
    percentiles.sort_unstable_by(f64::total_cmp);
    percentiles.dedup();
    percentiles
}
