//! One request and its reply over one connection, with their instants. No retries, no proxies.
//!
//! HTTP/1.1 has a reader of our own ([`http1`]), for exact timestamps and little processor time per
//! event; hyper handles HTTP/2 ([`http2`]). A connection of HTTP/1.1 can become a [`websocket`].

pub mod dial;
mod http1;
mod http2;
pub mod poller;
mod request;
mod socket;
mod stamp;
pub mod tls;
pub mod websocket;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use mio::net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use model::clock::Clock;
use model::connection::Version;
use model::units::Nanos;
use model::{exchange, frame};
use poller::{Poller, Readiness, Registered};

pub use dial::Dial;
pub(crate) use http2::STREAMS as SHARED_BY;
pub use request::{Request, Unsendable};
use socket::Ready;
pub use stamp::{Marks, StampedStream, Wire};
use websocket::WebSocket;

/// One connection, or one place on a connection that is shared.
pub enum Connection<Io> {
    Http1(http1::Connection<Io>),
    Http2(http2::Stream),
}

impl<Io: ByteStream> Connection<Io> {
    pub async fn open<C: Connect<Io = Io>>(
        connect: &C,
        target: u32,
        clock: Clock,
        poller: Option<&Poller>,
    ) -> Result<Self, String> {
        let opened = connect.connect(target, clock, poller).await?;
        Ok(match connect.version() {
            Version::Http1 => Connection::Http1(http1::Connection::new(opened)),
            Version::Http2 => Connection::Http2(http2::open(opened).await?),
        })
    }

    /// True if a request may be sent on it.
    pub(crate) fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Connection::Http1(connection) => connection.is_usable(cx),
            Connection::Http2(stream) => stream.is_usable(),
        }
    }

    /// True if the other side accepts more requests on it, now or when a place is free.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Connection::Http1(_) => true,
            Connection::Http2(stream) => stream.is_usable(),
        }
    }

    /// Returns when its last reply ended; absent if it was never used.
    pub(crate) fn idle_since(&self) -> Option<Nanos> {
        match self {
            Connection::Http1(connection) => connection.idle_since,
            Connection::Http2(_) => None,
        }
    }

    /// Returns the readiness of its socket; absent if a task must wait for it.
    pub fn readiness(&self) -> Option<&Rc<Readiness>> {
        match self {
            Connection::Http1(connection) => connection.opened.readiness.as_ref(),
            Connection::Http2(_) => None,
        }
    }

    /// Another place on the same connection, where it can be shared and has one free.
    pub fn share(&self) -> Option<Self> {
        match self {
            Connection::Http1(_) => None,
            Connection::Http2(stream) => stream.share().map(Connection::Http2),
        }
    }

    /// Returns the number of the connection that replies share; absent if it cannot be shared.
    pub fn shared(&self) -> Option<u64> {
        match self {
            Connection::Http1(_) => None,
            Connection::Http2(stream) => Some(stream.number()),
        }
    }

    /// It was opened because a request found none.
    pub fn waited(&mut self) {
        match self {
            Connection::Http1(connection) => connection.opened.facts.waited = true,
            Connection::Http2(stream) => stream.waited(),
        }
    }

    pub fn facts(&self) -> exchange::Connection {
        match self {
            Connection::Http1(connection) => connection.opened.facts,
            Connection::Http2(stream) => stream.facts(),
        }
    }

    /// Sends a request and waits for the reply's head. `marks` has instants of abandoned waits too.
    pub async fn send(&mut self, request: Request, marks: &Rc<Marks>) -> Result<Head, Unanswered> {
        match (self, request) {
            (Connection::Http1(connection), Request::Http1 { head, body }) => {
                connection.send(&head, &body, marks).await.map_err(Unanswered::Broke)
            }
            (Connection::Http2(stream), Request::Http2(request)) => {
                stream.send(*request, marks).await
            }
            _ => Err(Unanswered::Broke(
                "the connection speaks another HTTP version than the request".to_owned(),
            )),
        }
    }

    /// Gives the received part of the body to `sink`. Ready when the body has ended or broke.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        marks: &Marks,
        sink: &mut impl Sink,
    ) -> Poll<Result<(), Broke>> {
        match self {
            Connection::Http1(connection) => connection.poll_body(cx, marks, sink),
            Connection::Http2(stream) => stream.poll_body(cx, marks, sink),
        }
    }

    pub(crate) fn last_read(&self) -> Nanos {
        match self {
            Connection::Http1(connection) => connection.opened.wire.read_at(),
            Connection::Http2(stream) => stream.last_read(),
        }
    }

    /// Prefetches the data that its fields point to and the next bytes need.
    pub(crate) fn fetch(&self) {
        if let Connection::Http1(connection) = self {
            prefetch::line(Rc::as_ptr(&connection.opened.wire));
        }
    }

    /// Returns true if it can carry another request after the reply that has just ended.
    pub fn rest(&mut self, now: Nanos) -> bool {
        match self {
            Connection::Http1(connection) => connection.rest(now),
            Connection::Http2(stream) => stream.is_usable(),
        }
    }

    /// The WebSocket that it has become with a reply of the status 101; absent over HTTP/2.
    pub fn into_websocket(self) -> Option<WebSocket<Io>> {
        match self {
            Connection::Http1(connection) => Some(connection.into_websocket()),
            Connection::Http2(_) => None,
        }
    }

    /// Sends a request and reads the reply, with at most `most` bytes of its body, for questions
    /// that are not measured. The body of a call of gRPC ends with its trailer fields.
    pub async fn ask(&mut self, request: Request, most: usize) -> Result<(Head, Vec<u8>), String> {
        struct Keep {
            body: Vec<u8>,
            most: usize,
            failed: Option<(u16, Vec<u8>)>,
        }
        impl Sink for Keep {
            fn take(&mut self, _: Nanos, bytes: &[u8]) -> Result<(), String> {
                let room = self.most.saturating_sub(self.body.len());
                self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                (bytes.len() <= room)
                    .then_some(())
                    .ok_or_else(|| "it is longer than the limit".to_owned())
            }

            fn trailers(&mut self, at: Nanos, fields: &HeaderMap) -> Result<(), String> {
                self.failed = failed_call(fields);
                if !fields.contains_key(GRPC_STATUS) {
                    return Ok(());
                }
                self.take(at, &trailers(fields))
            }
        }
        let marks = Rc::default();
        let head = self.send(request, &marks).await.map_err(|unanswered| match unanswered {
            Unanswered::Broke(what) => what,
            Unanswered::Unsent(_) => "it accepts no request".to_owned(),
        })?;
        if let Some((status, message)) = failed_call(&head.headers) {
            return Ok((Head { status, ..head }, message));
        }
        let mut keep = Keep { body: Vec::new(), most, failed: None };
        match poll_fn(|cx| self.poll_body(cx, &marks, &mut keep)).await {
            Ok(()) | Err(Broke::Refused(_)) => match keep.failed {
                Some((status, message)) => Ok((Head { status, ..head }, message)),
                None => Ok((head, keep.body)),
            },
            Err(Broke::Connection(what)) => Err(what),
        }
    }
}

/// Header fields of replies that plugins do not see.
const HIDDEN: [&str; 2] = ["set-cookie", "set-cookie2"];

/// The fields of a reply, or of its trailers, that plugins may see.
pub fn visible(fields: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    fields.iter().filter(|(name, _)| !HIDDEN.contains(&name.as_str()))
}

/// The visible trailer fields of a reply as a frame of gRPC.
pub(crate) fn trailers(fields: &HeaderMap) -> Vec<u8> {
    frame::trailers(visible(fields).map(|(name, value)| (name.as_str(), value.as_bytes())))
}

/// The field of gRPC that says how a call ended.
pub(crate) const GRPC_STATUS: &str = "grpc-status";

/// A failed call of gRPC as an error reply: HTTP's status with the same meaning, and the message.
fn failed_call(fields: &HeaderMap) -> Option<(u16, Vec<u8>)> {
    let field = |name| fields.get(name).and_then(|value| value.to_str().ok());
    let code = field(GRPC_STATUS).filter(|code| *code != "0")?;
    let status = match code {
        "3" | "9" | "11" => 400,
        "16" => 401,
        "7" => 403,
        "5" => 404,
        "8" => 429,
        "12" => 501,
        "14" => 503,
        "4" => 504,
        _ => 500,
    };
    let message = field("grpc-message").unwrap_or("no message");
    let message = format!("the call ended with gRPC status {code}: {message}");
    Some((status, message.into_bytes()))
}

/// A stream of bytes in both directions, such as a socket or TLS over it.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + 'static {}

impl<Io: AsyncRead + AsyncWrite + Unpin + 'static> ByteStream for Io {}

/// A new connection, before its first request.
pub struct NewConnection<Io> {
    pub io: Io,
    /// The record of when the stream was read and written.
    pub wire: Rc<Wire>,
    pub facts: exchange::Connection,
    /// The readiness of its socket; absent if a task must wait for it.
    pub readiness: Option<Rc<Readiness>>,
}

pub trait Connect {
    type Io: ByteStream;

    fn version(&self) -> Version;

    /// Opens one to this target, registered with the poller if it can be. Errors are for users.
    fn connect(
        &self,
        target: u32,
        clock: Clock,
        poller: Option<&Poller>,
    ) -> impl Future<Output = Result<NewConnection<Self::Io>, String>>;
}

#[cfg(test)]
impl<Io: AsyncRead + Unpin> NewConnection<StampedStream<Io>> {
    /// A connection that is read as soon as its bytes come.
    fn bare(io: Io) -> Self {
        let (wire, facts) = (Wire::new(Clock::start()), exchange::Connection::default());
        NewConnection { io: StampedStream::new(io, &wire), wire, facts, readiness: None }
    }
}

/// Bytes read at once at most. A reply that is behind comes in reads of this size.
const READ_BYTES: usize = 64 << 10;

/// Reads of one connection before the others on its thread get their turn.
const READS_IN_A_ROW: usize = 16;

thread_local! {
    /// The buffer into which every connection of this thread reads.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

#[derive(Debug)]
pub struct Head {
    pub status: u16,
    pub headers: HeaderMap,
}

/// Receives a reply's body: the bytes and their instants. An error of the receiver ends the reply.
pub trait Sink {
    /// Takes bytes that came at this instant.
    fn take(&mut self, at: Nanos, bytes: &[u8]) -> Result<(), String>;

    /// Takes the trailer fields, after the last bytes. Most replies have none.
    fn trailers(&mut self, at: Nanos, fields: &HeaderMap) -> Result<(), String> {
        let _ = (at, fields);
        Ok(())
    }
}

/// The reason why a reply has no head.
#[derive(Debug)]
pub enum Unanswered {
    /// The connection broke; the text says why.
    Broke(String),
    /// The connection takes no more requests. Of this one nothing was sent.
    Unsent(Request),
}

/// The reason why the reading of a body ended before its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Broke {
    /// The connection failed or closed, or its bytes are no HTTP.
    Connection(String),
    /// The receiver refused the bytes.
    Refused(String),
}

fn broken(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "the connection was reset".to_owned(),
        io::ErrorKind::UnexpectedEof => {
            "the connection was closed without a TLS close_notify".to_owned()
        }
        _ => format!("the connection failed: {error}"),
    }
}

// A TCP socket that is registered with its thread's `Poller` instead of the runtime's driver. Tasks
// wait for it as for any byte stream; a watcher of its `Readiness` reads it without a task.

pub struct Polled(Registered<TcpStream>);

impl Polled {
    /// Connects to the first of these addresses that answers; the error is the last one's.
    pub async fn connect(addresses: &[SocketAddr], poller: &Poller) -> io::Result<Self> {
        let nothing = "could not resolve to any address";
        let mut refused = io::Error::new(io::ErrorKind::InvalidInput, nothing);
        for address in addresses {
            match Polled::connect_to(*address, poller).await {
                Ok(connected) => return Ok(connected),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    async fn connect_to(address: SocketAddr, poller: &Poller) -> io::Result<Self> {
        let polled = Polled(poller.register(TcpStream::connect(address)?)?);
        std::future::poll_fn(|cx| polled.readiness().poll_writable(cx)).await;
        if let Some(error) = polled.0.socket.take_error()? {
            return Err(error);
        }
        // Without this, small requests wait for acknowledgements.
        polled.0.socket.set_nodelay(true)?;
        Ok(polled)
    }

    pub fn readiness(&self) -> &Rc<Readiness> {
        &self.0.readiness
    }

    /// Writes once, when it may.
    fn poll_write_once(
        &self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.readiness().poll_writable(cx));
            match write(&self.0.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readiness().filled()
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsRawFd for Polled {
    fn as_raw_fd(&self) -> RawFd {
        self.0.socket.as_raw_fd()
    }
}

impl AsFd for Polled {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.socket.as_fd()
    }
}

impl Ready for Polled {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.readiness().poll_readable(cx).map(Ok)
    }

    fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        let read = read();
        if let Err(error) = &read
            && error.kind() == io::ErrorKind::WouldBlock
        {
            self.readiness().drained();
        }
        read
    }
}

impl AsyncRead for Polled {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.readiness().poll_readable(cx));
            let into = buf.initialize_unfilled();
            let room = into.len();
            let mut socket = &self.0.socket;
            match socket.read(into) {
                Ok(bytes) => {
                    if bytes > 0 && bytes < room {
                        self.readiness().drained();
                    }
                    buf.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readiness().drained()
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Polled {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_once(cx, |mut socket| socket.write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_once(cx, |mut socket| socket.write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.socket.shutdown(std::net::Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_not_seen() {
        let mut fields = HeaderMap::new();
        for (name, value) in [("set-cookie", "a=secret"), ("grpc-status", "0")] {
            fields.insert(name, HeaderValue::from_static(value));
        }
        let seen: Vec<&str> = visible(&fields).map(|(name, _)| name.as_str()).collect();
        assert_eq!(seen, ["grpc-status"]);
    }

    #[test]
    fn failed_grpc_call_is_an_error_reply() {
        let fields = |code: &'static str| {
            let all = [("grpc-status", code), ("grpc-message", "no such model")];
            let all = all.map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            HeaderMap::from_iter(all)
        };
        assert_eq!(failed_call(&fields("0")), None);
        let message =
            |code| format!("the call ended with gRPC status {code}: no such model").into_bytes();
        assert_eq!(failed_call(&fields("5")), Some((404, message("5"))));
        assert_eq!(failed_call(&fields("14")), Some((503, message("14"))));
        assert_eq!(failed_call(&fields("99")), Some((500, message("99"))));
    }
}
