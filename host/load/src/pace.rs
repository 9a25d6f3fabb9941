//! The pacer: sends each request when it is due and a slot is free, and not before.
//!
//! One loop for every arrival model. In a real run it has an OS thread of its own, because
//! a runtime's timers are late by a millisecond; on a paused clock it is a task, and exact.
//! [`arrival`](model::arrival) decides when requests are due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;

use crossbeam_channel::{Receiver, Sender};
use tokio::sync::Notify;

use model::arrival::{Due, Think};
use model::clock::Clock;
use model::units::Nanos;

mod users;

use users::Users;

/// How long before an instant a thread stops sleeping and watches the clock instead. A sleep ends some
/// 30 µs after it should (80 µs with the kernel's usual timer slack); half of that watched costs no
/// more processor time than the waking itself, 4 % of a core at 2000 requests a second at most, and
/// brings the median lag from 30 down to 10 µs.
const WATCH: Nanos = Nanos(20_000);

/// What wakes the pacer while it waits: a slot is free, or the run is to stop.
#[derive(Clone)]
pub struct Signal(Arc<SignalState>);

struct SignalState {
    in_flight: AtomicUsize,
    stopped: AtomicBool,
    aborted: AtomicBool,
    broken: AtomicBool,
    /// Whether it matters which slots come free, and when.
    watched: AtomicBool,
    freed: (Sender<Freed>, Receiver<Freed>),
    wake: Wake,
}

/// A slot that came free.
#[derive(Clone, Copy)]
struct Freed {
    /// The number of the request that had it.
    key: u64,
    /// When.
    at: Nanos,
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
            watched: AtomicBool::new(false),
            freed: crossbeam_channel::unbounded(),
            wake,
        }))
    }

    /// Makes the calling thread the one that is woken.
    pub fn attach(&self) {
        if let Wake::Thread(thread) = &self.0.wake {
            let _ = thread.set(std::thread::current());
            // The kernel may let a sleeper wait 50 µs longer to wake several at a time. If this
            // cannot be changed, requests are sent that much later, and `sent - due` shows it.
            #[cfg(target_os = "linux")]
            let _ = nix::sys::prctl::set_timerslack(1);
        }
    }

    /// The reply to the request with this number ended at this instant: its slot is free.
    pub fn release(&self, key: u64, at: Nanos) {
        if self.0.watched.load(Ordering::Acquire) {
            // Received as long as the signal lives.
            let _ = self.0.freed.0.send(Freed { key, at });
        }
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.wake();
    }

    /// From here on takes note of which slots come free.
    fn watch(&self) {
        self.0.watched.store(true, Ordering::Release);
    }

    fn next_freed(&self) -> Option<Freed> {
        self.0.freed.1.try_recv().ok()
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

    /// Replies under way must not be waited for either.
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
        // `aborted` first: whoever sees `broken` must also see that nobody waits for replies.
        self.0.aborted.store(true, Ordering::Release);
        self.0.broken.store(true, Ordering::Release);
        self.stop();
    }

    /// Whether [`Signal::break_down`] was called.
    pub(crate) fn is_broken(&self) -> bool {
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
            (Wake::Thread(_), Some(until)) => match until.since(clock.now()) {
                left if left > WATCH => std::thread::park_timeout(left.since(WATCH).into()),
                _ => {
                    while clock.now() < until {
                        std::hint::spin_loop();
                    }
                }
            },
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
    /// How the users of a closed loop think; absent where they do not.
    pub thinking: Option<Thinking>,
}

/// How users think, and which of the plan's users they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thinking {
    /// For how long.
    pub think: Think,
    /// Random seed.
    pub seed: u64,
    /// The number of the first user.
    pub first: u32,
    /// How far the next user's number is from it.
    pub step: u32,
}

/// When a request was due and let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// When it should have been sent.
    pub due: Nanos,
    /// When the cap let it go; absent without a cap.
    pub granted: Option<Nanos>,
}

/// What happens to a request.
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

/// Paces one phase: draws an item for each due time and hands it on with its verdict. `hand_on` gives
/// the number by which [`Signal::release`] will know the item.
///
/// Ends when the items or the due times end, when the phase is over, or when told to stop.
/// Items due before the end that found no slot are handed on as not sent, so that load that
/// could not be offered is on record. In a closed loop a request is due when its user's slot came
/// free and the user has thought.
///
/// Once it is told to stop it draws no further item, because there may be millions. It gives the number of
/// requests that were due by then and were neither drawn nor handed on.
pub async fn pace<Item>(
    clock: &Clock,
    signal: &Signal,
    pacing: &Pacing,
    due_times: impl Iterator<Item = Due>,
    mut next: impl FnMut() -> Option<Item>,
    mut hand_on: impl FnMut(Item, Verdict) -> u64,
) -> u64 {
    let end = pacing.duration.map(|duration| pacing.origin + duration);
    let over = |now: Nanos| signal.is_stopped() || end.is_some_and(|end| now >= end);
    let mut users = None;
    let mut due_times = due_times;
    // How many of those that follow were due when the run was stopped.
    let left = |due_times: &mut dyn Iterator<Item = Due>| {
        if !signal.is_stopped() {
            return 0;
        }
        let now = clock.now();
        let was_due = |due: &Due| match due {
            Due::At(at) => {
                let due = pacing.origin + *at;
                due <= now && end.is_none_or(|end| due < end)
            }
            Due::WhenFree => false,
        };
        due_times.take_while(was_due).count() as u64
    };
    while let Some(due) = due_times.next() {
        let due = match due {
            Due::At(at) => pacing.origin + at,
            Due::WhenFree => {
                let users = users.get_or_insert_with(|| {
                    signal.watch();
                    Users::new(pacing.slots.unwrap_or(1), pacing.origin, pacing.thinking)
                });
                if over(clock.now()) {
                    return 0;
                }
                let Some(item) = next() else { return 0 };
                let Some((due, user)) = next_user(clock, signal, users, end).await else {
                    return 0;
                };
                signal.take_slot();
                let release = Release { due, granted: None };
                users.send(user, hand_on(item, Verdict::Send(release)));
                continue;
            }
        };
        if end.is_some_and(|end| due >= end) {
            return 0;
        }
        if signal.is_stopped() {
            let this = u64::from(due <= clock.now());
            return this + if this == 1 { left(&mut due_times) } else { 0 };
        }
        // The bytes are in hand before they are due.
        let Some(item) = next() else {
            // None is left, or the run was stopped while it was waited for.
            let this = u64::from(signal.is_stopped() && due <= clock.now());
            return this + if this == 1 { left(&mut due_times) } else { 0 };
        };
        while clock.now() < due && !signal.is_stopped() {
            signal.wait(clock, Some(due)).await;
        }
        if clock.now() < due {
            return 0;
        }
        let is_free = || pacing.slots.is_none_or(|slots| signal.in_flight() < slots);
        while !is_free() && !over(clock.now()) {
            signal.wait(clock, end).await;
        }
        if !is_free() || signal.is_stopped() {
            hand_on(item, Verdict::NotSent { due });
            continue;
        }
        signal.take_slot();
        let granted = pacing.capped.then(|| clock.now().max(due));
        hand_on(item, Verdict::Send(Release { due, granted }));
    }
    0
}

/// Waits until a user's next request is due. `None` where the phase is over before.
async fn next_user(
    clock: &Clock,
    signal: &Signal,
    users: &mut Users,
    end: Option<Nanos>,
) -> Option<(Nanos, u32)> {
    loop {
        users.gather(signal);
        let now = clock.now();
        if signal.is_stopped() || end.is_some_and(|end| now >= end) {
            return None;
        }
        match users.next_due() {
            Some(due) if due <= now => return Some((due, users.next()?)),
            Some(due) => {
                let until = end.map_or(due, |end| due.min(end));
                signal.wait(clock, Some(until)).await;
            }
            None => signal.wait(clock, end).await,
        }
    }
}

/// Waits until every reply has ended, or until `impatient` returns true.
pub async fn drain(clock: &Clock, signal: &Signal, impatient: impl Fn() -> bool) {
    /// How often `impatient` is asked.
    const GLANCE: Nanos = Nanos(100_000_000);
    while signal.in_flight() > 0 && !impatient() && !signal.is_broken() {
        signal.wait(clock, Some(clock.now() + GLANCE)).await;
    }
}

#[cfg(test)]
mod tests;
