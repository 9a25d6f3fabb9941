//! The prefix cache: the prefixes of prompts since it was last flushed.
//!
//! As in vLLM, prompts are cached in blocks of 16 tokens, and the last token of a prompt is never
//! taken from the cache.

use std::collections::HashSet;
use std::sync::Mutex;

use super::truth::lock;

pub(super) const BLOCK: usize = 16;

/// The most blocks that are remembered: 64 Mi tokens. A full cache is emptied as by a flush.
const MOST: usize = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct PrefixCache {
    seen: Mutex<HashSet<u64>>,
}

impl PrefixCache {
    /// Adds a prompt of this many tokens by the hashes of its prefixes, and returns how many of its
    /// tokens were cached.
    pub fn take(&self, tokens: u32, prefixes: &[u64]) -> u32 {
        let mut seen = lock(&self.seen);
        let usable = (tokens.saturating_sub(1) as usize) / BLOCK;
        let known = (prefixes.iter().take(usable)).take_while(|hash| seen.contains(hash)).count();
        if seen.len() + prefixes.len() > MOST {
            seen.clear();
        }
        seen.extend(prefixes.iter().take(MOST));
        u32::try_from(known * BLOCK).unwrap_or(u32::MAX)
    }

    pub fn flush(&self) {
        lock(&self.seen).clear();
    }
}
