//! Real sockets: the coordinator that listens, agents that connect, and their connections.
//!
//! [`Coordinator`] and [`Agent`] drive the state machines of [`crate::rendezvous`]. This module
//! owns connections, their bounds and their timing; it decides nothing about the run. Connections
//! break and come back without the caller's doing, until [`Timing::grace`] is over.
//!
//! ```text
//! coordinator                                agent
//! bind, gather ------------- Welcome ------> join: slice, the time when the run began
//!    |        <------------- Prepared ------ prepared: the plan's digest
//!    |        <------------- Ready --------- ready, which waits
//! start(at) ---------------- Start --------> the instant, by the agent's own clock
//! event, board   <---------- Live, Records - reporter, records
//! interrupt ---------------- Interrupt ----> interrupted
//! finish      <------------- Finished ------ finish
//! ```
//!
//! Bounds: handshakes under way at the same time ([`HANDSHAKES`]), their time, sizes of messages
//! ([`crate::wire::Bound`]), messages that wait for a peer ([`WAITING`]), records of an agent
//! ([`Offer::most_records`]). A peer that does not read is cut off.
//!
//! A runtime on which other work blocks answers no questions, and silence counts as a broken
//! connection. So the caller gives this module a runtime on a thread of its own.

mod agent;
mod coordinator;
mod driver;
mod hub;
mod peer;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::rendezvous::{Conn, Who};
use crate::wire::{Bound, Decoder, Frame, Message};
use model::clock::Clock;
use model::units::Nanos;

pub use agent::{Agent, Join, JoinError, Member, Reporter, Start};
pub use coordinator::{
    BindError, Coordinator, Ending, Listen, Offer, Outcome, ReadyAgent, ReadyFleet, Refusal,
    Running, Stopper,
};

/// The number of messages that may wait for one peer.
pub const WAITING: usize = 256;

/// The times of connections.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// A handshake, up to the greeting.
    pub handshake: Duration,
    /// A connection's first byte, which an agent sends at once.
    pub first_byte: Duration,
    /// Between questions about a clock, which also show that the peer is alive.
    pub ping: Duration,
    /// Between the first questions, which make the estimate good.
    pub first_pings: Duration,
    /// The number of first questions.
    pub first: u32,
    /// Without any message the connection counts as broken.
    pub silence: Duration,
    /// The time that a connection may be gone before its agent is lost. The agent itself ends its
    /// run a [`Self::silence`] later.
    pub grace: Duration,
    /// The longest pause between two attempts to connect. The first ones are shorter.
    pub retry: Duration,
    /// The interval at which to look at the records' file.
    pub records: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            handshake: Duration::from_secs(10),
            first_byte: Duration::from_secs(3),
            ping: Duration::from_secs(1),
            first_pings: Duration::from_millis(20),
            first: 16,
            silence: Duration::from_secs(10),
            grace: Duration::from_secs(20),
            retry: Duration::from_secs(2),
            records: Duration::from_millis(250),
        }
    }
}

/// This machine's name, by which others know it and may reach it.
pub fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = kernel.ok().or_else(|| std::env::var("HOSTNAME").ok());
    let name = name.map(|name| name.trim().to_owned());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "unnamed".to_owned())
}

/// Runs blocking work on a thread that may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down; nobody waits for this any more.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Locks data that no panicking thread can have left in pieces: every holder's changes are complete
/// or not begun.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The last figures of all agents. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<BTreeMap<u32, Latest>>>);

/// The latest news of one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    pub who: Who,
    /// Its figures, opaque here; absent before the first.
    pub figures: Option<Arc<Value>>,
    /// The number of figures that came: the same number stands for the same figures.
    pub number: u64,
    /// The time when the last figures came, by the coordinator's clock.
    pub at: Nanos,
    /// True if its part of the run has ended and is complete here.
    pub finished: bool,
    /// True if it is gone for good.
    pub lost: bool,
}

impl Board {
    /// Returns the latest news of each agent that has sent any, by rank.
    pub fn read(&self) -> BTreeMap<u32, Latest> {
        lock(&self.0).clone()
    }

    fn figures(&self, who: &Who, figures: Value, at: Nanos) {
        self.change(who, |latest| {
            latest.figures = Some(Arc::new(figures));
            latest.number += 1;
            latest.at = at;
        });
    }

    fn finished(&self, who: &Who) {
        self.change(who, |latest| latest.finished = true);
    }

    fn lost(&self, who: &Who) {
        self.change(who, |latest| latest.lost = true);
    }

    fn change(&self, who: &Who, change: impl FnOnce(&mut Latest)) {
        let mut board = lock(&self.0);
        let latest = board.entry(who.rank).or_insert_with(|| Latest {
            who: who.clone(),
            figures: None,
            number: 0,
            at: Nanos::ZERO,
            finished: false,
            lost: false,
        });
        change(latest);
        // A process that was started again may be on another machine.
        latest.who.clone_from(who);
    }
}

/// The number of bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Reads frames. Dropping a call of [`Self::next`] loses nothing.
struct Reader<R> {
    half: R,
    decoder: Decoder,
    chunk: Vec<u8>,
    clock: Clock,
    at: Nanos,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    fn new(half: R, bound: Bound, clock: Clock) -> Self {
        Reader { half, decoder: Decoder::new(bound), chunk: vec![0; CHUNK], clock, at: clock.now() }
    }

    fn widen(&mut self, bound: Bound) {
        self.decoder.widen(bound);
    }

    /// The next frame, and the time when its last bytes were read; or the reason why there is none.
    async fn next(&mut self) -> Result<(Frame, Nanos), String> {
        loop {
            if let Some(frame) = self.decoder.next().map_err(|error| error.to_string())? {
                return Ok((frame, self.at));
            }
            match self.half.read(&mut self.chunk).await {
                Ok(0) => return Err("the connection was closed".to_owned()),
                Ok(read) => {
                    self.at = self.clock.now();
                    self.decoder.feed(&self.chunk[..read]);
                }
                Err(error) => {
                    return Err(match (crate::identity::meaning(&error), error.kind()) {
                        (Some(meaning), _) => meaning.to_owned(),
                        // A killed process sends nothing, and the library's message is for its own
                        // users.
                        (None, std::io::ErrorKind::UnexpectedEof) => "the connection ended without notice, as when a process is killed or its machine goes down".to_owned(),
                        (None, _) => error.to_string(),
                    });
                }
            }
        }
    }
}

/// Writes frames until there can be no more messages, and closes. Bytes of records wait
/// for all messages, so that an answer about a clock is not held up.
async fn write<W: AsyncWrite + Unpin>(
    mut half: W,
    mut messages: mpsc::Receiver<Frame>,
    mut bulk: mpsc::Receiver<Frame>,
    clock: Clock,
    bound: Bound,
    patience: Duration,
) -> Result<(), String> {
    loop {
        let frame = tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(message) => message,
                None => break,
            },
            Some(frame) = bulk.recv() => frame,
        };
        let bytes = stamped(frame, clock.now()).encode(bound).map_err(|error| error.to_string())?;
        let sent = timeout(patience, async {
            half.write_all(&bytes).await?;
            half.flush().await
        });
        match sent.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("it took no message for {} s", patience.as_secs())),
        }
    }
    // The other side may be gone already.
    let _ = timeout(patience, half.shutdown()).await;
    Ok(())
}

/// Questions and answers about a clock say when they were written.
fn stamped(mut frame: Frame, now: Nanos) -> Frame {
    if let Message::Ping { sent, .. } | Message::Pong { sent, .. } = &mut frame.message {
        *sent = now;
    }
    frame
}

// Connections that have not proved their identity: their limit, and the connection to close for
// the next.
//
// Whoever can reach the port can open connections. A connection beyond the limit is let in, and
// another is closed: the oldest silent connection, else the oldest. So connections that are only
// held open keep no agent out, and one address cannot take the places of all.

/// The number of connections that may be in their handshake at the same time.
pub const HANDSHAKES: usize = 64;

/// Handshakes under way from one address, at most; the processes of a large machine come from one.
const MOST_OF_ADDRESS: usize = HANDSHAKES / 2;

/// The connections in their handshake, the oldest first.
#[derive(Clone, Default)]
struct Lobby(Arc<Mutex<Vec<Waiting>>>);

struct Waiting {
    conn: Conn,
    address: IpAddr,
    spoke: bool,
    /// Dropped to close the connection.
    _leash: oneshot::Sender<()>,
}

/// The place of a connection in its handshake; dropping it frees the place.
struct Guest {
    lobby: Lobby,
    conn: Conn,
}

impl Lobby {
    /// Lets a connection in, for which another may be closed. The returned receiver ends when this
    /// one is closed itself.
    fn enter(&self, conn: Conn, address: IpAddr) -> (Guest, oneshot::Receiver<()>) {
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
    fn spoke(&self) {
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
