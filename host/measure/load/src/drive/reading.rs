//! Reads one reply: passes frames to the decode thread, and applies the timeouts. The task of the
//! request sends it and waits for the head. Then [`streaming`] reads, and the task waits for the
//! end, timers, room in the backlog, and orders to give up.

mod conversation;

use std::cell::{OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::RETRY_AFTER;
use tokio::time::Sleep;

pub(super) use conversation::Inputs;

use super::{End, LazyTimer, Reply, Worker};
use crate::backlog::{Backlog, BacklogBytes, Gate};
use crate::transport::poller::{Ahead, Readiness, Watch};
use crate::transport::{
    self, Broke, ByteStream, Connection, Head, Marks, Request, Sink, Unanswered,
};
use model::clock::Clock;
use model::connection::Timeouts;
use model::exchange::Class;
use model::frame::{Framer, Frames, Framing};
use model::units::Nanos;

/// Most bytes of an error reply that are kept for the backend to explain.
const EXPLAINED_BYTES: usize = 64 << 10;
/// Frames passed to the decode thread together: a pass may cost more than decoding a frame.
const BATCH_FRAMES: usize = 32;
/// Or this many bytes of them, so that ten thousand replies under way take little memory.
const BATCH_BYTES: usize = 8 << 10;
/// The most memory of a batch that is kept for another one.
pub const SPARE_BYTES: usize = 2 * BATCH_BYTES;
/// Or the frames of this much time, because the figures shown during a run must be current.
const BATCH_TIME: Nanos = Nanos(1_000_000_000);

/// A reply that may read at the bound, but received nothing for this long, lets another go on.
const STALLED: Duration = Duration::from_millis(100);

/// The reason why a reply has no head.
pub(super) enum NoHead {
    /// The request was sent in vain, or it took too long.
    GivenUp(Class, String),
    /// The connection takes no more requests; this one was not sent.
    Unsent(Request),
}

pub(super) struct Reading {
    reply: Rc<dyn Reply>,
    marks: Rc<Marks>,
    /// The instants of the request that the answer is the answer to: of several, the first.
    first: Rc<Marks>,
    /// True if it is one of several of its exchange.
    is_step: bool,
    framing: Framing,
    framer: Framer,
    frames: Frames,
    /// Arrival of the first held frame.
    held_since: Nanos,
    handed_on: bool,
    /// True if no more frames come.
    is_over: bool,
    last_frame: Nanos,
    timer: TokenTimer,
    backlog: Arc<Backlog>,
    gate: Gate,
    /// Rings when nothing came for a while, where others wait for this reply.
    stall: Option<Pin<Box<Sleep>>>,
    /// Counts the pieces and frames that are held here.
    held: BacklogBytes,
    /// Bytes of the body so far.
    bytes: u64,
}

pub(super) struct FinishedReply<Io> {
    pub end: End,
    pub at: Nanos,
    pub connection: Connection<Io>,
    /// Until when it was not read, because this client was behind.
    pub excused: Nanos,
    pub bytes: u64,
}

impl Reading {
    /// Of a request with these instants, whose exchange this client held up until `excused`.
    pub fn new<C>(
        worker: &Worker<C>,
        (key, reply): (u64, &Rc<dyn Reply>),
        (framing, is_step): (Framing, bool),
        (marks, first): (&Rc<Marks>, &Rc<Marks>),
        excused: Nanos,
    ) -> Self {
        Reading {
            reply: Rc::clone(reply),
            marks: Rc::clone(marks),
            first: Rc::clone(first),
            is_step,
            framing,
            framer: Framer::new(framing),
            frames: Frames::default(),
            held_since: Nanos::ZERO,
            handed_on: false,
            is_over: false,
            last_frame: Nanos::ZERO,
            timer: TokenTimer::new(worker.clock, worker.timeouts, excused),
            backlog: Arc::clone(&worker.backlog),
            gate: Gate::new(&worker.backlog, key),
            stall: None,
            held: worker.backlog.hold(),
            bytes: 0,
        }
    }

    /// True if tokens have timeouts: not in a reply in one piece, unless it is one of several.
    fn is_timed(&self) -> bool {
        self.framing != Framing::Whole || self.is_step
    }

    /// Waits for the reply's head; if tokens have timeouts, no longer than for the next token.
    pub async fn head(
        &mut self,
        reply: impl Future<Output = Result<Head, Unanswered>>,
    ) -> Result<Head, NoHead> {
        let mut reply = std::pin::pin!(reply);
        poll_fn(|cx| {
            if let Poll::Ready(head) = reply.as_mut().poll(cx) {
                return Poll::Ready(head.map_err(|unanswered| match unanswered {
                    Unanswered::Broke(cause) => NoHead::GivenUp(Class::Reset, cause),
                    Unanswered::Unsent(request) => NoHead::Unsent(request),
                }));
            }
            let output = self.is_step.then(|| self.reply.progress().output()).flatten();
            if self.is_timed()
                && let Poll::Ready((class, what)) =
                    self.timer.poll_head(cx, self.first.sent.get(), output)
            {
                return Poll::Ready(Err(NoHead::GivenUp(class, what)));
            }
            Poll::Pending
        })
        .await
    }

    /// Reads the beginning of an error reply.
    pub async fn error_body<Io: ByteStream>(
        &mut self,
        connection: &mut Connection<Io>,
        headers: &HeaderMap,
    ) -> (End, Nanos) {
        let mut body = Beginning(Vec::new());
        let idle = Duration::from(self.timer.timeouts.token_gap);
        let marks = Rc::clone(&self.marks);
        let read = poll_fn(|cx| {
            if self.gate.poll(cx).is_pending() {
                return Poll::Pending;
            }
            let read = connection.poll_body(cx, &marks, &mut body);
            self.held.set(body.0.len());
            read
        });
        // The received part of a body still holds its reason.
        let _ = tokio::time::timeout(idle, read).await;
        let retry_after = headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
        let end = End::Status { body: body.0, retry_after: retry_after.map(str::to_owned) };
        (end, connection.last_read())
    }

    /// Waits while too many bytes are still to be decoded. Token timeouts do not run meanwhile.
    fn poll_gate(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let was_closed = self.gate.is_closed();
        let polled = self.gate.poll(cx);
        if polled.is_pending() {
            // Complete frames can be decoded, and make room.
            self.hand_on();
            self.frames = Frames::default();
            self.count();
        } else if was_closed {
            self.timer.excuse();
        }
        polled
    }

    /// Lets another reply go on if this one may read at the bound, and has nothing to read.
    fn poll_stall(&mut self, cx: &mut Context<'_>) {
        let has_read = self.gate.has_read();
        if !self.gate.is_exempt() {
            self.stall = None;
            return;
        }
        if has_read {
            self.stall = Some(Box::pin(tokio::time::sleep(STALLED)));
        }
        if self.stall.as_mut().is_none_or(|stall| stall.as_mut().poll(cx).is_ready()) {
            self.stall = None;
            self.gate.end_exemption();
        }
    }

    /// Prefetches the data that these fields point to and the next bytes need.
    fn fetch(&self) {
        for address in self.frames.next_writes() {
            prefetch::line(address);
        }
        if let Some(alarm) = &self.timer.alarm {
            alarm.fetch();
        }
    }

    fn count(&mut self) {
        self.held.set(self.framer.memory() + self.frames.memory());
    }

    /// Passes the held frames on to be decoded.
    fn hand_on(&mut self) {
        if self.frames.is_empty() {
            return;
        }
        self.handed_on = true;
        // With many replies, frames that wait for their batch fill the bound too.
        let next = match self.is_over || self.backlog.is_tight() {
            true => Frames::default(),
            false => self.backlog.spares.take().unwrap_or_else(|| self.like_these()),
        };
        let frames = std::mem::replace(&mut self.frames, next);
        let queued = self.backlog.queue(frames.memory());
        self.reply.frames(frames, self.timer.clock.now(), queued);
        self.gate.end_exemption();
    }

    /// Empty frames with room for a batch as large as the current one, if it has several frames.
    fn like_these(&self) -> Frames {
        match self.frames.len() {
            0..=1 => Frames::default(),
            frames => Frames::with_capacity(
                frames.min(BATCH_FRAMES),
                self.frames.bytes().len().min(BATCH_BYTES),
            ),
        }
    }

    /// True if the next token is overdue, once everything that has arrived is decoded.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<(Class, String)> {
        while self.timer.poll_alarm(cx).is_ready() {
            self.hand_on();
            if !self.wait_until_decoded() {
                self.timer.excuse();
            }
            let output = self.reply.progress().output();
            if let Some(given_up) = self.timer.judge(self.first.sent.get(), output) {
                return Poll::Ready(given_up);
            }
        }
        Poll::Pending
    }

    /// Blocks until the last frame is decoded, or for a twentieth of a second; returns whether it
    /// is. Timeouts must not depend on how busy the decode threads are.
    fn wait_until_decoded(&self) -> bool {
        for _ in 0..1_000 {
            if self.reply.progress().decoded() >= self.last_frame {
                return true;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        false
    }
}

impl Drop for Reading {
    /// A reply that is given up in the middle keeps its record so far.
    fn drop(&mut self) {
        self.is_over = true;
        self.hand_on();
    }
}

impl Sink for Reading {
    fn take(&mut self, at: Nanos, bytes: &[u8]) -> Result<(), String> {
        self.gate.read(bytes.len());
        self.bytes += bytes.len() as u64;
        let held = self.frames.len();
        self.framer.push(at, bytes, &mut self.frames).map_err(|cannot| cannot.to_string())?;
        if self.frames.len() == held {
            return Ok(());
        }
        self.last_frame = at;
        if held == 0 {
            self.held_since = at;
        }
        if !self.handed_on
            || self.backlog.is_tight()
            || self.frames.len() >= BATCH_FRAMES
            || self.frames.bytes().len() >= BATCH_BYTES
            || at.since(self.held_since) >= BATCH_TIME
        {
            self.hand_on();
        }
        Ok(())
    }

    fn trailers(&mut self, at: Nanos, fields: &HeaderMap) -> Result<(), String> {
        match self.framing {
            Framing::Grpc => self.take(at, &transport::trailers(fields)),
            _ => Ok(()),
        }
    }
}

/// Waits until an instant before a next request of an exchange, whose first request has these
/// instants, and which this client held up until `excused`. Fails if a token is overdue before.
pub(super) async fn pause<C>(
    worker: &Worker<C>,
    reply: &Rc<dyn Reply>,
    (sent, excused): (Option<Nanos>, Nanos),
    until: Nanos,
) -> Result<(), End> {
    let mut timer = TokenTimer::new(worker.clock, worker.timeouts, excused);
    // Nothing more is decoded meanwhile.
    let output = reply.progress().output();
    tokio::select! {
        biased;
        () = tokio::time::sleep_until(worker.clock.instant(until)) => Ok(()),
        (class, what) = poll_fn(|cx| timer.poll_head(cx, sent, output)) => {
            Err(End::Broke(class, what))
        }
    }
}

struct Beginning(Vec<u8>);

impl Sink for Beginning {
    fn take(&mut self, _: Nanos, bytes: &[u8]) -> Result<(), String> {
        let room = EXPLAINED_BYTES - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room { Err("no more of it is kept".to_owned()) } else { Ok(()) }
    }
}

/// The timeouts for tokens. The timer is only set again when it has run out, not with every token.
struct TokenTimer {
    clock: Clock,
    timeouts: Timeouts,
    alarm: Option<LazyTimer<Sleep>>,
    /// Until when the reply was not read, because this client was behind.
    excused: Nanos,
}

impl TokenTimer {
    fn new(clock: Clock, timeouts: Timeouts, excused: Nanos) -> Self {
        TokenTimer { clock, timeouts, alarm: None, excused }
    }

    /// The reply was not read until now.
    fn excuse(&mut self) {
        self.excused = self.clock.now();
    }

    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let alarm = self.alarm.get_or_insert_with(|| {
            // The shortest timeout that may have passed.
            let gap = self.timeouts.token_gap;
            let shortest = self.timeouts.first_token.map_or(gap, |first| first.min(gap));
            let at = self.clock.instant(self.clock.now() + shortest);
            LazyTimer::new(tokio::time::sleep_until(at))
        });
        alarm.poll(cx)
    }

    /// Before a reply's head and between replies: without any answer, the first token's timeout.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        sent: Option<Nanos>,
        output: Option<Nanos>,
    ) -> Poll<(Class, String)> {
        if self.timeouts.first_token.is_some() || output.is_some() {
            while self.poll_alarm(cx).is_ready() {
                if let Some(given_up) = self.judge(sent, output) {
                    return Poll::Ready(given_up);
                }
            }
        }
        Poll::Pending
    }

    /// Gives up, or sets the timer for when a timeout may next pass.
    fn judge(&mut self, sent: Option<Nanos>, output: Option<Nanos>) -> Option<(Class, String)> {
        let now = self.clock.now();
        let gap = self.timeouts.token_gap;
        let (until, span, class, words) = match (output, self.timeouts.first_token) {
            (None, Some(first)) => {
                let words = "nothing of the answer arrived within";
                let until = sent.unwrap_or(now).max(self.excused) + first;
                (until, first, Class::FirstTokenTimeout, words)
            }
            (output, _) => {
                // Without one, checked again when a first token may have arrived, and a second not.
                let until = output.map_or(now, |output| output.max(self.excused)) + gap;
                (until, gap, Class::TokenGapTimeout, "no more of the answer arrived for")
            }
        };
        if now >= until {
            return Some((class, format!("{words} {}", model::duration::format(span.into()))));
        }
        if let Some(alarm) = &mut self.alarm {
            // If a first token arrives by then, the next one may be overdue before `until`.
            let glance = until.min(now + gap);
            alarm.change(|sleep| sleep.reset(self.clock.instant(glance)));
        }
        None
    }
}

struct Streaming<Io> {
    reading: Reading,
    connection: Connection<Io>,
    marks: Rc<Marks>,
}

impl Reading {
    /// Reads a reply that is decoded, and reports its frames as they arrive.
    pub async fn frames<Io: ByteStream>(mut self, connection: Connection<Io>) -> FinishedReply<Io> {
        if let Some(shared) = connection.shared() {
            self.gate.share(shared);
        }
        let marks = Rc::clone(&self.marks);
        let streaming = Streaming { marks, reading: self, connection };
        let (Streaming { mut reading, connection, .. }, (end, at)) = until_over(streaming).await;
        reading.is_over = true;
        match end {
            // Data too large for a frame is no frame.
            End::Broke(Class::Protocol, _) => {}
            End::Broke(..) => reading.framer.break_off(at, &mut reading.frames),
            _ => {
                reading.framer.finish(at, &mut reading.frames);
                // The reply to a step may have all its content in its head.
                if reading.framing == Framing::Whole && reading.is_step && reading.bytes == 0 {
                    reading.frames.push(at, None, b"");
                }
            }
        }
        reading.hand_on();
        let (excused, bytes) = (reading.timer.excused, reading.bytes);
        FinishedReply { end, at, connection, excused, bytes }
    }
}

impl<Io: ByteStream> Turn for Streaming<Io> {
    fn readiness(&self) -> Option<&Rc<Readiness>> {
        self.connection.readiness()
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Option<(End, Nanos)> {
        let reading = &mut self.reading;
        if reading.poll_gate(cx).is_pending() {
            return None;
        }
        let read = self.connection.poll_body(cx, &self.marks, reading);
        reading.count();
        if let Poll::Ready(read) = read {
            let end = match read {
                Ok(()) => End::Whole { ends_answer: reading.framing == Framing::Whole },
                Err(broke) => broken(broke),
            };
            return Some((end, self.connection.last_read()));
        }
        if reading.is_timed()
            && let Poll::Ready((class, what)) = reading.poll_timer(cx)
        {
            return Some((End::Broke(class, what), reading.timer.clock.now()));
        }
        reading.poll_stall(cx);
        None
    }

    fn fetch(&self) {
        prefetch::line(Rc::as_ptr(&self.marks));
        self.reading.fetch();
        self.connection.fetch();
    }
}

/// The end of a reply that broke off, or whose data was refused.
fn broken(broke: Broke) -> End {
    match broke {
        Broke::Connection(what) => End::Broke(Class::Truncated, what),
        Broke::Refused(what) => End::Broke(Class::Protocol, what),
    }
}

// A reply as an object beside its request's task. So the poll loop can read the reply as soon as
// its socket is ready (`Watch`). The task reads it too when it is woken; both do the same, one
// after the other on the same thread.
trait Turn {
    /// The readiness of its socket; absent if a task must wait for it.
    fn readiness(&self) -> Option<&Rc<Readiness>>;

    /// Reads as far as possible, and returns the end and its instant once the reply is over.
    fn turn(&mut self, cx: &mut Context<'_>) -> Option<(End, Nanos)>;

    /// Prefetches the data that its fields point to and the next turn needs.
    fn fetch(&self) {}
}

struct Watched<T> {
    /// The task that waits for the end.
    task: OnceCell<Waker>,
    state: RefCell<State<T>>,
}

struct State<T> {
    reply: T,
    ended: Option<(End, Nanos)>,
}

impl<T: Turn> State<T> {
    fn turn(&mut self, cx: &mut Context<'_>) {
        if self.ended.is_none() {
            self.ended = self.reply.turn(cx);
        }
    }
}

/// Reads until the end, and returns it with its instant.
async fn until_over<T: Turn + 'static>(reply: T) -> (T, (End, Nanos)) {
    let readiness = reply.readiness().map(Rc::clone);
    let state = RefCell::new(State { reply, ended: None });
    let watched = Rc::new(Watched { task: OnceCell::new(), state });
    let watching = readiness.as_ref().map(|readiness| readiness.watch(Rc::clone(&watched) as _));
    let ended = poll_fn(|cx| {
        watched.task.get_or_init(|| cx.waker().clone());
        let mut state = watched.state.borrow_mut();
        state.turn(cx);
        state.ended.take().map_or(Poll::Pending, Poll::Ready)
    })
    .await;
    drop(watching);
    let watched = Rc::into_inner(watched).expect("it is watched no longer");
    (watched.state.into_inner().reply, ended)
}

impl<T: Turn> Watch for Watched<T> {
    fn ready(&self) {
        // Before its first turn the task has not read, and will find the bytes that have come.
        let Some(task) = self.task.get() else { return };
        let mut state = self.state.borrow_mut();
        if state.ended.is_none() {
            state.turn(&mut Context::from_waker(task));
            if state.ended.is_some() {
                task.wake_by_ref();
            }
        }
    }

    fn fetch(&self, ahead: Ahead) {
        match ahead {
            Ahead::First => prefetch::line(self),
            Ahead::Far => prefetch::lines(self),
            Ahead::Near => {
                if let Ok(state) = self.state.try_borrow() {
                    state.reply.fetch();
                }
            }
        }
    }
}
