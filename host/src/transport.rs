//! HTTP/1.1 on one connection: sends a request, reads the reply, and stamps both at the socket.
//!
//! The connection is driven by the task that reads the reply, so the instant of a chunk is
//! read where its bytes were read, before anything else happens to them. There are no retries.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::clock::Clock;
use crate::units::Nanos;

/// Opens connections to the target.
pub trait Connect {
    /// A byte stream.
    type Io: AsyncRead + AsyncWrite + Unpin + 'static;

    /// Opens one.
    fn connect(&self) -> impl Future<Output = io::Result<Self::Io>>;
}

/// TCP to the first of the target's addresses that answers.
#[derive(Clone, Debug)]
pub struct Tcp(pub Vec<SocketAddr>);

impl Connect for Tcp {
    type Io = TcpStream;

    async fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.0[..]).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Instants read at the socket.
#[derive(Debug)]
struct Stamps {
    clock: Clock,
    first_write: RefCell<Rc<Cell<Option<Nanos>>>>,
    last_read: Cell<Nanos>,
}

/// A byte stream whose reads and writes are stamped.
struct Stamped<Io> {
    io: Io,
    stamps: Rc<Stamps>,
}

impl<Io: AsyncRead + Unpin> AsyncRead for Stamped<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if read.is_ready() {
            self.stamps.last_read.set(self.stamps.clock.now());
        }
        read
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Stamped<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stamp_write();
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stamp_write();
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
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

impl<Io> Stamped<Io> {
    fn stamp_write(&self) {
        let first = self.stamps.first_write.borrow();
        if first.get().is_none() {
            first.set(Some(self.stamps.clock.now()));
        }
    }
}

/// What moves a connection's bytes.
type Driver<Io> = Pin<Box<http1::Connection<TokioIo<Stamped<Io>>, Full<Bytes>>>>;

/// One open connection.
pub struct Connection<Io: AsyncRead + AsyncWrite + Unpin + 'static> {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Option<Driver<Io>>,
    stamps: Rc<Stamps>,
    /// When its last reply ended; absent if it was never used.
    idle_since: Option<Nanos>,
}

/// How long an unused connection may have been idle and still be used again. Servers close theirs
/// after five seconds (uvicorn) or more; a request that meets the close would count as failed.
const REUSE_WITHIN: Nanos = Nanos(2_000_000_000);

/// A reply whose body is being read.
pub struct Reply<'c, Io: AsyncRead + AsyncWrite + Unpin + 'static> {
    connection: &'c mut Connection<Io>,
    body: Incoming,
}

impl<Io: AsyncRead + AsyncWrite + Unpin + 'static> Connection<Io> {
    /// Opens a connection.
    ///
    /// # Errors
    /// Why it could not be opened.
    pub async fn open<C: Connect<Io = Io>>(connect: &C, clock: Clock) -> io::Result<Self> {
        let io = connect.connect().await?;
        let stamps = Rc::new(Stamps {
            clock,
            first_write: RefCell::default(),
            last_read: Cell::new(clock.now()),
        });
        let io = Stamped {
            io,
            stamps: Rc::clone(&stamps),
        };
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(1 << 20)
            .handshake(TokioIo::new(io))
            .await
            .map_err(io::Error::other)?;
        Ok(Connection {
            sender,
            driver: Some(Box::pin(driver)),
            stamps,
            idle_since: None,
        })
    }

    /// Whether a request may be sent on it now.
    pub fn is_usable(&mut self, cx: &mut Context<'_>, now: Nanos) -> bool {
        if self
            .idle_since
            .is_some_and(|since| now.since(since) > REUSE_WITHIN)
        {
            return false;
        }
        self.drive(cx);
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Lets the connection make progress.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            self.driver = None;
        }
    }

    /// Sends a request and waits for the reply's headers. When its first byte is handed to
    /// the socket is put into `sent`, also if the wait is given up.
    ///
    /// # Errors
    /// What broke the connection.
    pub async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        sent: &Rc<Cell<Option<Nanos>>>,
    ) -> Result<(Response<()>, Reply<'_, Io>), hyper::Error> {
        *self.stamps.first_write.borrow_mut() = Rc::clone(sent);
        let mut sending = Box::pin(self.sender.send_request(request));
        let driver = &mut self.driver;
        let response = poll_fn(|cx| {
            if let Poll::Ready(response) = sending.as_mut().poll(cx) {
                return Poll::Ready(response);
            }
            if let Some(connection) = driver
                && let Poll::Ready(ended) = connection.as_mut().poll(cx)
            {
                *driver = None;
                if let Err(error) = ended {
                    return match sending.as_mut().poll(cx) {
                        Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
                        _ => Poll::Ready(Err(error)),
                    };
                }
            }
            sending.as_mut().poll(cx)
        })
        .await?;
        drop(sending);
        let (head, body) = response.into_parts();
        Ok((
            Response::from_parts(head, ()),
            Reply {
                connection: self,
                body,
            },
        ))
    }

    /// The last reply has been read to its end.
    pub fn rest(&mut self, now: Nanos) {
        self.idle_since = Some(now);
    }
}

/// One piece of a reply's body.
pub enum Piece {
    /// Bytes, and when they were read.
    Chunk(Nanos, Bytes),
    /// The body is whole.
    End(Nanos),
}

impl<Io: AsyncRead + AsyncWrite + Unpin + 'static> Reply<'_, Io> {
    /// When bytes were last read.
    pub fn last_read(&self) -> Nanos {
        self.connection.stamps.last_read.get()
    }

    /// The next piece, if one is ready. After an end or an error there are no more.
    ///
    /// # Errors
    /// What broke the connection.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, hyper::Error>> {
        for attempt in 0..2 {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        let at = self.last_read();
                        return Poll::Ready(Ok(Piece::Chunk(at, data)));
                    }
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => {
                    return Poll::Ready(Ok(Piece::End(self.last_read())));
                }
                Poll::Pending if attempt == 0 => self.connection.drive(cx),
                Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}
