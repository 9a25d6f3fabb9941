//! A TCP socket that is registered with its thread's [`Poller`] instead of the runtime's driver.
//!
//! It can be used like any other byte stream; then tasks wait for it. A watcher of its
//! [`Readiness`] reads it without a task. Its reads are stamped in [`socket`](super::socket).

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use mio::net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::poller::{Poller, Readiness, Registered};
use super::socket::Ready;

pub struct Polled(Registered<TcpStream>);

impl Polled {
    /// Connects to the first of these addresses that answers.
    ///
    /// # Errors
    /// If none of them could be connected; the error is the last one's.
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
