//! A new connection without requests, and the means to open one.

use std::future::Future;
use std::rc::Rc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::poller::{Poller, Readiness};
use super::stamp::Wire;
use model::clock::Clock;
use model::connection::Version;
use model::exchange;

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

    /// Returns the version of HTTP on its connections.
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
impl<Io: AsyncRead + Unpin> NewConnection<super::StampedStream<Io>> {
    /// A connection that is read as soon as its bytes come.
    pub(super) fn bare(io: Io) -> Self {
        let (wire, facts) = (Wire::new(Clock::start()), exchange::Connection::default());
        NewConnection { io: super::StampedStream::new(io, &wire), wire, facts, readiness: None }
    }
}
