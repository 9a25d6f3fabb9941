//! The place of a request in its session.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::graph::Graph;
use crate::pending::SessionSalt;
use model::units::Nanos;

/// The place of a request in its session.
#[derive(Clone)]
pub struct Place {
    pub(super) session: Arc<Mutex<Session>>,
    /// Index of the queue for the session's events.
    pub(super) queue: usize,
    pub(super) node: usize,
}

pub(super) struct Session {
    pub(super) graph: Graph,
    /// The pacer's number of its first request.
    pub(super) root: u64,
    pub(super) last: Nanos,
    /// Its memory in bytes: the samples, and the answers so far.
    pub(super) bytes: usize,
    /// True if the pacer knows that it is over.
    pub(super) is_announced: bool,
    /// Its lane, if it is in one.
    pub(super) lane: Option<InLane>,
}

/// The state of a session in a lane.
pub(super) struct InLane {
    pub(super) number: u32,
    pub(super) salt: Option<Arc<SessionSalt>>,
    /// Requests that wait for no reply, until the lane goes on.
    pub(super) held: VecDeque<Held>,
    /// Number of requests that the lane may still send to warm up; absent once it is measured.
    pub(super) primers: Option<u32>,
}

/// A request that waits for no reply.
pub(super) struct Held {
    pub(super) node: usize,
    /// Its pause, from this instant or from when the lane goes on.
    pub(super) pause: Nanos,
    pub(super) since: Option<Nanos>,
}

/// The role of an item in its session, until it is handed on.
pub enum Entry {
    /// It begins one.
    Root(Box<Graph>),
    /// A follower in a session.
    Node(Place),
}

impl Place {
    pub(super) fn at(&self, node: usize) -> Place {
        Place { session: Arc::clone(&self.session), queue: self.queue, node }
    }
}
