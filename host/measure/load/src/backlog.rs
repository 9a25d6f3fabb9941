//! The bytes that this process holds between the socket and the disk, and their bound.
//!
//! All data of a reply counts here while it is in memory: pieces of frames, waiting frames,
//! unfinished answers, and exchanges before the recorder. At the bound readers stop reading
//! ([`Gate`]). The kernel receives and stamps until its own buffers are full; then the engine has
//! to wait, and the run says so.
//!
//! Two rules prevent deadlocks. If nothing is queued, only incomplete frames and answers fill the
//! bound. Then one stream at a time, or the streams of one connection, may read on until it brings
//! nothing more. And beyond a quarter of the bound, answers of a KiB and more go to unnamed files
//! in the run's folder. Timeouts between tokens do not run while a reply is not read.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

use model::client::{Backlog as Figures, HeldBack};
use model::clock::Clock;
use model::frame::Frames;
use model::units::Nanos;

/// The bound of a run: enough for bursts of a fast engine, little beside 10,000 connections.
pub const BOUND: usize = 32 << 20;
/// A stream that waited, and received this much in the meantime, may have made its engine wait: the
/// smallest receive buffer on Linux has twice as much.
const THROTTLED_BYTES: usize = 32 << 10;
/// The same of a reply that shares a connection: about its part of the connection's window.
const THROTTLED_SHARED_BYTES: usize = 10 << 10;
/// The wait from which bytes may be stamped late; after a shorter one their stamps are good enough.
const LATE: Nanos = Nanos(10_000_000);
/// The most periods of waiting that are kept one by one.
const PERIODS: usize = 64;

/// Periods of waiting that are closer together than this count as one.
const TOGETHER: Nanos = Nanos(100_000_000);

/// The bytes that a run holds.
pub struct Backlog {
    clock: Clock,
    bound: usize,
    all: AtomicUsize,
    /// Of these, the bytes that are released without anything more being read.
    queued: AtomicUsize,
    /// The most that was held since the restart.
    peak: AtomicUsize,
    /// The stream that may read although the bound is reached, as its number plus one; else 0.
    exempt: AtomicU64,
    waiting: Mutex<Waiters>,
    /// Changes when readers are woken.
    round: AtomicU64,
    /// Emptied frames on their way back from the decode threads to the readers.
    pub spares: Spares,
}

/// The streams that wait for room, and the facts gathered about waits.
#[derive(Default)]
struct Waiters {
    wakers: Vec<Waker>,
    /// The instant since which at least one stream has waited.
    since: Option<Nanos>,
    seen: Waits,
}

/// Facts about the backlog since its figures were last taken.
#[derive(Clone, Debug, Default)]
struct Waits {
    periods: Vec<(Nanos, Nanos)>,
    more_periods: u64,
    waited: Nanos,
    throttled_from: Option<Nanos>,
    /// The longest wait during which something came.
    late: Nanos,
}

/// Bytes that are counted in a [`Backlog`] until this is dropped.
pub struct BacklogBytes {
    backlog: Arc<Backlog>,
    bytes: usize,
    is_queued: bool,
}

impl Backlog {
    /// Of a run with this clock, with this bound in bytes.
    pub fn new(clock: Clock, bound: usize) -> Arc<Self> {
        Arc::new(Backlog {
            clock,
            bound,
            all: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            exempt: AtomicU64::new(0),
            waiting: Mutex::default(),
            round: AtomicU64::new(0),
            spares: Spares::default(),
        })
    }

    /// The most bytes that are held before readers wait.
    pub fn bound(&self) -> usize {
        self.bound
    }

    pub fn bytes(&self) -> usize {
        self.all.load(Ordering::Relaxed)
    }

    /// True if half of the bound are pieces that wait for more bytes: streams should hold little.
    pub fn is_tight(&self) -> bool {
        let queued = self.queued.load(Ordering::Relaxed);
        self.bytes().saturating_sub(queued) >= self.bound / 2
    }

    /// Counts bytes that stay until more is read: a piece of a frame, or of an answer.
    pub fn hold(self: &Arc<Self>) -> BacklogBytes {
        BacklogBytes { backlog: Arc::clone(self), bytes: 0, is_queued: false }
    }

    /// Counts bytes that wait to be worked on.
    pub fn queue(self: &Arc<Self>, bytes: usize) -> BacklogBytes {
        let mut held = BacklogBytes { backlog: Arc::clone(self), bytes: 0, is_queued: true };
        held.set(bytes);
        held
    }

    fn add(&self, bytes: usize, is_queued: bool) {
        if is_queued {
            self.queued.fetch_add(bytes, Ordering::SeqCst);
        }
        let all = self.all.fetch_add(bytes, Ordering::SeqCst) + bytes;
        // Threads share the place, and seldom have anything new to put there.
        if all > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(all, Ordering::Relaxed);
        }
    }

    fn release(&self, bytes: usize, is_queued: bool) {
        let before = self.all.fetch_sub(bytes, Ordering::SeqCst);
        let left = before - bytes;
        let resume = self.bound - self.bound / 4;
        let mut wake = before >= resume && left < resume;
        if is_queued {
            let queued = self.queued.fetch_sub(bytes, Ordering::SeqCst) - bytes;
            // Nothing more is released unless somebody reads on. Others may have read in between,
            // so both are checked again, in the same order as by a stream that comes to wait.
            wake |= queued == 0 && self.all.load(Ordering::SeqCst) >= resume;
        }
        if wake {
            self.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let mut waiting = self.lock();
        self.round.fetch_add(1, Ordering::AcqRel);
        let wakers = std::mem::take(&mut waiting.wakers);
        if !wakers.is_empty()
            && let Some(since) = waiting.since.take()
        {
            waiting.seen.end_of_period(since, self.clock.now());
        }
        drop(waiting);
        for waker in wakers {
            waker.wake();
        }
    }

    fn admits(&self, stream: u64) -> bool {
        if self.all.load(Ordering::SeqCst) < self.bound || self.is_exempt(stream) {
            return true;
        }
        // Incomplete pieces, which more bytes must complete: one stream at a time continues.
        let own = stream.wrapping_add(1);
        self.queued.load(Ordering::SeqCst) == 0
            && (self.exempt).compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn is_exempt(&self, stream: u64) -> bool {
        self.exempt.load(Ordering::Acquire) == stream.wrapping_add(1)
    }

    /// The stream needs no exemption any more.
    fn end_exemption(&self, stream: u64) {
        let own = stream.wrapping_add(1);
        let had = self.exempt.compare_exchange(own, 0, Ordering::AcqRel, Ordering::Acquire);
        if had.is_ok() {
            self.wake();
        }
    }

    /// Forgets all counts so far: the measurement begins.
    pub fn restart(&self) {
        let mut waiting = self.lock();
        waiting.seen = Waits::default();
        if let Some(since) = &mut waiting.since {
            *since = self.clock.now();
        }
        drop(waiting);
        self.peak.store(self.bytes(), Ordering::Relaxed);
    }

    /// Returns the figures since the restart; times count from `origin`.
    pub fn figures(&self, origin: Nanos) -> Figures {
        let waiting = self.lock();
        let mut seen = waiting.seen.clone();
        if let Some(since) = waiting.since {
            seen.end_of_period(since, self.clock.now());
        }
        let seconds = |at: Nanos| at.since(origin).as_secs_f64();
        Figures {
            bound_bytes: self.bound as u64,
            peak_bytes: self.peak.load(Ordering::Relaxed) as u64,
            held_back: (!seen.periods.is_empty()).then(|| HeldBack {
                periods: seen.periods.len() as u64 + seen.more_periods,
                seconds: seen.waited.as_secs_f64(),
                from_to_s: (seen.periods.iter())
                    .map(|(from, to)| (seconds(*from), seconds(*to)))
                    .collect(),
                throttled_from_s: seen.throttled_from.map(seconds),
                late_s: (seen.late > Nanos::ZERO).then(|| seen.late.as_secs_f64()),
            }),
        }
    }
}

impl Waits {
    fn end_of_period(&mut self, from: Nanos, to: Nanos) {
        self.waited = self.waited + to.since(from);
        // A reader that comes to wait again at once never stopped waiting.
        if let Some((_, end)) = self.periods.last_mut()
            && from.since(*end) < TOGETHER
        {
            *end = to;
        } else if self.periods.len() < PERIODS {
            self.periods.push((from, to));
        } else {
            self.more_periods += 1;
        }
    }
}

impl BacklogBytes {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts this many bytes from now on.
    pub fn set(&mut self, bytes: usize) {
        match bytes.checked_sub(self.bytes) {
            Some(0) => {}
            Some(more) => self.backlog.add(more, self.is_queued),
            None => self.backlog.release(self.bytes - bytes, self.is_queued),
        }
        self.bytes = bytes;
    }

    /// Takes over the count of another one of the same sort.
    pub fn absorb(&mut self, mut other: BacklogBytes) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for BacklogBytes {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// The place where one stream waits while the backlog is full.
pub struct Gate {
    backlog: Arc<Backlog>,
    stream: u64,
    /// True if other streams have the same number, because they share a connection.
    is_shared: bool,
    /// True if bytes were read since [`Gate::has_read`] was last called.
    has_read: bool,
    /// The round in which it last left its waker.
    waker_round: Option<u64>,
    since: Option<Nanos>,
    /// The last wait, from and to, and the bytes that came right after it.
    after: Option<(Nanos, Nanos, usize)>,
}

impl Gate {
    pub fn new(backlog: &Arc<Backlog>, stream: u64) -> Self {
        Gate {
            backlog: Arc::clone(backlog),
            stream,
            is_shared: false,
            has_read: false,
            waker_round: None,
            since: None,
            after: None,
        }
    }

    /// The stream shares a connection of this number and its window, so all its streams continue
    /// together: unread bytes of one keep the others from reading.
    pub fn share(&mut self, connection: u64) {
        self.stream = connection;
        self.is_shared = true;
    }

    /// True if the stream reads although the bound is reached.
    pub fn is_exempt(&self) -> bool {
        self.backlog.is_exempt(self.stream)
    }

    /// True if bytes were read since the last call.
    pub fn has_read(&mut self) -> bool {
        std::mem::take(&mut self.has_read)
    }

    pub fn is_closed(&self) -> bool {
        self.since.is_some()
    }

    /// Ready when the stream may read.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.settle();
        if self.backlog.admits(self.stream) {
            self.open();
            return Poll::Ready(());
        }
        let mut waiting = self.backlog.lock();
        let round = self.backlog.round.load(Ordering::Acquire);
        if self.waker_round != Some(round) {
            self.waker_round = Some(round);
            waiting.wakers.push(cx.waker().clone());
        }
        let now = self.backlog.clock.now();
        waiting.since.get_or_insert(now);
        self.since.get_or_insert(now);
        drop(waiting);
        // Room may have come between the look and the waker.
        if self.backlog.admits(self.stream) {
            self.open();
            self.backlog.wake();
            return Poll::Ready(());
        }
        Poll::Pending
    }

    fn open(&mut self) {
        if let Some(since) = self.since.take() {
            self.after = Some((since, self.backlog.clock.now(), 0));
        }
    }

    pub fn read(&mut self, bytes: usize) {
        self.has_read = true;
        if let Some((.., waited)) = &mut self.after {
            *waited += bytes;
        }
    }

    /// Decides, by the bytes right after a wait, if the engine waited, and how late stamps are.
    fn settle(&mut self) {
        let Some((since, until, bytes)) = self.after.take() else { return };
        let throttled = if self.is_shared { THROTTLED_SHARED_BYTES } else { THROTTLED_BYTES };
        let late = until.since(since);
        let is_late = bytes > 0 && late >= LATE;
        if !is_late && bytes < throttled {
            return;
        }
        let mut waiting = self.backlog.lock();
        let seen = &mut waiting.seen;
        if is_late {
            seen.late = seen.late.max(late);
        }
        if bytes >= throttled {
            let from = &mut seen.throttled_from;
            *from = Some(from.map_or(since, |from| from.min(since)));
        }
    }

    /// Lets another stream read at the bound: a frame was passed on, or the stream has ended.
    pub fn end_exemption(&self) {
        self.backlog.end_exemption(self.stream);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.settle();
        self.backlog.end_exemption(self.stream);
    }
}

// Frames that were decoded, emptied, for readers to fill again. Taking memory on one thread and
// freeing it on another costs more than cutting frames.

/// The most that are kept, each with room for about a batch.
const KEPT: usize = 1024;

/// Emptied frames. The last to come is the first to go: it may still be in the processor's cache.
#[derive(Default)]
pub struct Spares(Mutex<Vec<Frames>>);

impl Spares {
    /// Frames without content and with room, if some are kept.
    pub fn take(&self) -> Option<Frames> {
        self.with(Vec::pop).flatten()
    }

    /// Keeps frames to be filled again, if they take no more memory than this.
    pub fn put_back(&self, mut frames: Frames, most: usize) {
        if frames.is_empty() || frames.memory() > most {
            return;
        }
        frames.clear();
        self.with(|kept| {
            if kept.len() < KEPT {
                kept.push(frames);
            }
        });
    }

    /// A reader waits for nobody: a decode thread that holds the lock may not be running.
    fn with<T>(&self, make: impl FnOnce(&mut Vec<Frames>) -> T) -> Option<T> {
        match self.0.try_lock() {
            Ok(mut kept) => Some(make(&mut kept)),
            Err(TryLockError::Poisoned(poisoned)) => Some(make(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests;
