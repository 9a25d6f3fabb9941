//! The threads behind the workers: the decode threads and the recorder, from the first report to the last record.

use std::path::Path;
use std::sync::Arc;

use super::{Control, Parts, RunError};
use crate::decode::crew::crew;
use crate::decode::inbox::Inboxes;
use crate::decode::{FailureLimit, Shared};
use crate::finished::Finished;
use load::backlog::{BOUND, Backlog};
use load::pace::Signal;
use load::vitals::{Vitals, yield_to_others};
use model::clock::Clock;
use model::exchange::Exchange;
use report::record::{RecordError, Recorder};

/// The threads behind the workers.
pub(super) struct Backstage {
    /// Where replies go.
    pub(super) replies: Arc<Inboxes>,
    /// Where finished exchanges go.
    pub(super) finished: Finished,
    /// Bounds what is in memory between the readers and the recorder.
    pub(super) backlog: Arc<Backlog>,
    decoders: Vec<std::thread::JoinHandle<()>>,
    recorder: std::thread::JoinHandle<Result<(), RecordError>>,
    failures: FailureLimit,
}

impl Backstage {
    /// Starts this many decode threads, and the recorder. They let the readers go first: their work
    /// can wait, but bytes that are read late would count as the server's latency.
    pub(super) fn start(
        parts: &Parts,
        folder: &Path,
        threads: usize,
        clock: Clock,
        control: &Control,
        failures: FailureLimit,
        vitals: Option<&Arc<Vitals>>,
    ) -> Result<Self, RunError> {
        let recorder = Recorder::create(folder)?;
        let backlog = Backlog::new(clock, BOUND);
        let (finished, waiting) = Finished::new(&backlog);
        let seen = {
            let live = Arc::clone(&control.live);
            move |exchange: &Exchange| live.count(exchange)
        };
        let signal = control.signal.clone();
        let recorder = thread("record", vitals, move || {
            yield_to_others();
            let recorded = recorder.run(&waiting, seen);
            if recorded.is_err() {
                signal.stop();
            }
            recorded
        })?;
        let (replies, queue) = Inboxes::new(&backlog);
        if let Some(vitals) = vitals {
            let queue = queue.clone();
            vitals.enlist_queue(move || queue.len());
            vitals.enlist_backlog(&backlog);
        }
        let shared = Shared::new(
            failures.clone(),
            parts.secrets.clone(),
            Arc::clone(&control.live.output_tokens),
            vitals.cloned(),
            &backlog,
            folder,
        );
        let crew = crew(threads, &parts.backend, &shared, clock, &queue, &finished)?;
        let mut decoders = Vec::new();
        for (number, member) in crew.into_iter().enumerate() {
            decoders.push(thread(&format!("decode-{number}"), vitals, move || {
                yield_to_others();
                member.run();
            })?);
        }
        Ok(Backstage {
            replies: Arc::new(replies),
            finished,
            backlog,
            decoders,
            recorder,
            failures,
        })
    }

    /// Waits until everything reported is on disk.
    pub(super) fn finish(self) -> Result<(), RunError> {
        drop(self.replies);
        for decoder in self.decoders {
            propagate(decoder.join());
        }
        drop(self.finished);
        propagate(self.recorder.join())?;
        match self.failures.abort_reason() {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }
}

/// Starts a named thread, and has it watched.
pub(super) fn thread<T: Send + 'static>(
    name: &str,
    vitals: Option<&Arc<Vitals>>,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>, RunError> {
    let (own_name, vitals) = (name.to_owned(), vitals.cloned());
    let watched = move || {
        if let Some(vitals) = vitals {
            vitals.enlist_this(&own_name);
        }
        body()
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(watched)
        .map_err(RunError::Thread)
}

/// A panic of a thread is a bug, and is passed on.
pub(super) fn propagate<T>(joined: std::thread::Result<T>) -> T {
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Ends the waiting for a thread that panics.
pub(super) struct Alarm(pub(super) Signal);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_down();
        }
    }
}
