//! The true behaviour of a mock engine: a record for each request, and the counters that `metrics`
//! writes.
//!
//! Tests compare what the runner measured with this.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::Engine;
use super::answer::Finish;
use model::units::Nanos;

/// The true record of one request. Times are nanoseconds since the engine was made, on tokio's
/// clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Truth {
    /// Its number in order of arrival, from 0; faults are chosen by this number.
    pub number: u64,
    /// The route that it used.
    pub path: Cow<'static, str>,
    /// The HTTP status of the reply; absent if there was none.
    pub status: Option<u16>,
    /// Tokens of the prompt; absent if the request was not understood.
    pub prompt_tokens: Option<u32>,
    /// The number of tokens that the answer was to have.
    pub output_tokens: Option<u32>,
    /// The time when the request was complete.
    pub received: Nanos,
    /// The time when the engine began to process it: later than `received` if it waited for a slot,
    /// or for a step to end.
    pub started: Option<Nanos>,
    /// The batch's record; absent unless the script has a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batched: Option<Batched>,
    /// The time when each piece of the reply's body was handed to the socket, in order.
    pub chunks: Vec<Sent>,
    /// The time when it ended.
    pub ended: Option<Nanos>,
    /// The way it ended.
    pub end: End,
}

/// The batch's record of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Batched {
    /// The number of times that it was put back into the queue because the KV cache was full.
    pub preemptions: u32,
    /// The time when the step ended that generated each token, in order: what the model says, which
    /// clients see a little later.
    pub generated: Vec<Nanos>,
}

/// A piece of a reply: one event, or several that were merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The time when its last byte was handed to the socket.
    pub at: Nanos,
    /// Tokens in it; 0 for roles, usage, errors and the end marker.
    pub tokens: u32,
    /// Its bytes.
    pub bytes: usize,
}

/// The way a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// With a whole reply.
    Whole,
    /// With an error status, or a web page instead of a reply.
    Refused,
    /// With an error inside the reply, or without its end, as the script says.
    Broken,
    /// The client went away first.
    Abandoned,
}

impl Truth {
    /// Number of tokens that were sent.
    #[cfg(test)]
    pub(crate) fn tokens_sent(&self) -> u32 {
        self.chunks.iter().map(|chunk| chunk.tokens).sum()
    }

    /// The time when the first token was sent.
    pub fn first_token(&self) -> Option<Nanos> {
        self.chunks
            .iter()
            .find(|chunk| chunk.tokens > 0)
            .map(|chunk| chunk.at)
    }
}

/// Counters of a mock engine.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub requests: AtomicU64,
    pub running: AtomicU64,
    pub waiting: AtomicU64,
    pub prompt_tokens: AtomicU64,
    pub generation_tokens: AtomicU64,
    pub prefix_queries: AtomicU64,
    pub prefix_hits: AtomicU64,
    pub stop: AtomicU64,
    pub length: AtomicU64,
    pub abort: AtomicU64,
    pub error: AtomicU64,
    pub http: Mutex<BTreeMap<Handled, u64>>,
}

/// The labels of HTTP request counters: handler, method, and the hundreds of the status.
pub(super) type Handled = (Cow<'static, str>, &'static str, u16);

/// A lock whose holder cannot have left anything half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counters {
    pub(crate) fn count_http(&self, handler: Cow<'static, str>, method: &'static str, status: u16) {
        *lock(&self.http)
            .entry((handler, method, status / 100))
            .or_default() += 1;
    }
}

/// The state of a request.
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
            status: None,
            prompt_tokens: None,
            output_tokens: None,
            received: engine.since(received),
            started: None,
            batched: None,
            chunks: Vec::new(),
            ended: None,
            end: End::Abandoned,
        };
        Record {
            engine,
            truth,
            phase: Phase::Outside,
            finish: None,
            counted_prompt: false,
        }
    }

    pub fn number(&self) -> u64 {
        self.truth.number
    }

    pub fn status(&mut self, status: u16) {
        self.truth.status = Some(status);
        self.engine
            .counters
            .count_http(self.truth.path.clone(), "POST", status);
    }

    /// The request is not answered.
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

    /// The engine begins to process it.
    pub fn started(&mut self, at: Instant) {
        self.truth.started = Some(self.engine.since(at));
        self.enter(Phase::Running);
    }

    /// A piece of the reply was handed to the socket.
    pub fn sent(&mut self, at: Instant, tokens: u32, bytes: usize) {
        if self.engine.keeps_truth {
            let at = self.engine.since(at);
            self.truth.chunks.push(Sent { at, tokens, bytes });
        }
        if tokens > 0 {
            let counters = &self.engine.counters;
            counters
                .generation_tokens
                .fetch_add(u64::from(tokens), Relaxed);
            if !std::mem::replace(&mut self.counted_prompt, true) {
                let prompt = u64::from(self.truth.prompt_tokens.unwrap_or(0));
                counters.prompt_tokens.fetch_add(prompt, Relaxed);
            }
        }
    }

    /// All tokens have been sent.
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
            self.truth.batched = Some(Batched {
                preemptions: left.preemptions,
                generated: left.generated.into_iter().map(since).collect(),
            });
        }
        if self.engine.keeps_truth {
            self.truth.ended = Some(self.engine.since(Instant::now()));
            let truth = Truth {
                chunks: std::mem::take(&mut self.truth.chunks),
                ..self.truth.clone()
            };
            lock(&self.engine.truths).push(truth);
        }
    }
}
