//! A reader worker: holds connections to the targets, sends the requests it is given at once,
//! reads their replies and cuts them into frames.
//!
//! It runs on a current-thread runtime of its own and shares nothing but queues: orders come in,
//! frames go out to be decoded ([`Replies`]). Each request has a task. While replies stream, one
//! further task reads the replies of all the thread's requests
//! ([`poller`](crate::transport::poller)). No plugin code runs here.
//!
//! A reader naps: the kernel's timestamps do not depend on the time of a read. So with 32 streams
//! or more it reads all arrived bytes every half millisecond. In a closed loop or with a cap, a nap
//! is at most a thousandth of a reply's time. With the program's own timestamps there is none.
//! Timers are checked when they ring and not with every event. The backend decides whether a frame
//! has a token, so all arrived frames are decoded before a request is given up.

pub mod demand;
pub mod jars;
mod pool;
mod reading;
mod talk;
pub mod worker_handle;

pub use reading::SPARE_BYTES;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use hyper::HeaderMap;
use tokio::sync::mpsc;
use tokio::task::{JoinError, LocalSet};
use tokio_util::sync::CancellationToken;

use crate::backlog::{Backlog, BacklogBytes};
use crate::pace::Signal;
use crate::question::Question;
use crate::thread_group::trip;
use crate::transport::poller::Poller;
use crate::transport::websocket::{Handshake, Message};
use crate::transport::{Connect, Marks, Request};
use demand::{Course, Demand, Kind, Outgoing};
use jars::Jars;
use model::clock::Clock;
use model::connection::{Reuse, Timeouts};
use model::exchange::{Class, Due, Open};
use model::frame::{Frames, Framing, OUTGOING_BYTES};
use model::units::Nanos;
use pool::Pool;
use reading::Inputs;
use talk::Trail;
use worker_handle::InFlight;

impl<C: Connect + Clone + 'static> Worker<C> {
    /// Works until the orders end and every request is over.
    pub async fn run(self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let local = LocalSet::new();
        // If the system has no epoll left, sockets stay with the runtime.
        let (poller, poll_loop) = Poller::new().ok().unzip();
        let (halt, abort) = (Rc::new(CancellationToken::new()), Rc::new(CancellationToken::new()));
        let worker = Rc::new(self);
        let pool = Rc::new(Pool::new(&worker, poller));
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
                let mut is_open = true;
                while is_open || !tasks.is_empty() {
                    tokio::select! {
                        biased;
                        order = orders.recv(), if is_open => match order {
                            Some(Order::Open(count)) => {
                                aside.spawn_local(Rc::clone(&pool).open_ahead(count));
                            }
                            Some(Order::Send(job, in_flight)) => {
                                let target = job.exchange.prepared.target;
                                if worker.spare > 0 && pool.idle(target) <= worker.spare {
                                    aside.spawn_local(Rc::clone(&pool).open_spare(target));
                                }
                                let (worker, pool) = (Rc::clone(&worker), Rc::clone(&pool));
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
                            Some(Order::Halt) => halt.cancel(),
                            Some(Order::Abort) => abort.cancel(),
                            None => is_open = false,
                        },
                        Some(ended) = tasks.join_next() => passed_on(ended),
                        Some(ended) = aside.join_next() => passed_on(ended),
                    }
                }
            })
            .await;
    }

    async fn serve(
        self: Rc<Self>,
        pool: Rc<Pool<C>>,
        (halt, abort): (Rc<CancellationToken>, Rc<CancellationToken>),
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
                    () = abort.cancelled() => End::Broke(
                        Class::Interrupted,
                        "the run was stopped while the reply was arriving".to_owned(),
                    ),
                    () = tokio::time::sleep(limit) => End::Broke(
                        Class::RequestTimeout,
                        format!("the reply took longer than {}", model::duration::format(limit)),
                    ),
                    after = self.left(&trail.first, cancelled_after) => End::Broke(
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
        // The pacer must know that requests may follow before it sees the slot free.
        let freed = self.clock.now();
        reply.closed(Box::new(exchange), end);
        if let Some(sent) = trail.first.sent.get() {
            in_flight.lasted(freed.since(sent));
        }
        drop(in_flight);
        self.signal.release(key, freed);
    }

    /// Waits until the user of a request leaves, if ever, and returns the time since it was sent.
    async fn left(&self, marks: &Marks, after: Option<Nanos>) -> Duration {
        let Some(after) = after else { return std::future::pending().await };
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

/// Each message is a frame, as each event of a stream is.
const FRAMING: Framing = Framing::EventStream;

/// Statuses from here on refuse a handshake, and the backend explains them.
const REFUSED: u16 = 300;

impl<C: Connect + Clone + 'static> Worker<C> {
    /// Opens a WebSocket, sends these messages and the messages that decoding demands, and reads
    /// the server's. Puts the instant of each send into `inputs`.
    async fn converse(
        &self,
        pool: &Rc<Pool<C>>,
        exchange: &mut Open,
        (request, messages): (Request, Vec<Outgoing>),
        (key, reply): (u64, &Rc<dyn Reply>),
        trail: &Trail,
        inputs: &Inputs,
    ) -> End {
        let place = exchange.request.prepared.target;
        let (request, handshake) = match Handshake::begin(request) {
            Ok(begun) => begun,
            Err(what) => return End::Broke(Class::Refused, what),
        };
        let asking = (request, place, FRAMING, false);
        // Never reserved for a conversation: it carries nothing afterwards.
        let reply_head = self.ask(pool, exchange, asking, None, (key, reply), trail).await;
        let (mut connection, mut reading, head) = match reply_head {
            Ok(parts) => parts,
            Err(end) => return end,
        };
        if head.status >= REFUSED {
            let (end, at) = reading.error_body(&mut connection, &head.headers).await;
            exchange.ended = Some(at);
            if connection.rest(self.clock.now()) {
                pool.put_back(place, None, connection);
            }
            return end;
        }
        if let Err(wrong) = handshake.check(&head) {
            return End::Broke(Class::Protocol, wrong);
        }
        let Some(socket) = connection.into_websocket() else {
            let what = "a WebSocket was to be opened over HTTP/2, and needs HTTP/1.1";
            return End::Broke(Class::Protocol, what.to_owned());
        };
        let demands = reply.demands(place, Kind::Socket);
        reply.head(head.status, &head.headers, FRAMING, Vec::new());
        let inputs = Inputs::clone(inputs);
        let over = reading.converse(socket, (messages, inputs), demands).await;
        exchange.ended = Some(over.at);
        if matches!(over.end, End::Whole { .. }) {
            pool.leave(over.socket);
        }
        over.end
    }
}

// A future that is only polled when it has something to say. The task of a reply is woken for every
// event, and polling its rare timers each time costs more than cutting the event.

/// Wraps a future of a task. It must stay with the task that first polls it.
struct LazyTimer<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Rings when the future is to be polled, and wakes its task.
struct Bell {
    rung: AtomicBool,
    task: OnceLock<Waker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

impl<F: Future> LazyTimer<F> {
    pub fn new(future: F) -> Self {
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: OnceLock::new() });
        LazyTimer { future: Box::pin(future), waker: Waker::from(Arc::clone(&bell)), bell }
    }

    /// Changes the future, which is then polled again.
    pub fn change(&mut self, change: impl FnOnce(Pin<&mut F>)) {
        change(self.future.as_mut());
        self.bell.rung.store(true, Ordering::Release);
    }

    /// Has the processor fetch the memory that [`poll`](Self::poll) reads first.
    pub fn fetch(&self) {
        prefetch::line(Arc::as_ptr(&self.bell));
    }

    /// Polls the future if it has never been polled, or was woken since.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        // The look costs far less than the exchange, and mostly finds nothing.
        if !self.bell.rung.load(Ordering::Acquire) || !self.bell.rung.swap(false, Ordering::AcqRel)
        {
            return Poll::Pending;
        }
        self.bell.task.get_or_init(|| cx.waker().clone());
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

pub enum Order {
    /// Have this many connections open and idle.
    Open(usize),
    /// Send this now. It counts as in flight until it has ended.
    Send(Box<Job>, InFlight),
    /// Ask this question, outside of all requests.
    Ask(Box<Question>),
    /// Send no further request of exchanges that have several; the replies under way are read.
    Halt,
    Abort,
}

pub struct Job {
    pub key: u64,
    /// The request, and when it was due.
    pub exchange: Due,
    /// The request, the first if there are several.
    pub request: Request,
    pub framing: Framing,
    pub course: Course,
    /// The conversation it belongs to, if connections are reserved for conversations.
    pub session: Option<Arc<str>>,
    /// The time after sending at which the client hangs up on purpose.
    pub cancelled_after: Option<Nanos>,
}

/// The receiver of a run's replies.
pub trait Replies: Send + Sync {
    /// The request of this number is about to be sent.
    fn open(&self, key: u64) -> Rc<dyn Reply>;
}

pub trait Reply {
    /// Opens the way back from decoding, where replies decide the next request. `place` is the
    /// number of the target. Asked once, on the reader's thread, before anything is sent.
    fn demands(&self, place: u32, kind: Kind) -> mpsc::UnboundedReceiver<Demand>;

    /// Takes the head of a reply that is decoded, with its framing and its request's context.
    fn head(&self, status: u16, headers: &HeaderMap, framing: Framing, context: Vec<u8>);

    /// Takes frames in order, with the instant of the handover and their share of the backlog.
    fn frames(&self, frames: Frames, handed_on: Nanos, held: BacklogBytes);

    /// One of several replies came to its proper end. A demand follows.
    fn turned(&self);

    /// The exchange ended: the transport's record of it, and its end. Called once, and last.
    fn closed(&self, exchange: Box<Open>, end: End);

    fn progress(&self) -> &DecodeProgress;
}

/// The progress of a reply's decoding, for token timeouts. Nanoseconds; 0 if there is none.
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
        /// True if that is also the end of the answer; otherwise the backend finds the end.
        ends_answer: bool,
    },
    /// Another status.
    Status {
        body: Vec<u8>,
        /// The server's retry-after, in its own words.
        retry_after: Option<String>,
    },
    Broke(Class, String),
}

#[derive(Clone)]
pub struct Worker<C> {
    pub connect: C,
    pub targets: u32,
    /// Number of places that requests may go to: the targets, and hosts of further requests.
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
    /// The number of idle connections to keep ready beyond ordered ones, for due requests.
    pub spare: usize,
    /// Counts connections that were opened ahead, or could not be.
    pub opened: Arc<OpenAttempts>,
    pub jars: Option<Arc<Jars>>,
}

/// Connections opened ahead of need.
#[derive(Debug, Default)]
pub struct OpenAttempts {
    pub settled: AtomicUsize,
    pub failed: AtomicUsize,
}

/// A panic of a task is one of its thread: the runtime would keep it to itself.
fn passed_on(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

// The unsent messages of one WebSocket: the next one, and its due time. Pure. A delay counts from
// the due time of the previous message, even if that was sent late, so delays do not add up. A held
// message, or an answer to the server, is not due before its release or demand.

/// The size that a message counts as, in addition to its content.
const MESSAGE_BYTES: usize = size_of::<Waiting>();

struct Outbox {
    waiting: VecDeque<Waiting>,
    /// Counts the total size of the messages in the run's bound.
    held: BacklogBytes,
    /// Due time of the last message taken; at first, the instant at which the connection was open.
    last_due: Nanos,
}

struct Waiting {
    message: Message,
    delay: Nanos,
    is_held: bool,
    /// The instant from which its delay counts at the earliest.
    from: Nanos,
}

impl Outbox {
    /// Nothing waits, on a connection that was open at this instant.
    pub fn new(opened: Nanos, held: BacklogBytes) -> Self {
        Outbox { waiting: VecDeque::new(), held, last_due: opened }
    }

    /// Adds a message that was demanded at this instant. Fails if too much waits.
    pub fn add(&mut self, outgoing: Outgoing, now: Nanos) -> Result<(), String> {
        let Outgoing { message, delay, hold } = outgoing;
        self.held.set(self.held.bytes() + MESSAGE_BYTES + message.len());
        if self.held.bytes() > OUTGOING_BYTES {
            return Err(format!(
                "more than {} MiB wait to be sent over the WebSocket; does the server read?",
                OUTGOING_BYTES >> 20
            ));
        }
        self.waiting.push_back(Waiting { message, delay, is_held: hold, from: now });
        Ok(())
    }

    /// Releases the first held message, and with it those behind it, up to the next held one.
    pub fn proceed(&mut self, now: Nanos) {
        if let Some(held) = self.waiting.iter_mut().find(|waiting| waiting.is_held) {
            held.is_held = false;
            held.from = now;
        }
    }

    /// Returns the due time of the next message; absent without one, or if it is held.
    pub fn due(&self) -> Option<Nanos> {
        let next = self.waiting.front().filter(|next| !next.is_held)?;
        Some(self.last_due.max(next.from) + next.delay)
    }

    /// Takes the next message, if it is due.
    pub fn take(&mut self, now: Nanos) -> Option<Message> {
        let due = self.due().filter(|due| *due <= now)?;
        let next = self.waiting.pop_front()?;
        self.last_due = due;
        self.held.set(self.held.bytes() - MESSAGE_BYTES - next.message.len());
        Some(next.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[tokio::test(start_paused = true)]
    async fn timer_is_polled_only_after_a_wake() {
        let polls = Cell::new(0);
        let mut sleep = Box::pin(tokio::time::sleep(Duration::from_millis(5)));
        let mut lazy_timer = LazyTimer::new(poll_fn(|cx| {
            polls.set(polls.get() + 1);
            sleep.as_mut().poll(cx)
        }));
        let mut others = tokio::time::interval(Duration::from_millis(1));
        poll_fn(|cx| {
            while others.poll_tick(cx).is_ready() {}
            lazy_timer.poll(cx)
        })
        .await;
        assert_eq!(polls.get(), 2);
    }

    fn empty(opened: Nanos) -> Outbox {
        Outbox::new(opened, Backlog::new(Clock::start(), 1 << 30).hold())
    }

    fn outgoing(text: &str, delay: u64, hold: bool) -> Outgoing {
        Outgoing { message: Message::Text(text.to_owned()), delay: Nanos(delay), hold }
    }

    fn outbox(messages: &[(&str, u64, bool)]) -> Outbox {
        let mut outbox = empty(Nanos(100));
        for (text, delay, hold) in messages {
            let added = outbox.add(outgoing(text, *delay, *hold), Nanos(100));
            assert_eq!(added, Ok(()));
        }
        outbox
    }

    /// The messages that are taken at this instant, in order.
    fn taken(outbox: &mut Outbox, now: u64) -> String {
        let texts = std::iter::from_fn(|| outbox.take(Nanos(now)));
        let texts = texts.map(|message| match message {
            Message::Text(text) => text,
            Message::Binary(_) => panic!("none was put"),
        });
        texts.collect()
    }

    #[test]
    fn delays_count_from_the_previous_due_time() {
        let mut outbox = outbox(&[("a", 0, false), ("b", 10, false), ("c", 10, false)]);
        assert_eq!(taken(&mut outbox, 100), "a");
        assert_eq!(outbox.due(), Some(Nanos(110)));
        assert_eq!(taken(&mut outbox, 109), "");
        // Late, which the next one is not for that.
        assert_eq!(taken(&mut outbox, 118), "b");
        assert_eq!(outbox.due(), Some(Nanos(120)));
        assert_eq!(taken(&mut outbox, 120), "c");
        assert_eq!(outbox.due(), None);
    }

    #[test]
    fn held_message_blocks_the_queue_until_proceed() {
        let messages = [("a", 0, false), ("b", 5, true), ("c", 0, false), ("d", 0, true)];
        let mut outbox = outbox(&messages);
        assert_eq!(taken(&mut outbox, 500), "a");
        assert_eq!(outbox.due(), None);
        outbox.proceed(Nanos(600));
        assert_eq!(outbox.due(), Some(Nanos(605)));
        assert_eq!(taken(&mut outbox, 605), "bc");
        outbox.proceed(Nanos(610));
        assert_eq!(taken(&mut outbox, 610), "d");
        outbox.proceed(Nanos(620));
        assert_eq!(outbox.due(), None);
    }

    #[test]
    fn early_release_does_not_send_a_message_early() {
        let mut outbox = outbox(&[("a", 50, false), ("b", 5, true)]);
        outbox.proceed(Nanos(110));
        assert_eq!(taken(&mut outbox, 149), "");
        assert_eq!(taken(&mut outbox, 150), "a");
        assert_eq!(outbox.due(), Some(Nanos(155)));
    }

    #[test]
    fn answer_delay_counts_from_its_demand() {
        let mut outbox = outbox(&[("a", 0, false)]);
        assert_eq!(taken(&mut outbox, 100), "a");
        assert_eq!(outbox.add(outgoing("b", 20, false), Nanos(1_000)), Ok(()));
        assert_eq!(outbox.due(), Some(Nanos(1_020)));
    }

    #[test]
    fn queue_of_messages_is_bounded() {
        let backlog = Backlog::new(Clock::start(), 1 << 30);
        let mut outbox = Outbox::new(Nanos::ZERO, backlog.hold());
        let piece = || Outgoing {
            message: Message::Binary(vec![0; 1 << 20]),
            delay: Nanos::ZERO,
            hold: false,
        };
        let added = std::iter::from_fn(|| outbox.add(piece(), Nanos::ZERO).ok());
        assert_eq!(added.take(1_000).count(), (OUTGOING_BYTES >> 20) - 1);
        assert!(backlog.bytes() > OUTGOING_BYTES - (1 << 20), "the run counts what waits");
        drop(outbox);
        assert_eq!(backlog.bytes(), 0);
        let mut outbox = empty(Nanos::ZERO);
        for _ in 0..10_000 {
            outbox.add(piece(), Nanos::ZERO).unwrap();
            outbox.take(Nanos::ZERO).unwrap();
        }
        let added = std::iter::from_fn(|| outbox.add(outgoing("", 0, false), Nanos::ZERO).ok());
        assert!(added.take(10_000_000).count() < OUTGOING_BYTES / MESSAGE_BYTES + 1);
    }
}
