//! A server that publishes a page, another one each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::server::{read_request, reply, serve};

/// The server. It ends with the tests.
pub struct Exporter {
    pub url: String,
    requests: Arc<AtomicU64>,
}

impl Exporter {
    /// Starts it on a port of its own, with the page of each number, from 0; nothing for an error.
    pub fn start(page: impl Fn(u64) -> Option<String> + Send + Sync + 'static) -> Self {
        let requests = Arc::<AtomicU64>::default();
        let count = Arc::clone(&requests);
        let url = serve(move |stream| {
            assert!(read_request(stream)?.starts_with("GET /metrics HTTP/1.1\r\n"));
            let kind = "text/plain; version=0.0.4";
            match page(count.fetch_add(1, Ordering::SeqCst)) {
                Some(body) => reply(stream, "200 OK", "", kind, &body),
                None => reply(stream, "503 Service Unavailable", "", kind, "no device\n"),
            }
        });
        Exporter { url: format!("{url}/metrics"), requests }
    }

    pub fn pages(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}
