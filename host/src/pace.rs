//! The pacer: sends each request when it is due and a slot is free, and not before.
//!
//! One loop for every arrival model. In a real run it has an OS thread of its own, because
//! a runtime's timers are late by a millisecond; on a paused clock it is a task, and exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;

use tokio::sync::Notify;

use crate::arrival::Due;
use crate::clock::Clock;
use crate::units::Nanos;

/// What the pacer is told while it waits: that a slot is free, or that the run is to stop.
#[derive(Clone)]
pub struct Signal(Arc<SignalState>);

struct SignalState {
    in_flight: AtomicUsize,
    stopped: AtomicBool,
    aborted: AtomicBool,
    broken: AtomicBool,
    wake: Wake,
}

enum Wake {
    Thread(std::sync::OnceLock<Thread>),
    Task(Notify),
}

impl Signal {
    /// For a pacer on its own thread, which must call [`Signal::attach`] first.
    pub fn for_thread() -> Self {
        Self::new(Wake::Thread(std::sync::OnceLock::new()))
    }

    /// For a pacer that is a task.
    pub fn for_task() -> Self {
        Self::new(Wake::Task(Notify::new()))
    }

    fn new(wake: Wake) -> Self {
        Signal(Arc::new(SignalState {
            in_flight: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            wake,
        }))
    }

    /// Makes the calling thread the one that is woken.
    pub fn attach(&self) {
        if let Wake::Thread(thread) = &self.0.wake {
            let _ = thread.set(std::thread::current());
        }
    }

    /// A request's reply has ended: its slot is free.
    pub fn release(&self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.wake();
    }

    /// Nothing further is to be sent.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
        self.wake();
    }

    /// Whether [`Signal::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Acquire)
    }

    /// Replies under way are not to be waited for either.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Release);
        self.stop();
    }

    /// Whether [`Signal::abort`] was called.
    pub fn is_aborted(&self) -> bool {
        self.0.aborted.load(Ordering::Acquire)
    }

    /// A worker is gone: its replies will never end.
    pub fn break_down(&self) {
        self.0.broken.store(true, Ordering::Release);
        self.abort();
    }

    /// Whether [`Signal::break_down`] was called.
    pub fn is_broken(&self) -> bool {
        self.0.broken.load(Ordering::Acquire)
    }

    /// Requests sent whose replies have not ended.
    pub fn in_flight(&self) -> usize {
        self.0.in_flight.load(Ordering::Acquire)
    }

    fn take_slot(&self) {
        self.0.in_flight.fetch_add(1, Ordering::AcqRel);
    }

    fn wake(&self) {
        match &self.0.wake {
            Wake::Thread(thread) => {
                if let Some(thread) = thread.get() {
                    thread.unpark();
                }
            }
            Wake::Task(notify) => notify.notify_one(),
        }
    }

    /// Waits until woken, or until `until`. May return early.
    pub async fn wait(&self, clock: &Clock, until: Option<Nanos>) {
        match (&self.0.wake, until) {
            (Wake::Thread(_), Some(until)) => {
                std::thread::park_timeout(until.since(clock.now()).into());
            }
            (Wake::Thread(_), None) => std::thread::park(),
            (Wake::Task(notify), Some(until)) => {
                let _ = tokio::time::timeout_at(clock.instant(until), notify.notified()).await;
            }
            (Wake::Task(notify), None) => notify.notified().await,
        }
    }
}

/// What the pacer needs to know of a phase.
pub struct Pacing {
    /// When the phase began.
    pub origin: Nanos,
    /// Nothing is sent once the phase is this old; absent where requests are counted.
    pub duration: Option<Nanos>,
    /// The cap on requests in flight; in a closed loop the number of users.
    pub slots: Option<usize>,
    /// Whether `slots` is a cap, so that waiting for one is queueing worth recording.
    pub capped: bool,
}

/// When a request was due and let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// When it should have been sent.
    pub due: Nanos,
    /// When the cap let it go; absent without a cap.
    pub granted: Option<Nanos>,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it now.
    Send(Release),
    /// It was due, but no slot came free before the phase ended.
    NotSent {
        /// When it should have been sent.
        due: Nanos,
    },
}

/// Paces one phase: draws an item for each due time and hands it on with its verdict.
///
/// Ends when the items or the due times end, when the phase is over, or when told to stop.
/// Items due before the end that found no slot are handed on as not sent, so that load that
/// could not be offered is on record.
pub async fn pace<Item>(
    clock: &Clock,
    signal: &Signal,
    pacing: &Pacing,
    due_times: impl Iterator<Item = Due>,
    mut next: impl FnMut() -> Option<Item>,
    mut hand_on: impl FnMut(Item, Verdict),
) {
    let end = pacing.duration.map(|duration| pacing.origin + duration);
    let over = |now: Nanos| signal.is_stopped() || end.is_some_and(|end| now >= end);
    for due in due_times {
        let due = match due {
            Due::At(at) => Some(pacing.origin + at),
            Due::WhenFree => None,
        };
        if due.is_some_and(|due| end.is_some_and(|end| due >= end)) {
            return;
        }
        // The bytes are in hand before they are due.
        if due.is_none() && over(clock.now()) {
            return;
        }
        let Some(item) = next() else { return };
        if let Some(due) = due {
            while clock.now() < due && !signal.is_stopped() {
                signal.wait(clock, Some(due)).await;
            }
            if clock.now() < due {
                return;
            }
        }
        while pacing
            .slots
            .is_some_and(|slots| signal.in_flight() >= slots)
            && !over(clock.now())
        {
            signal.wait(clock, end).await;
        }
        let now = clock.now();
        let free = pacing.slots.is_none_or(|slots| signal.in_flight() < slots);
        match due {
            Some(due) if !free || signal.is_stopped() => {
                hand_on(item, Verdict::NotSent { due });
            }
            None if over(now) => return,
            _ => {
                signal.take_slot();
                let release = Release {
                    due: due.unwrap_or(now),
                    granted: (pacing.capped && due.is_some())
                        .then(|| due.map_or(now, |due| now.max(due))),
                };
                hand_on(item, Verdict::Send(release));
            }
        }
    }
}

/// Waits until every reply has ended, or until `impatient` says not to wait any longer.
pub async fn drain(clock: &Clock, signal: &Signal, impatient: impl Fn() -> bool) {
    /// How often `impatient` is asked.
    const GLANCE: Nanos = Nanos(100_000_000);
    while signal.in_flight() > 0 && !impatient() && !signal.is_broken() {
        signal.wait(clock, Some(clock.now() + GLANCE)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::Arrival;
    use std::cell::RefCell;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    /// Runs a phase on a paused clock with replies that take `service` each.
    async fn run(
        arrival: Arrival,
        items: u32,
        slots: Option<usize>,
        duration: Option<Nanos>,
        service: Duration,
    ) -> Vec<(u32, Verdict, Nanos)> {
        let clock = Clock::start();
        let signal = Signal::for_task();
        let out = RefCell::new(Vec::new());
        let pacing = Pacing {
            origin: Nanos::ZERO,
            duration,
            slots,
            capped: arrival.is_open() && slots.is_some(),
        };
        let mut items = 0..items;
        pace(
            &clock,
            &signal,
            &pacing,
            arrival.due_times(1),
            || items.next(),
            |item, verdict| {
                out.borrow_mut().push((item, verdict, clock.now()));
                if matches!(verdict, Verdict::Send(_)) {
                    let signal = signal.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(service).await;
                        signal.release();
                    });
                }
            },
        )
        .await;
        drain(&clock, &signal, || false).await;
        out.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn constant_load_is_sent_when_due() {
        let arrival = Arrival::Constant { rate: 100.0 };
        let sent = run(arrival, 4, None, None, Duration::from_secs(9)).await;
        let at: Vec<u64> = sent.iter().map(|(_, _, at)| at.0 / MS).collect();
        assert_eq!(at, [0, 10, 20, 30]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cap_shows_as_queueing() {
        let sent = run(Arrival::Inf, 4, Some(2), None, Duration::from_millis(50)).await;
        let waited: Vec<(u64, u64)> = sent
            .iter()
            .map(|(_, verdict, _)| match verdict {
                Verdict::Send(release) => (release.due.0 / MS, release.granted.unwrap().0 / MS),
                Verdict::NotSent { .. } => panic!("all are sent"),
            })
            .collect();
        assert_eq!(waited, [(0, 0), (0, 0), (0, 50), (0, 50)]);
    }

    #[tokio::test(start_paused = true)]
    async fn load_that_found_no_slot_is_on_record() {
        let arrival = Arrival::Constant { rate: 10.0 };
        let second = Some(Nanos(1000 * MS));
        let sent = run(arrival, 99, Some(1), second, Duration::from_millis(450)).await;
        let verdicts: Vec<bool> = sent
            .iter()
            .map(|(_, verdict, _)| matches!(verdict, Verdict::Send(_)))
            .collect();
        assert_eq!(verdicts.len(), 10, "every request due within the second");
        assert_eq!(verdicts.iter().filter(|sent| **sent).count(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_loop_sends_when_a_user_is_free() {
        let arrival = Arrival::Closed { concurrency: 2 };
        let second = Some(Nanos(1000 * MS));
        let sent = run(arrival, 99, Some(2), second, Duration::from_millis(400)).await;
        let at: Vec<u64> = sent.iter().map(|(_, _, at)| at.0 / MS).collect();
        assert_eq!(at, [0, 0, 400, 400, 800, 800]);
        assert!(sent.iter().all(|(_, verdict, at)| *verdict
            == Verdict::Send(Release {
                due: *at,
                granted: None
            })));
    }
}
