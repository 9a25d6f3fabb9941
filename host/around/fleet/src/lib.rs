//! Many load machines that make one run.
//!
//! This crate owns how the processes of a fleet find each other, prove that they belong together,
//! agree on one start instant, and bring their records to one place. It leaves what a run is to
//! others: scenarios, figures and endings pass through as JSON. Nothing of it is in the path of a
//! request.
//!
//! Pure: the place of a process ([`place`]), what is said ([`wire`]), clocks ([`clock`]), who
//! decides what ([`rendezvous`]), and what starts the processes ([`manifest`]). With keys, disks
//! and sockets: the run's secret ([`token`], [`identity`]), files by digest ([`files`]), records
//! ([`records`]), processes on machines that ssh reaches ([`ssh`]), and the connections that carry
//! all of it ([`link`]), which is where to begin: [`link::Coordinator`] and [`link::Agent`].
//!
//! - **No request waits for the fleet.** The plan is cut into slices, every agent makes its own,
//!   and the coordinator only says when to begin.
//! - **All reasons at once.** Missing processes, other versions, other plans, clocks: each reason
//!   names its process, and everybody who connected hears all of them.
//! - **A connection may break at any byte.** A process is known by its rank and an instance number,
//!   and repeats its facts on a new connection; files and records go on where they stopped. One
//!   that does not come back is lost from when it was last heard, for good.
//! - **The bound of a clock holds.** Neither way of an answer takes less than no time, so the
//!   offset lies within an interval. The intervals of all answers are intersected, and widen by the
//!   drift that sound clocks may have.
//! - **The token is the only credential, and there are two roles.** It gives the coordinator one
//!   key and the agents another. Each side presents its public half as a raw public key (RFC 7250)
//!   and takes the key of the other role alone, so an agent cannot be taken for the coordinator.
//! - **The file on an agent's disk is the queue of its records**, so a slow coordinator slows
//!   nothing that measures. At the end length and SHA-256 of the copy must be those of the file.
//! - **Everything that comes has a bound**: messages by who sends them, handshakes at the same
//!   time, messages that wait for a peer, records of an agent, files of a run.
//! - **Rank 0 adds counts and distributions, never percentiles**, so what it shows of the whole
//!   adds up.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![forbid(unsafe_code)]

pub mod clock;
pub mod files;
pub mod identity;
pub mod link;
pub mod manifest;
pub mod place;
pub mod records;
pub mod rendezvous;
pub mod ssh;
pub mod token;
pub mod wire;
