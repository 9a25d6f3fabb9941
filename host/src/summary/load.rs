//! The load over time: how long the run was, how many requests were in flight, how many tokens
//! came in each second.

use std::collections::HashMap;

use crate::metric::Reading;
use crate::units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// What is kept of each exchange to compute the load over time.
pub(super) struct Load {
    origin: Nanos,
    /// When requests were due.
    pub(super) due: Instants,
    /// When requests were sent.
    pub(super) sent: Instants,
    last_end: Option<Nanos>,
    in_flight: Vec<(Nanos, Nanos)>,
    answered: u128,
    tokens: HashMap<u64, u64>,
}

/// A set of instants, of which the first, the last and the number matter.
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

    /// `(count - 1) / (last - first)`; `None` where that is no rate.
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
            last_end: None,
            in_flight: Vec::new(),
            answered: 0,
            tokens: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let exchange = reading.exchange;
        self.due.add(exchange.due);
        self.last_end = self.last_end.max(exchange.ended);
        if let Some(sent) = exchange.sent {
            self.sent.add(sent);
            // Without an end, a request was in flight at least until the last sign of its reply.
            let seen = exchange.events.at.last().copied().or(exchange.headers);
            if let Some(end) = exchange.ended.or(seen).filter(|end| *end > sent) {
                self.in_flight.push((sent, end));
            }
        }
        if exchange.is_ok() {
            self.answered += reading.latency().map_or(0, |span| u128::from(span.0));
            self.add_tokens(reading);
        }
    }

    fn add_tokens(&mut self, reading: &Reading<'_>) {
        let mut run: Option<(u64, u64)> = None;
        for (at, tokens) in reading.token_arrivals() {
            let second = at.since(self.origin).0 / SECOND;
            match &mut run {
                Some((same, sum)) if *same == second => *sum = sum.saturating_add(tokens),
                _ => {
                    self.flush(run);
                    run = Some((second, tokens));
                }
            }
        }
        self.flush(run);
    }

    fn flush(&mut self, run: Option<(u64, u64)>) {
        if let Some((second, tokens)) = run {
            let sum = self.tokens.entry(second).or_default();
            *sum = sum.saturating_add(tokens);
        }
    }

    /// Seconds from the origin to the end of the last exchange; `None` where nothing ended.
    pub(super) fn duration(&self) -> Option<f64> {
        let seconds = self.last_end?.since(self.origin).as_secs_f64();
        (seconds > 0.0).then_some(seconds)
    }

    /// Seconds that the answered requests took, summed.
    pub(super) fn answered_seconds(&self) -> f64 {
        self.answered as f64 / SECOND as f64
    }

    /// Seconds in flight of all requests, summed.
    pub(super) fn in_flight_seconds(&self) -> f64 {
        let spans = self
            .in_flight
            .iter()
            .map(|(from, to)| u128::from(to.since(*from).0));
        spans.sum::<u128>() as f64 / SECOND as f64
    }

    /// Most requests in flight at one instant. One that ends when another is sent has made way
    /// for it.
    pub(super) fn peak_in_flight(&self) -> Option<u64> {
        let mut starts: Vec<Nanos> = self.in_flight.iter().map(|span| span.0).collect();
        let mut ends: Vec<Nanos> = self.in_flight.iter().map(|span| span.1).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        let mut ended = 0;
        let in_flight = starts.iter().enumerate().map(|(started, start)| {
            while ends[ended] <= *start {
                ended += 1;
            }
            (started + 1 - ended) as u64
        });
        in_flight.max()
    }

    /// Most tokens in one second; `None` where no token's instant is known, or the run is shorter
    /// than that.
    pub(super) fn peak_tokens(&self) -> Option<u64> {
        let whole_second = self.duration().is_some_and(|seconds| seconds >= 1.0);
        self.tokens
            .values()
            .copied()
            .max()
            .filter(|tokens| whole_second && *tokens > 0)
    }
}
