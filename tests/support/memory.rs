//! The mock engine at the other end of an in-memory pipe, so that a client's and a server's real
//! HTTP meet on one runtime, and on its clock.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use runner::mock::{Engine, serve_connection};
use runner::transport::Connect;
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
    type Io = DuplexStream;

    async fn connect(&self) -> io::Result<DuplexStream> {
        let (client, server) = tokio::io::duplex(PIPE_BYTES);
        tokio::spawn(serve_connection(server, Arc::clone(&self.engine)));
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(client)
    }
}
