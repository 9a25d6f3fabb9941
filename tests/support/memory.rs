//! The mock engine at the other end of an in-memory pipe, so that a client's and a server's real
//! HTTP meet on one runtime, and on its clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use runner::clock::Clock;
use runner::exchange;
use runner::mock::{Engine, serve_connection};
use runner::transport::{Connect, Opened, Stamped, Version, Wire};
use tokio::io::DuplexStream;

/// Bytes that a pipe holds in each direction before a writer has to wait.
const PIPE_BYTES: usize = 64 << 10;

/// Opens connections to a mock engine.
#[derive(Clone)]
pub struct Memory {
    engine: Arc<Engine>,
    opened: Arc<AtomicUsize>,
}

impl Memory {
    /// To this engine, which must have been made on the runtime that connects.
    pub fn to(engine: &Arc<Engine>) -> Self {
        Memory {
            engine: Arc::clone(engine),
            opened: Arc::default(),
        }
    }

    /// How many connections were opened.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

impl Connect for Memory {
    type Io = Stamped<DuplexStream>;

    fn version(&self) -> Version {
        Version::Http1
    }

    async fn connect(&self, _target: u32, clock: Clock) -> Result<Opened<Self::Io>, String> {
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        tokio::spawn(serve_connection(server, Arc::clone(&self.engine)));
        self.opened.fetch_add(1, Ordering::Relaxed);
        let wire = Wire::new(clock);
        Ok(Opened {
            io: Stamped::new(client, &wire),
            wire,
            facts: exchange::Connection {
                begun: clock.now(),
                connected: clock.now(),
                ..exchange::Connection::default()
            },
        })
    }
}
