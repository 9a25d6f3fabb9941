//! The load over time: when requests were due and sent, and how many tokens came in each second.

use std::collections::HashMap;

use crate::metric::Reading;
use model::units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// What is kept of the exchanges seen so far: a number for each second of the run.
pub(super) struct Load {
    origin: Nanos,
    /// When requests were due.
    pub(super) due: Instants,
    /// When requests were sent.
    pub(super) sent: Instants,
    answered: u128,
    tokens: HashMap<u64, u64>,
    /// The second under way and its tokens: most events follow one of the same second.
    current: (u64, u64),
}

/// A set of instants; only the first, the last and their number matter.
#[derive(Default)]
pub(super) struct Instants {
    count: u64,
    ends: Option<(Nanos, Nanos)>,
}

impl Instants {
    fn add(&mut self, at: Nanos) {
        self.count += 1;
        let (first, last) = self.ends.unwrap_or((at, at));
        self.ends = Some((first.min(at), last.max(at)));
    }

    /// `(count - 1) / (last - first)`; `None` if that is not a rate.
    pub(super) fn per_second(&self) -> Option<f64> {
        let (first, last) = self.ends?;
        let seconds = last.since(first).as_secs_f64();
        (seconds > 0.0).then(|| (self.count - 1) as f64 / seconds)
    }
}

impl Load {
    pub(super) fn new(origin: Nanos) -> Self {
        Load {
            origin,
            due: Instants::default(),
            sent: Instants::default(),
            answered: 0,
            tokens: HashMap::new(),
            current: (0, 0),
        }
    }

    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let exchange = reading.exchange;
        self.due.add(exchange.due);
        if let Some(sent) = exchange.sent {
            self.sent.add(sent);
        }
        if exchange.is_ok() {
            self.answered += reading.latency().map_or(0, |span| u128::from(span.0));
        }
    }

    /// Adds tokens of an answer that came at an instant.
    pub(super) fn add_tokens(&mut self, at: Nanos, tokens: u64) {
        let second = at.since(self.origin).0 / SECOND;
        if second != self.current.0 {
            self.flush();
            self.current = (second, 0);
        }
        self.current.1 = self.current.1.saturating_add(tokens);
    }

    fn flush(&mut self) {
        let (second, tokens) = self.current;
        let sum = self.tokens.entry(second).or_default();
        *sum = sum.saturating_add(tokens);
    }

    /// Seconds that the answered requests took, summed.
    pub(super) fn answered_seconds(&self) -> f64 {
        self.answered as f64 / SECOND as f64
    }

    /// Most tokens in one second; `None` if the time of no token is known.
    pub(super) fn peak_tokens(&mut self) -> Option<u64> {
        self.flush();
        self.current.1 = 0;
        let most = self.tokens.values().copied().max();
        most.filter(|tokens| *tokens > 0)
    }
}
