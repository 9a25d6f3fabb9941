//! The body of a successful reply while it arrives.

use std::rc::Rc;
use std::task::{Context, Poll};

use super::watched::{Turn, until_over};
use super::{End, FinishedReply, Reading};
use crate::transport::poller::Readiness;
use crate::transport::{Broke, ByteStream, Connection, Marks};
use model::exchange::Class;
use model::frame::Framing;
use model::units::Nanos;

/// The reading of one body.
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
pub(super) fn broken(broke: Broke) -> End {
    match broke {
        Broke::Connection(what) => End::Broke(Class::Truncated, what),
        Broke::Refused(what) => End::Broke(Class::Protocol, what),
    }
}
