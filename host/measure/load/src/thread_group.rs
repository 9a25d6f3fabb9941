//! The threads of a run, and its one alarm: every thread of a run is started here. A thread that
//! panics ends the run, and leaves its name and its message; the measurements until then are kept.

use std::any::Any;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use rustix::io::fcntl_dupfd_cloexec;

use crate::pace::Signal;
use crate::vitals::Vitals;

/// Interval at which a waiting caller checks if it should stop waiting.
const GLANCE: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub struct ThreadGroup {
    signal: Signal,
    panicked: Arc<Mutex<Option<ThreadPanic>>>,
}

/// A thread of a run panicked: a bug in this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a bug in the runner ended the run: its thread `{thread}` panicked: {message}; please report it with the lines above"
)]
pub struct ThreadPanic {
    pub thread: String,
    pub message: String,
}

pub struct GroupThread<T>(JoinHandle<Option<T>>);

impl ThreadGroup {
    pub fn new(signal: &Signal) -> Self {
        ThreadGroup { signal: signal.clone(), panicked: Arc::default() }
    }

    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Starts a named thread, which is watched from its beginning if the run is.
    pub fn start<T: Send + 'static>(
        &self,
        name: &str,
        vitals: Option<&Arc<Vitals>>,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<GroupThread<T>> {
        let (group, own_name, vitals) = (self.clone(), name.to_owned(), vitals.cloned());
        let (enlisted, is_enlisted) =
            (vitals.as_ref()).map(|_| crossbeam_channel::bounded::<()>(0)).unzip();
        let watched = move || {
            group.guard(&own_name, || {
                if let Some(vitals) = vitals {
                    vitals.enlist_this(&own_name);
                }
                drop(enlisted);
                body()
            })
        };
        let started = std::thread::Builder::new().name(name.to_owned()).spawn(watched)?;
        if let Some(is_enlisted) = is_enlisted {
            // Nothing is sent: the other end is dropped.
            let _ = is_enlisted.recv();
        }
        Ok(GroupThread(started))
    }

    /// Does this on the calling thread, under this name. `None` if it panics, which ends the run.
    pub fn guard<T>(&self, name: &str, body: impl FnOnce() -> T) -> Option<T> {
        // State that a panic leaves half done is not used again: the run ends.
        match catch_unwind(AssertUnwindSafe(body)) {
            Ok(done) => Some(done),
            Err(panic) => {
                self.fell(name, &*panic);
                None
            }
        }
    }

    /// Does this on a thread, and waits until the run is stopped. `None` then, or if it panicked.
    pub fn until_stopped<T: Send + 'static>(
        &self,
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Option<T>> {
        self.until(|| self.signal.is_stopped(), name, body)
    }

    /// Does this on a thread, and waits until it is given up. `None` then, or if it panicked.
    pub fn until<T: Send + 'static>(
        &self,
        given_up: impl Fn() -> bool,
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Option<T>> {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        let waited_for = self.start(name, None, move || {
            // If nobody waits any more, nobody needs it.
            let _ = sender.send(body());
        })?;
        loop {
            match receiver.recv_timeout(GLANCE) {
                Ok(done) => return Ok(Some(done)),
                Err(RecvTimeoutError::Timeout) if given_up() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    // It panicked; its end is awaited, because only then it is known why.
                    waited_for.join();
                    return Ok(None);
                }
            }
        }
    }

    /// A thread of the run panicked: ends the run.
    pub fn fell(&self, name: &str, panic: &(dyn Any + Send)) {
        let message = (panic.downcast_ref::<&str>().copied())
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("it left no message");
        self.panicked.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| {
            ThreadPanic { thread: name.to_owned(), message: message.to_owned() }
        });
        self.signal.break_down();
    }

    pub fn panicked(&self) -> Option<ThreadPanic> {
        self.panicked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> GroupThread<T> {
    /// Waits for its end. `None` if it panicked.
    pub fn join(self) -> Option<T> {
        // The panic itself was caught, so joining cannot fail.
        self.0.join().ok().flatten()
    }

    pub fn thread(&self) -> &std::thread::Thread {
        self.0.thread()
    }
}

/// Panics at the place that the variable `PANIC_AT` names, for tests: `PANIC_AT=record:3` panics
/// when the recorder comes by for the third time. Builds for users do not have it.
#[inline]
pub fn trip(place: &str) {
    #[cfg(debug_assertions)]
    {
        use std::sync::OnceLock;
        use std::sync::atomic::{AtomicU64, Ordering};
        static WIRE: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();
        let wire = WIRE.get_or_init(|| {
            let value = std::env::var("PANIC_AT").ok()?;
            let (place, times) = value.split_once(':')?;
            Some((place.to_owned(), AtomicU64::new(times.parse().ok()?)))
        });
        if let Some((wired, left)) = wire
            && wired == place
            && left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            panic!("the test tripped `{place}`");
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = place;
}

// The process's file descriptors: their limit, and the kernel's table of them. Linux doubles the
// table when a descriptor does not fit, which stops a thread for 8 to 16 ms if the process has
// several (`expand_fdtable` in `fs/file.c`). So the table is made large before a run begins.

/// The most descriptors that the table is made for ahead: half a megabyte of the kernel's memory.
const MOST: u64 = 1 << 16;

/// Makes room for all permitted descriptors at once, while no other thread has to be waited for.
pub fn make_room_ahead() {
    // Without the room there are the pauses, and nothing else.
    if let Ok(limit) = rlimit::increase_nofile_limit(MOST) {
        let _ = make_room(limit.min(MOST));
    }
}

/// Raises the limit of this process to `needed` file descriptors, or to the hard limit, and has a
/// thread make room for them. Returns the limit in force.
pub fn allow(needed: u64) -> io::Result<u64> {
    let limit = rlimit::increase_nofile_limit(needed)?;
    // Without the room there are the pauses, and nothing else.
    let count = needed.min(limit).min(MOST);
    let _ = std::thread::Builder::new().spawn(move || make_room(count));
    Ok(limit)
}

fn make_room(count: u64) -> io::Result<()> {
    let last = i32::try_from(count.saturating_sub(1)).unwrap_or(i32::MAX);
    fcntl_dupfd_cloexec(File::open("/")?, last)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_ends_the_run_with_its_message() {
        let group = ThreadGroup::new(&Signal::for_thread());
        let sound = group.start("sound", None, || 1).unwrap();
        assert_eq!((sound.join(), group.panicked()), (Some(1), None));
        let fallen = group.start("fallen", None, || panic!("no {}", 1)).unwrap();
        assert_eq!(fallen.join(), None::<()>);
        assert!(group.signal().is_aborted());
        group.guard("later", || panic!("another"));
        let kept = group.panicked().unwrap();
        assert_eq!((&*kept.thread, &*kept.message), ("fallen", "no 1"));
    }

    #[test]
    fn stop_ends_the_wait() {
        let group = ThreadGroup::new(&Signal::for_thread());
        assert_eq!(group.until_stopped("quick", || 1).unwrap(), Some(1));
        let (hold, held) = crossbeam_channel::bounded::<()>(0);
        group.signal().stop();
        assert_eq!(group.until_stopped("slow", move || held.recv()).unwrap(), None);
        drop(hold);
        assert_eq!(group.until_stopped("fallen", || panic!("no")).unwrap(), None::<()>);
    }

    #[test]
    fn descriptor_table_grows_before_the_run() {
        let limit = allow(0).unwrap();
        make_room(limit.min(5_000)).unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        let size: u64 = size.unwrap().trim().parse().unwrap();
        assert!(size >= limit.min(5_000), "{size} of {limit}");
    }
}
