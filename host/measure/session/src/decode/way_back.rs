//! The way back from decoding to the reader of one exchange, if its reply decides what to send
//! next. Other exchanges have none.

use std::sync::OnceLock;
use std::thread::Thread;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use load::drive::demand::{Demand, Kind, Outgoing};
use load::transport::websocket::Message;
use model::units::Nanos;
use plugins::backend::{self, SocketMessage};

#[derive(Default)]
pub(super) struct WayBack(OnceLock<Open>);

pub(super) struct Open {
    pub(super) target: u32,
    pub(super) kind: Kind,
    reader: UnboundedSender<Demand>,
    /// The reader's thread, which may be napping.
    thread: Thread,
}

impl WayBack {
    /// Opens it to the reader that runs on the calling thread.
    pub(super) fn open(&self, target: u32, kind: Kind) -> UnboundedReceiver<Demand> {
        let (reader, demands) = unbounded_channel();
        let thread = std::thread::current();
        let _ = self.0.set(Open { target, kind, reader, thread });
        demands
    }

    /// Returns it, if the exchange has one.
    pub(super) fn get(&self) -> Option<&Open> {
        self.0.get()
    }

    pub(super) fn send(&self, demand: Demand) {
        if let Some(Open { reader, thread, .. }) = self.0.get() {
            // A reader that is gone has given the exchange up.
            let _ = reader.send(demand);
            thread.unpark();
        }
    }
}

/// A message of a backend, to be sent.
pub(crate) fn outgoing(outgoing: backend::Outgoing) -> Outgoing {
    Outgoing {
        message: match outgoing.message {
            SocketMessage::Text(text) => Message::Text(text),
            SocketMessage::Binary(bytes) => Message::Binary(bytes),
        },
        delay: Nanos(outgoing.delay),
        hold: outgoing.hold,
    }
}
