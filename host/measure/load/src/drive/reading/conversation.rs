//! A WebSocket during its exchange. Messages are sent when they are due, and the server's messages
//! are passed on as they arrive. Neither depends on the other; decoding reports the answer's end.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Sleep;

use super::{Reading, Turn, broken, until_over};
use crate::drive::demand::{Demand, Outgoing};
use crate::drive::{End, Outbox};
use crate::transport::poller::Readiness;
use crate::transport::websocket::{Closed, Incoming, WebSocket};
use crate::transport::{ByteStream, Marks};
use model::exchange::Class;
use model::units::Nanos;

/// Messages that are sent before the others on the thread get their turn.
const WRITES_IN_A_ROW: usize = 16;
/// Sends before the first output that are kept before sends that cannot matter are left out.
const INPUTS: usize = 1024;

/// The instants at which messages were handed to the socket, up to the first output if known.
pub type Inputs = Rc<RefCell<Vec<Nanos>>>;

/// The end of a conversation.
pub struct Over<Io: ByteStream> {
    pub end: End,
    /// The instant of its end.
    pub at: Nanos,
    pub socket: WebSocket<Io>,
}

struct Conversation<Io: ByteStream> {
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
}

impl Incoming for Reading {
    fn message(&mut self, at: Nanos, name: &'static str, bytes: &[u8]) {
        self.gate.read(bytes.len());
        self.frames.push(at, Some(name.to_owned()), bytes);
        self.last_frame = at;
    }
}

impl Reading {
    /// Sends these messages and the messages that decoding demands, and reports the server's. Puts
    /// the instant of each send into `inputs`.
    pub async fn converse<Io: ByteStream>(
        self,
        socket: WebSocket<Io>,
        (messages, inputs): (Vec<Outgoing>, Inputs),
        demands: UnboundedReceiver<Demand>,
    ) -> Over<Io> {
        let opened = self.timer.clock.now();
        let mut conversation = Conversation {
            marks: Rc::clone(&self.marks),
            outbox: Outbox::new(opened, self.backlog.hold()),
            reading: self,
            socket,
            demands,
            alarm: None,
            is_writing: false,
            inputs,
        };
        let outbox = &mut conversation.outbox;
        let added = messages.into_iter().try_for_each(|message| outbox.add(message, opened));
        let (conversation, (end, at)) = match added {
            Ok(()) => until_over(conversation).await,
            Err(what) => (conversation, (End::Broke(Class::Protocol, what), opened)),
        };
        let Conversation { mut reading, socket, .. } = conversation;
        reading.is_over = true;
        reading.hand_on();
        Over { end, at, socket }
    }
}

impl<Io: ByteStream> Turn for Conversation<Io> {
    fn readiness(&self) -> Option<&Rc<Readiness>> {
        self.socket.opened.readiness.as_ref()
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Option<(End, Nanos)> {
        self.listen(cx).or_else(|| self.write(cx)).or_else(|| self.read(cx))
    }
}

impl<Io: ByteStream> Conversation<Io> {
    fn listen(&mut self, cx: &mut Context<'_>) -> Option<(End, Nanos)> {
        while let Poll::Ready(Some(demand)) = self.demands.poll_recv(cx) {
            let now = self.reading.timer.clock.now();
            match demand {
                Demand::Send(outgoing) => {
                    if let Err(what) = self.outbox.add(outgoing, now) {
                        return Some((End::Broke(Class::Protocol, what), now));
                    }
                }
                Demand::Proceed => self.outbox.proceed(now),
                // Only exchanges of several requests have steps.
                Demand::Ended | Demand::Step(_) => {
                    return Some((End::Whole { ends_answer: false }, self.reading.last_frame));
                }
            }
        }
        None
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Option<(End, Nanos)> {
        for _ in 0..WRITES_IN_A_ROW {
            // Read before the write: a server may have answered when the write returns.
            let now = self.reading.timer.clock.now();
            // The reading side reports why nothing can be sent.
            let Poll::Ready(Ok(())) = self.socket.poll_write(cx) else { return None };
            if std::mem::take(&mut self.is_writing) {
                self.wrote(now);
            }
            if !self.socket.has_room() {
                return None;
            }
            let Some(due) = self.outbox.due() else {
                self.alarm = None;
                return None;
            };
            if let Some(message) = self.outbox.take(now) {
                if let Err(what) = self.socket.put(message) {
                    return Some((End::Broke(Class::Protocol, what), now));
                }
                self.is_writing = true;
                continue;
            }
            let until = self.reading.timer.clock.instant(due);
            let alarm =
                (self.alarm).get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
            if alarm.deadline() != until {
                alarm.as_mut().reset(until);
            }
            if alarm.as_mut().poll(cx).is_pending() {
                return None;
            }
        }
        cx.waker().wake_by_ref();
        None
    }

    /// A message was handed to the socket at this instant.
    fn wrote(&mut self, now: Nanos) {
        self.marks.written.set(Some(now));
        let progress = self.reading.reply.progress();
        if progress.output().is_some() {
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
    fn read(&mut self, cx: &mut Context<'_>) -> Option<(End, Nanos)> {
        let reading = &mut self.reading;
        if reading.poll_gate(cx).is_pending() {
            return None;
        }
        let read = self.socket.poll_messages(cx, &self.marks, reading);
        if !reading.frames.is_empty() {
            // Messages may be answered, and the end is one of them.
            reading.hand_on();
        }
        reading.held.set(reading.frames.memory() + self.socket.memory());
        if let Poll::Ready(read) = read {
            return Some((read.map_or_else(broken, unasked), self.socket.opened.wire.read_at()));
        }
        if let Poll::Ready((class, what)) = reading.poll_timer(cx) {
            return Some((End::Broke(class, what), reading.timer.clock.now()));
        }
        reading.poll_stall(cx);
        None
    }
}

/// Classifies a close before the answer is complete: a failure if its code says so, else a cut.
fn unasked(closed: Closed) -> End {
    let class = if closed.is_regular() { Class::Truncated } else { Class::InBandError };
    End::Broke(class, format!("the server closed the WebSocket {closed}"))
}
