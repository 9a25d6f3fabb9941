//! Sessions: a request that depends on no other, with all that depend on it; or, where turns of a
//! conversation do not depend on each other, the turns of one name. Counts the complete ones, and
//! times each.
//!
//! Requests may come in any order, so 48 bytes of each are kept until all have come. A session has
//! *failed* if any of its requests failed. It was *cut short* if none failed, but the run ended
//! before one was due: that request was not sent, was interrupted, or has no record. The record of
//! its first request states the number that there should be. Turns that do not depend on each other
//! lack that number. So such a conversation is cut short only if a turn on record was not sent or
//! was interrupted.

use crate::agreement::digest;
use model::exchange::{Class, Exchange, Outcome};
use model::units::Nanos;

/// Requests that depend on each other.
#[model::apply(model::document!)]
#[derive(Copy, Default)]
pub struct Sessions {
    /// All sessions that began, and sessions whose first request was due when the run was stopped.
    pub total: u64,
    /// Sessions whose every request was answered. Metrics of sessions cover these.
    pub complete: u64,
    /// Sessions with a failed request.
    pub failed: u64,
    /// Sessions without a failed request that a user left: one of the requests was cancelled on
    /// purpose.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub cancelled: u64,
    /// Sessions without a failed request that the end of the run cut short.
    pub cut_short: u64,
    /// Recorded requests of sessions, and the first requests that were due at the stop.
    pub requests: u64,
    /// Answered requests of sessions.
    pub answered: u64,
    /// Requests that belong to no session.
    pub alone: u64,
    /// Complete sessions per second of the run.
    pub sessions_per_s: Option<f64>,
    /// Answered requests of sessions per second of the run.
    pub turns_per_s: Option<f64>,
}

/// Histories that stood in front of requests that were sent. An answer counts once for each history
/// that holds it.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct Histories {
    /// Requests with a history.
    pub requests: u64,
    /// Requests whose history holds an answer on record in place of the server's.
    pub with_recorded: u64,
    /// Answers in all histories.
    pub answers: u64,
    /// Answers on record in place of the server's.
    pub recorded: u64,
}

impl Histories {
    pub(super) fn add(&mut self, exchange: &Exchange) {
        if let (Some(history), Some(_)) = (exchange.sample.history, exchange.sent) {
            self.requests += 1;
            self.with_recorded += u64::from(history.recorded > 0);
            self.answers += u64::from(history.answers);
            self.recorded += u64::from(history.recorded);
        }
    }

    /// Share of the answers that are the recorded ones.
    pub fn recorded_share(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.recorded as f64 / self.answers as f64)
    }
}

/// A session whose every request was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    pub requests: u64,
    /// The time from when its first request was due until the last one ended.
    pub time: Nanos,
    /// The time during which at least one of its requests was in flight.
    pub in_flight: Nanos,
}

impl Session {
    /// Returns the time during which none of its requests was in flight.
    pub fn idle(&self) -> Nanos {
        Nanos(self.time.0.saturating_sub(self.in_flight.0))
    }
}

/// True if an exchange belongs to a session, as far as it says so itself.
pub(super) fn is_of_session(exchange: &Exchange) -> bool {
    let sample = &exchange.sample;
    sample.turn.is_some() || !sample.parents.is_empty() || sample.descendants > 0
}

#[derive(Default)]
pub(super) struct Gather(Vec<Row>);

struct Row {
    index: u64,
    /// The session that it belongs to: by `kind`, a request's index or a name's digest.
    of: u64,
    due: Nanos,
    sent: Nanos,
    ended: Nanos,
    descendants: u32,
    kind: Kind,
    depends: bool,
    fate: Fate,
}

/// The session of a request, if it is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Parents,
    /// The session that begins with the request of this index.
    Root,
    /// The conversation with this digest. Among a million names, two digests are equal in one of
    /// forty million runs.
    Conversation,
    /// The session of a parent without a record.
    Orphan,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Failed,
    Left,
    /// The run ended before.
    Cut,
}

impl Sessions {
    /// Counts sessions whose first request was due when the run was stopped, and has no record.
    /// The kind of unsent requests is not known if some requests belong to no session.
    pub(super) fn count_unsent(&mut self, unsent: u64) {
        if self.alone == 0 {
            self.total += unsent;
            self.cut_short += unsent;
            self.requests += unsent;
        }
    }
}

impl Gather {
    pub(super) fn add(&mut self, exchange: &Exchange) {
        let sample = &exchange.sample;
        let (kind, of) = match (sample.parents.first(), &sample.turn) {
            // All parents of a request are of one session.
            (Some(parent), _) => (Kind::Parents, *parent),
            (None, Some(turn)) => (Kind::Conversation, digest(&turn.session)),
            (None, None) => (Kind::Root, exchange.index),
        };
        let fate = match &exchange.outcome {
            Outcome::Ok => Fate::Answered,
            Outcome::Incomplete { class, .. } => match class {
                Class::NotSent | Class::Interrupted => Fate::Cut,
                Class::Cancelled => Fate::Left,
                _ => Fate::Failed,
            },
        };
        let sent = exchange.sent.unwrap_or(exchange.due);
        self.0.push(Row {
            index: exchange.index,
            of,
            due: exchange.due,
            sent,
            ended: exchange.ended.unwrap_or(sent),
            descendants: sample.descendants,
            kind,
            depends: kind == Kind::Parents,
            fate,
        });
    }

    /// The sessions of a run of `duration` seconds; shows each complete one.
    pub(super) fn finish(
        mut self,
        duration: Option<f64>,
        mut complete: impl FnMut(&Session),
    ) -> Sessions {
        self.resolve();
        let rows = &mut self.0;
        rows.sort_unstable_by_key(|row| (row.kind, row.of, row.sent, row.ended, row.index));
        let mut sessions = Sessions::default();
        for rows in rows.chunk_by(|one, other| (one.kind, one.of) == (other.kind, other.of)) {
            let is_alone = matches!(rows, [Row { kind: Kind::Root, descendants: 0, .. }]);
            if is_alone {
                sessions.alone += 1;
                continue;
            }
            let answered = rows.iter().filter(|row| row.fate == Fate::Answered).count();
            sessions.total += 1;
            sessions.requests += rows.len() as u64;
            sessions.answered += answered as u64;
            if rows.iter().any(|row| row.fate == Fate::Failed) {
                sessions.failed += 1;
            } else if rows.iter().any(|row| row.fate == Fate::Left) {
                sessions.cancelled += 1;
            } else if answered < rows.len() || is_short(rows) {
                sessions.cut_short += 1;
            } else {
                sessions.complete += 1;
                complete(&Session::new(rows));
            }
        }
        let per_s = |count: u64| duration.map(|seconds| count as f64 / seconds);
        sessions.sessions_per_s = per_s(sessions.complete);
        sessions.turns_per_s = per_s(sessions.answered);
        sessions
    }

    /// Finds the session of each request. A request comes after the requests that it depends on, so
    /// in the order of their indexes the sessions of its parents are known.
    fn resolve(&mut self) {
        let rows = &mut self.0;
        rows.sort_unstable_by_key(|row| (row.index, row.of, row.sent, row.ended));
        for place in 0..rows.len() {
            let (before, rest) = rows.split_at_mut(place);
            let row = &mut rest[0];
            if row.kind != Kind::Parents {
                continue;
            }
            let parent = before.binary_search_by_key(&row.of, |row| row.index);
            (row.kind, row.of) = match parent {
                Ok(parent) => (before[parent].kind, before[parent].of),
                Err(_) => (Kind::Orphan, row.of),
            };
        }
    }
}

/// True if requests of a session have no record.
fn is_short(rows: &[Row]) -> bool {
    let expected: u64 = rows.iter().map(|row| u64::from(row.descendants)).sum();
    let depend = rows.iter().filter(|row| row.depends).count() as u64;
    depend < expected || rows.iter().any(|row| row.kind == Kind::Orphan)
}

impl Session {
    /// The session of its requests in the order in which they were sent; there is at least one.
    fn new(rows: &[Row]) -> Self {
        let due = rows.iter().map(|row| row.due).min().unwrap_or_default();
        let mut in_flight = 0;
        let mut until = Nanos::ZERO;
        for row in rows {
            let from = row.sent.max(until);
            in_flight += row.ended.0.saturating_sub(from.0);
            until = until.max(row.ended);
        }
        Session {
            requests: rows.len() as u64,
            time: Nanos(until.0.saturating_sub(due.0)),
            in_flight: Nanos(in_flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::Summary;
    use crate::summary::fixture::{facts, failed, ms, output_usage, reply};
    use model::exchange::Kind::{End, Text};
    use model::exchange::{History, Turn};
    use proptest::prelude::*;

    #[test]
    fn a_row_takes_the_documented_memory() {
        assert_eq!(size_of::<Row>(), 48);
    }

    /// A request in flight from `sent` to `ended`, due 10 ms before.
    fn request(index: u64, sent: u64, ended: u64, parents: &[u64]) -> Exchange {
        let events = [(sent + 1, Text, None, 3), (ended, End, None, 0)];
        let mut exchange = reply(index, sent, &events);
        exchange.due = ms(sent - 10);
        exchange.sample.parents = parents.to_vec();
        exchange.usage = output_usage(4);
        exchange
    }

    fn root(index: u64, sent: u64, ended: u64, descendants: u32) -> Exchange {
        let mut exchange = request(index, sent, ended, &[]);
        exchange.sample.descendants = descendants;
        exchange
    }

    /// Six sessions and a request alone: a chain, a fork and join, a session with a failure, one
    /// with a failure that others follow from, one cut short, and one stopped in flight.
    fn run() -> Vec<Exchange> {
        let mut join = request(5, 1500, 1700, &[4, 3]);
        join.released = Some(ms(1410));
        let mut given_up = failed(request(9, 2100, 2100, &[8]), Class::ParentFailed, "");
        given_up.sent = None;
        vec![
            root(0, 1010, 1110, 1),
            request(1, 1310, 1410, &[0]),
            root(2, 1020, 1100, 3),
            request(3, 1200, 1400, &[2]),
            request(4, 1250, 1480, &[2]),
            join,
            root(6, 1100, 1200, 1),
            failed(request(7, 1300, 1400, &[6]), Class::Truncated, ""),
            failed(root(8, 1900, 2000, 1), Class::HttpStatus, ""),
            given_up,
            root(10, 1500, 1600, 2),
            request(11, 1700, 1800, &[10]),
            failed(root(13, 2800, 3000, 1), Class::Interrupted, ""),
            root(15, 1100, 1200, 0),
        ]
    }

    /// First requests that were due when the run was stopped are requests, and so sessions that
    /// were cut short.
    #[test]
    fn sessions_that_were_due_count_as_the_requests_do() {
        let all = run();
        let begun = all.iter().filter(|exchange| is_of_session(exchange));
        let begun: Vec<Exchange> = begun.cloned().collect();
        let mut facts = facts();
        let before = Summary::new(&facts, &begun);
        facts.unsent = 5;
        let after = Summary::new(&facts, &begun);
        let (one, other) = (before.sessions.unwrap(), after.sessions.unwrap());
        let more = [
            after.requests.total - before.requests.total,
            other.requests - one.requests,
            other.total - one.total,
            other.cut_short - one.cut_short,
        ];
        assert_eq!((one.alone, more), (0, [5; 4]));
        // Beside requests alone, the kind of unsent ones is not known.
        let mixed = Summary::new(&facts, &all).sessions.unwrap();
        assert_eq!(mixed.total, one.total);
    }

    #[test]
    fn sessions_by_hand() {
        let mut run = run();
        run.rotate_left(5);
        let summary = Summary::new(&facts(), &run);
        let sessions = summary.sessions.unwrap();
        assert_eq!(
            sessions,
            Sessions {
                total: 6,
                complete: 2,
                failed: 2,
                cancelled: 0,
                cut_short: 2,
                requests: 13,
                answered: 9,
                alone: 1,
                sessions_per_s: Some(1.0),
                turns_per_s: Some(4.5),
            }
        );
        let of = |name: &str| {
            let of = summary.metric(name).unwrap();
            (of.count, of.min, of.max)
        };
        // 1000 to 1410, and 1010 to 1700.
        assert_eq!(of("session-time"), (2, 410.0, 690.0));
        // 100 and 100; 80, then 1200 to 1480, then 200.
        assert_eq!(of("session-in-flight"), (2, 200.0, 560.0));
        assert_eq!(of("session-idle"), (2, 130.0, 210.0));
        assert_eq!(of("session-turns"), (2, 2.0, 4.0));
        assert_eq!(summary.metric("session-turns").unwrap().unit, "requests");
        // Due at 1490, let go by the first at 1410.
        assert_eq!(of("parent-wait"), (1, 80.0, 80.0));
        assert_eq!(summary.requests.failed, 4);
        assert_eq!(summary.requests.failed_by_themselves, Some(3));
        // Of six sessions, four count as infinitely slow.
        let all = summary.metric("session-time").unwrap().with_failures.clone().unwrap();
        assert_eq!((all.requests, all.samples), (4, 4));
        assert_eq!((all.min.0, all.median.0), (410.0, f64::INFINITY));
    }

    #[test]
    fn figures_of_sessions_have_names() {
        let summary = Summary::new(&facts(), run());
        let read = |name: &str| name.parse::<crate::figure::Figure>().unwrap().read(&summary);
        for (name, value) in [
            ("sessions.total", 6.0),
            ("sessions.complete", 2.0),
            ("sessions.failed", 2.0),
            ("sessions.cut-short", 2.0),
            ("sessions.sessions-per-s", 1.0),
            ("sessions.turns-per-s", 4.5),
            ("session-time.median", 550.0),
        ] {
            assert_eq!(read(name), Some(value), "{name}");
        }
    }

    #[test]
    fn a_threshold_counts_sessions_that_are_not_complete() {
        let mut facts = facts();
        facts.run.thresholds = vec!["session-time.p99 <= 9000".parse().unwrap()];
        let checked = Summary::new(&facts, run()).thresholds.remove(0);
        assert!(!checked.held);
        let outcome = checked.outcome();
        assert!(outcome.contains("4 of 6 sessions failed or were cut short"), "{outcome}");
    }

    #[test]
    fn turns_that_do_not_depend_are_a_conversation_by_name() {
        let mut run: Vec<Exchange> = (0..5)
            .map(|index| request(index, 1010 + 100 * index, 1060 + 100 * index, &[]))
            .collect();
        for (exchange, (name, turn)) in
            run.iter_mut().zip([("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)])
        {
            exchange.sample.turn = Some(Turn { session: name.into(), index: turn });
        }
        run[3] = failed(run[3].clone(), Class::NotSent, "");
        let summary = Summary::new(&facts(), &run);
        let sessions = summary.sessions.unwrap();
        assert_eq!((sessions.total, sessions.complete), (2, 1));
        assert_eq!((sessions.failed, sessions.cut_short), (0, 1));
        assert_eq!(summary.metric("session-time").unwrap().max, 460.0);
        assert_eq!(summary.metric("session-idle").unwrap().max, 310.0);
    }

    #[test]
    fn requests_alone_are_no_sessions_and_lost_parents_cut_them_short() {
        let run = [root(0, 1010, 1100, 0), root(1, 1010, 1100, 0)];
        let summary = Summary::new(&facts(), run);
        assert_eq!(summary.sessions, None);
        assert_eq!(summary.histories, None);
        assert!(summary.metric("session-time").is_none());
        let run = [request(4, 1010, 1100, &[3]), request(5, 1200, 1300, &[4])];
        let sessions = Summary::new(&facts(), run).sessions.unwrap();
        assert_eq!((sessions.total, sessions.cut_short), (1, 1));
        // Records of a stranger, in which requests depend on themselves or on each other.
        let run = [request(4, 1010, 1100, &[5]), request(5, 1200, 1300, &[5])];
        let sessions = Summary::new(&facts(), run).sessions.unwrap();
        assert_eq!((sessions.total, sessions.cut_short), (1, 1));
    }

    #[test]
    fn answers_in_histories_are_counted_by_their_source() {
        let mut run = run();
        for (index, answers, recorded) in [(1, 1, 0), (3, 1, 1), (5, 2, 1), (9, 1, 1)] {
            run[index].sample.history = Some(History { continues: 0, answers, recorded });
        }
        let summary = Summary::new(&facts(), &run);
        let histories = summary.histories.unwrap();
        // The unsent request is not among them.
        assert_eq!((histories.requests, histories.with_recorded), (3, 2));
        assert_eq!((histories.answers, histories.recorded), (4, 2));
        assert_eq!(histories.recorded_share(), Some(0.5));
    }

    proptest! {
        /// The order of records says nothing.
        #[test]
        fn the_order_of_records_does_not_matter(seed in any::<u64>(), keep in any::<u16>()) {
            let mut run = run();
            run.retain(|exchange| keep >> exchange.index & 1 == 0);
            let whole = Summary::new(&facts(), &run);
            run.sort_by_key(|e| (e.index ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            prop_assert_eq!(Summary::new(&facts(), &run), whole);
        }

        /// Every request is of one session or alone, and every session has one end.
        #[test]
        fn sessions_add_up(keep in any::<u16>()) {
            let mut run = run();
            run.retain(|exchange| keep >> exchange.index & 1 == 0);
            if let Some(sessions) = Summary::new(&facts(), &run).sessions {
                prop_assert_eq!(sessions.requests + sessions.alone, run.len() as u64);
                let ends = sessions.complete + sessions.failed + sessions.cut_short;
                prop_assert_eq!(ends, sessions.total);
            }
        }
    }
}
