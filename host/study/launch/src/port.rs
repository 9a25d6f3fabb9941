//! Ports of this machine: free, or held by a process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::time::Duration;

use crate::process::Table;

/// The kernel's code for a listening socket.
const LISTENS: &str = "0A";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("port {port} is not free: {}; stop it, or choose another port", self.by())]
pub struct OccupiedPort {
    pub port: u16,
    /// The processes that hold it, if the system shows them.
    pub holders: Vec<String>,
}

impl OccupiedPort {
    fn by(&self) -> String {
        match &*self.holders {
            [] => "a process that this user may not see holds it".to_owned(),
            holders => format!("{} holds it", holders.join(", ")),
        }
    }
}

/// Attempts at a port that is not free, and the pause between them. A starting process holds all
/// open files of its parent for an instant.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(10);

/// Checks that an engine could listen on a port, at this address or at any. A failure takes up to
/// 0.1 s.
///
/// Fails if the port is occupied.
pub fn check(host: &str, port: u16) -> Result<(), OccupiedPort> {
    for _ in 1..TRIES {
        if is_free(host, port) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    check_once(&Table::default(), host, port)
}

pub(crate) fn check_once(table: &Table, host: &str, port: u16) -> Result<(), OccupiedPort> {
    if is_free(host, port) {
        Ok(())
    } else {
        Err(OccupiedPort { port, holders: holders(table, port) })
    }
}

/// True if an engine can listen. A server at all addresses blocks a server at one address, and the
/// reverse, so the usual addresses are tried beside the given one.
fn is_free(host: &str, port: u16) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let given = (host, port).to_socket_addrs().into_iter().flatten();
    let usual = [
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    ];
    let usual = usual.map(|address| SocketAddr::new(address, port));
    // Other failures, such as of an address of another machine, say nothing about the port.
    !given.chain(usual).any(|address| {
        TcpListener::bind(address).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    })
}

/// Finds the processes that hold a port: its listeners, or else other holders.
fn holders(table: &Table, port: u16) -> Vec<String> {
    let tables = ["tcp", "tcp6"].map(|file| table.network(file).unwrap_or_default());
    let sockets: Vec<Socket> = (tables.iter())
        .flat_map(|text| text.lines().filter_map(socket))
        .filter(|socket| socket.port == port && socket.inode != 0)
        .collect();
    let listening = sockets.iter().any(|socket| socket.listens);
    let mut holders: Vec<String> = Vec::new();
    for socket in sockets.iter().filter(|socket| socket.listens == listening) {
        let pids = table.holders(socket.inode);
        // This user may not see the owner of every port.
        let unseen = pids.is_empty().then(|| format!("a process of user {}", socket.user));
        let seen = pids.into_iter().map(|pid| table.describe(pid).to_string());
        for holder in seen.chain(unseen) {
            if !holders.contains(&holder) {
                holders.push(holder);
            }
        }
    }
    holders
}

struct Socket {
    port: u16,
    listens: bool,
    user: u32,
    inode: u64,
}

/// A line of `/proc/net/tcp`: number, local address, remote one, state, queues, timer,
/// retransmissions, user, timeouts, inode.
fn socket(line: &str) -> Option<Socket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, port) = fields.get(1)?.rsplit_once(':')?;
    Some(Socket {
        port: u16::from_str_radix(port, 16).ok()?,
        listens: *fields.get(3)? == LISTENS,
        user: fields.get(7)?.parse().ok()?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_holder_of_an_occupied_port() {
        for address in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(server) = TcpListener::bind(address) else { continue };
            let port = server.local_addr().unwrap().port();
            for host in ["127.0.0.1", "localhost", "0.0.0.0", "[::1]"] {
                let occupied = check(host, port).unwrap_err();
                let message = occupied.to_string();
                assert!(message.starts_with(&format!("port {port} is not free: ")), "{message}");
                if cfg!(target_os = "linux") {
                    let own = format!("process {} (`", std::process::id());
                    assert!(message.contains(&own), "{message}");
                }
            }
        }
    }

    #[test]
    fn a_port_that_nobody_has() {
        let is_free = || {
            let server = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = server.local_addr().unwrap().port();
            drop(server);
            check("127.0.0.1", port).is_ok()
        };
        // Somebody else may get it in between.
        assert!((0..5).any(|_| is_free()));
    }

    #[test]
    fn a_holder_that_cannot_be_seen() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("net")).unwrap();
        let table = Table::at(folder.path());
        assert_eq!(holders(&table, 8000), [""; 0]);
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000   33        0 777 1 0000000000000000\n   \
            1: 0100007F:1F40 0100007F:9569 01 00000000:00000000 00:00000000 00000000   34        0 778 1 0000000000000000\n";
        std::fs::write(folder.path().join("net/tcp"), text).unwrap();
        let occupied = OccupiedPort { port: 8000, holders: holders(&table, 8000) };
        let expected =
            "port 8000 is not free: a process of user 33 holds it; stop it, or choose another port";
        assert_eq!(occupied.to_string(), expected);
        let nobody = OccupiedPort { port: 8000, holders: holders(&table, 8001) };
        let expected = "port 8000 is not free: a process that this user may not see holds it; stop it, or choose another port";
        assert_eq!(nobody.to_string(), expected);
    }
}
