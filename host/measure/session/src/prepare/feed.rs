//! The feed between preparation and the pacer: requests that are ready, up to a limit, in order.
//! Preparation waits if there are enough of them, the pacer if there are none; neither waits for
//! the other once the run is stopped.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::item::{Item, Stocked};
use crate::lock;
use load::pace::{Next, Signal};
use load::thread_group::GroupThread;

/// The most bytes of requests held ready.
const AHEAD_BYTES: usize = 1 << 30;
/// A waiting side is woken for this many requests at once: a wake-up takes about as long as writing
/// one.
const STEP: usize = 64;
/// The interval at which a waiting pacer checks for a stop of the run.
const GLANCE: Duration = Duration::from_millis(20);
/// Time for which a plugin's call under way is waited for after the run was stopped; then it is
/// left to itself.
const GRACE: Duration = Duration::from_secs(1);

/// Requests in waiting, or whole sessions, in order.
pub struct Feed<T = Item> {
    pub(super) items: Receiver<T>,
    pub(super) stock: Arc<Stock>,
    pub(super) thread: Option<GroupThread<()>>,
    pub(super) signal: Signal,
}

/// The amount that lies ready, and its limit.
#[derive(Default)]
pub(super) struct Stock {
    /// Most requests that may lie ready.
    most: usize,
    state: Mutex<StockState>,
    changed: Condvar,
}

#[derive(Default)]
struct StockState {
    bytes: usize,
    items: usize,
    complete: bool,
    unwanted: bool,
    /// The requests that must be ready before somebody who waits for them is woken.
    wanted: Option<usize>,
    waits_for_room: bool,
}

impl<T: Stocked> Feed<T> {
    /// The next request. If preparation is behind and this may wait, waits until the run is
    /// stopped.
    pub fn next(&self, may_wait: bool) -> Next<T> {
        loop {
            let longest = if may_wait { GLANCE } else { Duration::ZERO };
            match self.items.recv_timeout(longest) {
                Ok(item) => {
                    self.stock.take(item.bytes());
                    return Next::Ready(item);
                }
                Err(RecvTimeoutError::Timeout) if !may_wait => return Next::Later,
                Err(RecvTimeoutError::Timeout) if !self.signal.is_stopped() => {}
                Err(_) => return Next::None,
            }
        }
    }

    /// Waits until this many requests are ready, or as many as may be, or all there are.
    /// `each` is called now and then with the number that are ready.
    pub fn wait(&self, wanted: u64, mut each: impl FnMut(usize) -> bool) {
        let mut state = lock(&self.stock.state);
        while !state.complete
            && (state.items as u64) < wanted
            && state.bytes < AHEAD_BYTES
            && each(state.items)
        {
            let next = state.items + STEP;
            state.wanted = Some(usize::try_from(wanted).map_or(next, |wanted| wanted.min(next)));
            state = self.stock.wait(state, GLANCE);
        }
        state.wanted = None;
    }
}

impl<T> Drop for Feed<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.stock.state);
        state.unwanted = true;
        self.stock.changed.notify_all();
        let mut waited = Duration::ZERO;
        while !state.complete && waited < GRACE {
            state = self.stock.wait(state, GLANCE);
            waited += if self.signal.is_stopped() { GLANCE } else { Duration::ZERO };
        }
        let complete = state.complete;
        drop(state);
        if let Some(thread) = self.thread.take().filter(|_| complete) {
            thread.join();
        }
    }
}

/// Marks the stock as complete, whatever ends the preparation.
pub(super) struct Completing(pub(super) Arc<Stock>);

impl Drop for Completing {
    fn drop(&mut self) {
        self.0.complete();
    }
}

impl Stock {
    pub(super) fn new(most: usize) -> Self {
        Stock { most, ..Stock::default() }
    }

    /// Waits for a change, at most this long.
    fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, StockState>,
        most: Duration,
    ) -> MutexGuard<'s, StockState> {
        self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits for room, then adds an item. False if nothing needs it any more.
    pub(super) fn add(&self, bytes: usize) -> bool {
        let mut state = lock(&self.state);
        while (state.bytes >= AHEAD_BYTES || state.items >= self.most) && !state.unwanted {
            state.waits_for_room = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits_for_room = false;
        state.bytes += bytes;
        state.items += 1;
        if state.wanted.is_some_and(|wanted| state.items >= wanted) {
            self.changed.notify_all();
        }
        !state.unwanted
    }

    fn take(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.bytes -= bytes;
        state.items -= 1;
        let room = STEP.min(self.most / 4);
        if state.waits_for_room && (state.items + room <= self.most || state.items == 0) {
            self.changed.notify_all();
        }
    }

    fn complete(&self) {
        lock(&self.state).complete = true;
        self.changed.notify_all();
    }
}
