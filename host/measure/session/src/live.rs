//! The state of a run in progress: its phase, the requests in flight, totals of the ended
//! exchanges, and the load on this client.
//!
//! Threads that pace, send or read never wait for an onlooker, and only update single counters. The
//! recorder enters the rest when an exchange has ended, and an onlooker takes [`Snapshot`]s: the
//! only lock is between these two. The memory does not grow with the run.
//!
//! In a run of several processes, each has its own part here. Rank 0 shows the sum of the figures
//! that all of them send ([`figures`], [`Agents`]).
//!
//! `cli` shows it, except for the page for Prometheus ([`exposition`], [`listen`]).

pub mod cells;
mod due;
pub mod exposition;
pub mod figures;
pub mod history;
pub mod listen;
pub mod snapshot;
mod totals;

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

pub use history::History;
pub use snapshot::{Counts, Latency, Phase, Snapshot, Stop};

use crate::lock;
use crate::series::ServerPages;
use crate::sessions::Sessions;
use crate::telemetry::Telemetry;
use due::DueCount;
use figures::State;
use totals::Totals;

use load::pace::Signal;
use load::vitals::{Vitals, WatchedThread};
use model::arrival::Trace;
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
use scenario::plan::Plan;
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
    /// The requests that were sent after their exchanges, once all are over; absent if there was
    /// none.
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
    /// Their number, and the failed among them.
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

/// The requests of a warm-up on record.
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

    /// The run has begun, with this clock.
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

    /// Everything is on record.
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

    /// The pacer has given a measured request to a worker, or on record where it cannot be sent.
    /// Only the pacer's thread calls this.
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

    /// The instant of the first token on record, of the warm-up or of the measurement, on the
    /// runtime's clock. Where replies are not streamed, it is the end of the first answer. `None`
    /// before, and where others made the load.
    pub fn first_token(&self) -> Option<Instant> {
        let at = (*lock(&self.first_token))?;
        Some(self.begun.get()?.clock.instant(at))
    }

    /// The requests of the warm-up on record.
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

    /// Returns the state of this process's part of the run, as it is now.
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
    /// Adds the plan's due times. When nothing more is sent, the due requests are the requests that
    /// were handed out or recorded as not sent.
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
