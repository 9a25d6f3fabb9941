//! The decode threads. One always works; another helps when replies have waited too long, and rests
//! when nothing is left. So a light load is decoded on one core, a heavy one on all.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::inbox::Inbox;
use super::{DecodeState, Decoder};
use crate::pending::RecordQueue;
use model::clock::Clock;
use model::frame::Frames;
use model::units::Nanos;
use plugins::PluginError;
use plugins::backend::Backend;

const MOST: usize = 16;
/// The sleep of an idle decode thread: waking up costs more than decoding.
const REST: Duration = Duration::from_millis(1);
/// Time for which a reply may wait before the next thread is called.
const LATE: Nanos = Nanos(20_000_000);
/// Time for which a thread that was called stays without work.
const IDLE: Duration = Duration::from_secs(1);

pub struct DecodeThread {
    shared: Arc<DecodeState>,
    backend: Backend,
    decoder: Option<Decoder>,
    clock: Clock,
    queue: Receiver<Arc<Inbox>>,
    finished: RecordQueue,
    /// Calls it; absent for the first, which always works.
    called: Option<Receiver<()>>,
    next: Option<Sender<()>>,
}

/// The number of decode threads on a machine with this many cores.
pub fn most(cores: usize) -> usize {
    cores.clamp(1, MOST)
}

/// The decode threads of a run, this many, which take from this queue. None of them runs yet.
pub fn threads(
    number: usize,
    backend: &Backend,
    shared: &Arc<DecodeState>,
    clock: Clock,
    queue: &Receiver<Arc<Inbox>>,
    finished: &RecordQueue,
) -> Result<Vec<DecodeThread>, PluginError> {
    let mut threads: Vec<DecodeThread> = Vec::new();
    for _ in 0..number {
        let mut called = None;
        if let Some(last) = threads.last_mut() {
            // A thread holds no more than the call of the next one: when the first ends, so do all,
            // in turn.
            let (call, calls) = bounded(1);
            last.next = Some(call);
            called = Some(calls);
        }
        threads.push(DecodeThread {
            shared: Arc::clone(shared),
            backend: backend.clone(),
            decoder: None,
            clock,
            queue: queue.clone(),
            finished: finished.clone(),
            called,
            next: None,
        });
    }
    if let Some(first) = threads.first_mut() {
        first.decoder()?;
    }
    Ok(threads)
}

impl DecodeThread {
    /// Its decoder. An instance takes memory, so there is none before it is needed.
    fn decoder(&mut self) -> Result<&mut Decoder, PluginError> {
        let decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => Decoder {
                dialect: self.backend.open()?,
                shared: Arc::clone(&self.shared),
                spare: Frames::default(),
            },
        };
        Ok(self.decoder.insert(decoder))
    }

    /// Works until the readers and their replies are gone.
    pub fn run(mut self) {
        loop {
            if let Some(called) = &self.called
                && called.recv().is_err()
            {
                return;
            }
            while let Ok(inbox) = self.wait() {
                let Some(inbox) = inbox else { return };
                self.work(&inbox);
                let is_awaited = inbox.way_back.get().is_some();
                drop(inbox);
                // A reader that waits for an instruction gets it at once.
                if self.queue.is_empty() && !is_awaited {
                    std::thread::sleep(REST);
                }
            }
        }
    }

    /// The next reply, if there are more; an error if there has been nothing to do for long.
    fn wait(&self) -> Result<Option<Arc<Inbox>>, RecvTimeoutError> {
        if self.called.is_none() {
            return Ok(self.queue.recv().ok());
        }
        match self.queue.recv_timeout(IDLE) {
            Ok(inbox) => Ok(Some(inbox)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(RecvTimeoutError::Timeout),
        }
    }

    fn work(&mut self, inbox: &Arc<Inbox>) {
        if let Some(next) = &self.next
            && let Some(since) = inbox.waits_since()
            && self.clock.now().since(since) > LATE
            && !self.queue.is_empty()
        {
            // If it was called already, that will do.
            let _ = next.try_send(());
        }
        match self.decoder() {
            Ok(decoder) => {
                if let Some(exchange) = decoder.work(inbox) {
                    self.finished.send(exchange);
                }
            }
            Err(error) => {
                // The first thread has an instance, and takes the reply.
                inbox.put_back();
                self.shared.failures.abort(error.into());
                std::thread::sleep(REST);
            }
        }
    }
}
