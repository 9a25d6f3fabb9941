//! A WebSocket during its exchange. Messages are sent when they are due, and the server's messages
//! are passed on as they arrive. Decoding reports the end of the answer.
//!
//! As with a [streamed](super::streaming) body, the poll loop reads it as soon as its socket is
//! ready. The task of the request reads it when woken: by a due message, a demand of decoding, a
//! timeout or room in the backlog. Sending does not depend on whether more may be read, and reading
//! does not depend on sending.

use std::cell::{OnceCell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Sleep;

use super::Reading;
use crate::drive::demand::{Demand, Outgoing};
use crate::drive::outbox::Outbox;
use crate::drive::types::End;
use crate::transport::poller::Watch;
use crate::transport::websocket::{Closed, Incoming, WebSocket};
use crate::transport::{Broke, Marks};
use model::exchange::Class;
use model::units::Nanos;

/// Messages that are sent before the others on the thread get their turn.
const WRITES_IN_A_ROW: usize = 16;
/// Sends before the first output that are kept before sends that cannot matter are left out.
const INPUTS: usize = 1024;

/// The instants at which messages were handed to the socket, up to the first output as far as it is
/// known.
pub type Inputs = Rc<RefCell<Vec<Nanos>>>;

/// The end of a conversation.
pub struct Over<Io: AsyncRead + AsyncWrite + Unpin> {
    /// The way it ended.
    pub end: End,
    /// The instant of its end.
    pub at: Nanos,
    pub socket: WebSocket<Io>,
}

struct Conversation<Io: AsyncRead + AsyncWrite + Unpin> {
    /// The task that waits for the end.
    task: OnceCell<Waker>,
    state: RefCell<State<Io>>,
}

struct State<Io: AsyncRead + AsyncWrite + Unpin> {
    reading: Reading,
    socket: WebSocket<Io>,
    marks: Rc<Marks>,
    outbox: Outbox,
    demands: UnboundedReceiver<Demand>,
    /// Rings when the next message is due.
    alarm: Option<Pin<Box<Sleep>>>,
    /// True if a message is being written.
    is_writing: bool,
    inputs: Inputs,
    /// Its end and the end's instant; absent before.
    ended: Option<(End, Nanos)>,
}

impl Incoming for Reading {
    fn message(&mut self, at: Nanos, name: &'static str, bytes: &[u8]) {
        self.gate.read(bytes.len());
        self.frames.push(at, Some(name.to_owned()), bytes);
        self.last_frame = at;
    }
}

impl Reading {
    /// Sends these messages over a WebSocket, and the messages that decoding demands, and reports
    /// the server's messages. Puts the instant of each send into `inputs`, also if the wait is
    /// given up.
    pub async fn converse<Io>(
        self,
        socket: WebSocket<Io>,
        (messages, inputs): (Vec<Outgoing>, Inputs),
        demands: UnboundedReceiver<Demand>,
    ) -> Over<Io>
    where
        Io: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let readiness = socket.readiness().map(Rc::clone);
        let opened = self.timer.clock.now();
        let mut state = State {
            marks: Rc::clone(&self.marks),
            outbox: Outbox::new(opened, self.backlog.hold()),
            reading: self,
            socket,
            demands,
            alarm: None,
            is_writing: false,
            inputs,
            ended: None,
        };
        for message in messages {
            state.add(message, opened);
        }
        let conversation =
            Rc::new(Conversation { task: OnceCell::new(), state: RefCell::new(state) });
        let watching =
            (readiness.as_ref()).map(|readiness| readiness.watch(Rc::clone(&conversation) as _));
        let (end, at) = poll_fn(|cx| {
            conversation.task.get_or_init(|| cx.waker().clone());
            conversation.state.borrow_mut().poll(cx)
        })
        .await;
        drop(watching);
        let State { mut reading, socket, .. } =
            Rc::into_inner(conversation).expect("it is watched no longer").state.into_inner();
        reading.is_over = true;
        reading.hand_on();
        Over { end, at, socket }
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin + 'static> Watch for Conversation<Io> {
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
}

impl<Io: AsyncRead + AsyncWrite + Unpin + 'static> State<Io> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(End, Nanos)> {
        if self.ended.is_none() {
            self.turn(cx);
        }
        match self.ended.take() {
            Some(ended) => Poll::Ready(ended),
            None => Poll::Pending,
        }
    }

    /// Sends and reads as far as possible. Wakes the task of this context when there is more to do.
    fn turn(&mut self, cx: &mut Context<'_>) {
        self.listen(cx);
        if self.ended.is_none() {
            self.write(cx);
        }
        if self.ended.is_none() {
            self.read(cx);
        }
    }

    fn end(&mut self, class: Class, what: String, at: Nanos) {
        self.ended = Some((End::Broke(class, what), at));
    }

    fn add(&mut self, outgoing: Outgoing, now: Nanos) {
        if let Err(what) = self.outbox.add(outgoing, now) {
            self.end(Class::Protocol, what, now);
        }
    }

    /// Takes the demands of decoding.
    fn listen(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(demand)) = self.demands.poll_recv(cx) {
            let now = self.reading.timer.clock.now();
            match demand {
                Demand::Send(outgoing) => self.add(outgoing, now),
                Demand::Proceed => self.outbox.proceed(now),
                // Only exchanges of several requests have steps.
                Demand::Ended | Demand::Step(_) => {
                    let whole = End::Whole { ends_answer: false };
                    self.ended = Some((whole, self.reading.last_frame));
                }
            }
            if self.ended.is_some() {
                return;
            }
        }
    }

    /// Sends the messages that are due.
    fn write(&mut self, cx: &mut Context<'_>) {
        for _ in 0..WRITES_IN_A_ROW {
            // Read before the write: a server may have answered when the write returns.
            let now = self.reading.timer.clock.now();
            // The reading side reports why nothing can be sent.
            let Poll::Ready(Ok(())) = self.socket.poll_write(cx) else {
                return;
            };
            if std::mem::take(&mut self.is_writing) {
                self.wrote(now);
            }
            if !self.socket.has_room() {
                return;
            }
            let Some(due) = self.outbox.due() else {
                self.alarm = None;
                return;
            };
            if let Some(message) = self.outbox.take(now) {
                match self.socket.put(message) {
                    Ok(()) => self.is_writing = true,
                    Err(what) => return self.end(Class::Protocol, what, now),
                }
                continue;
            }
            let until = self.reading.timer.clock.instant(due);
            let alarm = match &mut self.alarm {
                Some(alarm) => {
                    if alarm.deadline() != until {
                        alarm.as_mut().reset(until);
                    }
                    alarm
                }
                None => self.alarm.insert(Box::pin(tokio::time::sleep_until(until))),
            };
            if alarm.as_mut().poll(cx).is_pending() {
                return;
            }
        }
        cx.waker().wake_by_ref();
    }

    /// A message was handed to the socket at this instant.
    fn wrote(&mut self, now: Nanos) {
        self.marks.written.set(Some(now));
        let progress = self.reading.reply.progress();
        if progress.has_output() {
            return;
        }
        let mut inputs = self.inputs.borrow_mut();
        if inputs.len() >= INPUTS {
            // Up to there, everything is decoded and nothing was output.
            let decoded = progress.decoded();
            let keep = inputs.iter().rposition(|sent| *sent <= decoded);
            inputs.drain(..keep.unwrap_or(0));
        }
        inputs.push(now);
    }

    /// Reads the bytes that have come, and checks the conditions that end the reading.
    fn read(&mut self, cx: &mut Context<'_>) {
        let reading = &mut self.reading;
        if reading.poll_gate(cx).is_pending() {
            return;
        }
        let read = self.socket.poll_messages(cx, &self.marks, reading);
        if !reading.frames.is_empty() {
            // Messages may be answered, and the end is one of them.
            reading.hand_on();
        }
        let memory = self.socket.memory();
        reading.held.set(reading.frames.memory() + memory);
        if let Poll::Ready(read) = read {
            let at = self.socket.last_read();
            return match read {
                Ok(closed) => {
                    let (class, what) = unasked(&closed);
                    self.end(class, what, at);
                }
                Err(Broke::Connection(what)) => self.end(Class::Truncated, what, at),
                Err(Broke::Refused(what)) => self.end(Class::Protocol, what, at),
            };
        }
        if let Poll::Ready((class, what)) = reading.poll_timer(cx) {
            let now = reading.timer.clock.now();
            return self.end(class, what, now);
        }
        reading.poll_stall(cx);
    }
}

/// Classifies a close before the answer is complete: a failure of the server, if its code says one,
/// else an answer that is cut off.
fn unasked(closed: &Closed) -> (Class, String) {
    let class = if closed.is_regular() { Class::Truncated } else { Class::InBandError };
    let what = format!("the server closed the WebSocket {closed}");
    (class, what)
}
