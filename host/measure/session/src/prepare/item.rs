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
pub enum Item {
    Ready {
        prepared: Box<Prepared>,
        /// The request, the first if there are several.
        request: Outgoing,
        /// The framing of its reply, if it differs from the run's.
        framing: Option<Framing>,
        course: Course,
        /// The conversation it belongs to.
        session: Option<Arc<str>>,
        /// Its role for the requests that depend on it, or that it depends on.
        entry: Option<Entry>,
    },
    Faulty {
        prepared: Box<Prepared>,
        outcome: Outcome,
        /// As of one that is ready.
        entry: Option<Entry>,
    },
}

/// A thing that lies ready until the load needs it.
pub trait Stocked {
    /// Its memory, more or less.
    fn bytes(&self) -> usize;
}

impl Stocked for Item {
    fn bytes(&self) -> usize {
        let (Item::Ready { entry, .. } | Item::Faulty { entry, .. }) = self;
        let session = match entry {
            Some(Entry::Root(graph)) => graph.bytes(),
            Some(Entry::Node(_)) | None => 0,
        };
        REQUEST_BYTES + self.prepared().sample.request_bytes as usize + session
    }
}

impl Stocked for Graph {
    fn bytes(&self) -> usize {
        Graph::bytes(self)
    }
}

impl Item {
    /// The same, as part of a session.
    pub fn within(mut self, of: Entry) -> Self {
        match &mut self {
            Item::Ready { entry, .. } | Item::Faulty { entry, .. } => *entry = Some(of),
        }
        self
    }

    pub fn index(&self) -> u64 {
        self.prepared().index
    }

    pub fn prepared(&self) -> &Prepared {
        match self {
            Item::Ready { prepared, .. } | Item::Faulty { prepared, .. } => prepared,
        }
    }
}
