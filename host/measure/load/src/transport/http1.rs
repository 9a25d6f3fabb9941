//! HTTP/1.1, the client's side: writes requests, reads heads, and passes bodies on as they come.
//!
//! The reader works at a lower level than a general HTTP library: a body's bytes are stamped where
//! they were read, and an event is one read into a buffer of the thread, without queue or copy.

mod body;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use hyper::header::{CONNECTION, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use tokio::io::{AsyncWrite, ReadBuf};

use super::stamp::Marks;
use super::websocket::WebSocket;
use super::{BUFFER, Broke, ByteStream, Head, NewConnection, READS_IN_A_ROW, Sink, broken};
use body::Body;
use model::units::Nanos;

/// The maximum length of a reply's head.
const HEAD_BYTES: usize = 64 << 10;
/// Up to this length, every read parses the head: bytes that are no HTTP are noticed at once.
const SHORT_HEAD_BYTES: usize = 1 << 10;
const HEAD_FIELDS: usize = 128;
/// The maximum number of interim replies before the reply itself. Servers send one or two.
const INTERIM_REPLIES: usize = 16;

pub struct Connection<Io> {
    pub(super) opened: NewConnection<Io>,
    pub(super) idle_since: Option<Nanos>,
    body: Body,
    /// Bytes of the body that were read together with the head.
    early: Vec<u8>,
    /// True if another request may follow the reply.
    keep_alive: bool,
    closed: bool,
}

impl<Io: ByteStream> Connection<Io> {
    pub fn new(opened: NewConnection<Io>) -> Self {
        Connection {
            opened,
            idle_since: None,
            body: Body::Over,
            early: Vec::new(),
            keep_alive: true,
            closed: false,
        }
    }

    /// True if a request may be sent: the other side has neither closed nor sent anything.
    pub(crate) fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.closed {
            let mut probe = [0; 1];
            let read = Pin::new(&mut self.opened.io).poll_read(cx, &mut ReadBuf::new(&mut probe));
            self.closed = read.is_ready();
        }
        !self.closed
    }

    /// The reply is read as far as it will be; whether another request may follow.
    pub fn rest(&mut self, now: Nanos) -> bool {
        self.idle_since = Some(now);
        self.opened.facts.reused = true;
        self.opened.facts.waited = false;
        self.keep_alive && !self.closed && self.body.is_over() && self.early.is_empty()
    }

    /// Sends a request and waits for the reply's head.
    pub async fn send(
        &mut self,
        head: &[u8],
        body: &[u8],
        marks: &Rc<Marks>,
    ) -> Result<Head, String> {
        self.opened.wire.await_write(marks);
        let mut upload = Upload { head, body, failed: None };
        let mut reply = Reply::default();
        poll_fn(|cx| {
            // A server may answer before it has read everything, to refuse a too large body.
            if upload.poll(&mut self.opened.io, cx).is_ready() && marks.written.get().is_none() {
                match &upload.failed {
                    None => marks.written.set(Some(self.opened.wire.clock.now())),
                    Some(_) => self.keep_alive = false,
                }
            }
            let head = ready!(self.poll_head(cx, marks, &mut reply));
            Poll::Ready(match (head, upload.failed.take()) {
                (Err(_), Some(failed)) => Err(format!("sending failed: {failed}")),
                (head, _) => head,
            })
        })
        .await
        .inspect(|_| {
            if marks.written.get().is_none() {
                // The rest of the request would be taken for another request.
                self.keep_alive = false;
            }
        })
    }

    /// Reads until the head is whole; bytes of the body that were read are kept.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        marks: &Marks,
        reply: &mut Reply,
    ) -> Poll<Result<Head, String>> {
        loop {
            let read = BUFFER.with_borrow_mut(|buffer| {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(&mut self.opened.io).poll_read(cx, &mut buffer))?;
                reply.bytes.extend_from_slice(buffer.filled());
                // Only a line's end can complete the head, so other reads do not parse it.
                reply.has_news |= buffer.filled().contains(&b'\n');
                Poll::Ready(io::Result::Ok(buffer.filled().len()))
            });
            match ready!(read) {
                Ok(0) if reply.bytes.is_empty() => {
                    self.closed = true;
                    // Some servers hang up after each streamed reply without having said so.
                    let advice = match self.opened.facts.reused {
                        true => {
                            "; it had served another request, so the server may close connections without saying so (--connections never opens one for each request)"
                        }
                        false => "",
                    };
                    return Poll::Ready(Err(format!(
                        "the connection was closed before a reply arrived{advice}"
                    )));
                }
                Ok(0) => {
                    self.closed = true;
                    return Poll::Ready(Err(
                        "the connection was closed in the middle of the reply's head".to_owned(),
                    ));
                }
                Ok(_) => self.opened.wire.mark_read(marks),
                Err(error) => {
                    self.closed = true;
                    return Poll::Ready(Err(broken(&error)));
                }
            }
            let is_short = reply.bytes.len() <= SHORT_HEAD_BYTES;
            let is_long = reply.bytes.len() > HEAD_BYTES;
            let has_news = std::mem::take(&mut reply.has_news) || is_short || is_long;
            if has_news && let Some(head) = self.read_head(reply).transpose() {
                return Poll::Ready(head);
            }
        }
    }

    /// Parses the head from the received bytes, once it is complete; interim replies are skipped.
    fn read_head(&mut self, reply: &mut Reply) -> Result<Option<Head>, String> {
        let too_long = || Err(format!("the reply's head is longer than {} KiB", HEAD_BYTES >> 10));
        loop {
            let mut fields = [httparse::EMPTY_HEADER; HEAD_FIELDS];
            let mut parsed = httparse::Response::new(&mut fields);
            let length = match parsed.parse(&reply.bytes) {
                Ok(httparse::Status::Complete(length)) if length <= HEAD_BYTES => length,
                Ok(httparse::Status::Partial) if reply.bytes.len() <= HEAD_BYTES => {
                    return Ok(None);
                }
                Ok(_) => return too_long(),
                Err(httparse::Error::TooManyHeaders) => {
                    return Err(format!("the reply's head has more than {HEAD_FIELDS} fields"));
                }
                // A server of HTTP/2 alone begins with its settings, a frame of the type 4.
                Err(_) if reply.bytes.len() < 4 && reply.bytes.starts_with(&[0]) => {
                    return Ok(None);
                }
                Err(_) if matches!(reply.bytes[..], [0, _, _, 4, ..]) => {
                    return Err("the reply is HTTP/2, not HTTP/1.1; use --http 2".to_owned());
                }
                Err(cause) => return Err(format!("the reply is not HTTP/1.1: {cause}")),
            };
            let status = parsed.code.unwrap_or_default();
            if (100..200).contains(&status) && status != StatusCode::SWITCHING_PROTOCOLS.as_u16() {
                reply.interim += 1;
                if reply.interim > INTERIM_REPLIES {
                    return Err(format!(
                        "more than {INTERIM_REPLIES} interim replies (HTTP {status}) came instead of a reply"
                    ));
                }
                reply.bytes.drain(..length);
                continue;
            }
            let headers = header_map(parsed.headers)?;
            let stays_open = stays_open(&headers, parsed.version == Some(1));
            self.body = Body::from_head(status, &headers)?;
            self.keep_alive &= stays_open && self.body.has_own_end();
            self.early = reply.bytes.split_off(length);
            return Ok(Some(Head { status, headers }));
        }
    }

    /// The WebSocket that it has become: the reply whose head was read last has the status 101.
    pub(super) fn into_websocket(self) -> WebSocket<Io> {
        WebSocket::new(self.opened, self.early)
    }

    /// Passes the arrived body to `sink`. Ready when the body has properly ended, or broke off.
    pub fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        marks: &Marks,
        sink: &mut impl Sink,
    ) -> Poll<Result<(), Broke>> {
        if !self.early.is_empty() && !self.body.is_over() {
            let early = std::mem::take(&mut self.early);
            let left = self.hand_on(&early, sink)?;
            self.early = early[early.len() - left..].to_vec();
        }
        if self.body.is_over() {
            return Poll::Ready(Ok(()));
        }
        for _ in 0..READS_IN_A_ROW {
            let over = BUFFER.with_borrow_mut(|buffer| {
                let mut buffer = ReadBuf::new(buffer);
                if let Err(error) = ready!(Pin::new(&mut self.opened.io).poll_read(cx, &mut buffer))
                {
                    self.closed = true;
                    return Poll::Ready(Err(Broke::Connection(broken(&error))));
                }
                let bytes = buffer.filled();
                if bytes.is_empty() {
                    self.closed = true;
                    return Poll::Ready(self.body.end_of_connection().map(|()| true));
                }
                self.opened.wire.mark_read(marks);
                let left = self.hand_on(bytes, sink)?;
                self.early.extend_from_slice(&bytes[bytes.len() - left..]);
                Poll::Ready(Ok(self.body.is_over()))
            });
            if ready!(over)? {
                return Poll::Ready(Ok(()));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Passes the body's part of these bytes to `sink`; returns the number of bytes after the body.
    fn hand_on(&mut self, mut bytes: &[u8], sink: &mut impl Sink) -> Result<usize, Broke> {
        let at = self.opened.wire.read_at();
        while !bytes.is_empty() && !self.body.is_over() {
            let (part, used) = self.body.next(bytes).map_err(Broke::Connection)?;
            if let Some(content) = part {
                sink.take(at, content).map_err(Broke::Refused)?;
            }
            bytes = &bytes[used..];
        }
        Ok(bytes.len())
    }
}

#[derive(Default)]
struct Reply {
    bytes: Vec<u8>,
    /// True if a line has ended since the bytes were last parsed.
    has_news: bool,
    /// Interim replies that came before it.
    interim: usize,
}

struct Upload<'r> {
    head: &'r [u8],
    body: &'r [u8],
    failed: Option<io::Error>,
}

impl Upload<'_> {
    /// Writes; ready when the system has everything, or cannot take it.
    fn poll<Io: AsyncWrite + Unpin>(&mut self, io: &mut Io, cx: &mut Context<'_>) -> Poll<()> {
        while self.failed.is_none() && !(self.head.is_empty() && self.body.is_empty()) {
            let parts = [IoSlice::new(self.head), IoSlice::new(self.body)];
            let written = match (self.head.is_empty(), io.is_write_vectored()) {
                (false, true) => Pin::new(&mut *io).poll_write_vectored(cx, &parts),
                (false, false) => Pin::new(&mut *io).poll_write(cx, self.head),
                (true, _) => Pin::new(&mut *io).poll_write(cx, self.body),
            };
            match ready!(written) {
                Ok(0) => self.failed = Some(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    let of_head = written.min(self.head.len());
                    self.head = &self.head[of_head..];
                    self.body = &self.body[written - of_head..];
                }
                Err(error) => self.failed = Some(error),
            }
        }
        if self.failed.is_none()
            && let Err(error) = ready!(Pin::new(io).poll_flush(cx))
        {
            self.failed = Some(error);
        }
        Poll::Ready(())
    }
}

fn header_map(fields: &[httparse::Header<'_>]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(format!("the reply has a malformed header field `{}`", field.name));
        };
        headers.append(name, value);
    }
    Ok(headers)
}

/// True if the connection stays open after the reply: RFC 9112, 9.3.
fn stays_open(headers: &HeaderMap, is_1_1: bool) -> bool {
    let says = |word: &str| {
        headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|option| option.trim().eq_ignore_ascii_case(word))
    };
    !says("close") && (is_1_1 || says("keep-alive"))
}

#[cfg(test)]
mod tests;
