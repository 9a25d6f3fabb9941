//! A TCP socket whose reads carry the kernel's receive timestamps.
//!
//! Linux stamps each packet when the network hands it over (`SO_TIMESTAMPNS`). A read of a TCP
//! socket returns the stamp of its last packet, which does not depend on how late this program
//! reads it; the gap between events of one read becomes zero. A stamp counts system time, which is
//! turned into the run's clock by the time that has passed since.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::stamp::{StampedStream, Wire, plain};
use model::connection::Timestamps;
use model::units::Nanos;

/// A stamp that is further from the present than this is not used: the system's clock was set.
const BELIEVED: Nanos = Nanos(60_000_000_000);
/// Room for the control message of a read.
const CONTROL_BYTES: usize = 64;

/// A socket that says when it can be read.
pub trait Ready: AsRawFd {
    /// Ready when it may have something to read.
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads. Where that would block, the socket is not ready until something more comes.
    fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R>;
}

impl Ready for TcpStream {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        TcpStream::poll_read_ready(self, cx)
    }

    fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.try_io(Interest::READABLE, read)
    }
}

/// Wraps a connection. If the system has no receive times, reads are stamped here.
pub fn socket<S>(stream: S, wire: &Rc<Wire>, timestamps: Timestamps) -> StampedStream<S>
where
    S: Ready + AsFd + AsyncRead + Unpin,
{
    let is_stamped = timestamps == Timestamps::Kernel
        && setsockopt(&stream, sockopt::ReceiveTimestampns, &true).is_ok();
    StampedStream::reading(stream, wire, if is_stamped { stamped } else { plain })
}

/// Reads once; returns the number of bytes, and their time in the socket.
fn receive(
    stream: &impl AsRawFd,
    wire: &Wire,
    into: &mut [u8],
) -> io::Result<(usize, Option<Nanos>)> {
    let mut control = [0; CONTROL_BYTES];
    let mut buffers = [IoSliceMut::new(into)];
    let received =
        recvmsg::<()>(stream.as_raw_fd(), &mut buffers, Some(&mut control), MsgFlags::empty())?;
    let stamp = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
        _ => None,
    });
    let lag = stamp.and_then(|stamp| wire.clock.since_system_time(nanos(stamp)));
    Ok((received.bytes, lag.filter(|lag| *lag < BELIEVED)))
}

fn nanos(stamp: TimeSpec) -> Nanos {
    let seconds = u64::try_from(stamp.tv_sec()).unwrap_or(0);
    let nanos = u64::try_from(stamp.tv_nsec()).unwrap_or(0);
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// Reads bytes with the kernel's receive times.
fn stamped<S: Ready>(
    stream: &mut S,
    wire: &Wire,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    loop {
        ready!(stream.poll_read_ready(cx))?;
        let into = buf.initialize_unfilled();
        let room = into.len();
        let mut partial = None;
        let read = stream.try_read(|| {
            let (bytes, lag) = receive(stream, wire, into)?;
            if bytes > 0 && bytes < room {
                // The socket is drained: said now, it saves the read that would find nothing.
                partial = Some((bytes, lag));
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok((bytes, lag))
        });
        match (partial, read) {
            (Some((bytes, lag)), _) | (None, Ok((bytes, lag))) => {
                buf.advance(bytes);
                wire.read(lag);
                return Poll::Ready(Ok(()));
            }
            (None, Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            (None, Err(error)) => return Poll::Ready(Err(error)),
        }
    }
}
