//! The load: pacing requests, holding connections, sending, reading, and cutting replies into frames.
//!
//! This crate owns the path from a finished request to a frame with its instant, and the runner's watch on itself
//! ([`vitals`]), and the alarm of every thread of a run ([`crew`]). It knows no plugin. It leaves what a request asks and what a reply means to `session`. Its hot path takes no
//! lock that readers share and writes no log.
#![deny(unsafe_code)]

pub mod backlog;
pub mod crew;
pub mod drive;
pub mod pace;
pub mod question;
pub mod transport;
pub mod vitals;
