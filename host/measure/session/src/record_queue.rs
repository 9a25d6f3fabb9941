//! Exchanges on their way to the recorder, counted while they wait.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use load::backlog::{Backlog, BacklogBytes};
use model::exchange::Exchange;

#[derive(Clone)]
pub struct RecordQueue {
    recorder: Sender<QueuedExchange>,
    backlog: Arc<Backlog>,
}

pub struct QueuedExchange {
    exchange: Box<Exchange>,
    _held: BacklogBytes,
}

impl RecordQueue {
    /// For one run, and the recorder's end.
    pub fn new(backlog: &Arc<Backlog>) -> (Self, Receiver<QueuedExchange>) {
        let (recorder, waiting) = crossbeam_channel::unbounded();
        let backlog = Arc::clone(backlog);
        (RecordQueue { recorder, backlog }, waiting)
    }

    pub fn send(&self, exchange: Box<Exchange>) {
        let waiting = QueuedExchange { _held: self.backlog.queue(exchange.memory()), exchange };
        // The recorder outlives everyone who sends, unless it failed; then the run ends for that
        // reason.
        let _ = self.recorder.send(waiting);
    }
}

impl AsRef<Exchange> for QueuedExchange {
    fn as_ref(&self) -> &Exchange {
        &self.exchange
    }
}
