//! Samples on their way to a request: with their history, and with their place in the run.

use load::backlog::{Backlog, BacklogBytes};
use model::exchange::{Exchange, History, Phase};
use model::units::Nanos;
use plugins::backend::{Earlier, Message, Part, Prompt, Sample};
use scenario::plan::Salt;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

/// A sample whose prompt is whole, and the record of its composition.
pub struct ComposedSample {
    pub sample: Sample,
    /// State that the last reply of its conversation left for it.
    pub earlier: Option<Earlier>,
    /// The requests that it depends on, by their number.
    pub parents: Vec<u64>,
    pub history: Option<History>,
    /// Instant at which the first of its dependencies released it.
    pub released: Option<Nanos>,
    /// Its place in its session; absent if it depends on nothing.
    pub lineage: Option<Lineage>,
}

/// The place of a request in its session.
pub struct Lineage {
    /// The number of the request that begins the session.
    pub root: u64,
    /// The name of the conversation that began its conversation, if one did.
    pub parent: Option<String>,
}

impl ComposedSample {
    /// A sample that depends on nothing.
    pub(crate) fn alone(sample: Sample) -> Self {
        ComposedSample {
            sample,
            earlier: None,
            parents: Vec::new(),
            history: None,
            released: None,
            lineage: None,
        }
    }
}

/// A sample to write a request for, with the other facts on record.
pub struct PendingRequest {
    pub index: u64,
    pub phase: Phase,
    pub composed: ComposedSample,
    /// Number of requests that depend on it, if it depends on none.
    pub descendants: u32,
    /// A number for the beginning of its prompt, where routing keys are made of it.
    pub beginning: Option<u64>,
    pub lane: Option<OfLane>,
}

/// The texts of its own that a session has in its prompts.
#[derive(Clone, Debug)]
pub struct SessionSalt {
    /// Before everything.
    pub before: Salt,
    pub behind: Option<String>,
}

/// The changes that a lane makes to a request.
#[derive(Clone, Debug, Default)]
pub struct OfLane {
    pub salt: Option<Arc<SessionSalt>>,
    /// True if it asks for one token, to fill the server's cache.
    pub is_primer: bool,
}

impl PendingRequest {
    /// A request of a lane's session.
    pub(crate) fn of_lane(index: u64, composed: ComposedSample, lane: OfLane) -> Self {
        let phase = if lane.is_primer { Phase::Warmup } else { Phase::Measure };
        PendingRequest { phase, lane: Some(lane), ..PendingRequest::of_session(index, composed) }
    }

    /// A sample that depends on nothing.
    pub(crate) fn alone(index: u64, phase: Phase, sample: Sample) -> Self {
        let composed = ComposedSample::alone(sample);
        PendingRequest { phase, ..PendingRequest::of_session(index, composed) }
    }

    pub(crate) fn of_session(index: u64, composed: ComposedSample) -> Self {
        PendingRequest {
            index,
            phase: Phase::Measure,
            composed,
            descendants: 0,
            beginning: None,
            lane: None,
        }
    }
}

pub(crate) fn prompt_bytes(prompt: &Prompt) -> usize {
    match prompt {
        Prompt::Text(text) => text.len(),
        Prompt::Tokens(tokens) => size_of_val(&**tokens),
        Prompt::Messages(messages) => message_bytes(messages),
        Prompt::Continuation(next) => message_bytes(&next.messages),
        Prompt::Embedding(texts) => texts.iter().map(String::len).sum(),
        Prompt::Ranking(texts) => {
            texts.query.len() + texts.documents.iter().map(String::len).sum::<usize>()
        }
    }
}

pub(crate) fn message_bytes(messages: &[Message]) -> usize {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let bytes = parts.map(|part| match part {
        Part::Text(text) | Part::Answer(text) => text.len(),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) => media.bytes.len(),
    });
    bytes.sum()
}

// Exchanges on their way to the recorder, counted while they wait.

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
