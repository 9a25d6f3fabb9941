//! A reader worker: holds connections to the target, sends the requests it is given at once,
//! reads their replies and cuts them into frames.
//!
//! It runs on a current-thread runtime of its own and shares nothing but queues: orders come in,
//! reports go out to the decode threads. No plugin code runs here.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::Sender;
use http_body_util::Full;
use hyper::header::CONTENT_TYPE;
use hyper::{HeaderMap, Request};
use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;

use crate::clock::Clock;
use crate::exchange::{Exchange, FailureClass};
use crate::frame::{Frame, Framer, Framing};
use crate::pace::Signal;
use crate::transport::{Connect, Connection, Piece, Reply};
use crate::units::Nanos;

/// Most bytes of an error reply that are kept for the backend to explain.
const EXPLAINED_BYTES: usize = 64 << 10;
/// Most connections a worker opens at the same moment.
const OPENING: usize = 128;

/// How long to wait for what.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Timeouts {
    /// For a connection, in nanoseconds.
    pub connect: Nanos,
    /// For the first token of an answer, from when the request is sent, in nanoseconds; absent
    /// where only the whole request is timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Nanos>,
    /// For the next token of an answer, in nanoseconds.
    pub token_gap: Nanos,
    /// For a whole reply, in nanoseconds.
    pub request: Nanos,
}

/// What a worker is told.
pub enum Order {
    /// Have so many connections open and idle.
    Open(usize),
    /// Send this now.
    Send(Box<Job>),
    /// Give up what is in flight.
    Abort,
}

/// One request, ready to be sent.
pub struct Job {
    /// The run's own number for it.
    pub key: u64,
    /// What is known of the exchange so far.
    pub exchange: Box<Exchange>,
    /// The request's bytes.
    pub request: Box<Request<Full<Bytes>>>,
    /// How to cut the reply.
    pub framing: Framing,
}

/// What a worker reports of one request.
pub enum Report {
    /// Frames of a successful reply, in order.
    Frames {
        /// The request's number.
        key: u64,
        /// The frames.
        frames: Vec<Frame>,
    },
    /// It is over.
    Closed {
        /// The request's number.
        key: u64,
        /// What the transport saw of it.
        exchange: Box<Exchange>,
        /// How it ended.
        end: End,
    },
}

/// How a request ended, as the transport saw it.
#[derive(Debug)]
pub enum End {
    /// A successful status, and the body came to its proper end.
    Whole {
        /// Whether that is the answer's end too, as where a reply is not streamed; else the
        /// backend says where the answer ends.
        ends_answer: bool,
    },
    /// Another status, with the beginning of the body.
    Status(Vec<u8>),
    /// It did not.
    Broke(FailureClass, String),
}

/// What a worker needs.
#[derive(Clone)]
pub struct Worker<C> {
    /// Opens connections.
    pub connect: C,
    /// The run's clock.
    pub clock: Clock,
    /// Told when a reply has ended.
    pub signal: Signal,
    /// Where reports go, by request number.
    pub reports: Vec<Sender<Report>>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// Idle connections to have at hand beyond those opened by order, so that a request that is due
    /// finds one; replaced in the background.
    pub spare: usize,
    /// Counts connections that were opened ahead, or could not be.
    pub opened: Arc<Opened>,
}

/// Connections opened ahead of need.
#[derive(Debug, Default)]
pub struct Opened {
    /// How many attempts have come to an end.
    pub settled: AtomicUsize,
    /// How many of those failed.
    pub failed: AtomicUsize,
}

struct Pool<C: Connect> {
    idle: RefCell<VecDeque<Connection<C::Io>>>,
    abort: Notify,
}

impl<C: Connect + Clone + 'static> Worker<C> {
    /// Works until the orders end and every request is over.
    pub async fn run(self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let local = LocalSet::new();
        let pool = Rc::new(Pool::<C> {
            idle: RefCell::default(),
            abort: Notify::new(),
        });
        let worker = Rc::new(self);
        local
            .run_until(async {
                let mut tasks = tokio::task::JoinSet::new();
                loop {
                    tokio::select! {
                        biased;
                        order = orders.recv() => match order {
                            Some(Order::Open(count)) => {
                                tasks.spawn_local(Rc::clone(&worker).open_ahead(Rc::clone(&pool), count));
                            }
                            Some(Order::Send(job)) => {
                                if pool.idle.borrow().len() <= worker.spare && worker.spare > 0 {
                                    tasks.spawn_local(Rc::clone(&worker).open_ahead(Rc::clone(&pool), 1));
                                }
                                tasks.spawn_local(Rc::clone(&worker).serve(Rc::clone(&pool), job));
                            }
                            Some(Order::Abort) => pool.abort.notify_waiters(),
                            None => break,
                        },
                        Some(_) = tasks.join_next() => {}
                    }
                }
                while tasks.join_next().await.is_some() {}
            })
            .await;
    }

    /// Opens `count` connections, a bounded number at the same moment.
    async fn open_ahead(self: Rc<Self>, pool: Rc<Pool<C>>, count: usize) {
        let left = Rc::new(Cell::new(count));
        let mut openers = tokio::task::JoinSet::new();
        for _ in 0..count.min(OPENING) {
            let (worker, pool, left) = (Rc::clone(&self), Rc::clone(&pool), Rc::clone(&left));
            openers.spawn_local(async move {
                while let Some(others) = left.get().checked_sub(1) {
                    left.set(others);
                    let opened = worker.open().await;
                    worker.opened.settled.fetch_add(1, Ordering::AcqRel);
                    match opened {
                        Ok(connection) => pool.idle.borrow_mut().push_back(connection),
                        Err(_) => {
                            worker.opened.failed.fetch_add(1, Ordering::AcqRel);
                        }
                    }
                }
            });
        }
        while openers.join_next().await.is_some() {}
    }

    async fn open(&self) -> Result<Connection<C::Io>, String> {
        let limit = Duration::from(self.timeouts.connect);
        match tokio::time::timeout(limit, Connection::open(&self.connect, self.clock)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(cause)) => Err(cause.to_string()),
            Err(_) => Err(format!(
                "no connection within {}",
                crate::duration::format(limit)
            )),
        }
    }

    /// Sends one request and reads its reply, whatever happens.
    async fn serve(self: Rc<Self>, pool: Rc<Pool<C>>, job: Box<Job>) {
        let Job {
            key,
            mut exchange,
            request,
            framing,
        } = *job;
        let outlet = Outlet {
            key,
            reports: &self.reports[(key % self.reports.len() as u64) as usize],
        };
        let sent = Rc::default();
        let end = {
            let limit = Duration::from(self.timeouts.request);
            let talk = self.talk(&pool, &mut exchange, *request, framing, &outlet, &sent);
            tokio::select! {
                biased;
                end = talk => Some(end),
                () = pool.abort.notified() => None,
                () = tokio::time::sleep(limit) => Some(End::Broke(
                    FailureClass::RequestTimeout,
                    format!("the reply took longer than {}", crate::duration::format(limit)),
                )),
            }
        };
        let end = end.unwrap_or_else(|| {
            End::Broke(
                FailureClass::Interrupted,
                "the run was stopped while the reply was under way".to_owned(),
            )
        });
        exchange.sent = sent.get();
        if exchange.ended.is_none() && exchange.sent.is_some() {
            exchange.ended = Some(self.clock.now());
        }
        self.signal.release(key, self.clock.now());
        outlet.send(Report::Closed { key, exchange, end });
    }

    async fn talk(
        &self,
        pool: &Rc<Pool<C>>,
        exchange: &mut Exchange,
        request: Request<Full<Bytes>>,
        framing: Framing,
        outlet: &Outlet<'_>,
        sent: &Rc<Cell<Option<Nanos>>>,
    ) -> End {
        let mut connection = match self.take(pool).await {
            Ok(connection) => connection,
            Err(cause) => return End::Broke(FailureClass::Connect, cause),
        };
        let (head, reply) = match connection.send(request, sent).await {
            Ok(parts) => parts,
            Err(cause) => return End::Broke(FailureClass::Send, in_words(&cause)),
        };
        exchange.status = Some(head.status().as_u16());
        let success = head.status().is_success();
        if success && let Some(wrong) = not_a_stream(head.headers(), framing) {
            return End::Broke(FailureClass::Protocol, wrong);
        }
        let mut reading = Reading {
            worker: self,
            outlet,
            reply,
            deadline: Deadline::new(self),
        };
        exchange.headers = Some(reading.reply.last_read());
        let (end, at) = if success {
            reading.frames(framing).await
        } else {
            reading.error_body().await
        };
        exchange.ended = Some(at);
        if !matches!(end, End::Broke(..)) {
            connection.rest(self.clock.now());
            pool.idle.borrow_mut().push_back(connection);
        }
        end
    }

    /// An idle connection, or a new one.
    async fn take(&self, pool: &Pool<C>) -> Result<Connection<C::Io>, String> {
        loop {
            let idle = pool.idle.borrow_mut().pop_front();
            let Some(mut connection) = idle else {
                return self.open().await;
            };
            let now = self.clock.now();
            if poll_fn(|cx| Poll::Ready(connection.is_usable(cx, now))).await {
                return Ok(connection);
            }
        }
    }
}

/// Where the reports of one request go.
struct Outlet<'r> {
    key: u64,
    reports: &'r Sender<Report>,
}

impl Outlet<'_> {
    fn send(&self, report: Report) {
        // The decode threads outlive the workers, so this cannot fail while anyone listens.
        let _ = self.reports.send(report);
    }
}

/// The reading of one reply's body.
struct Reading<'r, C: Connect> {
    worker: &'r Worker<C>,
    outlet: &'r Outlet<'r>,
    reply: Reply<'r, C::Io>,
    deadline: Deadline,
}

/// A timer that is set again only when it has run out, not with every chunk.
struct Deadline {
    sleep: std::pin::Pin<Box<tokio::time::Sleep>>,
    idle: Nanos,
    clock: Clock,
}

impl Deadline {
    fn new<C>(worker: &Worker<C>) -> Self {
        let at = worker.clock.now() + worker.timeouts.token_gap;
        Deadline {
            sleep: Box::pin(tokio::time::sleep_until(worker.clock.instant(at))),
            idle: worker.timeouts.token_gap,
            clock: worker.clock,
        }
    }

    /// Whether nothing was read for the time allowed.
    fn is_over(&mut self, cx: &mut std::task::Context<'_>, last_read: Nanos) -> bool {
        while self.sleep.as_mut().poll(cx).is_ready() {
            let at = last_read + self.idle;
            if self.clock.now() >= at {
                return true;
            }
            self.sleep.as_mut().reset(self.clock.instant(at));
        }
        false
    }
}

impl<C: Connect> Reading<'_, C> {
    /// Waits for pieces; gives all that are ready at once to `take`, then calls `batch`.
    async fn each(
        &mut self,
        mut take: impl FnMut(Nanos, &[u8]) -> Result<(), String>,
        mut batch: impl FnMut(),
    ) -> (Option<End>, Nanos) {
        let worker = self.worker;
        poll_fn(|cx| {
            loop {
                match self.reply.poll_piece(cx) {
                    Poll::Ready(Ok(Piece::Chunk(at, bytes))) => {
                        if let Err(what) = take(at, &bytes) {
                            let broke = End::Broke(FailureClass::Protocol, what);
                            return Poll::Ready((Some(broke), at));
                        }
                    }
                    Poll::Ready(Ok(Piece::End(at))) => return Poll::Ready((None, at)),
                    Poll::Ready(Err(cause)) => {
                        let broke = End::Broke(FailureClass::CutOff, in_words(&cause));
                        return Poll::Ready((Some(broke), self.reply.last_read()));
                    }
                    Poll::Pending => {
                        batch();
                        let last_read = self.reply.last_read();
                        if self.deadline.is_over(cx, last_read) {
                            let idle = crate::duration::format(worker.timeouts.token_gap.into());
                            return Poll::Ready((
                                Some(End::Broke(
                                    FailureClass::TokenGapTimeout,
                                    format!("nothing came for {idle}"),
                                )),
                                worker.clock.now(),
                            ));
                        }
                        return Poll::Pending;
                    }
                }
            }
        })
        .await
    }

    /// Reads a successful reply, reporting its frames as they come.
    async fn frames(&mut self, framing: Framing) -> (End, Nanos) {
        let framer = RefCell::new(Framer::new(framing));
        let frames = RefCell::new(Vec::new());
        let outlet = self.outlet;
        let report = || {
            let frames = std::mem::take(&mut *frames.borrow_mut());
            if !frames.is_empty() {
                let key = outlet.key;
                outlet.send(Report::Frames { key, frames });
            }
        };
        let (broke, at) = self
            .each(
                |at, bytes| {
                    framer
                        .borrow_mut()
                        .push(at, bytes, &mut frames.borrow_mut())
                        .map_err(|oversized| oversized.to_string())
                },
                report,
            )
            .await;
        framer.into_inner().finish(at, &mut frames.borrow_mut());
        report();
        let whole = End::Whole {
            ends_answer: framing == Framing::Whole,
        };
        (broke.unwrap_or(whole), at)
    }

    /// Reads the beginning of an error reply.
    async fn error_body(&mut self) -> (End, Nanos) {
        let mut body = Vec::new();
        let (_, at) = self
            .each(
                |_, bytes| {
                    let room = EXPLAINED_BYTES - body.len();
                    body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                    Ok(())
                },
                || {},
            )
            .await;
        (End::Status(body), at)
    }
}

/// What a reply is that was to be streamed and is plainly something else.
fn not_a_stream(headers: &HeaderMap, framing: Framing) -> Option<String> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let (what, advice) = match (kind, framing) {
        ("text/html", _) => ("a web page", "is it the engine's port and path?"),
        ("application/json", Framing::EventStream) => (
            "one whole JSON document instead of a stream",
            "if the server does not stream, ask for whole replies (--disable-stream)",
        ),
        _ => return None,
    };
    Some(format!(
        "the server answered with {what} ({kind}); {advice}"
    ))
}

/// An error of the connection, with what lies beneath it.
fn in_words(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
