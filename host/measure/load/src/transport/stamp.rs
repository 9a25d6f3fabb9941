//! Instants at the socket: of each read of a byte stream, and of a request's sending.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use model::clock::Clock;
use model::units::Nanos;

/// The facts that a byte stream records about itself, for its users above (also above TLS).
#[derive(Debug)]
pub struct Wire {
    pub clock: Clock,
    /// Instant at which the bytes of the last read came.
    read_at: Cell<Nanos>,
    /// Time for which they had been in the socket, if the system says so.
    lag: Cell<Option<Nanos>>,
    /// Requests whose first byte is about to be written by someone else.
    unsent: RefCell<Vec<Rc<Marks>>>,
}

#[derive(Debug, Default)]
pub struct Marks {
    /// Instant of handing its first byte (over HTTP/2, of its header block) to the socket.
    pub sent: Cell<Option<Nanos>>,
    /// Instant at which its last byte was handed to the socket.
    pub written: Cell<Option<Nanos>>,
    /// Instant at which the reply's first byte came.
    pub first_byte: Cell<Option<Nanos>>,
    /// The longest that bytes of the reply lay in the socket.
    pub read_lag: Cell<Option<Nanos>>,
}

impl Wire {
    pub fn new(clock: Clock) -> Rc<Self> {
        Rc::new(Wire {
            clock,
            read_at: Cell::new(clock.now()),
            lag: Cell::new(None),
            unsent: RefCell::default(),
        })
    }

    /// Bytes were read just now, after they had lain in the socket for so long, if known.
    pub fn read(&self, lag: Option<Nanos>) {
        let now = self.clock.now();
        let arrival = lag.map_or(now, |lag| Nanos(now.0.saturating_sub(lag.0)));
        // The system's clock can be set back in mid-run; a reply's instants never go back.
        self.read_at.set(arrival.max(self.read_at.get()));
        self.lag.set(lag);
    }

    pub fn read_at(&self) -> Nanos {
        self.read_at.get()
    }

    /// Notes for a reply that bytes of it arrived with the last read.
    pub(crate) fn mark_read(&self, marks: &Marks) {
        if marks.first_byte.get().is_none() {
            marks.first_byte.set(Some(self.read_at.get()));
        }
        if let Some(lag) = self.lag.get() {
            marks.read_lag.set(marks.read_lag.get().max(Some(lag)));
        }
    }

    /// The next write carries this request.
    pub(crate) fn await_write(&self, marks: &Rc<Marks>) {
        self.unsent.borrow_mut().push(Rc::clone(marks));
    }

    pub fn write(&self) {
        let mut unsent = self.unsent.borrow_mut();
        if !unsent.is_empty() {
            let now = self.clock.now();
            for marks in unsent.drain(..) {
                marks.sent.set(Some(now));
            }
        }
    }
}

/// A way to read a byte stream, which tells its [`Wire`] when the bytes came.
pub(super) type Read<Io> =
    fn(&mut Io, &Wire, &mut Context<'_>, &mut ReadBuf<'_>) -> Poll<io::Result<()>>;

/// A byte stream that notes when it is read and written.
pub struct StampedStream<Io> {
    io: Io,
    wire: Rc<Wire>,
    read: Read<Io>,
}

/// Reads bytes that count as having come when they are read.
pub(super) fn plain<Io: AsyncRead + Unpin>(
    io: &mut Io,
    wire: &Wire,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    let read = Pin::new(io).poll_read(cx, buf);
    if read.is_ready() {
        wire.read(None);
    }
    read
}

impl<Io: AsyncRead + Unpin> StampedStream<Io> {
    /// Wraps a stream that has no times of its own.
    pub fn new(io: Io, wire: &Rc<Wire>) -> Self {
        StampedStream::reading(io, wire, plain)
    }

    /// Wraps a stream that is read in this way.
    pub(super) fn reading(io: Io, wire: &Rc<Wire>, read: Read<Io>) -> Self {
        StampedStream { io, wire: Rc::clone(wire), read }
    }
}

impl<Io: Unpin> AsyncRead for StampedStream<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let StampedStream { io, wire, read } = &mut *self;
        read(io, wire, cx, buf)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for StampedStream<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.wire.write();
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.wire.write();
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
