//! The server's own series over a run: every number on its metrics page, sampled while the run goes
//! on.
//!
//! This crate reads a page ([`page`]), stores samples line by line ([`entry`]) and returns them as
//! series ([`recording`]). It knows the equivalence of servers' series ([`names`]), and their
//! values over an interval ([`figures`]) or over equal spans of time ([`course`]). It has a
//! request's stages before its first token ([`stages`]). It is pure: `session` fetches the pages,
//! `runs` has the file, `report` draws.

#![forbid(unsafe_code)]

pub mod entry;
pub mod figures;
mod levels;
pub mod names;
pub mod page;
mod pieces;
pub mod recording;
pub mod stages;

#[cfg(test)]
mod tests;

pub use entry::{Encoder, Entry, Failed, Head, Sample, Series};
pub use figures::{Course, Figure, Line, Queue, ServerSeries};
pub use levels::{Levels, levels};
pub use names::Name;
pub use page::Kind;
pub use recording::Recording;
pub use stages::{Stage, Staged, Stages};
