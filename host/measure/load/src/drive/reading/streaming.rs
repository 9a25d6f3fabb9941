//! The body of a successful reply while it arrives.
//!
//! It is an object beside its request's task, so that the poll loop can read it as soon as its
//! socket is ready ([`Watch`]). The task reads it too when it is woken: at the beginning, by a
//! timer, or when there is room in the backlog again. Both do the same, one after the other on the
//! same thread.

use std::cell::{OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite};

use super::{End, FinishedReply, Reading};
use crate::transport::poller::{Ahead, Watch};
use crate::transport::{Broke, Connection, Marks};
use model::exchange::Class;
use model::frame::Framing;
use model::units::Nanos;

/// The reading of one body.
struct Streaming<Io> {
    /// The task that waits for the end.
    task: OnceCell<Waker>,
    state: RefCell<State<Io>>,
}

struct State<Io> {
    reading: Reading,
    connection: Connection<Io>,
    marks: Rc<Marks>,
    /// The error if it broke, and the instant of its end; absent before.
    ended: Option<(Option<End>, Nanos)>,
}

impl Reading {
    /// Reads a reply that is decoded, and reports its frames as they arrive.
    pub async fn frames<Io>(mut self, connection: Connection<Io>) -> FinishedReply<Io>
    where
        Io: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        if let Some(shared) = connection.shared() {
            self.gate.share(shared);
        }
        let readiness = connection.readiness().map(Rc::clone);
        let streaming = Rc::new(Streaming {
            task: OnceCell::new(),
            state: RefCell::new(State {
                marks: Rc::clone(&self.marks),
                reading: self,
                connection,
                ended: None,
            }),
        });
        let watching =
            (readiness.as_ref()).map(|readiness| readiness.watch(Rc::clone(&streaming) as _));
        let (broke, at) = poll_fn(|cx| {
            streaming.task.get_or_init(|| cx.waker().clone());
            streaming.state.borrow_mut().poll(cx)
        })
        .await;
        drop(watching);
        let State { mut reading, connection, .. } =
            Rc::into_inner(streaming).expect("it is watched no longer").state.into_inner();
        reading.is_over = true;
        // Data too large for a frame is no frame.
        match broke {
            Some(End::Broke(Class::Protocol, _)) => {}
            Some(_) => reading.framer.break_off(at, &mut reading.frames),
            None => reading.framer.finish(at, &mut reading.frames),
        }
        // The reply to a step may have all its content in its head.
        let is_whole = broke.is_none() && reading.framing == Framing::Whole;
        if is_whole && reading.is_step && reading.bytes == 0 {
            reading.frames.push(at, None, b"");
        }
        reading.hand_on();
        let whole = End::Whole { ends_answer: reading.framing == Framing::Whole };
        FinishedReply {
            end: broke.unwrap_or(whole),
            at,
            connection,
            excused: reading.timer.excused,
            bytes: reading.bytes,
        }
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin + 'static> Watch for Streaming<Io> {
    fn ready(&self) {
        // Before its first turn the task has not read, and will find the bytes that have come.
        let Some(task) = self.task.get() else { return };
        let mut state = self.state.borrow_mut();
        if state.ended.is_none() {
            state.read(&mut Context::from_waker(task));
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
                    prefetch::line(Rc::as_ptr(&state.marks));
                    state.reading.fetch();
                    state.connection.fetch();
                }
            }
        }
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin + 'static> State<Io> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Option<End>, Nanos)> {
        if self.ended.is_none() {
            self.read(cx);
        }
        match self.ended.take() {
            Some(ended) => Poll::Ready(ended),
            None => Poll::Pending,
        }
    }

    /// Reads the bytes that have come, and checks the conditions that end the reading. Wakes the
    /// task of this context when there is more to do.
    fn read(&mut self, cx: &mut Context<'_>) {
        let reading = &mut self.reading;
        if reading.poll_gate(cx).is_pending() {
            return;
        }
        let read = self.connection.poll_body(cx, &self.marks, reading);
        reading.count();
        if let Poll::Ready(read) = read {
            let end = match read {
                Ok(()) => None,
                Err(Broke::Connection(what)) => Some(End::Broke(Class::Truncated, what)),
                Err(Broke::Refused(what)) => Some(End::Broke(Class::Protocol, what)),
            };
            self.ended = Some((end, self.connection.last_read()));
            return;
        }
        if reading.is_timed()
            && let Poll::Ready((class, what)) = reading.poll_timer(cx)
        {
            let now = reading.timer.clock.now();
            self.ended = Some((Some(End::Broke(class, what)), now));
            return;
        }
        reading.poll_stall(cx);
    }
}
