//! The threads behind the workers: the decode threads and the recorder, from the first report to
//! the last record.

use std::sync::Arc;

use super::Setup;
use crate::clean_up::{self, Cleaner, LateThread};
use crate::decode::DecodeState;
use crate::decode::failures::FailureLimit;
use crate::decode::inbox::Inboxes;
use crate::decode::steps::Routes;
use crate::decode::threads::threads as decode_threads;
use crate::lease::Refusals;
use crate::live::Live;
use crate::parts::RunError;
use crate::prepare::{Item, Writer};
use crate::record_queue::RecordQueue;
use crate::sessions::memory::Memory;
use crate::sessions::{Continuer, Sessions};
use load::backlog::{BOUND, Backlog};
use load::drive::jars::Jars;
use load::pace::Announcer;
use load::thread_group::{GroupThread, trip};
use load::vitals::{Vitals, yield_to_others};
use model::client::Errands;
use model::clock::Clock;
use model::exchange::Exchange;
use runs::record::{RecordError, Recorder};

/// Returns the number of threads that write follow-up requests, if this many decode replies.
fn continuers_for(decoders: usize) -> usize {
    decoders.div_ceil(4)
}

pub(super) struct Background {
    pub(super) replies: Arc<Inboxes>,
    /// Bounds the memory between the readers and the recorder.
    pub(super) backlog: Arc<Backlog>,
    /// Sender of clean-up requests, until a thread or a task takes it.
    pub(super) cleaner: Option<Cleaner>,
    /// The thread that may take it.
    pub(super) cleaning: LateThread,
    decoders: Vec<GroupThread<()>>,
    pub(super) rest: Rest,
}

/// Threads that work until every reply is recorded: sessions and the recorder.
pub(super) struct Rest {
    pub(super) finished: RecordQueue,
    pub(super) sessions: Arc<Sessions>,
    continuers: Vec<GroupThread<()>>,
    recorder: GroupThread<Result<(), RecordError>>,
    live: Arc<Live>,
    pub(super) failures: FailureLimit,
}

impl Background {
    /// Starts this many decode threads, and the recorder. They let the readers go first: their work
    /// can wait, but bytes that are read late would count as the server's latency.
    pub(super) fn start(
        Setup { plan, parts, folder, control }: Setup<'_>,
        announcer: Announcer<Item>,
        (threads, clock): (usize, Clock),
        (failures, refusals, jars): (FailureLimit, Option<Refusals>, Option<Arc<Jars>>),
        vitals: Option<&Arc<Vitals>>,
    ) -> Result<Self, RunError> {
        let recorder = Recorder::create(folder)?;
        let backlog = Backlog::new(clock, BOUND);
        let (finished, waiting) = RecordQueue::new(&backlog);
        let group = &control.group;
        let seen = {
            let live = Arc::clone(&control.live);
            move |exchange: &Exchange| {
                trip("record");
                live.count(exchange);
            }
        };
        let signal = control.signal.clone();
        let live = Arc::clone(&control.live);
        let recorder = group.start("record", vitals, move || {
            yield_to_others();
            let recorded = recorder.run(&waiting, seen);
            if recorded.is_err() {
                signal.stop();
            }
            recorded.map(|written| drop(live.written.set(written)))
        });
        let recorder = recorder.map_err(RunError::Thread)?;
        let memory = Memory::new(plan.load.session_memory);
        let lanes = (continuers_for(threads), control.signal.is_task());
        let (sessions, events) = Sessions::new(announcer, memory, lanes);
        let mut continuers = Vec::new();
        for (number, events) in events.into_iter().enumerate() {
            let writer = Writer::open(plan, parts, &failures, &control.live.beyond_context)?;
            let continuer = Continuer::new(&sessions, events, writer);
            let continuing = group.start(&format!("continue-{number}"), vitals, move || {
                yield_to_others();
                continuer.run();
            });
            continuers.push(continuing.map_err(RunError::Thread)?);
        }
        let (replies, queue) = Inboxes::new(&backlog, plan.request.stream, &sessions);
        if let Some(vitals) = vitals {
            let queue = queue.clone();
            vitals.enlist_queue(move || queue.len());
            vitals.enlist_backlog(&backlog);
        }
        let limits = (clock, plan.timeouts.connect);
        let (clean_ups, cleaning, cleaner) =
            clean_up::queue(parts.secrets.clone(), control.signal.clone(), limits);
        let routes = Routes::new(parts.places(), plan.connection.http, parts.secrets.clone());
        let shared = DecodeState::new(
            failures.clone(),
            Routes { clean_ups: Some(clean_ups), refusals, jars, ..routes },
            Arc::clone(&control.live.output_tokens),
            vitals.cloned(),
            &backlog,
            folder,
        );
        let members = decode_threads(threads, &parts.backend, &shared, clock, &queue, &finished)?;
        let mut decoders = Vec::new();
        for (number, member) in members.into_iter().enumerate() {
            let decoding = group.start(&format!("decode-{number}"), vitals, move || {
                yield_to_others();
                member.run();
            });
            decoders.push(decoding.map_err(RunError::Thread)?);
        }
        Ok(Background {
            replies: Arc::new(replies),
            backlog,
            cleaner: Some(cleaner),
            cleaning,
            decoders,
            rest: Rest {
                finished,
                sessions,
                continuers,
                recorder,
                live: Arc::clone(&control.live),
                failures,
            },
        })
    }

    /// Waits until everything reported is decoded.
    pub(super) fn decoded(self) -> Rest {
        drop(self.replies);
        for decoder in self.decoders {
            decoder.join();
        }
        self.rest
    }
}

impl Rest {
    /// Waits until everything is on disk. `cleaned` counts requests after exchanges, `renewed`
    /// requests that renewed leases.
    pub(super) fn finish(
        self,
        cleaned: Option<Errands>,
        renewed: Option<Errands>,
    ) -> Result<(), RunError> {
        cleaned.map(|cleaned| self.live.cleaned.set(cleaned));
        renewed.map(|renewed| self.live.renewed.set(renewed));
        self.sessions.stop();
        for continuer in self.continuers {
            continuer.join();
        }
        drop(self.finished);
        let recorded = self.recorder.join().unwrap_or(Ok(()));
        recorded?;
        match self.failures.abort_reason() {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }
}
