//! A reader worker: holds connections to the targets, sends the requests it is given at once,
//! reads their replies and cuts them into frames.
//!
//! It runs on a current-thread runtime of its own and shares nothing but queues: orders come in,
//! frames go out to be decoded ([`Replies`]). Each request has a task. While replies stream, one
//! further task reads the replies of all the thread's requests
//! ([`poller`](crate::transport::poller)). No plugin code runs here. While too many bytes wait to
//! be decoded ([`backlog`](crate::backlog)), nothing more is read. [`talk`] holds the requests and
//! replies of one exchange; [`pool`] chooses the connection for a request; [`reading`] reads the
//! reply and applies the timeouts.
//!
//! A reader naps: the kernel's timestamps do not depend on the time of a read. So with 32 streams
//! or more it reads all arrived bytes every half millisecond. In a closed loop or with a cap, a nap
//! is at most a thousandth of a reply's time. With the program's own timestamps there is none.
//! Timers are checked when they ring and not with every event. The backend decides whether a frame
//! has a token, so all arrived frames are decoded before a request is given up.

pub mod demand;
pub mod jars;
mod lazy_timer;
mod outbox;
mod pool;
mod reading;
mod socket;
mod talk;
pub mod worker_handle;

pub use reading::SPARE_BYTES;

use model::connection::{Reuse, Timeouts};
use std::cell::Cell;
use std::future::{Future as _, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, LocalSet};

use crate::backlog::{Backlog, Held};
use crate::pace::Signal;
use crate::question::Question;
use crate::thread_group::trip;
use crate::transport::poller::Poller;
use crate::transport::{Connect, Marks, Request};
use demand::{Course, Demand, Kind};
use jars::Jars;
use lazy_timer::LazyTimer;
use model::clock::Clock;
use model::exchange::{Class, Due, Open};
use model::frame::{Frames, Framing};
use model::units::Nanos;
use pool::Pool;
use talk::Trail;
use worker_handle::InFlight;

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
    fn frames(&self, frames: Frames, handed_on: Nanos, held: Held);

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
    /// True if any output was decoded.
    pub(crate) fn has_output(&self) -> bool {
        self.output.load(Ordering::Acquire) > 0
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
    pub opened: Arc<Opened>,
    /// The cookies of conversations, if they are kept.
    pub jars: Option<Arc<Jars>>,
}

/// Connections opened ahead of need.
#[derive(Debug, Default)]
pub struct Opened {
    /// Number of attempts that have ended.
    pub settled: AtomicUsize,
    /// Number of attempts that failed.
    pub failed: AtomicUsize,
}

impl<C: Connect + Clone + 'static> Worker<C> {
    /// Works until the orders end and every request is over.
    pub async fn run(self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let local = LocalSet::new();
        // If the system has no epoll left, sockets stay with the runtime.
        let (poller, poll_loop) = Poller::new().ok().unzip();
        let pool = Rc::new(Pool::new(&self, poller));
        let (halt, abort) = (Rc::new(Abort::default()), Rc::new(Abort::default()));
        let worker = Rc::new(self);
        local
            .run_until(async {
                let mut tasks = tokio::task::JoinSet::new();
                // Tasks that nobody waits for once the orders have ended.
                let mut aside = tokio::task::JoinSet::new();
                if let Some(poll_loop) = poll_loop {
                    aside.spawn_local(async {
                        // Only a bug makes it end, and then no reply would be read any more.
                        let failed = poll_loop.run().await;
                        panic!("the sockets' epoll failed: {failed}");
                    });
                }
                loop {
                    tokio::select! {
                        biased;
                        order = orders.recv() => match order {
                            Some(Order::Open(count)) => {
                                aside.spawn_local(Rc::clone(&pool).open_ahead(count));
                            }
                            Some(Order::Send(job, in_flight)) => {
                                let target = job.exchange.prepared.target;
                                if worker.spare > 0 && pool.idle(target) <= worker.spare {
                                    aside.spawn_local(Rc::clone(&pool).open_spare(target));
                                }
                                let worker = Rc::clone(&worker);
                                let pool = Rc::clone(&pool);
                                let orders = (Rc::clone(&halt), Rc::clone(&abort));
                                tasks.spawn_local(worker.serve(pool, orders, job, in_flight));
                            }
                            Some(Order::Ask(question)) => {
                                let worker = Rc::clone(&worker);
                                aside.spawn_local(async move {
                                    let limit = worker.timeouts.connect;
                                    question.put(&worker.connect, worker.clock, limit).await;
                                });
                            }
                            Some(Order::Halt) => halt.raise(),
                            Some(Order::Abort) => abort.raise(),
                            None => break,
                        },
                        Some(ended) = tasks.join_next() => passed_on(ended),
                        Some(ended) = aside.join_next() => passed_on(ended),
                    }
                }
                loop {
                    tokio::select! {
                        biased;
                        ended = tasks.join_next() => match ended {
                            Some(ended) => passed_on(ended),
                            None => break,
                        },
                        Some(ended) = aside.join_next() => passed_on(ended),
                    }
                }
            })
            .await;
    }

    /// Has one exchange, whatever happens.
    async fn serve(
        self: Rc<Self>,
        pool: Rc<Pool<C>>,
        (halt, abort): (Rc<Abort>, Rc<Abort>),
        job: Box<Job>,
        in_flight: InFlight,
    ) {
        trip("read");
        let Job { key, exchange, request, framing, course, session, cancelled_after } = *job;
        let mut exchange = exchange.open();
        let reply = self.replies.open(key);
        let trail = Trail::default();
        let mut inputs = None;
        let end = {
            let limit = Duration::from(self.timeouts.request);
            let talk = self.talk(
                &pool,
                &mut exchange,
                (request, framing, course),
                session.as_ref(),
                (key, &reply),
                (&trail, &mut inputs, &halt),
            );
            let mut talk = std::pin::pin!(talk);
            let mut given_up = LazyTimer::new(async {
                tokio::select! {
                    biased;
                    () = abort.came() => End::Broke(
                        Class::Interrupted,
                        "the run was stopped while the reply was arriving".to_owned(),
                    ),
                    () = tokio::time::sleep(limit) => End::Broke(
                        Class::RequestTimeout,
                        format!("the reply took longer than {}", model::duration::format(limit)),
                    ),
                    after = self.left(trail.first(), cancelled_after) => End::Broke(
                        Class::Cancelled,
                        format!(
                            "this client hung up on purpose, {} after the request was sent",
                            model::duration::format(after)
                        ),
                    ),
                }
            });
            poll_fn(|cx| match talk.as_mut().poll(cx) {
                Poll::Ready(end) => Poll::Ready(end),
                Poll::Pending => given_up.poll(cx),
            })
            .await
        };
        trail.finish(&mut exchange, self.clock.now());
        if let Some(inputs) = inputs {
            exchange.inputs = inputs.take();
        }
        // The pacer must not see the slot free before it knows that requests may follow from the
        // reply.
        let freed = self.clock.now();
        reply.closed(Box::new(exchange), end);
        if let Some(sent) = trail.first().sent.get() {
            in_flight.lasted(freed.since(sent));
        }
        drop(in_flight);
        self.signal.release(key, freed);
    }

    /// Waits until the user of a request leaves, and returns the time since it was sent; for ever
    /// if the user does not.
    async fn left(&self, marks: &Marks, after: Option<Nanos>) -> Duration {
        let Some(after) = after else {
            return std::future::pending().await;
        };
        let after = Duration::from(after);
        loop {
            match marks.sent.get() {
                // It may be sent at any time, and then there is still as long to wait.
                None => tokio::time::sleep(after).await,
                Some(sent) => {
                    tokio::time::sleep_until(self.clock.instant(sent) + after).await;
                    return after;
                }
            }
        }
    }
}

/// A panic of a task is one of its thread: the runtime would keep it to itself.
fn passed_on(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// The order to give up the requests in flight, or to send no more; for running tasks and for tasks
/// yet to begin.
#[derive(Default)]
struct Abort {
    raised: Cell<bool>,
    waiting: Notify,
}

impl Abort {
    fn raise(&self) {
        self.raised.set(true);
        self.waiting.notify_waiters();
    }

    async fn came(&self) {
        let notified = self.waiting.notified();
        if !self.raised.get() {
            notified.await;
        }
    }
}
