//! The load over time: the due times and send times of requests, the tokens of each second, and the
//! length of sound.

use std::collections::HashMap;

use crate::metric::Reading;
use model::units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// The evenness with which requests were due and sent: the coefficient of variation (standard
/// deviation divided by mean) of the gaps between successive instants, over the requests that were
/// sent. It is 0 for even gaps, 1 for a Poisson process, and more for bursts. Requests that failed
/// before they were sent would change it without any lateness, so they are left out of both.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Arrivals {
    /// The coefficient of variation of the gaps between the times at which they were due.
    pub due_gap_cv: Option<f64>,
    /// The coefficient of variation of the gaps between the times at which they were sent.
    pub sent_gap_cv: Option<f64>,
}

/// The data kept of the exchanges seen so far: a number for each second of the run.
pub(super) struct Load {
    origin: Nanos,
    pub(super) due: Instants,
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

    pub(super) fn last(&self) -> Option<Nanos> {
        self.ends.map(|(_, last)| last)
    }

    pub(super) fn at_once(&self) -> bool {
        self.ends.is_none_or(|(first, last)| first == last)
    }

    /// `(count - 1) / (last - first)`; `None` if that is not a rate.
    pub(super) fn per_second(&self) -> Option<f64> {
        let (first, last) = self.ends?;
        let seconds = last.since(first).as_secs_f64();
        (seconds > 0.0).then(|| (self.count - 1) as f64 / seconds)
    }
}

#[derive(Default)]
pub(super) struct Sound(Option<Nanos>);

impl Sound {
    pub(super) fn add(&mut self, length: Option<Nanos>) {
        if let Some(length) = length {
            let sum = self.0.unwrap_or_default().0.saturating_add(length.0);
            self.0 = Some(Nanos(sum));
        }
    }

    /// Seconds of sound to each second of this duration; absent if no length was known.
    pub(super) fn per_second(&self, duration: Option<f64>) -> Option<f64> {
        Some(self.0?.as_secs_f64() / duration?)
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
        self.tokens.values().copied().max().filter(|tokens| *tokens > 0)
    }
}

#[cfg(test)]
mod tests {
    use crate::summary::{Summary, fixture};
    use model::exchange::Exchange;
    use model::exchange::Kind::{End, Text};

    /// Requests due at these milliseconds, each sent `late` milliseconds later, and answered after
    /// a tenth of a second.
    fn run(due: &[u64], late: impl Fn(u64) -> u64) -> Vec<Exchange> {
        let requests = due.iter().zip(0u64..).map(|(due, index)| {
            let sent = due + late(index);
            let events = [(sent + 50, Text, None, 3), (sent + 100, End, None, 0)];
            let mut exchange = fixture::reply(index, sent, &events);
            exchange.due = fixture::ms(*due);
            exchange
        });
        requests.collect()
    }

    #[test]
    fn the_drain_is_the_time_after_the_last_request() {
        let share = |run: &[Exchange]| {
            let summary = Summary::new(&fixture::facts(), run);
            summary.throughput.drain_share
        };
        assert_eq!(share(&run(&[1000, 1900], |_| 0)), Some(0.1));
        // A burst has no time in which requests are sent, unless a cap spreads it.
        assert_eq!(share(&run(&[1000; 3], |index| index)), None);
        assert_eq!(share(&run(&[1000; 3], |index| 200 * index)), Some(0.2));
        assert_eq!(share(&[]), None);
    }

    #[test]
    fn gaps_vary_as_due_and_as_sent() {
        let mut facts = fixture::facts();
        let even: Vec<u64> = (0..5).map(|index| 1000 + 100 * index).collect();
        let pairs = run(&even, |index| index % 2 * 50);
        assert_eq!(Summary::new(&facts, &pairs).arrivals, None, "no rate");
        facts.run.request_rate = Some(10.0);
        let varies = |run: &[Exchange]| {
            let arrivals = Summary::new(&facts, run).arrivals.unwrap();
            (arrivals.due_gap_cv, arrivals.sent_gap_cv)
        };
        // Gaps of 150 and 50 ms in turn: the deviation is half of the mean.
        assert_eq!(varies(&pairs), (Some(0.0), Some(0.5)));
        // An unsent request leaves no longer gap in one of the two.
        let mut thinned = pairs.clone();
        thinned[1].sent = None;
        thinned[3].sent = None;
        assert_eq!(varies(&thinned), (Some(0.0), Some(0.0)));
        assert_eq!(varies(&run(&[1000, 1100], |_| 0)), (None, None));
        assert_eq!(varies(&run(&[1000; 4], |_| 0)), (None, None));
    }

    #[test]
    fn a_speed_has_the_percentiles_of_the_slowest_too() {
        let mut facts = fixture::facts();
        facts.run.percentiles = vec![50.0, 90.0, 99.9, 100.0];
        facts.run.goodput = crate::metric::objective::parse("tpot:20").unwrap();
        let mut run = run(&[1000, 2000], |_| 0);
        for exchange in &mut run {
            exchange.usage = fixture::output_usage(4);
        }
        let summary = Summary::new(&facts, &run);
        let names = |metric| {
            let percentiles = summary.metric(metric).unwrap().percentiles.keys();
            percentiles.map(String::as_str).collect::<Vec<_>>()
        };
        let requested = ["p100", "p50", "p90", "p99", "p99.9"];
        let both = ["p0.1", "p1", "p10", "p100", "p50", "p90", "p99", "p99.9"];
        assert_eq!(names("ttft"), requested);
        assert_eq!(names("output-speed"), both);
        // All four come in one event, the first of them in time for its reader, and so the others.
        assert_eq!(summary.metric("stall-share").unwrap().max, 0.0);
        facts.run.goodput.clear();
        assert_eq!(Summary::new(&facts, &run).metric("stall-share"), None);
    }
}
