//! The part of prompts that a prefix cache without limits would find, in the order in which they
//! are sent.
//!
//! Engines keep the keys and values of prompts in pages of a few tokens. They take a page from the
//! cache if this page and all pages before it were computed earlier. This is that rule over token
//! ids, as in vLLM. A page counts when it is whole, and the last token of a prompt is always
//! computed. So a prompt of n tokens takes at most floor((n - 1) / page) pages. Which tokens a
//! prompt has is left to the caller. Pure.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU32;

/// The page size that is assumed unless another one is given: vLLM's.
pub const PAGE: NonZeroU32 = NonZeroU32::new(16).unwrap();

/// The most pages that are remembered: some 300 MiB.
const MOST: usize = 16 << 20;

/// The pages that were computed so far.
#[derive(Clone, Debug)]
pub struct Pages {
    size: usize,
    most: usize,
    /// A hash of each page and all before it. With 16 million pages, two hashes are equal by chance
    /// once in 130,000 runs.
    seen: HashSet<u64>,
    is_full: bool,
}

/// The part of a prompt that was in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reuse {
    pub tokens: u32,
    /// Tokens of pages that were computed before.
    pub cached: u32,
}

impl Pages {
    /// None yet, of this many tokens each.
    pub fn new(size: NonZeroU32) -> Self {
        Pages::bounded(size, MOST)
    }

    fn bounded(size: NonZeroU32, most: usize) -> Self {
        Pages { size: size.get() as usize, most, seen: HashSet::new(), is_full: false }
    }

    /// Sends a prompt: returns the part of it that is there, and keeps its pages. Models differ
    /// with their adapter, so pages are shared only between requests of the same one.
    pub fn take(&mut self, adapter: Option<&str>, tokens: &[u32]) -> Reuse {
        let usable = tokens.len().saturating_sub(1) / self.size;
        let mut chain = DefaultHasher::new();
        adapter.hash(&mut chain);
        let mut known = 0;
        let mut is_known = true;
        for (number, page) in tokens.chunks_exact(self.size).enumerate() {
            page.hash(&mut chain);
            let hash = chain.finish();
            is_known = is_known && number < usable && self.seen.contains(&hash);
            known += usize::from(is_known);
            if self.seen.len() < self.most {
                self.seen.insert(hash);
            } else {
                self.is_full = true;
            }
        }
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Reuse { tokens: narrow(tokens.len()), cached: narrow(known * self.size) }
    }

    /// Forgets everything, as a server that flushes its cache.
    pub fn flush(&mut self) {
        self.seen.clear();
    }

    /// True if there were more pages than are remembered, so that prompts may find more than the
    /// result states.
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(size: u32) -> Pages {
        Pages::new(NonZeroU32::new(size).unwrap())
    }

    /// Takes prompts one after the other, and returns the number of tokens of each that were there.
    fn cached(pages: &mut Pages, prompts: &[&[u32]]) -> Vec<u32> {
        prompts.iter().map(|prompt| pages.take(None, prompt)).map(|reuse| reuse.cached).collect()
    }

    #[test]
    fn whole_pages_are_shared_and_the_last_token_never_is() {
        let first = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut all = pages(4);
        // The same prompt again: 8 tokens are two pages, but the last token is computed, so only
        // the first page counts.
        assert_eq!(cached(&mut all, &[&first, &first]), [0, 4]);
        // One token more, and both do.
        assert_eq!(cached(&mut all, &[&[1, 2, 3, 4, 5, 6, 7, 8, 9]]), [8]);
        // A page that differs ends it, although a later page has the same tokens.
        assert_eq!(cached(&mut all, &[&[1, 2, 3, 9, 5, 6, 7, 8, 9]]), [0]);
        // A part of a page is none.
        assert_eq!(cached(&mut all, &[&[1, 2, 3], &[1, 2, 3, 4]]), [0, 0]);
    }

    #[test]
    fn a_page_counts_only_behind_the_same_beginning() {
        let mut all = pages(2);
        assert_eq!(cached(&mut all, &[&[1, 1, 2, 2, 0], &[2, 2, 1, 1, 0]]), [0, 0]);
        assert_eq!(cached(&mut all, &[&[1, 1, 2, 2, 3, 3, 0]]), [4]);
        assert_eq!(cached(&mut all, &[&[1, 1, 2, 2, 3, 3, 0]]), [6]);
    }

    #[test]
    fn adapters_share_nothing_and_a_flush_forgets() {
        let mut all = pages(2);
        let prompt = [1, 2, 3, 4, 5];
        assert_eq!(all.take(Some("a"), &prompt).cached, 0);
        assert_eq!(all.take(None, &prompt).cached, 0);
        assert_eq!(all.take(Some("a"), &prompt).cached, 4);
        all.flush();
        let after = all.take(Some("a"), &prompt);
        assert_eq!((after.tokens, after.cached), (5, 0));
    }

    #[test]
    fn reports_pages_beyond_the_bound() {
        let mut all = Pages::bounded(NonZeroU32::MIN, 3);
        assert_eq!(cached(&mut all, &[&[1, 2, 3, 4]]), [0]);
        assert!(all.is_full());
        assert_eq!(cached(&mut all, &[&[1, 2, 3, 4, 5]]), [3]);
        assert!(!pages(1).is_full());
    }
}
