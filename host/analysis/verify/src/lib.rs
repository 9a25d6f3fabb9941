//! Judges a benchmark client against known truth: its figures of a run, compared with the bytes
//! that the server sent and their times.
//!
//! This crate owns the cases, the profiles of clients, the meaning of every definition that a
//! figure can have, the verdicts and the card. It is pure: it starts nothing and reads no file. It
//! leaves playing a case's script to `mock`, starting a client to `launch`, and both, with all
//! output, to the command line.
//!
//! The idea that explains the rest: a name such as TTFT covers several quantities, and each is a
//! function of the server's log ([`meaning`]). A case is made so that these quantities differ by
//! far more than its tolerance. A client's figure is then exact by the definition that its own
//! documentation claims, or equals another one, which is named, or equals none.
//!
//! A new case is a file (`scenarios/conformance`); a new client is a profile beside them. A new
//! definition takes a word in [`meaning`] and its value there; a new property of the load a row in
//! [`load`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read and write files"))]

pub mod card;
pub mod case;
pub mod ceiling;
pub mod expected;
mod judge;
pub mod load;
pub mod log;
pub mod meaning;
pub mod profile;
pub mod schema;
pub mod sources;
mod stream;
pub mod text;
pub mod types;

#[cfg(test)]
mod tests;

pub use card::{Card, CaseCard, Outcome};
pub use case::Case;
pub use judge::{Run, judge};
pub use log::Log;
pub use profile::Profile;
pub use types::{Check, Verdict};

/// A count of tokens in a text; nothing if the text cannot be counted.
pub type Count<'a> = dyn Fn(&str) -> Option<u64> + 'a;

/// A case or a profile that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct FileError {
    pub file: String,
    /// The mistake and the expectation.
    pub message: String,
}

impl FileError {
    fn new(file: &str, message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        FileError { file: file.to_owned(), message: message.trim_end().to_owned() }
    }
}
