//! The signal that wakes the pacer: a slot that is free, news of a session, or the order to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;

use crossbeam_channel::{Receiver, Sender};
use tokio::sync::Notify;

use model::clock::Clock;
use model::units::Nanos;

/// Time before an instant at which a thread stops sleeping and watches the clock instead. A sleep
/// ends some 30 µs late (80 µs with the kernel's usual timer slack). Watching half of that time
/// costs no more than the waking itself: at most 4 % of a core at 2000 requests a second. The
/// median lag falls from 30 to 10 µs.
const WATCH: Nanos = Nanos(20_000);

/// The signal that wakes the pacer while it waits: a slot is free, or the run must stop.
#[derive(Clone)]
pub struct Signal(Arc<SignalState>);

struct SignalState {
    in_flight: AtomicUsize,
    stopped: AtomicBool,
    aborted: AtomicBool,
    broken: AtomicBool,
    /// True if it matters which slots become free, and when.
    watched: AtomicBool,
    freed: (Sender<FreeSlot>, Receiver<FreeSlot>),
    /// True if the pacer's thread was woken since it last waited. The thread's own token is not
    /// enough: whatever else it blocks on, such as a queue of items, may use that up.
    woken: AtomicBool,
    wake: Wake,
}

#[derive(Clone, Copy)]
pub(super) struct FreeSlot {
    /// The request that held the slot.
    pub(super) key: u64,
    pub(super) at: Nanos,
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

    /// True if the pacer is a task, whose clock stands still while it blocks.
    pub fn is_task(&self) -> bool {
        matches!(self.0.wake, Wake::Task(_))
    }

    fn new(wake: Wake) -> Self {
        Signal(Arc::new(SignalState {
            in_flight: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            watched: AtomicBool::new(false),
            // Holds at most one entry for each request in flight. The pacer takes all entries out
            // before each request.
            freed: crossbeam_channel::unbounded(),
            woken: AtomicBool::new(false),
            wake,
        }))
    }

    /// Registers the calling thread as the thread to wake.
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
            let _ = self.0.freed.0.send(FreeSlot { key, at });
        }
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
        self.wake();
    }

    /// Takes note of freed slots from here on.
    pub(super) fn watch(&self) {
        self.0.watched.store(true, Ordering::Release);
    }

    pub(super) fn next_freed(&self) -> Option<FreeSlot> {
        self.0.freed.1.try_recv().ok()
    }

    /// Nothing further is to be sent.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Release);
        self.wake();
    }

    pub fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Acquire)
    }

    /// Replies under way must not be waited for either.
    pub fn abort(&self) {
        self.0.aborted.store(true, Ordering::Release);
        self.stop();
    }

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

    pub(crate) fn is_broken(&self) -> bool {
        self.0.broken.load(Ordering::Acquire)
    }

    /// Requests sent whose replies have not ended.
    pub fn in_flight(&self) -> usize {
        self.0.in_flight.load(Ordering::Acquire)
    }

    pub(super) fn take_slot(&self) {
        self.0.in_flight.fetch_add(1, Ordering::AcqRel);
    }

    /// Wakes the pacer, to look for news.
    pub fn wake(&self) {
        match &self.0.wake {
            Wake::Thread(thread) => {
                self.0.woken.store(true, Ordering::Release);
                if let Some(thread) = thread.get() {
                    thread.unpark();
                }
            }
            Wake::Task(notify) => notify.notify_one(),
        }
    }

    /// Waits until woken, or until `until`. May return early.
    pub async fn wait(&self, clock: &Clock, until: Option<Nanos>) {
        if self.0.woken.swap(false, Ordering::AcqRel) {
            return;
        }
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
        // The waiting thread looks for news afterwards, and so sees the reason for its wake.
        self.0.woken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wait for a queue parks the thread too, and takes the token that was meant for the pacer.
    #[test]
    fn wake_during_another_wait_is_not_lost() {
        let signal = Signal::for_thread();
        let attached = std::sync::Barrier::new(2);
        let flag = AtomicBool::new(false);
        let waker = signal.clone();
        let stopped = std::thread::scope(|scope| {
            let pacer = scope.spawn(|| {
                let clock = Clock::start();
                signal.attach();
                attached.wait();
                while !flag.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                // The state after an unlucky receive: the wake has come, and its token is gone.
                std::thread::park_timeout(std::time::Duration::from_millis(1));
                pollster::block_on(signal.wait(&clock, None));
                signal.is_stopped()
            });
            attached.wait();
            waker.stop();
            flag.store(true, Ordering::Release);
            pacer.join().unwrap()
        });
        assert!(stopped);
    }
}
