//! The times at which requests leave on a connection of HTTP/2, from the written frames: the
//! library may hold a request back. Streams are opened in the order of the requests, so the first
//! HEADERS of each belongs to the request that has waited longest. RFC 9113, 4.1 and 5.1.1.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::stamp::Marks;
use model::clock::Clock;
use model::units::Nanos;

/// Length of the client's preface, which it sends before its first frame.
const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
/// The flag of a stream's last frame.
const END_STREAM: u8 = 1;

/// The bytes written on one connection, as far as its requests are concerned.
#[derive(Debug, Default)]
pub struct Outgoing(RefCell<State>);

#[derive(Debug, Default)]
struct State {
    /// Bytes of the preface that were written.
    preface: usize,
    /// The head of the frame that is being written, as far as it was.
    head: [u8; HEAD_BYTES],
    filled: usize,
    /// Bytes of the frame that are still to come.
    left: usize,
    /// The stream that ends with the frame.
    ends: Option<u32>,
    /// The last stream that was opened.
    opened: u32,
    /// Requests that were given to the library and have no stream.
    waiting: VecDeque<Rc<Marks>>,
    /// Streams with marks, until they are written to their end.
    sending: HashMap<u32, Rc<Marks>>,
    /// One was withdrawn while it waited: which stream is whose is no longer certain.
    unsure: bool,
}

/// A request that waits for its stream.
pub struct QueuedRequest<'o> {
    outgoing: &'o Outgoing,
    marks: Rc<Marks>,
}

impl Outgoing {
    /// A request is about to be given to the library.
    pub fn wait(&self, marks: &Rc<Marks>) -> QueuedRequest<'_> {
        self.0.borrow_mut().waiting.push_back(Rc::clone(marks));
        QueuedRequest { outgoing: self, marks: Rc::clone(marks) }
    }

    /// True if a further request can still be told from the others.
    pub fn is_sure(&self) -> bool {
        !self.0.borrow().unsure
    }

    /// These bytes were handed to the socket between these instants.
    fn wrote(&self, (from, to): (Nanos, Nanos), mut bytes: &[u8]) {
        let state = &mut *self.0.borrow_mut();
        while !bytes.is_empty() {
            let used = if state.preface < PREFACE_BYTES {
                let used = bytes.len().min(PREFACE_BYTES - state.preface);
                state.preface += used;
                used
            } else if state.left > 0 {
                let used = bytes.len().min(state.left);
                state.left -= used;
                state.end_of_frame(to);
                used
            } else {
                let used = bytes.len().min(HEAD_BYTES - state.filled);
                state.head[state.filled..][..used].copy_from_slice(&bytes[..used]);
                state.filled += used;
                if state.filled == HEAD_BYTES {
                    state.begin_frame(from);
                    state.end_of_frame(to);
                }
                used
            };
            bytes = &bytes[used..];
        }
    }
}

impl State {
    fn begin_frame(&mut self, now: Nanos) {
        self.filled = 0;
        let [a, b, c, kind, flags, d, e, f, g] = self.head;
        self.left = u32::from_be_bytes([0, a, b, c]) as usize;
        let stream = u32::from_be_bytes([d & 0x7f, e, f, g]);
        if kind == HEADERS && stream > self.opened {
            self.opened = stream;
            if let Some(marks) = self.waiting.pop_front() {
                marks.sent.set(Some(now));
                self.sending.insert(stream, marks);
            }
        }
        if kind == RST_STREAM {
            self.sending.remove(&stream);
        }
        let is_last = matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
        self.ends = is_last.then_some(stream);
    }

    fn end_of_frame(&mut self, now: Nanos) {
        if self.left == 0
            && let Some(stream) = self.ends.take()
            && let Some(marks) = self.sending.remove(&stream)
            && !self.unsure
        {
            marks.written.set(Some(now));
        }
    }
}

impl Drop for QueuedRequest<'_> {
    /// The reply has begun, or the request is withdrawn.
    fn drop(&mut self) {
        let mut state = self.outgoing.0.borrow_mut();
        let waits = |other: &Rc<Marks>| Rc::ptr_eq(other, &self.marks);
        if let Some(at) = state.waiting.iter().position(waits) {
            state.waiting.remove(at);
            state.unsure = true;
        }
    }
}

pub struct NotedStream<Io> {
    io: Io,
    outgoing: Rc<Outgoing>,
    clock: Clock,
}

impl<Io> NotedStream<Io> {
    /// Notes the bytes that are written to this stream.
    pub fn new(io: Io, outgoing: &Rc<Outgoing>, clock: Clock) -> Self {
        NotedStream { io, outgoing: Rc::clone(outgoing), clock }
    }
}

impl<Io: AsyncRead + Unpin> AsyncRead for NotedStream<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for NotedStream<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let from = self.clock.now();
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        if let Poll::Ready(Ok(count)) = &written {
            self.outgoing.wrote((from, self.clock.now()), &buf[..*count]);
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let from = self.clock.now();
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        if let Poll::Ready(Ok(count)) = &written {
            let times = (from, self.clock.now());
            let mut left = *count;
            for buf in bufs {
                let own = left.min(buf.len());
                self.outgoing.wrote(times, &buf[..own]);
                left -= own;
            }
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
        let mut bytes = u32::try_from(payload).unwrap().to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.resize(HEAD_BYTES + payload, 7);
        bytes
    }

    /// Each request has the instant of its own frames, however they are cut into writes.
    #[test]
    fn requests_have_the_instants_of_their_frames() {
        for piece in [1, 5, 1 << 20] {
            let outgoing = Outgoing::default();
            let write = |at: u64, bytes: &[u8]| {
                for piece in bytes.chunks(piece) {
                    outgoing.wrote((Nanos(at), Nanos(at)), piece);
                }
            };
            let marks: Vec<Rc<Marks>> = (0..3).map(|_| Rc::default()).collect();
            let _waiting: Vec<QueuedRequest<'_>> =
                marks.iter().map(|own| outgoing.wait(own)).collect();
            let seen = || -> Vec<(Option<u64>, Option<u64>)> {
                let instants = |own: &Rc<Marks>| (own.sent.get(), own.written.get());
                let nanos = |at: Option<Nanos>| at.map(|at| at.0);
                let all = marks.iter().map(instants);
                all.map(|(sent, written)| (nanos(sent), nanos(written))).collect()
            };
            write(1, &[&[b'P'; PREFACE_BYTES][..], &frame(4, 0, 0, 18)].concat());
            assert_eq!(seen(), [(None, None); 3], "settings are no request");
            write(2, &frame(HEADERS, 4, 1, 30));
            write(3, &frame(HEADERS, 4 | END_STREAM, 3, 30));
            write(4, &frame(DATA, 0, 1, 16_384));
            let expected = [(Some(2), None), (Some(3), Some(3)), (None, None)];
            assert_eq!(seen(), expected, "its body waits, and the last for a stream");
            write(5, &frame(8, 0, 0, 4));
            write(6, &frame(DATA, END_STREAM, 1, 0));
            write(7, &frame(HEADERS, 4, 5, 9));
            write(8, &frame(DATA, END_STREAM, 5, 10));
            let expected = [(Some(2), Some(6)), (Some(3), Some(3)), (Some(7), Some(8))];
            assert_eq!(seen(), expected);
            assert!(outgoing.is_sure());
        }
    }

    #[test]
    fn withdrawn_request_makes_other_stamps_unsure() {
        let outgoing = Outgoing::default();
        let marks = Rc::default();
        drop(outgoing.wait(&marks));
        assert!(!outgoing.is_sure());
        assert_eq!(marks.sent.get(), None);
    }
}
