//! Rates over time, made by an onlooker from the snapshots it takes.

use std::collections::VecDeque;

use super::cells::RECENT_S;
use super::snapshot::Snapshot;
use model::units::Nanos;

/// The number of seconds that are kept.
pub const KEPT: usize = 600;

/// The minimum length of a second: snapshots do not come exactly on the second.
const SECOND: Nanos = Nanos(1_000_000_000);

/// Rates per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Output tokens, as they came.
    pub tokens: f64,
    /// Requests that ended, well or badly.
    pub requests: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mark {
    at: Nanos,
    tokens: u64,
    over: u64,
}

impl Mark {
    fn rates_since(&self, earlier: &Mark) -> Option<Rates> {
        let seconds = self.at.since(earlier.at).as_secs_f64();
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        (seconds > 0.0).then(|| Rates {
            tokens: rate(self.tokens, earlier.tokens),
            requests: rate(self.over, earlier.over),
        })
    }
}

/// The last seconds of a measurement, at most [`KEPT`].
#[derive(Clone, Debug, Default)]
pub struct History {
    marks: VecDeque<Mark>,
    last: Mark,
}

impl History {
    /// Notes a snapshot, which must not be older than the last one.
    pub fn note(&mut self, snapshot: &Snapshot) {
        let counts = &snapshot.counts;
        let Some(at) = counts.elapsed else { return };
        let mark = Mark { at, tokens: counts.tokens_seen, over: counts.over() };
        self.last = mark;
        if self.marks.is_empty() {
            self.marks.push_back(Mark::default());
        }
        let newest = self.marks.back().map_or(Nanos::ZERO, |mark| mark.at);
        if mark.at.since(newest) >= SECOND {
            self.marks.push_back(mark);
        }
        while self.marks.len() > KEPT + 1 {
            self.marks.pop_front();
        }
    }

    /// Of the recent past; absent in the first second.
    pub fn recent(&self) -> Option<Rates> {
        let begin = Nanos(self.last.at.0.saturating_sub(RECENT_S * SECOND.0));
        let first = self.marks.iter().find(|mark| mark.at >= begin)?;
        let since = if self.last.at.since(first.at) >= SECOND {
            first
        } else {
            // Snapshots were rare: use the last two.
            self.marks.iter().rev().find(|mark| mark.at < begin)?
        };
        self.last.rates_since(since)
    }

    /// Of the whole measurement; absent in the first second.
    pub fn whole(&self) -> Option<Rates> {
        (self.last.at >= SECOND).then(|| self.last.rates_since(&Mark::default()))?
    }

    /// Second by second: when each ended, in seconds since the measurement began, and its rates.
    pub fn seconds(&self) -> impl Iterator<Item = (f64, Rates)> + '_ {
        let pairs = self.marks.iter().zip(self.marks.iter().skip(1));
        pairs.filter_map(|(earlier, later)| {
            Some((later.at.as_secs_f64(), later.rates_since(earlier)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{Counts, Live};

    /// A snapshot at this time in milliseconds, with this many tokens and ended requests.
    fn at(ms: u64, tokens: u64, over: u64) -> Snapshot {
        Snapshot {
            counts: Counts {
                elapsed: Some(Nanos(ms * 1_000_000)),
                tokens_seen: tokens,
                answered: over,
                ..Counts::default()
            },
            ..Live::default().snapshot()
        }
    }

    fn after(snapshots: impl IntoIterator<Item = Snapshot>) -> History {
        let mut history = History::default();
        snapshots.into_iter().for_each(|snapshot| history.note(&snapshot));
        history
    }

    #[test]
    fn first_second_has_no_rates() {
        let history = after([Live::default().snapshot(), at(250, 9, 1), at(750, 30, 2)]);
        assert_eq!((history.recent(), history.whole()), (None, None));
        assert_eq!(history.seconds().count(), 0);
    }

    #[test]
    fn rates_cover_last_second_recent_past_and_run() {
        // Four times a second: 10 tokens a second for 20 s, then 100 a second for 10 s.
        let tokens = |ms: u64| ms.min(20_000) / 100 + ms.saturating_sub(20_000) / 10;
        let snapshots = (0..=120).map(|quarter| quarter * 250);
        let history = after(snapshots.map(|ms| at(ms, tokens(ms), ms / 1_000)));
        let recent = history.recent().unwrap();
        assert_eq!((recent.tokens, recent.requests), (100.0, 1.0));
        assert_eq!(history.whole().unwrap().tokens, 40.0);
        let seconds: Vec<f64> = history.seconds().map(|(_, rates)| rates.tokens).collect();
        assert_eq!((seconds[0], seconds[19], seconds[20]), (10.0, 10.0, 100.0));
        assert_eq!(seconds.len(), 30);
    }

    #[test]
    fn rare_observer_sees_rates_since_the_last_snapshot() {
        let history = after([at(30_000, 300, 3), at(60_000, 900, 6)]);
        assert_eq!(history.recent().unwrap().tokens, 20.0);
    }

    #[test]
    fn history_keeps_the_last_minutes() {
        let history = after((0..2_000).map(|second| at(second * 1_000, second, 0)));
        assert_eq!(history.seconds().count(), KEPT);
    }
}
