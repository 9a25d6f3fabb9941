//! Figures by group: by turn of a conversation, by class of sample, by adapter.

use std::collections::BTreeMap;

use super::one;
use result::metric::{self, Reading};
use result::stats::{Figures, Spread};

/// Largest number of separate groups; those after them in order are merged into one.
const APART: usize = 24;

/// The metrics of a group.
const METRICS: [&str; 3] = [metric::TTFT, metric::TPOT, metric::E2E];

/// The groups of a run. A list is empty if samples do not state the kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Groups {
    /// By the turn's number in its conversation, from 1.
    pub turns: Vec<Group>,
    /// By the class of sample.
    pub classes: Vec<Group>,
    /// By the requested adapter.
    pub adapters: Vec<Group>,
}

/// The requests of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name; absent for the merged group.
    pub name: Option<String>,
    /// Its requests.
    pub requests: u64,
    /// Those that were not answered.
    pub failed: u64,
    /// Tokens of a prompt, on average over the answered ones whose count is known.
    pub input_tokens: Option<f64>,
    /// Tokens of an answer, likewise.
    pub output_tokens: Option<f64>,
    /// TTFT over the answered ones, in milliseconds.
    pub ttft: Option<Figures>,
    /// TPOT, likewise.
    pub tpot: Option<Figures>,
    /// E2E latency, likewise.
    pub e2e: Option<Figures>,
}

#[derive(Default)]
pub(super) struct Gather {
    turns: Divided<u32>,
    classes: Divided<String>,
    adapters: Divided<String>,
}

impl Gather {
    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let sample = &reading.exchange.sample;
        if let Some(turn) = &sample.turn {
            self.turns.add(turn.index, reading);
        }
        if let Some(class) = &sample.class {
            self.classes.add(class.clone(), reading);
        }
        if let Some(adapter) = &sample.adapter {
            self.adapters.add(adapter.clone(), reading);
        }
    }

    pub(super) fn finish(self) -> Groups {
        Groups {
            turns: self.turns.finish(|turn| format!("{}", u64::from(turn) + 1)),
            classes: self.classes.finish(|name| name),
            adapters: self.adapters.finish(|name| name),
        }
    }
}

/// Requests by group. The first groups in order are kept separate; which those are is known at the end, and a
/// group that was dropped never comes back, because those before it stay.
struct Divided<K> {
    apart: BTreeMap<K, Sums>,
    others: Option<Sums>,
}

impl<K> Default for Divided<K> {
    fn default() -> Self {
        Divided {
            apart: BTreeMap::new(),
            others: None,
        }
    }
}

impl<K: Ord> Divided<K> {
    fn add(&mut self, key: K, reading: &Reading<'_>) {
        let full = self.apart.len() >= APART && !self.apart.contains_key(&key);
        let beyond = self
            .apart
            .last_key_value()
            .is_some_and(|(last, _)| key > *last);
        // Once there are others, every key beyond the last is one of them.
        if beyond && (full || self.others.is_some()) {
            return self.others.get_or_insert_default().add(reading);
        }
        self.apart.entry(key).or_default().add(reading);
        if full && let Some((_, last)) = self.apart.pop_last() {
            self.others.get_or_insert_default().merge(last);
        }
    }

    fn finish(self, name: impl Fn(K) -> String) -> Vec<Group> {
        let apart = self.apart.into_iter();
        let named = apart.map(|(key, sums)| sums.finish(Some(name(key))));
        named
            .chain(self.others.map(|sums| sums.finish(None)))
            .collect()
    }
}

struct Sums {
    requests: u64,
    failed: u64,
    /// Tokens, and how many requests have them.
    input: (u64, u64),
    output: (u64, u64),
    spreads: [Spread; 3],
}

impl Default for Sums {
    fn default() -> Self {
        Sums {
            requests: 0,
            failed: 0,
            input: (0, 0),
            output: (0, 0),
            spreads: METRICS.map(|_| Spread::new(metric::Unit::Milliseconds.scale())),
        }
    }
}

impl Sums {
    fn add(&mut self, reading: &Reading<'_>) {
        self.requests += 1;
        if !reading.exchange.is_ok() {
            self.failed += 1;
            return;
        }
        for (sum, count) in [
            (&mut self.input, reading.input_tokens),
            (&mut self.output, reading.output_tokens),
        ] {
            sum.0 += count.map_or(0, |count| u64::from(count.tokens));
            sum.1 += u64::from(count.is_some());
        }
        for (name, spread) in METRICS.iter().zip(&mut self.spreads) {
            if let Some(sample) = one(name, reading) {
                spread.add(sample);
            }
        }
    }

    fn merge(&mut self, other: Sums) {
        self.requests += other.requests;
        self.failed += other.failed;
        for (sum, more) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
        ] {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
        for (spread, more) in self.spreads.iter_mut().zip(other.spreads) {
            spread.merge(more);
        }
    }

    fn finish(self, name: Option<String>) -> Group {
        let mean = |(sum, of): (u64, u64)| (of > 0).then(|| sum as f64 / of as f64);
        let [ttft, tpot, e2e] = self.spreads.map(Spread::figures);
        Group {
            name,
            requests: self.requests,
            failed: self.failed,
            input_tokens: mean(self.input),
            output_tokens: mean(self.output),
            ttft,
            tpot,
            e2e,
        }
    }
}
