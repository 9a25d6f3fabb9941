//! A request in waiting, from when it is written until it is sent.

use std::sync::Arc;

use crate::authenticate::Outgoing;
use crate::sessions::graph::Graph;
use crate::sessions::place::Entry;
use load::drive::demand::Course;
use model::exchange::{Outcome, Prepared};
use model::frame::Framing;

/// The approximate size of a request apart from its body.
const REQUEST_BYTES: usize = 1 << 10;

/// A request in waiting.
pub struct Item {
    pub prepared: Box<Prepared>,
    /// The request; the outcome of one that cannot be written.
    pub request: Result<ReadyRequest, Outcome>,
    /// Its role for the requests that depend on it, or that it depends on.
    pub entry: Option<Entry>,
}

/// A request that can be sent, the first if there are several.
pub struct ReadyRequest {
    pub outgoing: Outgoing,
    /// The framing of its reply, if it differs from the run's.
    pub framing: Option<Framing>,
    pub course: Course,
    /// The conversation it belongs to.
    pub session: Option<Arc<str>>,
}

/// A thing that lies ready until the load needs it.
pub trait Stocked {
    /// Its memory, more or less.
    fn bytes(&self) -> usize;
}

impl Stocked for Item {
    fn bytes(&self) -> usize {
        let session = match &self.entry {
            Some(Entry::Root(graph)) => graph.bytes(),
            Some(Entry::Node(_)) | None => 0,
        };
        REQUEST_BYTES + self.prepared.sample.request_bytes as usize + session
    }
}

impl Stocked for Graph {
    fn bytes(&self) -> usize {
        Graph::bytes(self)
    }
}
