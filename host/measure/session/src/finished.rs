//! Exchanges on their way to the recorder, counted while they wait.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use load::backlog::{Backlog, Held};
use model::exchange::Exchange;

/// The receiver of finished exchanges.
#[derive(Clone)]
pub struct Finished {
    recorder: Sender<Waiting>,
    backlog: Arc<Backlog>,
}

/// An exchange that waits to be recorded.
pub struct Waiting {
    exchange: Box<Exchange>,
    _held: Held,
}

impl Finished {
    /// For one run, and the recorder's end.
    pub fn new(backlog: &Arc<Backlog>) -> (Self, Receiver<Waiting>) {
        let (recorder, waiting) = crossbeam_channel::unbounded();
        let backlog = Arc::clone(backlog);
        (Finished { recorder, backlog }, waiting)
    }

    /// Has an exchange recorded.
    pub fn send(&self, exchange: Box<Exchange>) {
        let waiting = Waiting { _held: self.backlog.queue(exchange.memory()), exchange };
        // The recorder outlives everyone who sends, unless it failed; then the run ends for that
        // reason.
        let _ = self.recorder.send(waiting);
    }
}

impl AsRef<Exchange> for Waiting {
    fn as_ref(&self) -> &Exchange {
        &self.exchange
    }
}
