//! Figures by turn of a conversation, by class of sample and by adapter, in bounded memory.

use std::collections::BTreeMap;

use super::distribution::Distribution;
use super::speculation::{Speculation, Steps};
use crate::metric::{self, Metric, Reading};
use crate::metric::{spread, take};
use statistics::Spread;

/// Largest number of separate groups; later ones in order are merged into one.
const APART: usize = 24;

const METRICS: [&str; 3] = [metric::TTFT, metric::TPOT, metric::E2E];

/// The groups of a run. A list is empty if samples do not state the kind.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Groups {
    /// Groups by the turn's place in its conversation, from 0 as in the records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_turn: Vec<Group>,
    /// Groups by the class of sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_class: Vec<Group>,
    /// Groups by the requested adapter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_adapter: Vec<Group>,
}

/// The requests of a group.
#[model::apply(model::document!)]
pub struct Group {
    /// Its name; absent for the merged group of all that follow in order.
    pub name: Option<String>,
    /// Its requests.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Tokens of a prompt, on average over the answered ones whose count is known.
    pub input_tokens: Option<f64>,
    /// Tokens of an answer, likewise.
    pub output_tokens: Option<f64>,
    /// Share of the prompts' tokens that the server found in its prefix cache, over the answers
    /// that report it.
    pub cached_share: Option<f64>,
    /// The steps of speculative decoding of the answered ones; absent if the server reports none.
    pub speculation: Option<Speculation>,
    /// TTFT, TPOT and E2E latency of the answered ones, by name.
    pub metrics: BTreeMap<String, Distribution>,
}

impl Groups {
    pub fn is_empty(&self) -> bool {
        let Groups { by_turn, by_class, by_adapter } = self;
        by_turn.is_empty() && by_class.is_empty() && by_adapter.is_empty()
    }
}

#[derive(Default)]
pub(super) struct Gather {
    turns: Division<u32, Sums>,
    classes: Division<String, Sums>,
    adapters: Division<String, Sums>,
}

impl Gather {
    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let sample = &reading.exchange.sample;
        if let Some(turn) = &sample.turn {
            self.turns.group(turn.index).add(reading);
        }
        if let Some(class) = &sample.class {
            self.classes.group(class.clone()).add(reading);
        }
        if let Some(adapter) = &sample.adapter {
            self.adapters.group(adapter.clone()).add(reading);
        }
    }

    pub(super) fn finish(self, percentiles: &[f64]) -> Groups {
        let group = |name, sums: Sums| sums.finish(name, percentiles);
        Groups {
            by_turn: self.turns.finish(group, |turn| turn.to_string()),
            by_class: self.classes.finish(group, |name| name),
            by_adapter: self.adapters.finish(group, |name| name),
        }
    }
}

/// The data kept of a group, which can become part of another.
pub(super) trait Merge: Default {
    fn merge(&mut self, other: Self);
}

/// Data kept by group. The first groups in order are kept separate. They are known at the end, and
/// a group that was dropped never comes back, because the groups before it stay.
pub(super) struct Division<K, S> {
    apart: BTreeMap<K, S>,
    others: Option<S>,
}

impl<K, S> Default for Division<K, S> {
    fn default() -> Self {
        Division { apart: BTreeMap::new(), others: None }
    }
}

impl<K: Ord, S: Merge> Division<K, S> {
    pub(super) fn group(&mut self, key: K) -> &mut S {
        let full = self.apart.len() >= APART && !self.apart.contains_key(&key);
        let beyond = self.apart.last_key_value().is_some_and(|(last, _)| key > *last);
        // Once there are others, every key beyond the last is one of them.
        if beyond && (full || self.others.is_some()) {
            return self.others.get_or_insert_default();
        }
        // The new key is not the last one here.
        if full && let Some((_, last)) = self.apart.pop_last() {
            self.others.get_or_insert_default().merge(last);
        }
        self.apart.entry(key).or_default()
    }

    /// The groups in order, the merged one at the end, without a name.
    pub(super) fn finish<T>(
        self,
        finish: impl Fn(Option<String>, S) -> T,
        name: impl Fn(K) -> String,
    ) -> Vec<T> {
        let named = self.apart.into_iter().map(|(key, sums)| finish(Some(name(key)), sums));
        named.chain(self.others.map(|sums| finish(None, sums))).collect()
    }
}

struct Sums {
    requests: u64,
    failed: u64,
    /// Tokens, and the number of requests that have them.
    input: (u64, u64),
    output: (u64, u64),
    /// Tokens found in the cache, and all tokens of the prompts whose cached tokens are known.
    cached: (u64, u64),
    steps: Steps,
    spreads: Vec<(&'static Metric, Spread)>,
}

impl Default for Sums {
    fn default() -> Self {
        Sums {
            requests: 0,
            failed: 0,
            input: (0, 0),
            output: (0, 0),
            cached: (0, 0),
            steps: Steps::default(),
            spreads: (METRICS.iter())
                .filter_map(|name| metric::by_name(name))
                .map(|metric| (metric, spread(metric)))
                .collect(),
        }
    }
}

impl Merge for Sums {
    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        for (sum, more) in [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cached, other.cached),
        ] {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
        self.steps.merge(other.steps);
        for ((_, spread), (_, more)) in self.spreads.iter_mut().zip(other.spreads) {
            spread.merge(more);
        }
    }
}

impl Sums {
    fn add(&mut self, reading: &Reading<'_>) {
        self.requests += 1;
        if !reading.exchange.is_ok() {
            self.failed += u64::from(reading.exchange.has_failed());
            return;
        }
        for (sum, count) in
            [(&mut self.input, reading.input_tokens), (&mut self.output, reading.output_tokens)]
        {
            sum.0 += count.map_or(0, |count| u64::from(count.tokens));
            sum.1 += u64::from(count.is_some());
        }
        let usage = reading.exchange.usage.unwrap_or_default();
        if let (Some(cached), Some(input)) = (usage.cached_input_tokens, usage.input_tokens) {
            self.cached.0 += u64::from(cached);
            self.cached.1 += u64::from(input);
        }
        self.steps.add(reading.exchange);
        for (metric, spread) in &mut self.spreads {
            take(metric, reading, spread, None);
        }
    }

    fn finish(self, name: Option<String>, percentiles: &[f64]) -> Group {
        let ratio = |(sum, of): (u64, u64)| (of > 0).then(|| sum as f64 / of as f64);
        let metrics = self.spreads.into_iter().filter_map(|(metric, spread)| {
            let figures = spread.figures()?;
            let distribution = Distribution::new(metric, &figures, percentiles);
            Some((metric.name.to_owned(), distribution))
        });
        Group {
            name,
            requests: self.requests,
            failed: self.failed,
            input_tokens: ratio(self.input),
            output_tokens: ratio(self.output),
            cached_share: ratio(self.cached),
            speculation: self.steps.finish(),
            metrics: metrics.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::summary::Summary;
    use crate::summary::fixture::{facts, failed, output_usage, reply};
    use model::exchange::Kind::{End, Text};
    use model::exchange::{Class, Exchange, Turn, Usage};

    /// Its first token comes after `ttft` ms, three more and the end 100 ms later.
    fn turn(index: u64, place: u32, ttft: u64) -> Exchange {
        let sent = 1000 + index * 1000;
        let first = (sent + ttft, Text, None, 1);
        let events = [first, (sent + ttft + 100, End, None, 0)];
        let mut exchange = reply(index, sent, &events);
        exchange.usage = Some(Usage {
            input_tokens: Some(100 * (place + 1)),
            cached_input_tokens: (place > 0).then_some(50 * (place + 1)),
            ..output_usage(5).unwrap_or_default()
        });
        exchange.sample.turn = Some(Turn { session: "a".into(), index: place });
        exchange
    }

    #[test]
    fn groups_by_hand() {
        let mut run = vec![turn(0, 0, 200), turn(1, 0, 400), turn(2, 1, 50), turn(3, 1, 9)];
        run[3] = failed(run[3].clone(), Class::Truncated, "");
        run[2].sample.class = Some("code".into());
        let groups = Summary::new(&facts(), &run).groups;
        let [first, second] = &groups.by_turn[..] else {
            panic!("two turns");
        };
        assert_eq!((first.name.as_deref(), first.requests, first.failed), (Some("0"), 2, 0));
        assert_eq!(first.metrics["ttft"].median, 300.0);
        assert_eq!(first.metrics["tpot"].mean, 25.0);
        assert_eq!(first.metrics["e2e"].max, 500.0);
        assert_eq!((first.input_tokens, first.output_tokens), (Some(100.0), Some(5.0)));
        assert_eq!(first.cached_share, None);
        assert_eq!((second.name.as_deref(), second.requests, second.failed), (Some("1"), 2, 1));
        assert_eq!(second.metrics["ttft"].count, 1);
        assert_eq!((second.input_tokens, second.cached_share), (Some(200.0), Some(0.5)));
        assert_eq!(groups.by_class.len(), 1);
        assert_eq!(groups.by_class[0].name.as_deref(), Some("code"));
        assert!(groups.by_adapter.is_empty());
    }

    #[test]
    fn turns_beyond_a_number_are_one_group_in_whatever_order() {
        let mut run: Vec<Exchange> = (0..30).map(|i| turn(i, i as u32, 10 + i)).collect();
        let groups = Summary::new(&facts(), &run).groups;
        let last = groups.by_turn.last().unwrap();
        assert_eq!((groups.by_turn.len(), &last.name, last.requests), (25, &None, 6));
        assert_eq!(last.metrics["ttft"].min, 34.0);
        run.reverse();
        assert_eq!(Summary::new(&facts(), &run).groups, groups);
    }
}
