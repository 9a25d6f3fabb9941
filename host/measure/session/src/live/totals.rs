//! Totals of the exchanges that are on record. They lag by the length of a reply.

use super::cells::{Buckets, Seconds};
use super::figures::Track as TrackFigures;
use super::snapshot::Counts;
use model::exchange::{Class, Exchange, Outcome, Phase};
use model::units::Nanos;
use result::metric::{self, Measure, Metric, Of, Reading};

/// Milliseconds in the whole steps that metrics are counted in.
const STEPS_PER_MS: f64 = 1e6;

pub(super) struct Totals {
    pub counts: Counts,
    tracks: [Track; METRICS.len()],
}

/// The metrics that are followed, and their bucket bounds.
pub(super) const METRICS: [(&str, &[Nanos]); 5] = [
    (metric::TTFT, &LATENCIES),
    (metric::ITL, &LATENCIES),
    (metric::TPOT, &LATENCIES),
    (metric::E2E, &LATENCIES),
    (metric::SEND_LAG, &LAGS),
];

const LATENCIES: [Nanos; 28] = multiples(
    100_000,
    [
        10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 5_000, 7_500,
        10_000, 15_000, 20_000, 30_000, 50_000, 100_000, 200_000, 300_000, 600_000, 1_200_000,
        3_000_000,
    ],
);

const LAGS: [Nanos; 16] = multiples(
    1_000,
    [
        10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
        500_000, 1_000_000,
    ],
);

const fn multiples<const N: usize>(unit: u64, spans: [u64; N]) -> [Nanos; N] {
    let mut all = [Nanos::ZERO; N];
    let mut i = 0;
    while i < N {
        all[i] = Nanos(spans[i] * unit);
        i += 1;
    }
    all
}

struct Track {
    metric: &'static Metric,
    seconds: Seconds,
    buckets: Buckets,
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            counts: Counts::default(),
            tracks: METRICS.map(|(name, bounds)| Track {
                metric: metric::by_name(name)
                    .unwrap_or_else(|| unreachable!("the catalogue has `{name}`")),
                seconds: Seconds::default(),
                buckets: Buckets::new(bounds),
            }),
        }
    }
}

impl Totals {
    /// Enters an exchange that has ended. `streamed` is true if replies were streamed.
    pub fn enter(&mut self, exchange: &Exchange, streamed: bool) {
        if exchange.phase == Phase::Warmup {
            self.counts.warmup += 1;
        }
        if exchange.phase != Phase::Measure {
            return;
        }
        let sample = &exchange.sample;
        self.counts.sessions += u64::from(sample.parents.is_empty() && sample.descendants == 0);
        self.counts.sent += u64::from(exchange.sent.is_some());
        // Answers are only tokenized when the run has ended.
        let reading = Reading::new(exchange, streamed, None);
        match &exchange.outcome {
            Outcome::Ok => {
                let tokens =
                    |count: Option<metric::Count>| count.map_or(0, |count| count.tokens.into());
                self.counts.answered += 1;
                self.counts.input_tokens += tokens(reading.input_tokens);
                self.counts.output_tokens += tokens(reading.output_tokens);
            }
            Outcome::Incomplete { class: Class::Cancelled, .. } => self.counts.cancelled += 1,
            Outcome::Incomplete { class, message, .. } => {
                let failures = self.counts.failed.entry(*class).or_default();
                failures.count += 1;
                failures.latest.clone_from(message);
            }
        }
        let over = exchange.ended.unwrap_or(exchange.due);
        for track in &mut self.tracks {
            track.enter(&reading, over);
        }
    }

    /// Each metric's distributions, the recent past being that before `now`.
    pub fn seen(&self, now: Nanos) -> [TrackFigures; METRICS.len()] {
        self.tracks.each_ref().map(|track| TrackFigures {
            spans: track.seconds.at(now),
            buckets: track.buckets.clone(),
        })
    }
}

impl Track {
    fn enter(&mut self, reading: &Reading<'_>, over: Nanos) {
        let wanted = match self.metric.of {
            Of::Answered => reading.exchange.is_ok(),
            Of::Sent => reading.exchange.sent.is_some(),
            Of::Session => false,
        };
        if !wanted {
            return;
        }
        match self.metric.measure {
            Measure::One(measure) => {
                if let Some(ms) = measure(reading) {
                    self.add(over, Nanos((ms * STEPS_PER_MS).round() as u64), 1);
                }
            }
            Measure::Pooled(show) => {
                show(reading, &mut |_, span, times| self.add(over, Nanos(span), times));
            }
            Measure::Session(_) => {}
        }
    }

    fn add(&mut self, over: Nanos, span: Nanos, times: u64) {
        self.seconds.add(over, span, times);
        self.buckets.add(span, times);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::{failed, ms, output_usage, reply};
    use model::exchange::Kind;

    /// Sent at that millisecond: a token 100 ms later, two more after 20 ms each, the end.
    fn answered(sent: u64) -> Exchange {
        let text = |after| (sent + after, Kind::Text, None, 3);
        let end = (sent + 140, Kind::End, None, 0);
        let mut exchange = reply(sent, sent, &[text(100), text(120), text(140), end]);
        exchange.usage = output_usage(3);
        exchange
    }

    #[test]
    fn bounds_ascend() {
        for (name, bounds) in METRICS {
            assert!(bounds.is_sorted_by(|a, b| a < b), "{name}");
        }
    }

    #[test]
    fn ended_exchange_is_counted_once_by_outcome() {
        let mut totals = Totals::default();
        let mut warmup = answered(1_000);
        warmup.phase = Phase::Warmup;
        totals.enter(&warmup, true);
        totals.enter(&answered(2_000), true);
        totals.enter(&answered(20_000), true);
        for message in ["one", "another"] {
            totals.enter(&failed(answered(20_000), Class::Truncated, message), true);
        }
        let mut not_sent = failed(reply(9, 20_000, &[]), Class::NotSent, "no slot");
        not_sent.sent = None;
        totals.enter(&not_sent, true);
        let counts = &totals.counts;
        assert_eq!((counts.warmup, counts.answered, counts.sent), (1, 2, 4));
        assert_eq!(counts.output_tokens, 6, "of answers alone");
        let cut_off = &counts.failed[&Class::Truncated];
        assert_eq!((cut_off.count, cut_off.latest.as_str()), (2, "another"));
        assert_eq!(counts.failed[&Class::NotSent].count, 1);

        let [ttft, itl, tpot, e2e, send_lag] = totals.seen(ms(21_000)).map(|track| track.latency());
        let (recent, whole) = (ttft.recent.unwrap(), ttft.whole.unwrap());
        assert_eq!((recent.count, whole.count), (1, 2), "the first is long ago");
        assert_eq!((whole.p50_ms, whole.max_ms), (100.0, 100.0));
        assert_eq!((itl.buckets.count(), itl.whole.unwrap().mean_ms), (4, 20.0));
        assert_eq!(tpot.whole.unwrap().p99_ms, 20.0);
        assert_eq!((e2e.buckets.count(), e2e.buckets.sum_s()), (2, 0.28));
        assert_eq!(send_lag.whole.unwrap().count, 4, "of all that were sent");
    }

    #[test]
    fn unstreamed_reply_has_no_first_token() {
        let mut totals = Totals::default();
        totals.enter(&answered(1_000), false);
        let [ttft, itl, _, e2e, _] = totals.seen(ms(1_200)).map(|track| track.latency());
        assert_eq!((ttft.whole, itl.whole), (None, None));
        assert_eq!(e2e.whole.unwrap().count, 1);
    }
}
