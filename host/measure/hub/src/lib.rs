//! Tokenizers and datasets of the Hugging Face hub: its local cache, and downloads into it.
//!
//! This crate owns the names of repositories, the layout of the cache that all tools of the hub
//! share, and downloads into it. Each file is checked, and resumes an earlier download. The
//! decision to download ([`Client`] is made by `runner fetch` alone), the meaning of the files, and
//! the display are left to others.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
#![forbid(unsafe_code)]

#[allow(clippy::disallowed_methods, reason = "keeps what everybody may download")]
mod blob;
mod cache;
mod client;
mod error;
mod fetch;
mod files;
mod name;
mod origin;
mod settings;
#[cfg(test)]
mod tests;

pub use cache::{Cache, Snapshot};
pub use client::Client;
pub use error::HubError;
pub use fetch::{Event, Listing, Remote, fetch, list, look};
pub use files::{decides_tokens, is_data, is_of_tokenizer};
pub use name::{Kind, Repository};
pub use settings::Settings;

/// Formats bytes, such as `1.2 GB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut amount = bytes as f64 / 1e3;
    let mut unit = 0;
    // A number that rounds to a thousand becomes one of the next unit.
    while amount >= 999.95 && unit + 1 < UNITS.len() {
        amount /= 1e3;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}
