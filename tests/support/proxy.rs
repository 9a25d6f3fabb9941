//! A network between a client and a server, over real sockets: it delays segments, sends lost
//! segments later, and cuts the bytes in other places. The carried bytes stay the same.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::random::mix;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

use super::raw::{RawServer, serve_each};

/// Its action, in each direction.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// The time that every byte is under way.
    pub delay: Duration,
    /// True if only the server's bytes are.
    pub one_way: bool,
    /// Extra time that a segment may take; later segments wait, as in an ordered transport.
    pub jitter: Duration,
    /// One segment in this many is lost, and comes later by [`RESENT`]; 0 for none.
    pub loses_one_in: u64,
    /// Bytes in a segment at most.
    pub segment: usize,
    /// Bytes from the server after which a connection carries no more, and stays open; absent for
    /// any number. The first connection, for the server's models, is not affected.
    pub silent_after: Option<usize>,
}

/// Delay of a lost segment: Linux's shortest time until a segment is sent again.
pub const RESENT: Duration = Duration::from_millis(200);

impl Network {
    /// A network that changes nothing.
    pub const PLAIN: Network = Network {
        delay: Duration::ZERO,
        one_way: false,
        jitter: Duration::ZERO,
        loses_one_in: 0,
        segment: 1 << 16,
        silent_after: None,
    };
}

/// The network between, until it is dropped.
pub struct Proxy {
    /// The base URL that leads through it.
    pub url: String,
    _server: RawServer,
}

impl Proxy {
    /// Puts it before the server with this base URL.
    pub fn before(server: &str, network_of_others: Network) -> Self {
        let server: SocketAddr = server.trim_start_matches("http://").parse().unwrap();
        let segments = Arc::new(AtomicU64::new(0));
        let mut network = Network { silent_after: None, ..network_of_others };
        let proxy = serve_each(move |client| {
            let own = std::mem::replace(&mut network, network_of_others);
            connect(client, server, own, Arc::clone(&segments))
        });
        Proxy { url: proxy.url.clone(), _server: proxy }
    }
}

async fn connect(
    client: TcpStream,
    server: SocketAddr,
    network: Network,
    segments: Arc<AtomicU64>,
) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let asking = Network {
        silent_after: None,
        delay: if network.one_way { Duration::ZERO } else { network.delay },
        ..network
    };
    let ask = carry(from_client, to_server, asking, &segments);
    let answer = carry(from_server, to_client, network, &segments);
    // Either side's end is both sides' end, once everything before it has been carried.
    tokio::select! {
        () = ask => {}
        () = answer => {}
    }
}

/// Carries one direction: bytes under way lie in a queue with their instant of arrival.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    network: Network,
    segments: &AtomicU64,
) {
    let mut under_way = VecDeque::<(Instant, Vec<u8>)>::new();
    let mut ended = false;
    let mut left = network.silent_after.unwrap_or(usize::MAX);
    let mut buffer = vec![0; network.segment];
    loop {
        let next = under_way.front().map(|(at, _)| *at);
        if ended && next.is_none() {
            return;
        }
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                let (_, bytes) = under_way.pop_front().unwrap();
                let through = &bytes[..bytes.len().min(left)];
                left -= through.len();
                if to.write_all(through).await.is_err() {
                    return;
                }
            }
            read = from.read(&mut buffer), if !ended => match read {
                Ok(read @ 1..) => {
                    let last = under_way.back().map(|(at, _)| *at);
                    let arrives = Instant::now() + network.takes(segments.fetch_add(1, Ordering::Relaxed));
                    under_way.push_back((last.map_or(arrives, |last| arrives.max(last)), buffer[..read].to_vec()));
                }
                // A connection that went silent does not even end.
                _ if left == 0 => std::future::pending().await,
                _ => ended = true,
            },
        }
    }
}

impl Network {
    /// The time that this segment is under way: the same for the same number.
    fn takes(&self, number: u64) -> Duration {
        let drawn = mix(number);
        let share = (drawn >> 32) as f64 / f64::from(u32::MAX);
        let lost = self.loses_one_in > 0 && (drawn & 0xffff_ffff).is_multiple_of(self.loses_one_in);
        let late = if lost { RESENT } else { Duration::ZERO };
        self.delay + self.jitter.mul_f64(share) + late
    }
}
