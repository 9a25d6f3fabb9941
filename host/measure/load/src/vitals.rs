//! The run's watch on itself: its threads' use of cores, the lag of decoding, and pauses. Virtual
//! time is never watched.
//!
//! Threads enlist when they start. One further thread watches during the measured phase: it wakes
//! every ten milliseconds, and reads a few files of `/proc` every second, if there are any.

mod system;
mod tally;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::backlog::Backlog;
use crate::thread_group::{GroupThread, ThreadGroup, trip};
use model::client::Client;
use model::clock::Clock;
use model::units::Nanos;
use tally::{Sample, Tally, Whole};

pub use tally::Busy;

/// Interval at which the watch wakes: it sees a pause of 50 ms, and costs nothing.
const TICK: Nanos = Nanos(10_000_000);

pub struct Vitals {
    clock: Clock,
    threads: Mutex<Vec<WatchedThread>>,
    queues: Mutex<Vec<Length>>,
    /// The bytes that replies hold in memory.
    backlog: OnceLock<Arc<Backlog>>,
    /// The longest from handing on to decoding so far, in nanoseconds.
    behind: AtomicU64,
    load: Mutex<Option<Load>>,
}

#[derive(Clone, Debug)]
pub struct WatchedThread {
    name: String,
    id: system::Id,
}

impl WatchedThread {
    /// The calling thread, under this name; nothing if the system does not tell threads apart.
    pub fn this_thread(name: &str) -> Option<Self> {
        system::this_thread().map(|id| WatchedThread { name: name.to_owned(), id })
    }
}

/// The load seen in one second of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Each thread in the order of enlistment, except threads that the system does not report.
    pub threads: Vec<Busy>,
    /// Replies that waited to be decoded, at most.
    pub backlog: u64,
}

type Length = Box<dyn Fn() -> usize + Send>;

impl Vitals {
    pub fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Vitals {
            clock,
            threads: Mutex::default(),
            queues: Mutex::default(),
            backlog: OnceLock::new(),
            behind: AtomicU64::new(0),
            load: Mutex::default(),
        })
    }

    /// Has the calling thread watched under this name.
    pub fn enlist_this(&self, name: &str) {
        if let Some(thread) = WatchedThread::this_thread(name) {
            self.enlist(thread);
        }
    }

    pub fn enlist(&self, thread: WatchedThread) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    pub fn load(&self) -> Option<Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn enlist_queue(&self, length: impl Fn() -> usize + Send + 'static) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(length));
    }

    pub fn enlist_backlog(&self, backlog: &Arc<Backlog>) {
        let _ = self.backlog.set(Arc::clone(backlog));
    }

    /// Frames are decoded that a reader handed on at this instant.
    pub fn decoded(&self, handed_on: Nanos) {
        let behind = self.clock.now().since(handed_on).0;
        // Decode threads share the place, and seldom have anything new to put there.
        if behind > self.behind.load(Ordering::Relaxed) {
            self.behind.fetch_max(behind, Ordering::Relaxed);
        }
    }

    /// Watches until told to finish.
    pub fn watch(self: &Arc<Self>, group: &ThreadGroup) -> io::Result<Watch> {
        let stopped = Arc::new(AtomicBool::new(false));
        let (vitals, until) = (Arc::clone(self), Arc::clone(&stopped));
        let thread = group.start("vitals", None, move || vitals.observe(&until))?;
        Ok(Watch { stopped, thread: Some(thread) })
    }

    fn observe(&self, stopped: &AtomicBool) -> Client {
        self.behind.store(0, Ordering::Relaxed);
        let origin = self.clock.now();
        if let Some(backlog) = self.backlog.get() {
            backlog.restart();
        }
        let (names, ids): (Vec<_>, Vec<_>) = {
            let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
            threads.iter().cloned().map(|thread| (thread.name, thread.id)).unzip()
        };
        let sample = |at| Sample { at, threads: ids.iter().map(|id| system::spent(*id)).collect() };
        let whole = || Whole { cores: system::cores(), throttled: system::throttled() };
        let before = whole();
        let mut tally = Tally::new(names, sample(self.clock.now()));
        while !stopped.load(Ordering::Acquire) {
            trip("vitals");
            let due = self.clock.now() + TICK;
            std::thread::park_timeout(Duration::from(TICK));
            let now = self.clock.now();
            tally.tick(now.since(due), self.backlog());
            if let Some(ahead) = self.clock.behind_system_time() {
                tally.ahead(ahead);
            }
            if tally.is_second_over(now) {
                tally.second(sample(now));
                let load = Load { threads: tally.busy().collect(), backlog: self.backlog() as u64 };
                *self.load.lock().unwrap_or_else(PoisonError::into_inner) = Some(load);
            }
        }
        let end = sample(self.clock.now());
        let behind = Nanos(self.behind.load(Ordering::Relaxed));
        let mut client = tally.finish(&end, behind, (before, whole()));
        client.backlog = self.backlog.get().map(|backlog| backlog.figures(origin));
        client
    }

    fn backlog(&self) -> usize {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        queues.iter().map(|length| length()).max().unwrap_or(0)
    }
}

/// A watch under way. It ends when dropped.
pub struct Watch {
    stopped: Arc<AtomicBool>,
    thread: Option<GroupThread<Client>>,
}

impl Watch {
    /// Ends the watch and returns its figures; nothing where watching itself failed.
    pub fn finish(mut self) -> Option<Client> {
        self.stop();
        self.thread.take()?.join()
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Lets other threads go first, if threads have priorities. On macOS it would slow readers too.
pub fn yield_to_others() {
    /// About a third of the weight of a thread that has not yielded.
    #[cfg(target_os = "linux")]
    const LOWER_BY: i32 = 5;
    // If this is refused, decode all the same.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(LOWER_BY);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The nineteenth field of a thread's `stat`.
    fn niceness() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, after_name) = stat.rsplit_once(')').unwrap();
        after_name.split_ascii_whitespace().nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn yielding_affects_one_thread() {
        let before = niceness();
        let lowered = std::thread::spawn(|| {
            yield_to_others();
            niceness()
        });
        assert_eq!(lowered.join().unwrap(), (before + 5).min(19));
        assert_eq!(niceness(), before, "the others keep theirs");
    }

    #[test]
    fn enlisted_thread_is_sampled() {
        let clock = Clock::start();
        let vitals = Vitals::new(clock);
        vitals.decoded(Nanos::ZERO);
        vitals.enlist_this("pace");
        vitals.enlist_queue(|| 3);
        vitals.enlist_queue(|| 2);
        let group = ThreadGroup::new(&crate::pace::Signal::for_thread());
        let watch = vitals.watch(&group).unwrap();
        let deadline = clock.now() + Nanos(50_000_000);
        while clock.now() < deadline {
            std::hint::spin_loop();
        }
        let client = watch.finish().unwrap();
        assert_eq!(client.decode_backlog, 3);
        assert_eq!(client.decode_behind_ms, 0.0, "it was before the watch");
        assert!(client.watched_s > 0.0);
        let pace = client.threads["pace"];
        assert!(pace.cpu > 0.0 && pace.cpu <= 1.0, "{pace:?}");
        assert!(client.machine.is_none_or(|machine| machine.busy <= 1.0));
    }
}
