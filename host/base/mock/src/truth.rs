//! The true behaviour of a mock engine: a record for each request, and the counters that `metrics`
//! writes.
//!
//! Tests compare the runner's measurements with this.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use model::units::Nanos;

/// The true record of one request. Times are nanoseconds since the engine was made, on tokio's
/// clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Truth {
    /// Its number in order of arrival, from 0; faults are chosen by this number.
    pub number: u64,
    pub path: Cow<'static, str>,
    /// The HTTP status of the reply; absent if there was none.
    pub status: Option<u16>,
    /// Tokens of the prompt; absent if the request was not understood.
    pub prompt_tokens: Option<u32>,
    /// The number of tokens that the answer was to have.
    pub output_tokens: Option<u32>,
    pub received: Nanos,
    /// The begin of its processing: later than `received` if it waited for a slot or a step.
    pub started: Option<Nanos>,
    /// The batch's record; absent unless the script has a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batched: Option<BatchRecord>,
    /// The time when each piece of the reply's body was handed to the socket, in order.
    pub chunks: Vec<SentPiece>,
    pub ended: Option<Nanos>,
    pub end: End,
    /// The ids that the request carried: header fields whose names say that they identify it, its
    /// session or its trace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ids: BTreeMap<String, String>,
    /// The request's body; absent unless the engine keeps bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The bytes of each of `chunks`, in order; empty unless the engine keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<WrittenBytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WrittenBytes {
    Text(String),
    /// Hexadecimal digits of bytes that begin or end within a character.
    Hex(String),
}

impl WrittenBytes {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => WrittenBytes::Text(text.to_owned()),
            Err(_) => WrittenBytes::Hex(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchRecord {
    /// The number of times that it was put back into the queue because the KV cache was full.
    pub preemptions: u32,
    /// The time when the step ended that generated each token, in order: the model's times, which
    /// clients see a little later.
    pub generated: Vec<Nanos>,
}

/// A piece of a reply: one event, or several that were merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentPiece {
    /// The time when its last byte was handed to the socket.
    pub at: Nanos,
    /// Tokens in it; 0 for roles, usage, errors and the end marker.
    pub tokens: u32,
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    Whole,
    /// With an error status, or a web page instead of a reply.
    Refused,
    /// With an error inside the reply, or without its end, by a fault of the script.
    Broken,
    #[default]
    Abandoned,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Timings {
    /// From its arrival to the stated beginning of work on it.
    pub queue: Duration,
    /// From then until the first token.
    pub prefill: Duration,
    /// From the first token to the last so far.
    pub decode: Duration,
}

/// Words in the names of header fields that hold ids.
const ID_WORDS: [&str; 6] =
    ["request-id", "correlation-id", "session", "routing-key", "traceparent", "trace-id"];

pub(super) fn ids(headers: &hyper::HeaderMap) -> BTreeMap<String, String> {
    let is_id = |name: &str| ID_WORDS.iter().any(|word| name.contains(word));
    let ids = headers.iter().filter(|(name, _)| is_id(name.as_str()));
    ids.map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (name.as_str().to_owned(), value.into_owned())
    })
    .collect()
}

impl Truth {
    #[cfg(test)]
    pub(crate) fn tokens_sent(&self) -> u32 {
        self.chunks.iter().map(|chunk| chunk.tokens).sum()
    }

    pub fn first_token(&self) -> Option<Nanos> {
        self.chunks.iter().find(|chunk| chunk.tokens > 0).map(|chunk| chunk.at)
    }
}

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
    pub http: Mutex<BTreeMap<HttpLabels, u64>>,
}

/// The labels of HTTP request counters: handler, method, and the hundreds of the status.
pub(super) type HttpLabels = (Cow<'static, str>, &'static str, u16);

/// Locks a mutex, also after a panic: no holder leaves its value inconsistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counters {
    pub(crate) fn count_http(&self, handler: Cow<'static, str>, method: &'static str, status: u16) {
        *lock(&self.http).entry((handler, method, status / 100)).or_default() += 1;
    }
}
