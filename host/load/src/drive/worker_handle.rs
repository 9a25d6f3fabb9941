//! How a worker gets its orders, and how it naps.
//!
//! A reader of a thousand streams would be woken for every event. If the kernel records when bytes arrived,
//! the reader loses nothing by looking only every half millisecond, when it reads everything from all streams: the
//! timestamps are the same, with fewer wake-ups. Orders end a nap at once.

use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Order;
use crate::pace::Signal;

/// How long a nap is. Two events of one stream that come within it are read together, and so have one instant.
const NAP: Duration = Duration::from_micros(500);
/// The number of requests in flight at which naps start; with fewer there is little to save.
const BUSY: usize = 32;

/// Where a worker's orders are put.
pub struct WorkerHandle {
    orders: UnboundedSender<Order>,
    napper: Napper,
}

/// The thread that naps between orders.
#[derive(Clone, Default)]
pub struct Napper(Arc<OnceLock<Thread>>);

impl WorkerHandle {
    /// A handle, and the other end for its worker.
    pub fn new() -> (Self, UnboundedReceiver<Order>) {
        let (orders, worker) = unbounded_channel();
        let napper = Napper::default();
        (WorkerHandle { orders, napper }, worker)
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
