//! The load: pacing requests, holding connections, sending, reading, and cutting into frames.
//!
//! This crate owns the path from a finished request to a frame with its instant, the runner's watch
//! on itself ([`vitals`]), and the alarm of every thread ([`thread_group`]). It knows no plugin.
//! Its hot path takes no lock that readers share and writes no log.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![deny(unsafe_code)]

pub mod backlog;
pub mod drive;
pub mod pace;
pub mod question;
pub mod thread_group;
pub mod transport;
pub mod vitals;
