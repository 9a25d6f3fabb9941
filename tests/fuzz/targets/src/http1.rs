//! Reading a reply of HTTP/1.1.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use load::transport::poller::Poller;
use load::transport::{Broke, Connect, Connection, NewConnection, Request, Sink, Unanswered, Wire};
use model::clock::Clock;
use model::connection::Version;
use model::exchange;
use model::units::Nanos;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::bytes::{Cuts, first};

/// A server's bytes on a fresh connection: cuts change neither the reply nor its ending.
pub fn http1(data: &[u8]) {
    let (seed, reply) = first(data);
    let whole = read(vec![reply]);
    let cut = read(Cuts::new(seed, reply).collect());
    assert_eq!(whole.head, cut.head);
    assert_eq!(whole.end, cut.end);
    assert_eq!(whole.body, cut.body);
    // Bytes after the reply may be unread until the connection is used again.
    assert!(cut.again || !whole.again, "reusable, but not when cut");
}

/// The parts of a reply that a client sees.
#[derive(Debug)]
struct Reply {
    head: Option<(u16, HeaderMap)>,
    body: Vec<u8>,
    end: Result<(), String>,
    /// True if the connection may be used again.
    again: bool,
}

fn read(pieces: Vec<&[u8]>) -> Reply {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let polls = 8 * pieces.len() + 8;
    // The stream outlives the borrow of the input only in its type.
    let mut pieces: Vec<Vec<u8>> = pieces.into_iter().map(<[u8]>::to_vec).collect();
    pieces.reverse();
    let seen = ready(exchange(&Pieces(std::cell::RefCell::new(pieces))), polls);
    assert!(seen.body.len() <= length, "more than the server sent");
    seen
}

async fn exchange(connect: &Pieces) -> Reply {
    let clock = Clock::start();
    let mut connection = Connection::open(connect, 0, clock, None).await.expect("it can be opened");
    let marks = Rc::default();
    let mut seen = Reply { head: None, body: Vec::new(), end: Ok(()), again: false };
    let head = match connection.send(request(), &marks).await {
        Ok(head) => head,
        Err(Unanswered::Broke(cause)) => {
            seen.end = Err(cause);
            return seen;
        }
        Err(Unanswered::Unsent(_)) => unreachable!("HTTP/1.1 always sends"),
    };
    seen.head = Some((head.status, head.headers));
    let mut body = Body(Vec::new());
    let end = poll_fn(|cx| connection.poll_body(cx, &marks, &mut body)).await;
    seen.body = body.0;
    seen.again = end.is_ok() && connection.rest(clock.now());
    seen.end = end.map_err(|broke| match broke {
        Broke::Connection(cause) | Broke::Refused(cause) => cause,
    });
    seen
}

fn request() -> Request {
    thread_local! {
        static REQUEST: Request = Request::new(
            Version::Http1,
            ("http", "engine"),
            "POST",
            "/",
            HeaderMap::new(),
            Bytes::from_static(b"question"),
        )
        .expect("it can be sent");
    }
    REQUEST.with(Request::clone)
}

struct Body(Vec<u8>);

impl Sink for Body {
    fn take(&mut self, _: Nanos, bytes: &[u8]) -> Result<(), String> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Polls until the future is ready, at most this many times.
fn ready<T>(future: impl Future<Output = T>, polls: usize) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
    }
    panic!("the reply is not over after {polls} polls");
}

/// Connects to a server that has sent these pieces, the last one first, and closed.
struct Pieces(std::cell::RefCell<Vec<Vec<u8>>>);

impl Connect for Pieces {
    type Io = PacedStream;

    fn version(&self) -> Version {
        Version::Http1
    }

    async fn connect(
        &self,
        _: u32,
        clock: Clock,
        _: Option<&Poller>,
    ) -> Result<NewConnection<PacedStream>, String> {
        Ok(NewConnection {
            io: PacedStream { pieces: self.0.take(), waited: false },
            wire: Wire::new(clock),
            facts: exchange::Connection::default(),
            readiness: None,
        })
    }
}

/// A stream; each read gives the next piece, after a wait for it.
struct PacedStream {
    pieces: Vec<Vec<u8>>,
    waited: bool,
}

impl AsyncRead for PacedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.waited = !self.waited;
        if self.waited {
            return Poll::Pending;
        }
        let Some(mut piece) = self.pieces.pop() else { return Poll::Ready(Ok(())) };
        let rest = piece.split_off(piece.len().min(buf.remaining()));
        buf.put_slice(&piece);
        if !rest.is_empty() {
            self.pieces.push(rest);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
