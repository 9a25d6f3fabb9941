//! The feed between preparation and the pacer: requests that are ready, up to a limit, in order.
//! Preparation waits if there are enough of them, the pacer if there are none; neither waits for
//! the other once the run is stopped.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    pub(super) stock: Arc<Stock<T>>,
    pub(super) thread: Option<GroupThread<()>>,
    pub(super) signal: Signal,
}

/// The requests that lie ready, and their limit.
pub(super) struct Stock<T> {
    /// Most requests that may lie ready.
    most: usize,
    state: Mutex<StockState<T>>,
    changed: Condvar,
}

struct StockState<T> {
    bytes: usize,
    items: VecDeque<T>,
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
        let mut state = lock(&self.stock.state);
        loop {
            if let Some(item) = state.items.pop_front() {
                self.stock.took(&mut state, &item);
                return Next::Ready(item);
            }
            if state.complete || may_wait && self.signal.is_stopped() {
                return Next::None;
            }
            if !may_wait {
                return Next::Later;
            }
            state.wanted = Some(1);
            state = self.stock.wait(state, GLANCE);
        }
    }

    /// Waits until this many requests are ready, or as many as may be, or all there are.
    /// `each` is called now and then with the number that are ready.
    pub fn wait(&self, wanted: u64, mut each: impl FnMut(usize) -> bool) {
        let mut state = lock(&self.stock.state);
        while !state.complete
            && (state.items.len() as u64) < wanted
            && state.bytes < AHEAD_BYTES
            && each(state.items.len())
        {
            let next = state.items.len() + STEP;
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
pub(super) struct Completing<T>(pub(super) Arc<Stock<T>>);

impl<T> Drop for Completing<T> {
    fn drop(&mut self) {
        lock(&self.0.state).complete = true;
        self.0.changed.notify_all();
    }
}

impl<T> Stock<T> {
    pub(super) fn new(most: usize) -> Self {
        let state = StockState {
            bytes: 0,
            items: VecDeque::new(),
            complete: false,
            unwanted: false,
            wanted: None,
            waits_for_room: false,
        };
        Stock { most, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits for a change, at most this long.
    fn wait<'s>(
        &'s self,
        state: MutexGuard<'s, StockState<T>>,
        most: Duration,
    ) -> MutexGuard<'s, StockState<T>> {
        self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl<T: Stocked> Stock<T> {
    /// Waits for room, then adds an item. False if nothing needs it any more.
    pub(super) fn add(&self, item: T) -> bool {
        let mut state = lock(&self.state);
        while (state.bytes >= AHEAD_BYTES || state.items.len() >= self.most) && !state.unwanted {
            state.waits_for_room = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waits_for_room = false;
        state.bytes += item.bytes();
        state.items.push_back(item);
        let ready = state.items.len();
        if state.wanted.take_if(|wanted| ready >= *wanted).is_some() {
            self.changed.notify_all();
        }
        !state.unwanted
    }

    fn took(&self, state: &mut StockState<T>, item: &T) {
        state.bytes -= item.bytes();
        let (room, ready) = (STEP.min(self.most / 4), state.items.len());
        if state.waits_for_room && (ready + room <= self.most || ready == 0) {
            self.changed.notify_all();
        }
    }
}
