//! Handles of workers: orders to a worker, the choice of a worker for a request, and naps. With the
//! kernel's timestamps a reader can read all streams every half millisecond, with fewer wake-ups.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Job, Order};
use crate::pace::Signal;
use model::clock::since_process_began;
use model::units::Nanos;

/// Length of a nap. Events of one stream within it are read together, and have one instant.
const NAP: Duration = Duration::from_micros(500);
/// The number of requests in flight at which naps start; with fewer there is little to save.
const BUSY: usize = 32;
/// The share of replies' time that a nap takes if requests wait for replies: one part in this many.
const SHARE: u64 = 1_000;
/// A shorter nap saves nothing.
const SHORTEST: Duration = Duration::from_micros(100);
/// The weight of the mean time of replies: each ended reply moves it by one part in this number.
const INERTIA: u64 = 16;

pub struct WorkerHandle {
    orders: UnboundedSender<Order>,
    napper: Napper,
}

#[derive(Default)]
struct Requests {
    in_flight: AtomicUsize,
    /// The time that replies take of late, in nanoseconds; 0 before the first has ended.
    lasted: AtomicU64,
    /// The instant at which there were first many of them, since the process began.
    busy_since: OnceLock<Nanos>,
}

/// A request that a worker has, until this is dropped.
pub struct InFlight(Arc<Requests>);

impl InFlight {
    /// Adds the time from the sending of a request to the end of its reply to the mean.
    pub fn lasted(&self, span: Nanos) {
        let mean = self.0.lasted.load(Ordering::Relaxed);
        let mean = match mean {
            0 => span.0,
            mean => mean - mean / INERTIA + span.0 / INERTIA,
        };
        self.0.lasted.store(mean, Ordering::Relaxed);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The thread that naps between orders.
#[derive(Clone, Default)]
pub struct Napper {
    thread: Arc<OnceLock<Thread>>,
    requests: Arc<Requests>,
}

impl WorkerHandle {
    /// A handle, and the other end for its worker.
    pub fn new() -> (Self, UnboundedReceiver<Order>) {
        // Without a bound: the pacer waits for no reader. The reader takes all orders before each
        // reply. So the queue holds the requests of one turn.
        let (orders, worker) = unbounded_channel();
        (WorkerHandle { orders, napper: Napper::default() }, worker)
    }

    pub fn send(&self, job: Box<Job>) {
        let requests = Arc::clone(&self.napper.requests);
        requests.in_flight.fetch_add(1, Ordering::Relaxed);
        self.put(Order::Send(job, InFlight(requests)));
    }

    /// The requests that it was given and that have not ended.
    fn in_flight(&self) -> usize {
        self.napper.requests.in_flight.load(Ordering::Relaxed)
    }

    pub fn put(&self, order: Order) {
        // A worker leaves only when the orders end.
        let _ = self.orders.send(order);
        if let Some(thread) = self.napper.thread.get() {
            thread.unpark();
        }
    }

    /// For the worker's thread.
    pub fn napper(&self) -> Napper {
        self.napper.clone()
    }
}

impl Requests {
    /// Returns the longest nap if the next request waits for a reply. Before the first has ended,
    /// all take at least as long as they have been under way.
    fn nap(&self, now: Nanos) -> Duration {
        let lasted = match self.lasted.load(Ordering::Relaxed) {
            0 => now.since(*self.busy_since.get_or_init(|| now)).0,
            lasted => lasted,
        };
        Duration::from_nanos(lasted / SHARE).min(NAP)
    }
}

/// The number of the worker with the fewest requests in flight; equals take turns, by `turn`.
pub fn idlest(workers: &[WorkerHandle], turn: u64) -> usize {
    let number = workers.len();
    let from = usize::try_from(turn % number.max(1) as u64).unwrap_or(0);
    (from..number).chain(0..from).min_by_key(|worker| workers[*worker].in_flight()).unwrap_or(0)
}

impl Napper {
    /// Registers the calling thread; returns the function that it calls before it waits. `is_open`
    /// if no request waits for the end of a reply.
    pub fn settle(&self, signal: Signal, is_open: bool) -> impl Fn() + Send + Sync + use<> {
        self.thread.get_or_init(std::thread::current);
        let requests = Arc::clone(&self.requests);
        move || {
            if signal.in_flight() < BUSY {
                return;
            }
            let nap = if is_open { NAP } else { requests.nap(since_process_began()) };
            if nap >= SHORTEST {
                std::thread::park_timeout(nap);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_busy_worker_is_next() {
        let workers: Vec<WorkerHandle> = (0..3).map(|_| WorkerHandle::new().0).collect();
        assert_eq!([0, 1, 2, 3].map(|turn| idlest(&workers, turn)), [0, 1, 2, 0]);
        let begin = |worker: usize| {
            let requests = Arc::clone(&workers[worker].napper.requests);
            requests.in_flight.fetch_add(1, Ordering::Relaxed);
            InFlight(requests)
        };
        let first = [begin(0), begin(0), begin(1), begin(1), begin(2)];
        assert_eq!([0, 1, 2, 3].map(|turn| idlest(&workers, turn)), [2, 2, 2, 2]);
        drop(first);
        let _later = begin(1);
        assert_eq!([0, 1, 2].map(|turn| idlest(&workers, turn)), [0, 2, 2]);
    }

    #[test]
    fn naps_are_short_compared_with_replies() {
        let (worker, _orders) = WorkerHandle::new();
        let request = InFlight(Arc::clone(&worker.napper.requests));
        let nap = |at| worker.napper.requests.nap(Nanos(at));
        assert_eq!(nap(7_000_000_000), Duration::ZERO, "they have just begun");
        assert_eq!(nap(7_200_000_000), Duration::from_micros(200));
        request.lasted(Nanos(50_000_000));
        assert!(nap(9_000_000_000) < SHORTEST);
        for _ in 0..200 {
            request.lasted(Nanos(200_000_000));
        }
        assert!(nap(0) > SHORTEST && nap(0) <= Duration::from_micros(200));
        for _ in 0..200 {
            request.lasted(Nanos(10_000_000_000));
        }
        assert_eq!(nap(0), NAP);
    }
}
