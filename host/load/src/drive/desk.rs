//! How a worker is told what to do, and its naps.
//!
//! A reader of a thousand streams would be woken for every event. Where the kernel notes when bytes came,
//! nothing is lost if it looks only every half millisecond, and reads all that has come to any stream: the
//! instants are the same, with fewer wake-ups. Orders end a nap at once.

use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Order;
use crate::pace::Signal;

/// How long a nap is. Two events of one stream that come within it are read together, and so have one instant.
const NAP: Duration = Duration::from_micros(500);
/// Requests in flight from which on there are naps; with fewer there is little to save.
const BUSY: usize = 32;

/// Where a worker's orders are put.
pub struct Desk {
    orders: UnboundedSender<Order>,
    napper: Napper,
}

/// Who takes naps between orders.
#[derive(Clone, Default)]
pub struct Napper(Arc<OnceLock<Thread>>);

impl Desk {
    /// A desk, and the other end for its worker.
    pub fn new() -> (Self, UnboundedReceiver<Order>) {
        let (orders, worker) = unbounded_channel();
        let napper = Napper::default();
        (Desk { orders, napper }, worker)
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
    /// Makes the calling thread the one that naps; gives what it is to call before it waits.
    pub fn settle(&self, signal: Signal) -> impl Fn() + Send + Sync + use<> {
        self.0.get_or_init(std::thread::current);
        move || {
            if signal.in_flight() >= BUSY {
                std::thread::park_timeout(NAP);
            }
        }
    }
}
