//! A server at the other end of an in-memory pipe: real HTTP on one runtime and its clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use load::transport::poller::Poller;
use load::transport::{Connect, NewConnection, StampedStream, Wire};
use mock::{Engine, serve_connection};
use model::clock::Clock;
use model::connection::Version;
use model::exchange;
use model::units::Nanos;
use tokio::io::DuplexStream;

use super::raw::Raw;

/// Bytes that a pipe holds in each direction before a writer has to wait.
const PIPE_BYTES: usize = 64 << 10;

#[derive(Clone)]
pub struct Memory {
    server: Server,
    opened: Arc<AtomicUsize>,
    open: Arc<Open>,
    version: Version,
    away: Option<(u32, Away)>,
    apart: bool,
}

#[derive(Clone)]
enum Server {
    Engine(Arc<Engine>),
    Raw(Arc<Raw>),
}

#[derive(Default)]
struct Open {
    now: AtomicUsize,
    peak: AtomicUsize,
}

async fn counted<T>(open: Arc<Open>, served: impl Future<Output = T>) {
    let now = open.now.fetch_add(1, Ordering::Relaxed) + 1;
    open.peak.fetch_max(now, Ordering::Relaxed);
    let _ = served.await;
    open.now.fetch_sub(1, Ordering::Relaxed);
}

/// The ways in which a target cannot be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Away {
    Refuses,
    IsSilent,
}

impl Memory {
    fn to_server(server: Server) -> Self {
        Memory {
            server,
            opened: Arc::default(),
            open: Arc::default(),
            version: Version::Http1,
            away: None,
            apart: false,
        }
    }

    /// To this engine, which must have been made on the runtime that connects.
    pub fn to(engine: &Arc<Engine>) -> Self {
        Memory::to_server(Server::Engine(Arc::clone(engine)))
    }

    pub fn to_raw(raw: &Arc<Raw>) -> Self {
        Memory::to_server(Server::Raw(Arc::clone(raw)))
    }

    pub fn speaking(self, version: Version) -> Self {
        Memory { version, ..self }
    }

    /// But one of the targets cannot be connected to.
    pub fn without(self, away: Option<(u32, Away)>) -> Self {
        Memory { away, ..self }
    }

    /// Each connection begins later by as many nanoseconds as connections were opened before it.
    pub fn apart(self, apart: bool) -> Self {
        Memory { apart, ..self }
    }

    /// The number of connections that were open at the same time at most.
    pub fn peak(&self) -> usize {
        self.open.peak.load(Ordering::Relaxed)
    }

    /// The number of connections that were opened.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

impl Connect for Memory {
    type Io = StampedStream<DuplexStream>;

    fn version(&self) -> Version {
        self.version
    }

    async fn connect(
        &self,
        target: u32,
        clock: Clock,
        _: Option<&Poller>,
    ) -> Result<NewConnection<Self::Io>, String> {
        match self.away {
            Some((away, Away::Refuses)) if away == target => return Err("refused".to_owned()),
            Some((away, Away::IsSilent)) if away == target => std::future::pending().await,
            _ => {}
        }
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        match &self.server {
            Server::Engine(engine) => {
                let served = serve_connection(server, Arc::clone(engine));
                tokio::spawn(counted(Arc::clone(&self.open), served));
            }
            Server::Raw(raw) => {
                tokio::spawn(counted(Arc::clone(&self.open), Arc::clone(raw).serve(server)));
            }
        }
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let wire = Wire::new(clock);
        let later = Nanos(if self.apart { number as u64 } else { 0 });
        Ok(NewConnection {
            io: StampedStream::new(client, &wire),
            wire,
            facts: exchange::Connection {
                begun: clock.now() + later,
                connected: clock.now() + later,
                ..exchange::Connection::default()
            },
            readiness: None,
        })
    }
}
