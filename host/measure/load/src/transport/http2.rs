//! HTTP/2 through hyper: many requests share a connection, each on a stream of its own.
//!
//! A task on the thread's `LocalSet` drives the connection. The instant of a reply's bytes is the
//! instant of the connection's last read: streams are woken in the order of their bytes.

mod outgoing;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;

use super::stamp::{Marks, Wire};
use super::{Broke, ByteStream, Head, NewConnection, Sink, Unanswered};
use model::exchange;
use model::units::Nanos;
use outgoing::{NotedStream, Outgoing};

/// The most requests that share a connection: servers' usual default (RFC 9113, 6.5.2).
pub const STREAMS: usize = 100;
/// Bytes of a reply that may come unread. They are read at once, unless the backlog is full.
const WINDOW_BYTES: u32 = 256 << 10;
/// The same for a connection: ten thousand replies on a hundred connections take little memory.
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;

/// A place on a connection, or the connection itself.
pub struct Stream {
    shared: Rc<ConnectionState>,
    sender: http2::SendRequest<Full<Bytes>>,
    body: Option<Incoming>,
    /// True if a request has it; otherwise it only stands for the connection.
    is_place: bool,
}

struct ConnectionState {
    wire: Rc<Wire>,
    outgoing: Rc<Outgoing>,
    facts: Cell<exchange::Connection>,
    taken: Cell<usize>,
    /// Number of requests that the server accepts at the same time.
    allowed: Cell<usize>,
}

#[derive(Clone, Copy)]
struct Local;

impl<F: Future<Output: 'static> + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

/// Performs the handshake; returns the connection, which has places to share.
pub async fn open<Io: ByteStream>(opened: NewConnection<Io>) -> Result<Stream, String> {
    let outgoing = Rc::default();
    let io = NotedStream::new(opened.io, &outgoing, opened.wire.clock);
    let (sender, connection) = http2::Builder::new(Local)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .handshake(TokioIo::new(io))
        .await
        .map_err(|cause| format!("HTTP/2 failed: {}", in_words(&cause)))?;
    let shared = Rc::new(ConnectionState {
        wire: opened.wire,
        outgoing,
        facts: Cell::new(opened.facts),
        taken: Cell::new(0),
        allowed: Cell::new(connection.current_max_send_streams()),
    });
    let drives = Rc::clone(&shared);
    tokio::task::spawn_local(async move {
        let mut connection = std::pin::pin!(connection);
        poll_fn(|cx| {
            let driven = connection.as_mut().poll(cx);
            // The server may say so at any time, and usually does at once.
            drives.allowed.set(connection.current_max_send_streams());
            driven
        })
        .await
    });
    Ok(Stream { shared, sender, body: None, is_place: false })
}

impl Drop for Stream {
    fn drop(&mut self) {
        let taken = self.shared.taken.get();
        self.shared.taken.set(taken - usize::from(self.is_place));
    }
}

impl Stream {
    /// True if it still accepts requests, and the next can be told from those before it.
    pub(crate) fn is_usable(&self) -> bool {
        !self.sender.is_closed() && self.shared.outgoing.is_sure()
    }

    /// Returns a number that no other connection of the process and no request has.
    pub fn number(&self) -> u64 {
        Rc::as_ptr(&self.shared).addr() as u64 | 1 << 63
    }

    /// Another place, if there is one.
    pub fn share(&self) -> Option<Self> {
        let taken = self.shared.taken.get();
        // A server that allows none for now gets one, and its answer tells.
        let most = self.shared.allowed.get().clamp(1, STREAMS);
        (self.is_usable() && taken < most).then(|| {
            self.shared.taken.set(taken + 1);
            Stream {
                shared: Rc::clone(&self.shared),
                sender: self.sender.clone(),
                body: None,
                is_place: true,
            }
        })
    }

    pub fn facts(&self) -> exchange::Connection {
        self.shared.facts.get()
    }

    /// It was opened because a request found none.
    pub fn waited(&self) {
        self.shared.facts.set(exchange::Connection { waited: true, ..self.facts() });
    }

    pub(crate) fn last_read(&self) -> Nanos {
        self.shared.wire.read_at()
    }

    /// Sends a request and waits for the reply's head. Fails if the stream broke, or the connection
    /// takes no more requests: only the request after a GOAWAY sees it.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        marks: &Rc<Marks>,
    ) -> Result<Head, Unanswered> {
        let facts = exchange::Connection { reused: true, waited: false, ..self.facts() };
        self.shared.facts.set(facts);
        let waiting = self.shared.outgoing.wait(marks);
        let sent = self.sender.try_send_request(request).await;
        drop(waiting);
        let (head, body) = match sent {
            Ok(reply) => reply.into_parts(),
            Err(mut error) => {
                return Err(match error.take_message() {
                    None => Unanswered::Broke(in_words(error.error())),
                    Some(request) => {
                        marks.sent.set(None);
                        Unanswered::Unsent(super::request::Request::Http2(Box::new(request)))
                    }
                });
            }
        };
        self.shared.wire.mark_read(marks);
        self.body = Some(body);
        Ok(Head { status: head.status.as_u16(), headers: head.headers })
    }

    /// Passes the arrived body to `sink`. Ready when the body has properly ended, or broke off.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        marks: &Marks,
        sink: &mut impl Sink,
    ) -> Poll<Result<(), Broke>> {
        let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
        loop {
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    self.shared.wire.mark_read(marks);
                    let at = self.shared.wire.read_at();
                    let taken = match frame.into_data().map_err(|other| other.into_trailers()) {
                        Ok(data) => sink.take(at, &data),
                        Err(Ok(fields)) => sink.trailers(at, &fields),
                        // Further kinds of frames are no part of a reply.
                        Err(Err(_)) => Ok(()),
                    };
                    taken.map_err(Broke::Refused)?;
                }
                Some(Err(cause)) => {
                    return Poll::Ready(Err(Broke::Connection(in_words(&cause))));
                }
                None => {
                    self.body = None;
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

/// An error of the connection, with its causes.
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
    // The first bytes of a reply of HTTP/1.1, or of TLS, read as a frame of HTTP/2.
    if text.contains("frame with invalid size") {
        text.push_str("; does the server speak HTTP/2?");
    }
    text
}
