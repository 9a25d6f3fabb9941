//! The lead of an agent's clock over the coordinator's, and the bound of its error.
//!
//! Each side reads its own monotonic clock. A question leaves at `origin` by the coordinator's
//! clock and comes at `received` by the agent's. Its answer leaves at `sent` by the agent's clock
//! and comes at `arrived` by the coordinator's. Neither way takes less than no time, so the offset
//! lies between `sent - arrived` and `received - origin`, whatever the delays and however unequal
//! the two ways are. The middle is off by half the round trip at most, as with NTP (RFC 5905).
//!
//! Every answer narrows the interval: the known interval is the intersection of all of them.
//! Between answers it widens by the drift that two sound clocks may have, [`DRIFT_PPM`]. An answer
//! outside the interval shows that a clock was set, stood still or drifts more. It is a
//! [`ClockStep`], and the interval begins anew. So answers need no time window: old answers lose
//! their weight as they widen.
//!
//! This module owns the arithmetic. It reads no clock.

use model::units::Nanos;

/// The most drift of two sound clocks, in millionths: quartz of servers is within 50 of true.
pub const DRIFT_PPM: u64 = 100;
/// The share of the smallest interval reported that the bound may have, as its divisor.
pub const SHARE: u64 = 10;
/// The number of shifts of a clock to keep; further shifts are counted.
const MOST_MOVES: usize = 16;

/// A question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The time when the question left, by the coordinator's clock.
    pub origin: Nanos,
    /// The time when the question came, by the agent's clock.
    pub received: Nanos,
    /// The time when the answer left, by the agent's clock.
    pub sent: Nanos,
    /// The time when the answer came, by the coordinator's clock.
    pub arrived: Nanos,
}

/// The known facts about an offset at an instant: it is within `bound` of `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Estimate {
    /// The lead of the agent's clock over the coordinator's, in nanoseconds.
    pub offset: i64,
    /// Distance from the truth, on either side, at most.
    pub bound: Nanos,
}

/// A clock that moved against the other by more than drift explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ClockStep {
    /// The last instant, by the coordinator's clock, at which the clocks agreed with the interval.
    pub from: Nanos,
    /// The time when it was seen, by the coordinator's clock.
    pub seen: Nanos,
    /// By how much at least, in nanoseconds: positive if the agent's clock went further ahead.
    pub by: i64,
}

/// The bound is too wide for the intervals to report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its clock is known to within {:.3} ms, and the smallest interval reported, {:.3} ms, allows {:.3} ms: {}",
    bound.as_millis_f64(), smallest.as_millis_f64(), allowed.as_millis_f64(),
    "use a network with shorter round trips, or report longer intervals"
)]
pub struct TooWide {
    pub bound: Nanos,
    /// The smallest interval reported.
    pub smallest: Nanos,
    /// The widest bound that fits it.
    pub allowed: Nanos,
}

/// An exchange that no two clocks can have made: the answer took less than no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an answer about the clock contradicts itself")]
pub struct Impossible;

/// An agent's clock against the coordinator's.
#[derive(Clone, Debug, Default)]
pub struct Course {
    known: Option<Interval>,
    answers: u64,
    moves: Vec<ClockStep>,
    unkept: u64,
}

/// Bounds of the offset, at an instant of the coordinator's clock.
#[derive(Clone, Copy, Debug)]
struct Interval {
    least: i64,
    most: i64,
    at: Nanos,
}

/// `a - b`, where both are instants of some clock.
fn difference(a: Nanos, b: Nanos) -> i64 {
    let wide = i128::from(a.0) - i128::from(b.0);
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}

impl Interval {
    /// The interval at a later time.
    fn widened(self, at: Nanos) -> Interval {
        let drift = u128::from(at.since(self.at).0) * u128::from(DRIFT_PPM) / 1_000_000;
        // Rounded up, so that the bound holds.
        let drift = i64::try_from(drift + 1).unwrap_or(i64::MAX);
        let drift = if at > self.at { drift } else { 0 };
        Interval {
            least: self.least.saturating_sub(drift),
            most: self.most.saturating_add(drift),
            at: at.max(self.at),
        }
    }
}

impl Course {
    /// Takes an answer into account, and returns the move of a clock that it shows. Fails if the
    /// exchange contradicts itself; it changes nothing then.
    pub fn note(&mut self, exchange: Exchange) -> Result<Option<ClockStep>, Impossible> {
        let least = difference(exchange.sent, exchange.arrived);
        let most = difference(exchange.received, exchange.origin);
        if exchange.arrived < exchange.origin || exchange.sent < exchange.received || least > most {
            return Err(Impossible);
        }
        // The offset held at some instant of the exchange; by its end the clocks may have drifted.
        let fresh = Interval { least, most, at: exchange.origin }.widened(exchange.arrived);
        self.answers += 1;
        let Some(known) = self.known else {
            self.known = Some(fresh);
            return Ok(None);
        };
        let then = known.widened(exchange.arrived);
        if fresh.least <= then.most && then.least <= fresh.most {
            self.known = Some(Interval {
                least: then.least.max(fresh.least),
                most: then.most.min(fresh.most),
                at: exchange.arrived,
            });
            return Ok(None);
        }
        let moved = ClockStep {
            from: known.at,
            seen: exchange.arrived,
            by: if fresh.least > then.most {
                fresh.least.saturating_sub(then.most)
            } else {
                fresh.most.saturating_sub(then.least)
            },
        };
        if self.moves.len() < MOST_MOVES {
            self.moves.push(moved)
        } else {
            self.unkept += 1
        }
        self.known = Some(fresh);
        Ok(Some(moved))
    }

    /// The estimate at an instant of the coordinator's clock; absent before the first answer.
    pub fn at(&self, now: Nanos) -> Option<Estimate> {
        let known = self.known?.widened(now);
        let (least, most) = (i128::from(known.least), i128::from(known.most));
        let offset = (least + most).div_euclid(2);
        let bound = u64::try_from((most - offset).max(offset - least)).unwrap_or(u64::MAX);
        Some(Estimate { offset: i64::try_from(offset).unwrap_or(known.least), bound: Nanos(bound) })
    }

    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// The first moves of the clock, and the number of further moves.
    pub fn moves(&self) -> (&[ClockStep], u64) {
        (&self.moves, self.unkept)
    }
}

impl Estimate {
    /// An instant of the coordinator's clock, by the agent's.
    pub fn to_agent(&self, at: Nanos) -> Nanos {
        Nanos(at.0.saturating_add_signed(self.offset))
    }

    /// Checks that it is exact enough where intervals as short as `smallest` are reported. Fails if
    /// the bound is above a tenth of it.
    pub fn check(&self, smallest: Nanos) -> Result<(), TooWide> {
        let allowed = Nanos(smallest.0 / SHARE);
        if self.bound > allowed {
            Err(TooWide { bound: self.bound, smallest, allowed })
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The agent's clock at an instant of the coordinator's, as a line: its lead, and its drift.
    #[derive(Clone, Copy, Debug)]
    struct Truth {
        ahead: i64,
        ppm: i64,
    }

    impl Truth {
        fn offset(self, at: u64) -> i64 {
            self.ahead + i64::try_from(i128::from(at) * i128::from(self.ppm) / 1_000_000).unwrap()
        }

        fn read(self, at: u64) -> Nanos {
            Nanos(at.checked_add_signed(self.offset(at)).unwrap())
        }

        /// A question at an instant, with these delays: there, within the agent, and back.
        fn exchange(self, at: u64, [there, within, back]: [u64; 3]) -> Exchange {
            Exchange {
                origin: Nanos(at),
                received: self.read(at + there),
                sent: self.read(at + there + within),
                arrived: Nanos(at + there + within + back),
            }
        }
    }

    const SECOND: u64 = 1_000_000_000;

    proptest! {
        /// For all delays, and any drift within the stated one, the truth is within the bound.
        #[test]
        fn the_bound_holds_for_any_delays_and_drift(
            ahead in 0..10_i64.pow(15),
            ppm in -99_i64..=99,
            delays in prop::collection::vec(
                (0..5 * SECOND, [0..50_000_000_u64, 0..1_000_000, 0..50_000_000]), 1..60),
            after in 0..600 * SECOND,
        ) {
            let truth = Truth { ahead, ppm };
            let mut course = Course::default();
            let mut now = SECOND;
            let mut bound = u64::MAX;
            for (pause, delays) in delays {
                now += pause;
                let exchange = truth.exchange(now, delays);
                prop_assert_eq!(course.note(exchange), Ok(None));
                now = exchange.arrived.0;
                let estimate = course.at(exchange.arrived).unwrap();
                let error = estimate.offset.abs_diff(truth.offset(now));
                prop_assert!(error <= estimate.bound.0, "{error} of {estimate:?}");
                // Half the round trip, and the drift within it.
                let trip = delays[0] + delays[2];
                bound = bound.min(trip / 2 + (trip + delays[1]) / 1000 + 4);
                prop_assert!(estimate.bound.0 <= trip / 2 + (trip + delays[1]) / 1000 + 4);
            }
            let estimate = course.at(Nanos(now + after)).unwrap();
            let error = estimate.offset.abs_diff(truth.offset(now + after));
            prop_assert!(error <= estimate.bound.0);
        }

        #[test]
        fn any_numbers_do_no_harm(instants in prop::collection::vec(any::<[u64; 4]>(), 1..20), at: u64) {
            let mut course = Course::default();
            for [origin, received, sent, arrived] in instants {
                let _ = course.note(Exchange {
                    origin: Nanos(origin), received: Nanos(received),
                    sent: Nanos(sent), arrived: Nanos(arrived),
                });
                if let Some(estimate) = course.at(Nanos(at)) {
                    estimate.to_agent(Nanos(at));
                }
            }
        }
    }

    #[test]
    fn a_quick_answer_makes_up_for_slow_ones() {
        let truth = Truth { ahead: 7_000_000, ppm: 0 };
        let mut course = Course::default();
        let delays =
            [[9_000_000, 1000, 1_000_000], [50_000, 1000, 50_000], [1_000_000, 1000, 9_000_000]];
        for (number, delays) in delays.into_iter().enumerate() {
            let at = SECOND + number as u64 * SECOND / 50;
            course.note(truth.exchange(at, delays)).unwrap();
        }
        let estimate = course.at(Nanos(SECOND + SECOND / 20)).unwrap();
        assert!(estimate.bound < Nanos(56_000), "{estimate:?}");
        assert_eq!(course.answers(), 3);
    }

    #[test]
    fn finds_when_a_clock_was_set() {
        let mut truth = Truth { ahead: SECOND as i64, ppm: 20 };
        let mut course = Course::default();
        let delays = [100_000, 1000, 120_000];
        for second in 1..=10 {
            let exchange = truth.exchange(second * SECOND, delays);
            assert_eq!(course.note(exchange), Ok(None));
        }
        truth.ahead -= 40_000_000;
        let exchange = truth.exchange(11 * SECOND, delays);
        let moved = course.note(exchange).unwrap().unwrap();
        assert_eq!(moved.from, Nanos(10 * SECOND + 221_000));
        assert_eq!(moved.seen, Nanos(11 * SECOND + 221_000));
        assert!((-40_000_000..-39_000_000).contains(&moved.by), "{moved:?}");
        // The interval began anew, and holds again.
        let estimate = course.at(exchange.arrived).unwrap();
        let error = estimate.offset.abs_diff(truth.offset(exchange.arrived.0));
        assert!(error <= estimate.bound.0);
        assert_eq!(course.moves(), (&[moved][..], 0));
    }

    #[test]
    fn finds_a_clock_that_drifts_beyond_bounds() {
        let truth = Truth { ahead: 0, ppm: 2000 };
        let mut course = Course::default();
        let mut found = 0;
        for second in 1..100 {
            let exchange = truth.exchange(second * SECOND, [50_000, 1000, 50_000]);
            found += u64::from(course.note(exchange).unwrap().is_some());
        }
        let (kept, unkept) = course.moves();
        assert_eq!((kept.len(), unkept), (MOST_MOVES, found - MOST_MOVES as u64));
        assert!(found > 80, "{found}");
    }

    #[test]
    fn refuses_a_bound_above_a_tenth_with_both_numbers() {
        let estimate = Estimate { offset: 0, bound: Nanos(100_000_000) };
        assert_eq!(estimate.check(Nanos(SECOND)), Ok(()));
        let error = estimate.check(Nanos(SECOND - 10)).unwrap_err().to_string();
        assert!(error.contains("within 100.000 ms"), "{error}");
        assert!(error.contains("1000.000 ms, allows 100.000 ms"), "{error}");
    }

    #[test]
    fn ignores_an_answer_from_the_future() {
        let mut course = Course::default();
        let [origin, received, sent, arrived] = [100, 10, 500, 150].map(Nanos);
        let exchange = Exchange { origin, received, sent, arrived };
        assert_eq!(course.note(exchange), Err(Impossible));
        assert_eq!(course.at(Nanos(200)), None);
    }
}
