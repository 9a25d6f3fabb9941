//! Connections that have not proved their identity: their limit, and the connection to close for
//! the next.
//!
//! Whoever can reach the port can open connections. A connection beyond the limit is let in, and
//! another is closed: the oldest silent connection, else the oldest. So connections that are only
//! held open keep no agent out, and one address cannot take the places of all.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use super::lock;
use crate::rendezvous::Conn;

/// The number of connections that may be in their handshake at the same time.
pub const HANDSHAKES: usize = 64;
/// Handshakes under way from one address, at most; the processes of a large machine come from one.
const MOST_OF_ADDRESS: usize = HANDSHAKES / 2;

/// The connections in their handshake, the oldest first.
#[derive(Clone, Default)]
pub(super) struct Lobby(Arc<Mutex<Vec<Waiting>>>);

struct Waiting {
    conn: Conn,
    address: IpAddr,
    spoke: bool,
    /// Dropped to close the connection.
    _leash: oneshot::Sender<()>,
}

/// The place of a connection in its handshake; dropping it frees the place.
pub(super) struct Guest {
    lobby: Lobby,
    conn: Conn,
}

impl Lobby {
    /// Lets a connection in, for which another may be closed. The returned receiver ends when this
    /// one is closed itself.
    pub(super) fn enter(&self, conn: Conn, address: IpAddr) -> (Guest, oneshot::Receiver<()>) {
        let (leash, sent_away) = oneshot::channel();
        let mut waiting = lock(&self.0);
        let is_same = |other: &Waiting| other.address == address;
        let crowded = waiting.iter().filter(|other| is_same(other)).count() >= MOST_OF_ADDRESS;
        if crowded || waiting.len() >= HANDSHAKES {
            let may_go = |other: &&Waiting| !crowded || is_same(other);
            let mut candidates = waiting.iter().filter(may_go);
            let oldest = candidates.clone().next().map(|other| other.conn);
            let silent = candidates.find(|other| !other.spoke);
            if let Some(goes) = silent.map(|other| other.conn).or(oldest) {
                waiting.retain(|other| other.conn != goes);
            }
        }
        waiting.push(Waiting { conn, address, spoke: false, _leash: leash });
        let guest = Guest { lobby: self.clone(), conn };
        (guest, sent_away)
    }
}

impl Guest {
    /// Notes that the connection has sent something.
    pub(super) fn spoke(&self) {
        let mut waiting = lock(&self.lobby.0);
        if let Some(own) = waiting.iter_mut().find(|other| other.conn == self.conn) {
            own.spoke = true;
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        lock(&self.lobby.0).retain(|other| other.conn != self.conn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    /// Returns the numbers of the connections that are still in.
    fn inside(lobby: &Lobby) -> Vec<Conn> {
        lock(&lobby.0).iter().map(|waiting| waiting.conn).collect()
    }

    #[test]
    fn closes_the_oldest_silent_connection() {
        let lobby = Lobby::default();
        let guests: Vec<Guest> =
            (0..HANDSHAKES as u64).map(|conn| lobby.enter(conn, address(conn as u8)).0).collect();
        guests[0].spoke();
        let (new, _) = lobby.enter(100, address(200));
        assert_eq!(inside(&lobby).len(), HANDSHAKES);
        let inside_now = inside(&lobby);
        assert!(inside_now.contains(&0) && !inside_now.contains(&1) && inside_now.contains(&100));
        // Where all have spoken, age decides.
        guests.iter().for_each(Guest::spoke);
        new.spoke();
        let (_newer, _) = lobby.enter(101, address(201));
        assert!(!inside(&lobby).contains(&0));
        drop(guests);
        assert_eq!(inside(&lobby), [100, 101]);
    }

    #[test]
    fn an_address_at_its_limit_loses_its_own_connection() {
        let lobby = Lobby::default();
        let (agent, _) = lobby.enter(1, address(1));
        let held: Vec<Guest> =
            (10..10 + 3 * HANDSHAKES as u64).map(|conn| lobby.enter(conn, address(2)).0).collect();
        let inside = inside(&lobby);
        assert_eq!(inside.len(), 1 + MOST_OF_ADDRESS);
        assert!(inside.contains(&1), "the oldest, of another address");
        drop((agent, held));
    }
}
