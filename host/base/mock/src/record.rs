//! The record of a request while the engine answers it: fills its truth, and counts.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::time::Instant;

use super::answer::Finish;
use super::engine::{Engine, Retention};
use super::truth::{BatchRecord, End, SentPiece, Truth, WrittenBytes, ids, lock};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not admitted, or ended.
    Outside,
    Waiting,
    Running,
}

/// A request's truth while it is recorded; dropping it ends the request.
pub(super) struct Record {
    engine: Arc<Engine>,
    truth: Truth,
    phase: Phase,
    finish: Option<Finish>,
    counted_prompt: bool,
}

impl Record {
    pub fn new(engine: Arc<Engine>, path: Cow<'static, str>, received: Instant) -> Self {
        let truth = Truth {
            number: engine.counters.requests.fetch_add(1, Relaxed),
            path,
            received: engine.since(received),
            ..Truth::default()
        };
        Record { engine, truth, phase: Phase::Outside, finish: None, counted_prompt: false }
    }

    pub fn number(&self) -> u64 {
        self.truth.number
    }

    pub fn carried(&mut self, headers: &hyper::HeaderMap) {
        self.truth.ids = ids(headers);
    }

    pub fn keep_body(&mut self, body: &[u8]) {
        if self.engine.retention == Retention::Bytes {
            self.truth.asked = Some(String::from_utf8_lossy(body).into_owned());
        }
    }

    /// A client's input in several messages is complete: times count from here.
    pub fn complete(&mut self, at: Instant, input: &str) {
        self.truth.received = self.engine.since(at);
        self.keep_body(input.as_bytes());
    }

    /// The instant at which an event with this due time can go out: later if the server pauses.
    pub fn unpaused(&self, due: Instant) -> Instant {
        self.engine.unpaused(due)
    }

    pub fn status(&mut self, status: u16) {
        self.truth.status = Some(status);
        self.engine.counters.count_http(self.truth.path.clone(), "POST", status);
    }

    pub fn refused(&mut self, status: Option<u16>) {
        if let Some(status) = status {
            self.status(status);
        }
        self.truth.end = End::Refused;
    }

    /// The request is parsed and waits for its turn.
    pub fn admitted(&mut self, prompt_tokens: u32, output_tokens: u32, finish: Finish) {
        self.truth.prompt_tokens = Some(prompt_tokens);
        self.truth.output_tokens = Some(output_tokens);
        self.finish = Some(finish);
        self.enter(Phase::Waiting);
    }

    /// This many tokens of its prompt were in the prefix cache.
    pub fn looked_up(&mut self, tokens: u32, found: u32) {
        let counters = &self.engine.counters;
        counters.prefix_queries.fetch_add(tokens.into(), Relaxed);
        counters.prefix_hits.fetch_add(found.into(), Relaxed);
    }

    pub fn started(&mut self, at: Instant) {
        self.truth.started = Some(self.engine.since(at));
        self.enter(Phase::Running);
    }

    /// A piece of the reply was handed to the socket.
    pub fn sent(&mut self, at: Instant, tokens: u32, piece: &[u8]) {
        if self.engine.retention != Retention::Nothing {
            let at = self.engine.since(at);
            let bytes = piece.len();
            self.truth.chunks.push(SentPiece { at, tokens, bytes });
        }
        if self.engine.retention == Retention::Bytes {
            self.truth.written.push(WrittenBytes::from_bytes(piece));
        }
        if tokens > 0 {
            let counters = &self.engine.counters;
            counters.generation_tokens.fetch_add(u64::from(tokens), Relaxed);
            if !std::mem::replace(&mut self.counted_prompt, true) {
                let prompt = u64::from(self.truth.prompt_tokens.unwrap_or(0));
                counters.prompt_tokens.fetch_add(prompt, Relaxed);
            }
        }
    }

    pub fn answered(&mut self) {
        let counters = &self.engine.counters;
        match self.finish {
            Some(Finish::Stop) => counters.stop.fetch_add(1, Relaxed),
            Some(Finish::Length) => counters.length.fetch_add(1, Relaxed),
            None => 0,
        };
        self.enter(Phase::Outside);
    }

    /// The reply ended as the script says.
    pub fn over(&mut self, whole: bool) {
        self.truth.end = if whole { End::Whole } else { End::Broken };
        if self.phase != Phase::Outside {
            self.engine.counters.error.fetch_add(1, Relaxed);
            self.enter(Phase::Outside);
        }
    }

    fn enter(&mut self, phase: Phase) {
        let counters = &self.engine.counters;
        let gauge = |phase| match phase {
            Phase::Outside => None,
            Phase::Waiting => Some(&counters.waiting),
            Phase::Running => Some(&counters.running),
        };
        if let Some(gauge) = gauge(self.phase) {
            gauge.fetch_sub(1, Relaxed);
        }
        if let Some(gauge) = gauge(phase) {
            gauge.fetch_add(1, Relaxed);
        }
        self.phase = phase;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.phase != Phase::Outside {
            self.engine.counters.abort.fetch_add(1, Relaxed);
            self.enter(Phase::Outside);
        }
        let batch = self.engine.batch.as_ref();
        if let Some(left) = batch.and_then(|batch| batch.leave(self.truth.number)) {
            let since = |at| self.engine.since(at);
            self.truth.started = left.admitted.map(since);
            self.truth.batched = Some(BatchRecord {
                preemptions: left.preemptions,
                generated: left.generated.into_iter().map(since).collect(),
            });
        }
        if self.engine.retention != Retention::Nothing {
            self.truth.ended = Some(self.engine.since(Instant::now()));
            let truth = Truth {
                chunks: std::mem::take(&mut self.truth.chunks),
                written: std::mem::take(&mut self.truth.written),
                ..self.truth.clone()
            };
            lock(&self.engine.truths).push(truth);
        }
    }
}
