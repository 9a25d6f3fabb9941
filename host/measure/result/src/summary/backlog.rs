//! The backlog: the number of requests that were due and waited for their answer to begin, early
//! and late in the time in which requests came.
//!
//! The backlog of a run at one rate wanders about a level where an engine keeps up. Where it does
//! not, the backlog grows for as long as requests come. Latencies cannot tell the two apart,
//! because they contain the queue.
//!
//! **An engine that fills is not overloaded.** Until the first long answers have ended, more and
//! more answers are under way, also if the engine keeps up. A request that gets its tokens waits
//! for nobody, so it leaves the backlog with its first token. Where replies are not streamed, no
//! first token tells a wait from an answer. Then the unanswered count, and so does the part that
//! filling explains. Let requests be due at a rate λ from the beginning of the run, with latencies
//! S. On an engine that has room for all of them, λ·E[min(S, u)] are unanswered after a time u (the
//! transient M/G/∞ queue: Takács 1962, "Introduction to the Theory of Queues").

use super::survey::SurveyResult;
use crate::metric::Reading;
use model::exchange::{Class, Outcome};
use model::units::Nanos;

/// Standard deviations of the number of arrivals that chance may explain.
const CHANCE: f64 = 3.0;
/// A growth by this share of the arrivals is small, however certain it is.
const SMALL: f64 = 0.02;
/// The part of the time, the first eighth, whose requests show the length of answers before a queue
/// can have grown.
const FIRST: u64 = 8;

/// The number of requests that were due and waited, on average, at two times of the run: for their
/// first token, or for their whole answer where replies are not streamed.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Backlog {
    /// The number in the second quarter of the time in which requests were due.
    pub second_quarter: f64,
    /// The number in the fourth quarter.
    pub fourth_quarter: f64,
    /// The growth from one to the other that chance explains. It is the larger of 3 c √d and 2 % of
    /// d. Here d requests were due in the half of the time between the two, and c is the
    /// coefficient of variation of the gaps between due times, at least 1. Where replies are not
    /// streamed, it includes the growth while the engine fills. That is all growth if the usual
    /// answer to the first eighth of the requests took until the second quarter.
    pub chance: f64,
}

impl Backlog {
    /// The growth beyond chance; zero or less if there is none.
    pub fn excess(&self) -> f64 {
        self.fourth_quarter - self.second_quarter - self.chance
    }

    pub fn grew(&self) -> bool {
        self.excess() > 0.0
    }
}

pub(super) struct Waiting {
    from: Nanos,
    length: u64,
    /// The end of the run, to which a request that never ended waited.
    end: Nanos,
    /// The coefficient of variation of the gaps between due times: 1 for a Poisson process.
    burstiness: f64,
    requests: u64,
    /// Nanoseconds of waiting in the second and in the fourth quarter, summed.
    waited: [u128; 2],
    /// The mean of min(S, u) in nanoseconds over each of the two quarters, summed over the requests
    /// whose wait cannot be told from their answer.
    filling: [u128; 2],
    /// The durations of these requests that were due in the first eighth of the time.
    first: Vec<u64>,
}

impl Waiting {
    /// The backlog of a run at one rate; `None` if requests were not due over a time.
    pub(super) fn new(surveyed: &SurveyResult) -> Option<Self> {
        let (from, to) = surveyed.due?;
        let length = to.since(from).0;
        (length > 3).then_some(Waiting {
            from,
            length,
            end: surveyed.last_end.map_or(to, |end| end.max(to)),
            burstiness: surveyed.arrivals.and_then(|of| of.due_gap_cv).unwrap_or(1.0),
            requests: 0,
            waited: [0; 2],
            filling: [0; 2],
            first: Vec::new(),
        })
    }

    pub(super) fn add(&mut self, reading: &Reading<'_>) {
        self.requests += 1;
        let exchange = reading.exchange;
        // One that failed before it was sent left without a reply, and nobody waited for it.
        let waits = [Class::NotSent, Class::Interrupted];
        let gone = exchange.ended.is_none()
            && matches!(&exchange.outcome, Outcome::Incomplete { class, .. } if !waits.contains(class));
        if gone {
            return;
        }
        let ended = exchange.ended.unwrap_or(self.end);
        let end = reading.began().unwrap_or(ended);
        // Nanoseconds into the run at which the second and the fourth quarter begin and end.
        let quarters =
            [[1, 2], [3, 4]].map(|ends| ends.map(|end| u128::from(self.length) * end / 4));
        for ([from, to], waited) in quarters.into_iter().zip(&mut self.waited) {
            let instant = |into: u128| Nanos(self.from.0 + into as u64);
            let (from, to) = (exchange.due.max(instant(from)), end.min(instant(to)));
            *waited += u128::from(to.since(from).0);
        }
        if !reading.streamed {
            let took = ended.since(exchange.due).0;
            if exchange.due.since(self.from).0 < self.length / FIRST {
                self.first.push(took);
            }
            for ([from, to], filling) in quarters.into_iter().zip(&mut self.filling) {
                *filling += mean_of_least(took.into(), from, to);
            }
        }
    }

    pub(super) fn finish(mut self) -> Backlog {
        let quarter = self.length as f64 / 4.0;
        let [second_quarter, fourth_quarter] = self.waited.map(|waited| waited as f64 / quarter);
        let due = self.requests as f64 / 2.0;
        // Requests came at the rate of their number over the length.
        let [early, late] = self.filling.map(|sum| sum as f64 / self.length as f64);
        // An engine's own chance remains where requests come evenly.
        let chance = (CHANCE * self.burstiness.max(1.0) * due.sqrt()).max(SMALL * due);
        let explained = chance + (late - early);
        self.first.sort_unstable();
        let usual = self.first.get(self.first.len() / 2);
        let still_fills = usual.is_some_and(|took| *took > self.length / 4);
        let growth = if still_fills { fourth_quarter - second_quarter } else { f64::NEG_INFINITY };
        Backlog { second_quarter, fourth_quarter, chance: explained.max(growth) }
    }
}

/// The mean of min(S, u) over the times u from one to another.
fn mean_of_least(s: u128, from: u128, to: u128) -> u128 {
    let middle = s.clamp(from, to);
    // The integral of u up to S, and of S from there on.
    let sum = (middle * middle - from * from) / 2 + s * (to - middle);
    sum / (to - from).max(1)
}

#[cfg(test)]
mod tests {
    use crate::finding::Id;
    use crate::summary::Summary;
    use crate::summary::fixture::{facts, failed, ms, reply};
    use model::exchange::{Class, Events, Exchange, Kind};

    /// Requests due every 10 ms at an even rate, each answered after `latency` milliseconds.
    fn run(requests: u64, latency: impl Fn(u64) -> u64) -> Vec<Exchange> {
        (0..requests)
            .map(|index| {
                let sent = 1000 + 10 * index;
                reply(index, sent, &[(sent + latency(index), Kind::Text, None, 3)])
            })
            .collect()
    }

    fn summary(run: &[Exchange]) -> Summary {
        summary_of(run, true)
    }

    fn summary_of(run: &[Exchange], streamed: bool) -> Summary {
        let mut facts = facts();
        facts.run.request_rate = Some(100.0);
        (facts.run.even_rate, facts.run.streamed) = (true, streamed);
        Summary::new(&facts, run)
    }

    fn is_overloaded(summary: &Summary) -> bool {
        summary.findings.iter().any(|finding| finding.id == Id::Overloaded)
    }

    #[test]
    fn the_backlog_counts_due_unanswered_requests() {
        // 20 ms each at 100 a second: two are unanswered at any time.
        let even = summary(&run(401, |_| 20));
        let backlog = even.concurrency.backlog.unwrap();
        assert!((backlog.second_quarter - 2.0).abs() < 0.02, "{backlog:?}");
        assert!((backlog.fourth_quarter - 2.0).abs() < 0.02, "{backlog:?}");
        // 3 √200.5, because gaps that are even have no spread of their own.
        assert!((backlog.chance - 42.48).abs() < 0.01, "{backlog:?}");
        assert!(!is_overloaded(&even));
        // Each waits 5 ms longer than the request before it: half of the sent requests are
        // unanswered.
        let grows = summary(&run(401, |index| 5 * index));
        let backlog = grows.concurrency.backlog.unwrap();
        assert!(backlog.grew(), "{backlog:?}");
        assert!(is_overloaded(&grows));
    }

    /// Requests as before that get their first token after 20 ms, and their last one `took` ms
    /// later.
    fn answers(requests: u64, took: impl Fn(u64) -> u64) -> Vec<Exchange> {
        (0..requests)
            .map(|index| {
                let sent = 1000 + 10 * index;
                let first = (sent + 20, Kind::Text, None, 3);
                let last = (sent + 20 + took(index), Kind::Text, None, 3);
                reply(index, sent, &[first, last])
            })
            .collect()
    }

    fn not_streamed(run: &[Exchange]) -> Summary {
        summary_of(run, false)
    }

    /// Requests came for 4 s; of answers that take 3 s, twice as many are under way at the end as
    /// in the second quarter.
    #[test]
    fn an_engine_that_fills_is_not_overloaded() {
        let filling = answers(401, |_| 2980);
        let streamed = summary(&filling);
        let backlog = streamed.concurrency.backlog.unwrap();
        assert!((backlog.fourth_quarter - 2.0).abs() < 0.02, "{backlog:?}");
        assert!(!is_overloaded(&streamed));
        // Where nothing tells when answers began, 150 are unanswered in the second quarter and 300
        // in the fourth, and filling explains that: 100 a second for up to 3 s.
        let whole = not_streamed(&filling);
        let backlog = whole.concurrency.backlog.unwrap();
        let growth = backlog.fourth_quarter - backlog.second_quarter;
        assert!((growth - 150.0).abs() < 1.5, "{backlog:?}");
        assert!((backlog.chance - 42.48 - 150.0).abs() < 1.5, "{backlog:?}");
        assert!(!is_overloaded(&whole));
        let grows = not_streamed(&run(401, |index| 5 * index));
        assert!(is_overloaded(&grows));
    }

    /// Answers take 1.6 s at first and 2.4 s from the middle on, because the batch has grown. More
    /// are unanswered than answers of the mean length explain, by 400 where chance explains 134.
    #[test]
    fn an_engine_that_gets_slower_as_it_fills_is_not_overloaded() {
        let run: Vec<Exchange> = (0..4001)
            .map(|index| {
                let sent = 1000 + index;
                let took = if index < 2000 { 1600 } else { 2400 };
                reply(index, sent, &[(sent + took, Kind::Text, None, 3)])
            })
            .collect();
        assert!(!is_overloaded(&not_streamed(&run)));
    }

    #[test]
    fn filling_explains_the_mean_of_the_lesser() {
        // Over the times from 10 to 20: of 4, of 15 (an eighth less than 15 on average), and of 40.
        let means = [4, 15, 40].map(|took| super::mean_of_least(took, 10, 20));
        assert_eq!(means, [4, 13, 15]);
        let thousandths = super::mean_of_least(15_000, 10_000, 20_000);
        assert_eq!(thousandths, 13_750);
    }

    #[test]
    fn endless_requests_wait_to_the_end_of_the_run() {
        let mut stopped = run(401, |_| 20);
        for exchange in &mut stopped[200..] {
            *exchange = failed(exchange.clone(), Class::Interrupted, "stopped");
            (exchange.ended, exchange.events) = (None, Events::default());
        }
        assert!(is_overloaded(&summary(&stopped)));
        let mut refused = run(2000, |_| 20);
        for exchange in refused.iter_mut().step_by(5) {
            *exchange = failed(exchange.clone(), Class::Refused, "refused");
            (exchange.sent, exchange.ended) = (None, None);
        }
        assert!(!is_overloaded(&summary(&refused)));
        assert_eq!(ms(1000), refused[0].due);
    }
}
