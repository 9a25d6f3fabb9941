//! Behaviour of real sockets alone: resets, refusals, servers that come and go, TLS. Uses real
//! processes and compares no times.

mod batching;
mod coming_and_going;
pub mod faults;
mod grpc;
mod hostile;
mod identity;
mod series;
mod spans;
mod speech;
mod steps;
mod tls;
mod websocket;

use std::collections::BTreeSet;

use tempfile::TempDir;

use crate::endings::{count, exchanges, line};
use crate::support::process::{Mock, run, runner};

/// Replies of HTTP/2 share a connection, its window, and the bound on held bytes. Together they are
/// larger than the bound, each is larger than its window, and none can be passed on early.
#[test]
fn whole_replies_beyond_the_bound_come_to_their_end() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&["--ttft", "1ms", "--itl", "0ms"]));
    let flags = "--num-prompts 120 --random-output-len 400000 --request-rate inf --http 2 --disable-stream \
                 --request-timeout 5m";
    run(&mut line(runner(), &mock, folder.path(), flags)).with_code(0);
    let exchanges = exchanges(folder.path());
    assert_eq!((exchanges.len(), count(&exchanges, None)), (120, 120));
    let bytes: usize = exchanges.iter().map(|exchange| exchange.output.len()).sum();
    assert!(bytes > 32 << 20, "{bytes} bytes in all");
    let connections: BTreeSet<_> =
        (exchanges.iter()).map(|exchange| exchange.connection.as_ref().unwrap().begun).collect();
    assert_eq!(connections.len(), 2, "a hundred requests share one");
}
