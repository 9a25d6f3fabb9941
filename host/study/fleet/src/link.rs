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
mod board;
mod coordinator;
mod driver;
mod hub;
mod lobby;
mod peer;
mod stream;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use agent::{Agent, Join, JoinError, Member, Reporter, Start};
pub use board::{Board, Latest};
pub use coordinator::{
    BindError, Coordinator, Ending, Listen, Offer, Outcome, ReadyAgent, ReadyFleet, Refusal,
    Running, Stopper,
};
pub use lobby::HANDSHAKES;

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
