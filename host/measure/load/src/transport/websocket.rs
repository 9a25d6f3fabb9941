//! WebSockets (RFC 6455), the client's side, over a connection after the [`handshake`].
//!
//! The protocol is tungstenite's, which never sees the socket: it reads and writes memory
//! ([`Pipe`]). All whole messages in one read of the socket are taken before the next read, so a
//! message has the instant of the read that completed it. Writing never waits inside the library.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::{HeaderMap, StatusCode};
use ring::digest::{self, SHA1_FOR_LEGACY_USE_ONLY};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::ReadBuf;
use tungstenite::error::{Error, ProtocolError};
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tungstenite::{Utf8Bytes, protocol};

use super::stamp::Marks;
use super::{BUFFER, Broke, ByteStream, NewConnection, READS_IN_A_ROW, broken};
use crate::transport::Head;
use crate::transport::request::Request;
use model::frame::FRAME_BYTES;
use model::units::Nanos;

/// The name of the frame of a text message.
pub const TEXT: &str = "text";
/// The name of the frame of a binary message.
pub const BINARY: &str = "binary";
/// The name of the frame that says that the server closed the WebSocket.
pub const CLOSE: &str = "close";

/// Bytes that the library reads from memory at once. Each connection has a buffer of this size.
const LIBRARY_BYTES: usize = 4 << 10;
/// Most bytes of pongs that wait until the server reads; later pongs replace earlier ones.
const PONG_BYTES: usize = 4 << 10;
/// The largest buffer that is kept from one read or message to the next.
const KEPT_BYTES: usize = 4 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Text(String),
    Binary(Vec<u8>),
}

impl Message {
    pub fn len(&self) -> usize {
        match self {
            Message::Text(text) => text.len(),
            Message::Binary(bytes) => bytes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Receives a server's messages: instant, frame ([`TEXT`], [`BINARY`], [`CLOSE`]) and bytes.
pub trait Incoming {
    fn message(&mut self, at: Nanos, name: &'static str, bytes: &[u8]);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The server's code; absent if it gave none.
    pub code: Option<u16>,
    pub reason: String,
}

pub struct WebSocket<Io: ByteStream> {
    pub(crate) opened: NewConnection<Io>,
    protocol: protocol::WebSocket<Pipe>,
    /// True if bytes that were written may lie in a buffer above the socket, such as TLS's.
    is_unflushed: bool,
    /// The reason why nothing can be written any more.
    unwritable: Option<String>,
    /// True if either side has closed it, or it broke.
    is_over: bool,
    /// Bytes that came since the last whole message.
    partial: usize,
}

/// The two directions of a connection, in memory.
#[derive(Default)]
struct Pipe {
    incoming: Vec<u8>,
    /// The number of incoming bytes that the library has taken.
    taken: usize,
    /// True if the server's direction has ended.
    has_ended: bool,
    outgoing: Vec<u8>,
    /// The number of outgoing bytes that the socket has taken.
    written: usize,
    /// True while a message is put into it, which is taken whatever waits before it.
    is_open: bool,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = &self.incoming[self.taken..];
        if left.is_empty() {
            return if self.has_ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let length = left.len().min(into.len());
        into[..length].copy_from_slice(&left[..length]);
        self.taken += length;
        if self.taken == self.incoming.len() {
            self.taken = 0;
            empty(&mut self.incoming);
        }
        Ok(length)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_open && self.waiting() >= PONG_BYTES {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Pipe {
    /// The number of outgoing bytes that the socket has not taken.
    fn waiting(&self) -> usize {
        self.outgoing.len() - self.written
    }
}

/// Empties a buffer, and gives its memory back if it is large.
fn empty(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_BYTES {
        *buffer = Vec::new();
    }
    buffer.clear();
}

/// The configuration of the library for messages of at most `message` bytes.
fn config(message: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(LIBRARY_BYTES)
        .write_buffer_size(0)
        // With room for a frame's own head.
        .max_write_buffer_size(message.saturating_add(PONG_BYTES))
        .max_message_size(Some(FRAME_BYTES))
        .max_frame_size(Some(FRAME_BYTES))
}

impl<Io: ByteStream> WebSocket<Io> {
    /// Over a connection on which the server agreed. `early` are bytes that came with its head.
    pub(super) fn new(opened: NewConnection<Io>, early: Vec<u8>) -> Self {
        let pipe = Pipe { incoming: early, ..Pipe::default() };
        WebSocket {
            opened,
            partial: pipe.incoming.len(),
            protocol: protocol::WebSocket::from_raw_socket(pipe, Role::Client, Some(config(0))),
            is_unflushed: false,
            unwritable: None,
            is_over: false,
        }
    }

    /// Returns about the memory, in bytes, of the server's incomplete messages.
    pub fn memory(&self) -> usize {
        self.partial + self.protocol.get_ref().incoming.capacity()
    }

    /// True if another message can be put: nothing waits to be written before it.
    pub fn has_room(&self) -> bool {
        !self.is_over && self.unwritable.is_none() && self.protocol.get_ref().waiting() == 0
    }

    /// Puts a message, which is written with [`poll_write`](Self::poll_write).
    pub fn put(&mut self, message: Message) -> Result<(), String> {
        let length = message.len();
        self.put_frame(length, |protocol| {
            protocol.write(match message {
                Message::Text(text) => protocol::Message::text(text),
                Message::Binary(bytes) => protocol::Message::binary(bytes),
            })
        })
    }

    fn put_frame(
        &mut self,
        length: usize,
        put: impl FnOnce(&mut protocol::WebSocket<Pipe>) -> Result<(), Error>,
    ) -> Result<(), String> {
        self.protocol.set_config(|own| *own = config(length));
        self.protocol.get_mut().is_open = true;
        let put = put(&mut self.protocol).and_then(|()| self.protocol.flush());
        self.protocol.get_mut().is_open = false;
        self.protocol.set_config(|own| *own = config(0));
        put.map_err(|error| error.to_string())
    }

    /// Writes the waiting messages; ready when the socket has all. Also answers pings. After an
    /// error the server's messages can still be read.
    pub fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        if self.unwritable.is_some() {
            return Poll::Ready(Ok(()));
        }
        let written = self.poll_write_all(cx);
        Poll::Ready(ready!(written).map_err(|error| {
            let what = broken(&error);
            self.unwritable = Some(what.clone());
            what
        }))
    }

    fn poll_write_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let pipe = self.protocol.get_mut();
            if pipe.waiting() == 0 {
                pipe.written = 0;
                empty(&mut pipe.outgoing);
                // A pong that found no room. A closed WebSocket is noticed when it is read.
                let _ = self.protocol.flush();
            }
            let pipe = self.protocol.get_mut();
            if pipe.waiting() == 0 {
                break;
            }
            let bytes = &pipe.outgoing[pipe.written..];
            match ready!(Pin::new(&mut self.opened.io).poll_write(cx, bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => pipe.written += written,
            }
            self.is_unflushed = true;
        }
        if self.is_unflushed {
            ready!(Pin::new(&mut self.opened.io).poll_flush(cx))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Passes the arrived messages on. Ready when the server closed the WebSocket, or it broke.
    pub fn poll_messages(
        &mut self,
        cx: &mut Context<'_>,
        marks: &Marks,
        incoming: &mut impl Incoming,
    ) -> Poll<Result<Closed, Broke>> {
        if let Some(closed) = self.pass_on(incoming)? {
            return Poll::Ready(Ok(closed));
        }
        for _ in 0..READS_IN_A_ROW {
            let pipe = self.protocol.get_mut();
            let io = Pin::new(&mut self.opened.io);
            let read = BUFFER.with_borrow_mut(|buffer| {
                let mut buffer = ReadBuf::new(buffer);
                ready!(io.poll_read(cx, &mut buffer))?;
                pipe.incoming.extend_from_slice(buffer.filled());
                Poll::Ready(io::Result::Ok(buffer.filled().len()))
            });
            match ready!(read) {
                Ok(0) => pipe.has_ended = true,
                Ok(bytes) => {
                    self.partial += bytes;
                    self.opened.wire.mark_read(marks);
                }
                Err(error) => {
                    self.is_over = true;
                    return Poll::Ready(Err(self.lost(broken(&error))));
                }
            }
            if let Some(closed) = self.pass_on(incoming)? {
                return Poll::Ready(Ok(closed));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Passes on the whole messages among the bytes that have come.
    fn pass_on(&mut self, incoming: &mut impl Incoming) -> Result<Option<Closed>, Broke> {
        let at = self.opened.wire.read_at();
        loop {
            match self.protocol.read() {
                Ok(protocol::Message::Text(text)) => incoming.message(at, TEXT, text.as_bytes()),
                Ok(protocol::Message::Binary(bytes)) => incoming.message(at, BINARY, &bytes),
                Ok(protocol::Message::Close(close)) => {
                    self.is_over = true;
                    let closed = Closed::new(close.as_ref());
                    incoming.message(at, CLOSE, &closed.bytes());
                    return Ok(Some(closed));
                }
                // The library answers pings; it gives no frames that are not messages.
                Ok(_) => continue,
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(None);
                }
                Err(error) => return Err(self.broken(&error)),
            }
            self.partial = self.protocol.get_ref().incoming.len();
        }
    }

    /// Ends the WebSocket for the library's error, and tells the server.
    fn broken(&mut self, error: &Error) -> Broke {
        let (code, what) = match error {
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                self.is_over = true;
                let what = "the connection ended without the WebSocket being closed";
                return self.lost(what.to_owned());
            }
            Error::Capacity(_) => (
                CloseCode::Size,
                format!("a message of the server is larger than {} MiB", FRAME_BYTES >> 20),
            ),
            Error::Utf8(_) => {
                (CloseCode::Invalid, "a text message of the server is not UTF-8".to_owned())
            }
            error => {
                (CloseCode::Protocol, format!("the server's bytes are not a WebSocket: {error}"))
            }
        };
        self.close(code);
        Broke::Refused(what)
    }

    /// The connection broke. Where sending had failed before, that says more.
    fn lost(&mut self, what: String) -> Broke {
        Broke::Connection(match &self.unwritable {
            Some(why) => format!("sending failed: {why}; then {what}"),
            None => what,
        })
    }

    /// Closes the sending side with this code. Does nothing where either side has closed.
    fn close(&mut self, code: CloseCode) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let frame = CloseFrame { code, reason: Utf8Bytes::default() };
        // A failure to write shows later, at the write.
        let _ = self.put_frame(PONG_BYTES, |protocol| protocol.close(Some(frame)));
    }

    /// Closes the WebSocket as complete, and waits for the server's close without other messages.
    pub async fn leave(mut self) {
        struct Nothing;
        impl Incoming for Nothing {
            fn message(&mut self, _: Nanos, _: &'static str, _: &[u8]) {}
        }
        let marks = Marks::default();
        self.close(CloseCode::Normal);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(Err(_)) = self.poll_write(cx) {
                return Poll::Ready(());
            }
            self.poll_messages(cx, &marks, &mut Nothing).map(drop)
        })
        .await;
    }
}

impl<Io: ByteStream> Drop for WebSocket<Io> {
    /// A WebSocket that is given up is closed too, as far as the socket takes it at once.
    fn drop(&mut self) {
        self.close(CloseCode::Away);
        let _ = self.poll_write(&mut Context::from_waker(Waker::noop()));
    }
}

impl Closed {
    fn new(frame: Option<&CloseFrame>) -> Self {
        Closed {
            code: frame.map(|frame| frame.code.into()),
            reason: frame.map_or_else(String::new, |frame| frame.reason.as_str().to_owned()),
        }
    }

    /// The bytes of its frame: the code, with the higher byte first, and the reason.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(code) = self.code {
            bytes.extend(code.to_be_bytes());
            bytes.extend(self.reason.as_bytes());
        }
        bytes
    }

    /// True if the server closed regularly: with the code 1000 or 1001, or without one.
    pub fn is_regular(&self) -> bool {
        matches!(self.code, None | Some(1000 | 1001))
    }
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            None => f.write_str("without a code"),
            Some(code) if self.reason.is_empty() => write!(f, "with code {code}"),
            Some(code) => write!(f, "with code {code}: {}", self.reason),
        }
    }
}

/// Appended to the client's key before the server hashes it (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

pub struct Handshake {
    /// The value that the server must derive from the client's key.
    accept: String,
    offers_protocols: bool,
}

impl Handshake {
    /// Adds the fields of a handshake to a request.
    pub fn begin(request: Request) -> Result<(Request, Self), String> {
        let mut key = [0; 16];
        let drawn = SystemRandom::new().fill(&mut key);
        drawn.map_err(|_| "the system gives no random numbers for a handshake".to_owned())?;
        let key = BASE64_STANDARD.encode(key);
        let handshake = Handshake {
            accept: accept(&key),
            offers_protocols: request.has(&SEC_WEBSOCKET_PROTOCOL),
        };
        let key = HeaderValue::try_from(key).expect("it is of letters and digits");
        let fields: [(HeaderName, HeaderValue); 4] = [
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13")),
            (SEC_WEBSOCKET_KEY, key),
        ];
        Ok((request.with(&fields), handshake))
    }

    /// Checks that the server agrees; else a message for people.
    pub fn check(&self, head: &Head) -> Result<(), String> {
        let Head { status, headers } = head;
        let says = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
        if *status != StatusCode::SWITCHING_PROTOCOLS.as_u16() {
            return Err(format!(
                "the server answered HTTP {status} and did not open a WebSocket (HTTP 101); is this the WebSocket path?"
            ));
        }
        let has = |name: HeaderName| headers.contains_key(name);
        let is_switched =
            names(headers, &UPGRADE, "websocket") && names(headers, &CONNECTION, "upgrade");
        let refused = if !is_switched {
            "the server switched to another protocol than a WebSocket (HTTP 101 without `upgrade: websocket` and `connection: upgrade`)"
        } else if says(&SEC_WEBSOCKET_ACCEPT) != Some(self.accept.as_bytes()) {
            "the server's `sec-websocket-accept` does not belong to this client's key; is there a proxy in between that answers by itself?"
        } else if has(SEC_WEBSOCKET_EXTENSIONS) {
            "the server uses extensions of WebSockets (`sec-websocket-extensions`), and none were offered"
        } else if has(SEC_WEBSOCKET_PROTOCOL) && !self.offers_protocols {
            "the server chose a subprotocol (`sec-websocket-protocol`), and none were offered"
        } else {
            return Ok(());
        };
        Err(refused.to_owned())
    }
}

/// Derives the value from a key by which a server shows that it speaks WebSocket.
fn accept(key: &str) -> String {
    let mut hash = digest::Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(key.as_bytes());
    hash.update(GUID);
    BASE64_STANDARD.encode(hash.finish())
}

/// True if the field of this name lists this word.
fn names(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|listed| listed.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
