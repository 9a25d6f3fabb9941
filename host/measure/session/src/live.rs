//! The state of a run in progress: its phase, the requests in flight, totals of the ended
//! exchanges, and the load on this client.
//!
//! Threads that pace, send or read never wait for an onlooker, and only update single counters. The
//! only lock is between the recorder, which enters ended exchanges, and an onlooker, which takes
//! [`Snapshot`]s. The memory does not grow with the run. In a run of several processes rank 0 shows
//! the sum of the figures that all of them send ([`figures`], [`Agents`]).

pub mod cells;
pub mod exposition;
pub mod figures;
pub mod listen;
pub mod snapshot;
mod totals;

use std::collections::VecDeque;
use std::iter::Peekable;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

pub use snapshot::{Counts, Latency, Phase, Snapshot, Stop};

use crate::lock;
use crate::series::ServerPages;
use crate::sessions::Sessions;
use crate::telemetry::Telemetry;
use figures::State;
use totals::Totals;

use cells::RECENT_S;
use load::pace::Signal;
use load::vitals::{Vitals, WatchedThread};
use model::arrival::{Due, DueTimes, Trace};
use model::client::Errands;
use model::clock::Clock;
use model::exchange::{Exchange, Outcome, Phase as Part};
use model::timings::Timings;
use model::units::Nanos;
use plugins::dataset::Remark;
use result::metric::Reading;
use result::summary::warmup::{Warmup, Waves};
use result::summary::{Client, Server};
use runs::record::Written;
use scenario::plan::{Amount, Plan};
use tokio::time::Instant;

#[derive(Default)]
pub struct Live {
    /// The sessions under way, from the beginning of the run.
    pub(crate) sessions: OnceLock<Arc<Sessions>>,
    /// Requests that lie ready.
    pub ready: AtomicU64,
    /// Output tokens so far, including the warmup: as reported in events, or one per event.
    pub output_tokens: Arc<AtomicU64>,
    pub timings: Arc<Timings>,
    /// Requests that were due when the run was stopped, and are not on record.
    pub unsent: AtomicU64,
    /// The load on this client, once the measurement has ended; absent in virtual time.
    pub client: OnceLock<Client>,
    /// The requests that were sent after their exchanges, once all are over, if there were any.
    pub cleaned: OnceLock<Errands>,
    /// The requests that renewed leases, once the last one is done.
    pub renewed: OnceLock<Errands>,
    /// The server's own metrics, once the measurement has ended; absent if it was not asked.
    pub server: OnceLock<Server>,
    /// The devices; none in virtual time, and where none is sampled.
    pub telemetry: Telemetry,
    /// The server's metrics pages; none in virtual time, and where none is read.
    pub pages: ServerPages,
    /// The dataset's changes to its input, once it has given its last sample.
    pub remarks: Arc<OnceLock<Vec<Remark>>>,
    /// The message about the first request that exceeds the model's context.
    pub beyond_context: Arc<OnceLock<String>>,
    /// The recorder's report, once it has written everything.
    pub written: OnceLock<Written>,
    phase: AtomicU8,
    /// Instant at which the measurement began, in nanoseconds since the run's origin; 0 before.
    measuring_since: AtomicU64,
    tokens_before: AtomicU64,
    /// Instant at which everything was on record, in nanoseconds since the run's origin; 0 before.
    over_since: AtomicU64,
    given_out: Alone,
    totals: Mutex<Totals>,
    /// The instant of the first token of all answers on record.
    first_token: Mutex<Option<Nanos>>,
    /// The requests of the warm-up that are on record.
    waves: Mutex<Waves>,
    primed: Mutex<Primed>,
    begun: OnceLock<RunInfo>,
    /// The origin of the run's clock in nanoseconds since 1970; absent in virtual time.
    pub(crate) origin: OnceLock<u64>,
    onlookers: Mutex<Vec<WatchedThread>>,
    agents: OnceLock<Arc<dyn Agents>>,
}

/// The agents that make a run in place of the process that shows it.
pub trait Agents: Send + Sync {
    fn snapshot(&self) -> Snapshot;

    /// Adds a thread that looks on here, and so takes processor time from the measurement.
    fn enlist(&self, thread: WatchedThread);
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Primed {
    pub ended: u64,
    pub failed: u64,
    /// The message of the first that failed.
    pub first: Option<String>,
}

/// A counter of the pacer, on a cache line that nothing else writes to.
#[derive(Default)]
#[repr(align(128))]
struct Alone(AtomicU64);

/// The means to watch a run, once it has begun.
struct RunInfo {
    clock: Clock,
    signal: Signal,
    plan: Plan,
    trace: Trace,
    vitals: Option<Arc<Vitals>>,
    /// The requests that are due, if their times are known; absent before the first look.
    due: OnceLock<Option<Mutex<DueCount>>>,
}

impl Live {
    /// The state of a run before its start, which is timed there.
    pub(crate) fn timed_by(timings: &Arc<Timings>) -> Self {
        Live { timings: Arc::clone(timings), ..Live::default() }
    }

    pub(crate) fn begin(
        &self,
        plan: &Plan,
        trace: &Trace,
        clock: Clock,
        signal: &Signal,
        vitals: Option<&Arc<Vitals>>,
    ) {
        let mut onlookers = lock(&self.onlookers);
        if let Some(vitals) = vitals {
            onlookers.drain(..).for_each(|thread| vitals.enlist(thread));
            self.date(clock);
        }
        let _ = self.begun.set(RunInfo {
            clock,
            signal: signal.clone(),
            plan: plan.clone(),
            trace: trace.clone(),
            vitals: vitals.cloned(),
            due: OnceLock::new(),
        });
    }

    /// Notes the date of the clock's origin.
    pub(crate) fn date(&self, clock: Clock) {
        /// The thread may be interrupted between two readings.
        const ATTEMPTS: usize = 10;
        let origin = (0..ATTEMPTS).find_map(|_| clock.behind_system_time());
        if let Some(origin) = origin.and_then(|origin| u64::try_from(origin).ok()) {
            let _ = self.origin.set(origin);
        }
    }

    /// A thread that looks on: its use of a core is listed among the run's own threads.
    pub fn enlist(&self, thread: WatchedThread) {
        if let Some(agents) = self.agents.get() {
            return agents.enlist(thread);
        }
        let mut onlookers = lock(&self.onlookers);
        match self.begun.get().map(|begun| &begun.vitals) {
            Some(Some(vitals)) => vitals.enlist(thread),
            Some(None) => {}
            None => onlookers.push(thread),
        }
    }

    /// From now on agents make the run, and onlookers see theirs.
    pub fn made_by(&self, agents: Arc<dyn Agents>) {
        let _ = self.agents.set(agents);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    pub(crate) fn end(&self) {
        let now = self.now();
        self.over_since.store(now.0.max(1), Ordering::Release);
        self.enter(Phase::Over);
    }

    pub(crate) fn measure(&self, since: Nanos) {
        let tokens = self.output_tokens.load(Ordering::Relaxed);
        self.tokens_before.store(tokens, Ordering::Relaxed);
        self.measuring_since.store(since.0.max(1), Ordering::Release);
        self.enter(Phase::Measuring);
    }

    /// The pacer, whose thread alone calls this, has given out or recorded a measured request.
    pub(crate) fn gave_out(&self) {
        let count = &self.given_out.0;
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub fn phase(&self) -> Phase {
        let phase = self.phase.load(Ordering::Acquire);
        Phase::ALL[usize::from(phase).min(Phase::ALL.len() - 1)]
    }

    pub(crate) fn count(&self, exchange: &Exchange) {
        let streamed = self.begun.get().is_none_or(|begun| begun.plan.request.stream);
        if exchange.phase == Part::Warmup {
            lock(&self.waves).add(exchange, streamed);
            let mut primed = lock(&self.primed);
            primed.ended += 1;
            if let Outcome::Incomplete { message, .. } = &exchange.outcome
                && !exchange.has_answer()
            {
                primed.failed += 1;
                primed.first.get_or_insert_with(|| message.clone());
            }
        }
        let reading = Reading::new(exchange, streamed, None);
        if let Some([_, first, end]) = reading.life().filter(|_| exchange.is_ok()) {
            let first = if streamed { first } else { end };
            let mut earliest = lock(&self.first_token);
            *earliest = Some(earliest.map_or(first, |earliest| earliest.min(first)));
        }
        lock(&self.totals).enter(exchange, streamed);
    }

    /// The instant of the first token on record, or of the first answer if replies are not
    /// streamed, on the runtime's clock. `None` before, and where others made the load.
    pub fn first_token(&self) -> Option<Instant> {
        let at = (*lock(&self.first_token))?;
        Some(self.begun.get()?.clock.instant(at))
    }

    pub(crate) fn primed(&self) -> Primed {
        lock(&self.primed).clone()
    }

    /// The number of warm-up requests on record, and their figures as waves of this size.
    pub(crate) fn warmed_up(&self, size: u64) -> (usize, Warmup) {
        let waves = lock(&self.waves);
        (waves.ended(), waves.judge(size))
    }

    /// The instant that onlookers see: the present until the run is over.
    fn now(&self) -> Nanos {
        match self.over_since.load(Ordering::Acquire) {
            0 => (self.begun.get()).map_or(Nanos::ZERO, |begun| begun.clock.now()),
            over => Nanos(over),
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let seen = match self.agents.get() {
            Some(agents) => agents.snapshot(),
            None => self.state().snapshot(),
        };
        Snapshot { devices: self.telemetry.latest(), server: self.pages.latest(), ..seen }
    }

    pub fn state(&self) -> State {
        let begun = self.begun.get();
        let phase = self.phase();
        let now = self.now();
        let elapsed = match self.measuring_since.load(Ordering::Acquire) {
            0 => None,
            since => Some(now.since(Nanos(since))),
        };
        let given_out = self.given_out.0.load(Ordering::Relaxed);
        let seen = self.output_tokens.load(Ordering::Relaxed);
        let totals = lock(&self.totals);
        let tracks = totals.seen(now);
        let mut counts = Counts {
            phase,
            stopped: begun.map_or(Stop::No, |begun| stopped(&begun.signal)),
            elapsed,
            ready: self.ready.load(Ordering::Relaxed),
            given_out,
            in_flight: begun.map_or(0, |begun| begun.signal.in_flight() as u64),
            sessions: totals.counts.sessions
                + (self.sessions.get()).map_or(0, |sessions| sessions.over_count()),
            tokens_seen: elapsed
                .map_or(0, |_| seen.saturating_sub(self.tokens_before.load(Ordering::Relaxed))),
            ..totals.counts.clone()
        };
        drop(totals);
        let load = begun.and_then(|begun| begun.vitals.as_ref()).and_then(|vitals| vitals.load());
        if let (Some(begun), Some(elapsed)) = (begun, elapsed) {
            begun.tell_due(&mut counts, elapsed);
        }
        State { counts, tracks, load }
    }
}

impl RunInfo {
    /// Adds the plan's due times. When nothing more is sent, all due requests are settled.
    fn tell_due(&self, counts: &mut Counts, elapsed: Nanos) {
        let not_sent = counts.failed.get(&model::exchange::Class::NotSent);
        let settled = counts.given_out + not_sent.map_or(0, |failures| failures.count);
        let count = || DueCount::new(&self.plan, &self.trace).map(Mutex::new);
        let Some(count) = self.due.get_or_init(count) else { return };
        let due = match counts.phase {
            Phase::Measuring => lock(count).upto(elapsed).max(settled),
            _ => settled,
        };
        counts.due = Some(due);
        counts.waiting = Some(due - settled);
    }
}

fn stopped(signal: &Signal) -> Stop {
    match (signal.is_aborted(), signal.is_stopped()) {
        (true, _) => Stop::Aborting,
        (false, true) => Stop::Finishing,
        (false, false) => Stop::No,
    }
}

/// Counts due times as they pass.
struct DueCount {
    times: Peekable<DueTimes>,
    end: Nanos,
    count: u64,
}

impl DueCount {
    /// For a plan; nothing if due times depend on the server, or if any number is due at once.
    pub fn new(plan: &Plan, trace: &Trace) -> Option<Self> {
        let arrival = &plan.load.arrival;
        let endless = arrival.rate() == Some(f64::INFINITY) && plan.requests().is_none();
        if !arrival.is_open() || endless {
            return None;
        }
        let times: DueTimes = Box::new(plan.due_times(trace));
        Some(DueCount {
            times: times.peekable(),
            end: match plan.load.amount {
                Amount::Requests(_) | Amount::Sessions(_) => Nanos(u64::MAX),
                Amount::Duration(duration) => duration,
            },
            count: 0,
        })
    }

    /// Returns the number of due requests at this time, which may not go back, after the beginning.
    pub fn upto(&mut self, elapsed: Nanos) -> u64 {
        let end = self.end;
        let passed = |due: &Due| matches!(due, Due::At(at) if *at <= elapsed && *at < end);
        while self.times.next_if(passed).is_some() {
            self.count += 1;
        }
        self.count
    }
}

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
    use super::{Counts, Live, *};

    #[test]
    fn due_times_are_counted_as_they_pass() {
        let times: DueTimes =
            Box::new([0, 10, 10, 25, 40].map(|at| Due::At(Nanos(at))).into_iter());
        let mut count = DueCount { times: times.peekable(), end: Nanos(40), count: 0 };
        let counts = [0, 9, 10, 24, 25, 39, 1_000].map(|elapsed| count.upto(Nanos(elapsed)));
        // A request that is due at the very end is not sent, and so never due.
        assert_eq!(counts, [1, 1, 3, 3, 4, 4, 4]);
    }

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
