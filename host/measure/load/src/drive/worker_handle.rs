//! Handles of workers: how a worker gets its orders, which worker gets a request, and how it naps.
//!
//! A reader of a thousand streams would be woken for every event. If the kernel records when bytes
//! arrived, the reader loses nothing by looking only every half millisecond, when it reads
//! everything from all streams: the timestamps are the same, with fewer wake-ups. Orders end a nap
//! at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Job, Order};
use crate::pace::Signal;

/// Length of a nap. Two events of one stream that come within it are read together, and so have one
/// instant.
const NAP: Duration = Duration::from_micros(500);
/// The number of requests in flight at which naps start; with fewer there is little to save.
const BUSY: usize = 32;

/// The sender of a worker's orders.
pub struct WorkerHandle {
    orders: UnboundedSender<Order>,
    in_flight: Arc<AtomicUsize>,
    napper: Napper,
}

/// A request that a worker has, until this is dropped.
pub struct InFlight(Arc<AtomicUsize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The thread that naps between orders.
#[derive(Clone, Default)]
pub struct Napper(Arc<OnceLock<Thread>>);

impl WorkerHandle {
    /// A handle, and the other end for its worker.
    pub fn new() -> (Self, UnboundedReceiver<Order>) {
        let (orders, worker) = unbounded_channel();
        let handle = WorkerHandle {
            orders,
            in_flight: Arc::default(),
            napper: Napper::default(),
        };
        (handle, worker)
    }

    /// Has a request sent.
    pub fn send(&self, job: Box<Job>) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.put(Order::Send(job, InFlight(Arc::clone(&self.in_flight))));
    }

    /// The requests that it was given and that have not ended.
    fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Gives an order.
    pub fn put(&self, order: Order) {
        // A worker leaves only when the orders end.
        let _ = self.orders.send(order);
        if let Some(thread) = self.napper.0.get() {
            thread.unpark();
        }
    }

    /// For the worker's thread.
    pub fn napper(&self) -> Napper {
        self.napper.clone()
    }
}

/// The number of the worker with the fewest requests in flight; among equals they take turns, of
/// which this is one. A worker whose replies are long gets no more of them while others are free,
/// so that it does not read late what others would read in time.
pub fn idlest(workers: &[WorkerHandle], turn: u64) -> usize {
    let number = workers.len();
    let from = usize::try_from(turn % number.max(1) as u64).unwrap_or(0);
    (from..number)
        .chain(0..from)
        .min_by_key(|worker| workers[*worker].in_flight())
        .unwrap_or(0)
}

impl Napper {
    /// Makes the calling thread the one that naps; returns what it must call before it waits.
    pub fn settle(&self, signal: Signal) -> impl Fn() + Send + Sync + use<> {
        self.0.get_or_init(std::thread::current);
        move || {
            if signal.in_flight() >= BUSY {
                std::thread::park_timeout(NAP);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_with_the_fewest_requests_is_next() {
        let workers: Vec<WorkerHandle> = (0..3).map(|_| WorkerHandle::new().0).collect();
        assert_eq!(
            [0, 1, 2, 3].map(|turn| idlest(&workers, turn)),
            [0, 1, 2, 0]
        );
        let begin = |worker: usize| {
            let count = Arc::clone(&workers[worker].in_flight);
            count.fetch_add(1, Ordering::Relaxed);
            InFlight(count)
        };
        let first = [begin(0), begin(0), begin(1), begin(1), begin(2)];
        assert_eq!(
            [0, 1, 2, 3].map(|turn| idlest(&workers, turn)),
            [2, 2, 2, 2]
        );
        drop(first);
        let _later = begin(1);
        assert_eq!([0, 1, 2].map(|turn| idlest(&workers, turn)), [0, 2, 2]);
    }
}
