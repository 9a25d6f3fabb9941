//! The types of a worker: its orders, its requests, and the receivers of replies.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hyper::HeaderMap;
use tokio::sync::mpsc;
use tokio::task::JoinError;

use super::demand::{Course, Demand, Kind};
use super::jars::Jars;
use super::worker_handle::InFlight;
use crate::backlog::{Backlog, BacklogBytes};
use crate::pace::Signal;
use crate::question::Question;
use crate::transport::Request;
use model::clock::Clock;
use model::connection::{Reuse, Timeouts};
use model::exchange::{Class, Due, Open};
use model::frame::{Frames, Framing};
use model::units::Nanos;

/// An order to a worker.
pub enum Order {
    /// Have this many connections open and idle.
    Open(usize),
    /// Send this now. It counts as in flight until it has ended.
    Send(Box<Job>, InFlight),
    /// Ask this question, outside of all requests.
    Ask(Box<Question>),
    /// Send no further request of exchanges that have several; the replies under way are read.
    Halt,
    /// Give up the requests in flight.
    Abort,
}

/// One request, ready to be sent.
pub struct Job {
    /// The run's own number for it.
    pub key: u64,
    /// The request, and when it was due.
    pub exchange: Due,
    /// The request, the first if there are several.
    pub request: Request,
    /// The framing of its reply.
    pub framing: Framing,
    /// The further course of the exchange.
    pub course: Course,
    /// The conversation it belongs to, if connections are reserved for conversations.
    pub session: Option<Arc<str>>,
    /// The time after sending at which the client hangs up on purpose, if the reply has not ended
    /// by then.
    pub cancelled_after: Option<Nanos>,
}

/// The receiver of a run's replies.
pub trait Replies: Send + Sync {
    /// The request of this number is about to be sent.
    fn open(&self, key: u64) -> Rc<dyn Reply>;
}

/// The receiver of one reply.
pub trait Reply {
    /// Opens the way back from decoding, where replies decide the next request. `place` is the
    /// number of the exchange's target. Asked once, on the reader's thread, before anything is
    /// sent.
    fn demands(&self, place: u32, kind: Kind) -> mpsc::UnboundedReceiver<Demand>;

    /// Takes the head of a reply that is decoded, before its frames, with its framing and its
    /// request's context.
    fn head(&self, status: u16, headers: &HeaderMap, framing: Framing, context: Vec<u8>);

    /// Takes frames of a successful reply, in order, with the instant of the handover and their
    /// share of the backlog.
    fn frames(&self, frames: Frames, handed_on: Nanos, held: BacklogBytes);

    /// One of several replies came to its proper end. A demand follows.
    fn turned(&self);

    /// The exchange ended: the transport's record of it, and its end. Called once, and last.
    fn closed(&self, exchange: Box<Open>, end: End);

    fn progress(&self) -> &DecodeProgress;
}

/// The progress of a reply's decoding, for the reader that applies token timeouts. Times in
/// nanoseconds; 0 if there is none.
#[derive(Debug, Default)]
pub struct DecodeProgress {
    /// Arrival of the last decoded frame.
    pub decoded: AtomicU64,
    /// Arrival of the last decoded output.
    pub output: AtomicU64,
}

impl DecodeProgress {
    /// Returns when the last decoded output arrived.
    pub(crate) fn output(&self) -> Option<Nanos> {
        Some(Nanos(self.output.load(Ordering::Acquire))).filter(|at| *at > Nanos::ZERO)
    }

    /// Returns when the last decoded frame arrived.
    pub(crate) fn decoded(&self) -> Nanos {
        Nanos(self.decoded.load(Ordering::Acquire))
    }
}

/// The end of a request, as the transport saw it.
#[derive(Debug)]
pub enum End {
    /// A successful status, and the body came to its proper end.
    Whole {
        /// True if that is also the end of the answer, as in a reply that is not streamed.
        /// Otherwise the backend finds the end.
        ends_answer: bool,
    },
    /// Another status.
    Status {
        /// The beginning of the body.
        body: Vec<u8>,
        /// The server's retry-after, in its own words.
        retry_after: Option<String>,
    },
    /// It did not.
    Broke(Class, String),
}

/// Everything that a worker needs.
#[derive(Clone)]
pub struct Worker<C> {
    /// Opens connections.
    pub connect: C,
    /// Number of targets to connect to.
    pub targets: u32,
    /// Number of places that requests may go to: the targets, and after them hosts that only a
    /// further request of an exchange reaches.
    pub places: u32,
    /// The rule by which requests use connections again.
    pub reuse: Reuse,
    pub clock: Clock,
    /// Told when a reply has ended.
    pub signal: Signal,
    pub replies: Arc<dyn Replies>,
    /// Bounds the bytes that are read and not yet decoded.
    pub backlog: Arc<Backlog>,
    pub timeouts: Timeouts,
    /// The number of idle connections to keep ready in addition to ordered ones, so that a due
    /// request finds one; replaced in the background.
    pub spare: usize,
    /// Counts connections that were opened ahead, or could not be.
    pub opened: Arc<OpenAttempts>,
    /// The cookies of conversations, if they are kept.
    pub jars: Option<Arc<Jars>>,
}

/// Connections opened ahead of need.
#[derive(Debug, Default)]
pub struct OpenAttempts {
    /// Number of attempts that have ended.
    pub settled: AtomicUsize,
    /// Number of attempts that failed.
    pub failed: AtomicUsize,
}

/// A panic of a task is one of its thread: the runtime would keep it to itself.
pub(super) fn passed_on(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}
