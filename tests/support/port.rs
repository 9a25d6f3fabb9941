//! Ports for programs that are started with one: free ones, which nothing else takes meanwhile.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port, and the number of ports. They lie below the range from which systems give any
/// free port, so that a server of another test cannot get one between its choice and its use.
const FIRST: u16 = 20_000;
const PORTS: u16 = 10_000;

/// Ports that were tried, so that no two tests get the same one.
static TRIED: AtomicU16 = AtomicU16::new(0);

/// A port that is free now, and that no other test of this process gets.
pub fn free() -> u16 {
    // Other processes begin elsewhere.
    let offset = (std::process::id() % u32::from(PORTS)) as u16;
    for _ in 0..PORTS {
        let port = FIRST + offset.wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed)) % PORTS;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port from {FIRST} on is free");
}
