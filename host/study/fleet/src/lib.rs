//! Many load machines that make one run.
//!
//! This crate owns how the processes of a fleet find each other, prove that they belong together,
//! agree on one start instant, and bring their records to one place. It starts no process and sends
//! no file: every process has the same command line and reads its own files. No request passes
//! through it.
//!
//! Pure: the place of a process ([`place`]), messages ([`wire`]), clocks ([`clock`]), and decisions
//! ([`rendezvous`]). With keys, disks and sockets: the run's secret ([`token`], [`identity`]),
//! records ([`records`]), and the connections that carry all of it ([`link`]). These leave to
//! [`run`] the meaning of a run: figures and endings pass through as JSON. [`run`] is where to
//! begin.
//!
//! - **No request waits for the fleet.** The plan is cut into slices, every agent makes its own,
//!   and the coordinator only says when to begin.
//! - **All reasons at once.** Missing processes, other versions, other plans, clocks: each reason
//!   names its process, and every connected process receives all of them.
//! - **A connection may break at any byte.** A process is known by its rank and an instance number,
//!   and repeats its facts on a new connection; records continue where they stopped. A process that
//!   does not come back is lost for good, from its last message on.
//! - **The bound of a clock holds.** Neither way of an answer takes less than no time, so the
//!   offset lies within an interval. The intervals of all answers are intersected, and widen by the
//!   drift that sound clocks may have.
//! - **The token is the only credential.** A key follows from it, and each side takes no other key.
//! - **The file on an agent's disk is the queue of its records**, so a slow coordinator slows
//!   nothing that measures. At the end the copy must have the length and SHA-256 of the file.
//! - **Everything that comes has a bound**: messages by their sender, handshakes at the same time,
//!   messages that wait for a peer, records of an agent.
//! - **Rank 0 adds counts and distributions, never percentiles**, so its display of the whole
//!   adds up.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![forbid(unsafe_code)]

pub mod clock;
pub mod identity;
pub mod link;
pub mod place;
pub mod records;
pub mod rendezvous;
pub mod run;
pub mod token;
pub mod wire;
