//! The memory of sessions under way: their unsent requests, and the answers in their histories. At
//! the bound no new session begins; its first request is then sent late, and its record says so.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use model::client::SessionMemory;
use model::units::Nanos;

#[derive(Debug)]
pub struct Memory {
    bound: u64,
    held: AtomicUsize,
    peak: AtomicUsize,
    /// Since when new sessions wait, in nanoseconds since the clock's origin, or [`NEVER`].
    since: AtomicU64,
    /// Time for which they have waited before that.
    waited: AtomicU64,
}

/// No session waits.
const NEVER: u64 = u64::MAX;

impl Memory {
    /// Nothing is held yet, of this many bytes.
    pub fn new(bound: u64) -> Self {
        Memory {
            bound,
            held: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            since: AtomicU64::new(NEVER),
            waited: AtomicU64::new(0),
        }
    }

    pub(super) fn hold(&self, bytes: usize) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(held, Ordering::Relaxed);
    }

    pub(super) fn free(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns true if another session may begin now. Only the pacer asks.
    pub fn has_room(&self, now: Nanos) -> bool {
        let has_room = (self.held.load(Ordering::Relaxed) as u64) < self.bound;
        let since = self.since.load(Ordering::Relaxed);
        if has_room && since != NEVER {
            self.waited.fetch_add(now.0.saturating_sub(since), Ordering::Relaxed);
            self.since.store(NEVER, Ordering::Relaxed);
        } else if !has_room && since == NEVER {
            self.since.store(now.0, Ordering::Relaxed);
        }
        has_room
    }

    /// The bytes that the sessions may take.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// The figures at the end of the load, if there were sessions.
    pub fn figures(&self, now: Nanos) -> Option<SessionMemory> {
        let peak = self.peak.load(Ordering::Relaxed) as u64;
        // Nothing remains of now if no session waits.
        let waiting = now.0.saturating_sub(self.since.load(Ordering::Relaxed));
        let waited = Nanos(self.waited.load(Ordering::Relaxed) + waiting);
        (peak > 0).then(|| SessionMemory {
            bound_bytes: self.bound,
            peak_bytes: peak,
            waited_s: (waited > Nanos::ZERO).then(|| waited.as_secs_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_wait_at_the_memory_bound() {
        let memory = Memory::new(100);
        assert_eq!(memory.figures(Nanos(0)), None);
        memory.hold(99);
        assert!(memory.has_room(Nanos(1)));
        memory.hold(20);
        assert!(!memory.has_room(Nanos(1_000_000_000)));
        assert!(!memory.has_room(Nanos(2_000_000_000)));
        memory.free(119);
        assert!(memory.has_room(Nanos(3_500_000_000)));
        let figures = SessionMemory { bound_bytes: 100, peak_bytes: 119, waited_s: Some(2.5) };
        assert_eq!(memory.figures(Nanos(9_000_000_000)), Some(figures));
    }
}
