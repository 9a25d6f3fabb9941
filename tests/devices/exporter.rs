//! A server that publishes a page, another one each time.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The page of this number, from 0; nothing for an error.
type Page = dyn Fn(u64) -> Option<String> + Send;

/// The server. It ends when this is dropped.
pub struct Exporter {
    pub url: String,
    requests: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Exporter {
    /// Starts it on a port of its own.
    pub fn start(page: impl Fn(u64) -> Option<String> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let (requests, ended) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, over) = (Arc::clone(&requests), Arc::clone(&ended));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                serve(stream.unwrap(), &count, &page);
            }
        });
        Exporter { url, requests, ended }
    }

    pub fn pages(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let address = self.url.trim_start_matches("http://");
        let _ = TcpStream::connect(address.trim_end_matches("/metrics"));
    }
}

fn serve(mut stream: TcpStream, count: &AtomicU64, page: &Page) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    assert!(head.starts_with(b"GET /metrics HTTP/1.1\r\n"));
    let (status, body) = match page(count.fetch_add(1, Ordering::SeqCst)) {
        Some(body) => ("200 OK", body),
        None => ("503 Service Unavailable", "no device\n".to_owned()),
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
}
