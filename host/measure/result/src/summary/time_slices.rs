//! The run's figures by time slice: spans of one length from the start of the measurement to its
//! end. They show changes during the run beside its figures as a whole.
//!
//! Each figure belongs to the slice of one instant. TTFT and E2E latency belong to the slice in
//! which the request was sent, tokens and gaps to the slice in which they came. Figures known at
//! the end (answers, failures, TPOT) belong to the slice of the end. A slice begins with its first
//! instant and ends before the first instant of the next one; the last slice holds the end of the
//! measurement and everything after it.
//!
//! The number of slices has a bound: a length that would need more is multiplied by the smallest
//! whole number that does not.

use std::collections::BTreeMap;

use super::Occupancy;
use super::distribution::Distribution;
use super::survey::SurveyResult;
use crate::metric::{self, Measure, Metric, Reading, Walk};
use crate::metric::{spread, take};
use model::exchange::Exchange;
use model::units::Nanos;
use statistics::Spread;

pub const MOST: u64 = 1000;

/// The instant that decides the slice of a request's sample.
type Place = fn(&Exchange) -> Option<Nanos>;

const METRICS: [(&str, Place); 3] = [
    (metric::TTFT, |exchange| exchange.sent),
    (metric::TPOT, |exchange| exchange.ended),
    (metric::E2E, |exchange| exchange.sent),
];

/// The run's figures by time slice.
#[model::apply(model::document!)]
pub struct TimeSlices {
    /// Seconds of a slice; the last one may be shorter.
    pub length_s: f64,
    /// The seconds that were requested; absent if a slice has that length. There are at most 1000
    /// slices: where the requested length needs more, a slice takes the smallest multiple of it
    /// that does not.
    pub requested_s: Option<f64>,
    /// The slices in order, without gaps.
    pub slices: Vec<TimeSlice>,
}

/// A time slice. Requests that have no record, because the run was stopped or an agent was lost,
/// are in none.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct TimeSlice {
    /// Seconds from the start of the measurement to its beginning.
    pub from_s: f64,
    /// Seconds from the start of the measurement to its end.
    pub to_s: f64,
    /// Requests that were due in it.
    pub due: u64,
    /// Requests that were sent in it.
    pub sent: u64,
    /// Requests whose answer was complete in it.
    pub successful: u64,
    /// Requests that failed in it; requests without an end count when they were due.
    pub failed: u64,
    /// Requests that the client cancelled on purpose in it, likewise.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cancelled: u64,
    /// Mean number of requests in flight, including failing ones.
    pub mean_in_flight: f64,
    /// Answers that were complete in it, per second.
    pub requests_per_s: f64,
    /// Output tokens of answered requests that came in it; absent if the run does not show when
    /// tokens came.
    pub output_tokens: Option<u64>,
    /// The same per second.
    pub output_tokens_per_s: Option<f64>,
    /// Mean of the gaps of answered requests that ended in it, as `itl` defines them, in
    /// milliseconds; absent if none did.
    pub mean_itl_ms: Option<f64>,
    /// By name: TTFT and E2E latency of answered requests that were sent in it, and TPOT of
    /// answered requests that ended in it. A metric without a sample is absent.
    pub metrics: BTreeMap<String, Distribution>,
}

/// The length of a slice, and the number of slices, for a measurement of that duration.
fn divided(duration: Nanos, requested: Nanos) -> (Nanos, u64) {
    let requested = Nanos(requested.0.max(1));
    let multiple = duration.0.div_ceil(requested.0).div_ceil(MOST).max(1);
    let length = Nanos(requested.0.saturating_mul(multiple));
    (length, duration.0.div_ceil(length.0).max(1))
}

pub(super) struct Gather {
    origin: Nanos,
    duration: Nanos,
    requested: Nanos,
    length: Nanos,
    contents: Vec<Content>,
    in_flight: Occupancy,
    metrics: [Option<(&'static Metric, Place)>; METRICS.len()],
    gaps: Option<Walk>,
}

#[derive(Default)]
struct Content {
    counts: TimeSlice,
    tokens: u64,
    /// Nanoseconds of gaps, and their number.
    gaps: (u128, u64),
    spreads: [Option<Spread>; METRICS.len()],
}

impl Gather {
    /// An empty gatherer with slices of about that length; `None` if the measurement took no time.
    pub(super) fn new(requested: Nanos, surveyed: &SurveyResult) -> Option<Self> {
        let origin = surveyed.origin;
        let duration = surveyed.last_end?.since(origin);
        if duration == Nanos::ZERO {
            return None;
        }
        let (length, count) = divided(duration, requested);
        let count = usize::try_from(count).ok()?;
        Some(Gather {
            origin,
            duration,
            requested,
            length,
            contents: std::iter::repeat_with(Content::default).take(count).collect(),
            in_flight: Occupancy::new(length, count),
            metrics: METRICS.map(|(name, place)| Some((metric::by_name(name)?, place))),
            gaps: metric::by_name(metric::ITL).and_then(|metric| match metric.measure {
                Measure::Pooled(walk) => Some(walk),
                Measure::One(_) | Measure::Session(_) => None,
            }),
        })
    }

    fn at(&mut self, at: Nanos) -> &mut Content {
        let last = self.contents.len() - 1;
        let place = at.since(self.origin).0 / self.length.0;
        let place = usize::try_from(place).map_or(last, |place| place.min(last));
        &mut self.contents[place]
    }

    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        let exchange = reading.exchange;
        self.at(exchange.due).counts.due += 1;
        let end = &mut self.at(exchange.ended.unwrap_or(exchange.due)).counts;
        match (exchange.is_ok(), exchange.has_failed()) {
            (true, _) => end.successful += 1,
            (false, true) => end.failed += 1,
            (false, false) => end.cancelled += 1,
        }
        if let Some(sent) = exchange.sent {
            self.at(sent).counts.sent += 1;
            // Without an end, it was in flight at least until the last sign of its reply.
            let seen = exchange.events.at.last().copied().or(exchange.headers);
            if let Some(end) = exchange.ended.or(seen) {
                let origin = self.origin;
                self.in_flight.add(sent.since(origin), end.since(origin));
            }
        }
        if !exchange.is_ok() {
            return;
        }
        for (number, metric) in self.metrics.into_iter().enumerate() {
            if let Some((metric, place)) = metric
                && let Some(at) = place(exchange)
            {
                let own = &mut self.at(at).spreads[number];
                let own = own.get_or_insert_with(|| spread(metric));
                take(metric, reading, own, None);
            }
        }
        if let Some(walk) = self.gaps {
            walk(reading, &mut |at, nanos, times| {
                let (sum, count) = &mut self.at(at).gaps;
                *sum += u128::from(nanos) * u128::from(times);
                *count += times;
            });
        }
    }

    pub(super) fn add_tokens(&mut self, at: Nanos, tokens: u64) {
        let sum = &mut self.at(at).tokens;
        *sum = sum.saturating_add(tokens);
    }

    pub(super) fn finish(self, percentiles: &[f64]) -> TimeSlices {
        let Gather { duration, requested, length, metrics, .. } = self;
        let is_known = self.contents.iter().any(|held| held.tokens > 0);
        let in_flight = self.in_flight.seconds();
        let slices = self.contents.into_iter().zip(in_flight).enumerate();
        let slices = slices.map(|(place, (held, in_flight))| {
            let from = Nanos((place as u64).saturating_mul(length.0));
            let to = (from + length).min(duration);
            let seconds = to.since(from).as_secs_f64();
            let tokens = Some(held.tokens).filter(|_| is_known);
            let (gaps, count) = held.gaps;
            let metrics = metrics.iter().zip(held.spreads).filter_map(|(metric, spread)| {
                let (metric, _) = (*metric)?;
                let of = Distribution::new(metric, &spread?.figures()?, percentiles);
                Some((metric.name.to_owned(), of))
            });
            TimeSlice {
                from_s: from.as_secs_f64(),
                to_s: to.as_secs_f64(),
                mean_in_flight: in_flight / seconds,
                requests_per_s: held.counts.successful as f64 / seconds,
                output_tokens: tokens,
                output_tokens_per_s: tokens.map(|tokens| tokens as f64 / seconds),
                mean_itl_ms: (count > 0).then(|| gaps as f64 / count as f64 / 1e6),
                metrics: metrics.collect(),
                ..held.counts
            }
        });
        TimeSlices {
            length_s: length.as_secs_f64(),
            requested_s: (length != requested).then(|| requested.as_secs_f64()),
            slices: slices.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::summary::fixture::{any_run, facts, failed, ms, output_usage, reply};
    use crate::summary::{RunFacts, Summary};
    use model::exchange::Class;
    use model::exchange::Kind::{End, Text};

    fn sliced(every: Nanos) -> RunFacts {
        let mut facts = facts();
        facts.run.time_slice = Some(every);
        facts
    }

    fn slices(facts: &RunFacts, run: &[Exchange]) -> TimeSlices {
        Summary::new(facts, run).time_slices.unwrap()
    }

    /// Three answers and a failure over 2.5 s, whose measurement begins at 1 s.
    fn by_hand() -> Vec<Exchange> {
        let answer = |index, sent: u64, first: u64, second: u64| {
            let events =
                [(first, Text, Some(1), 3), (second, Text, Some(2), 3), (second, End, None, 0)];
            let mut exchange = reply(index, sent, &events);
            exchange.usage = output_usage(3);
            exchange
        };
        let mut late = failed(reply(3, 2100, &[]), Class::HttpStatus, "500");
        late.ended = Some(ms(3500));
        vec![
            answer(0, 1000, 1100, 1500),
            // Sent in the first second, answered in the second.
            answer(1, 1600, 1900, 2300),
            // Its first piece comes with the first instant of the second slice.
            answer(2, 1900, 2000, 2400),
            late,
        ]
    }

    #[test]
    fn slices_by_hand() {
        let found = slices(&sliced(ms(1000)), &by_hand());
        assert_eq!((found.length_s, found.requested_s), (1.0, None));
        let spans: Vec<_> = (found.slices.iter()).map(|slice| (slice.from_s, slice.to_s)).collect();
        assert_eq!(spans, [(0.0, 1.0), (1.0, 2.0), (2.0, 2.5)]);
        let counts: Vec<_> = (found.slices.iter())
            .map(|slice| (slice.due, slice.sent, slice.successful, slice.failed))
            .collect();
        assert_eq!(counts, [(3, 3, 1, 0), (1, 1, 2, 0), (0, 0, 0, 1)]);
        let tokens: Vec<_> = (found.slices.iter()).map(|slice| slice.output_tokens).collect();
        assert_eq!(tokens, [Some(4), Some(5), Some(0)]);
        let [first, second, last] = &found.slices[..] else {
            panic!("three slices");
        };
        // 0.5 s of the first, 0.4 s of the second and 0.1 s of the third request.
        assert!((first.mean_in_flight - 1.0).abs() < 1e-9, "{first:?}");
        assert_eq!(last.mean_in_flight, 1.0, "of half a second");
        assert_eq!(last.output_tokens_per_s, Some(0.0));
        assert_eq!(
            (first.metrics["ttft"].count, first.metrics["ttft"].max),
            (3, 300.0),
            "by when they were sent"
        );
        assert!(!second.metrics.contains_key("ttft"), "the only one failed");
        assert_eq!(
            (first.metrics["tpot"].mean, second.metrics["tpot"].mean),
            (200.0, 200.0),
            "by when they ended"
        );
        assert_eq!(second.metrics["tpot"].count, 2);
        let expected = [Some(400.0), Some(400.0), None];
        assert_eq!([first.mean_itl_ms, second.mean_itl_ms, last.mean_itl_ms], expected);
        assert!(last.metrics.is_empty());
    }

    #[test]
    fn without_the_time_of_tokens_there_are_none_rather_than_zero() {
        let mut facts = sliced(ms(1000));
        facts.run.streamed = false;
        let found = slices(&facts, &by_hand());
        let first = &found.slices[0];
        assert_eq!((first.output_tokens, first.output_tokens_per_s), (None, None));
        assert_eq!(first.mean_itl_ms, None);
        assert!(!first.metrics.contains_key("ttft"));
        assert_eq!(first.metrics["e2e"].count, 3);
        assert_eq!(Summary::new(&facts, std::iter::empty::<Exchange>()).time_slices, None);
        facts.run.time_slice = None;
        assert_eq!(Summary::new(&facts, &by_hand()).time_slices, None);
    }

    #[test]
    fn slices_are_at_most_a_thousand() {
        for (duration, requested, length, count) in [
            (1, 1, 1, 1),
            (1000, 1, 1, 1000),
            (1001, 1, 2, 501),
            (2000, 1, 2, 1000),
            (2001, 1, 3, 667),
            (10, 7, 7, 2),
            (10, 100, 100, 1),
            (10, 0, 1, 10),
            (u64::MAX, 1, u64::MAX.div_ceil(MOST), MOST),
        ] {
            let found = divided(Nanos(duration), Nanos(requested));
            assert_eq!(found, (Nanos(length), count), "{duration} by {requested}");
        }
        let found = slices(&sliced(Nanos(1)), &by_hand());
        assert_eq!(found.slices.len(), 1000);
        assert_eq!((found.length_s, found.requested_s), (0.002_5, Some(1e-9)), "both are stated");
    }

    proptest! {
        /// The slices' figures add up to the whole's, and one slice over all of it is the whole.
        #[test]
        fn slices_add_up(run in any_run(), every in 1u64..4_000_000_000) {
            let summary = Summary::new(&sliced(Nanos(every)), &run);
            let Some(found) = &summary.time_slices else {
                prop_assert!(summary.throughput.duration_s.is_none());
                return Ok(());
            };
            let sum = |count: fn(&TimeSlice) -> u64| found.slices.iter().map(count).sum::<u64>();
            let requests = &summary.requests;
            prop_assert_eq!(sum(|slice| slice.due), requests.total);
            prop_assert_eq!(sum(|slice| slice.sent), requests.sent);
            prop_assert_eq!(sum(|slice| slice.successful), requests.successful);
            prop_assert_eq!(sum(|slice| slice.failed), requests.failed);
            prop_assert_eq!(sum(|slice| slice.cancelled), requests.cancelled);
            prop_assert!(found.slices.len() as u64 <= MOST);
            let times = found.slices.iter().map(|own| own.mean_in_flight * (own.to_s - own.from_s));
            let duration = summary.throughput.duration_s.unwrap();
            let mean = times.sum::<f64>() / duration;
            let whole = summary.concurrency.mean_in_flight.unwrap();
            prop_assert!((mean - whole).abs() <= 1e-6 * whole.max(1.0), "{} and {}", mean, whole);

            let once = slices(&sliced(Nanos::from_secs_f64(duration + 1.0)), &run);
            let [only] = &once.slices[..] else { panic!("one slice") };
            for (name, of) in &only.metrics {
                let whole = &summary.metrics[name];
                prop_assert_eq!((of.count, of.median), (whole.count, whole.median));
                prop_assert_eq!(&of.percentiles, &whole.percentiles);
            }
            let itl = summary.metric(metric::ITL).map(|itl| itl.mean);
            prop_assert_eq!(only.mean_itl_ms.is_some(), itl.is_some());
            if let Some((mean, whole)) = only.mean_itl_ms.zip(itl) {
                prop_assert!((mean - whole).abs() <= 1e-9 * whole.max(1.0));
            }
        }
    }
}
