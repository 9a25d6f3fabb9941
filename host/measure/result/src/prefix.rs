//! The part of prompts that a prefix cache without limits would find, in the order in which they
//! are sent.
//!
//! Engines keep the keys and values of prompts in pages of a few tokens. They take a page from the
//! cache if this page and all pages before it were computed earlier. This is that rule over token
//! ids, as in vLLM. A page counts when it is whole, and the last token of a prompt is always
//! computed. So a prompt of n tokens takes at most floor((n - 1) / page) pages. Which tokens a
//! prompt has is left to the caller. Pure.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU32;

/// The page size that is assumed unless another one is given: vLLM's.
pub const PAGE: NonZeroU32 = NonZeroU32::new(16).unwrap();

/// The most pages that are remembered: some 300 MiB.
const MOST: usize = 16 << 20;

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
        let mut known = 0;
        let mut is_known = true;
        for (number, hash) in hashes(adapter, tokens, self.size).enumerate() {
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

    /// True if more pages came than are remembered, so that prompts may find more than stated.
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

/// A hash of each whole page of a prompt and all before it.
fn hashes<'t>(
    adapter: Option<&str>,
    tokens: &'t [u32],
    size: usize,
) -> impl Iterator<Item = u64> + 't {
    let mut chain = DefaultHasher::new();
    adapter.hash(&mut chain);
    tokens.chunks_exact(size).map(move |page| {
        page.hash(&mut chain);
        chain.finish()
    })
}

/// The best possible share of cached tokens for a cache of each size: the pages that are needed
/// latest leave it first, as in L. A. Belady, "A study of replacement algorithms for a
/// virtual-storage computer" (1966). No engine knows the future, so none has more hits. A page is
/// needed no later than the pages behind it, so the pages of a prompt leave from its end.
#[derive(Clone, Debug)]
pub struct BestCache {
    size: usize,
    /// The page of each access, by its number, and true if a hit would count.
    accesses: Vec<(u32, bool)>,
    numbers: HashMap<u64, u32>,
    tokens: u64,
    is_full: bool,
}

impl BestCache {
    const MOST: usize = 4 << 20;
    /// The smallest cache, in tokens; each next one is four times as large.
    const SMALLEST: u64 = 1 << 12;

    /// None yet, with pages of this many tokens.
    pub fn new(size: NonZeroU32) -> Self {
        BestCache {
            size: size.get() as usize,
            accesses: Vec::new(),
            numbers: HashMap::new(),
            tokens: 0,
            is_full: false,
        }
    }

    pub fn take(&mut self, adapter: Option<&str>, tokens: &[u32]) {
        let usable = tokens.len().saturating_sub(1) / self.size;
        self.is_full |= self.accesses.len() + tokens.len() / self.size > Self::MOST;
        if self.is_full {
            return;
        }
        self.tokens += tokens.len() as u64;
        for (place, hash) in hashes(adapter, tokens, self.size).enumerate() {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            let page = *self.numbers.entry(hash).or_insert(next);
            self.accesses.push((page, place < usable));
        }
    }

    /// The tokens of a cache, and the share of prompt tokens that it would have at best, up to the
    /// size that holds all. Empty if there were too many prompts.
    pub fn shares(&self) -> Vec<(u64, f64)> {
        let all = (self.numbers.len() * self.size) as u64;
        if self.is_full || self.tokens == 0 {
            return Vec::new();
        }
        let mut next = vec![usize::MAX; self.accesses.len()];
        let mut later = vec![usize::MAX; self.numbers.len()];
        for (at, (page, _)) in self.accesses.iter().enumerate().rev() {
            next[at] = std::mem::replace(&mut later[*page as usize], at);
        }
        let sizes = std::iter::successors(Some(Self::SMALLEST), |tokens| {
            (*tokens < all).then_some(tokens * 4)
        });
        let share = |tokens: u64| {
            let hits = self.hits(tokens as usize / self.size, &next);
            (hits * self.size) as f64 / self.tokens as f64
        };
        sizes.map(|tokens| (tokens, share(tokens))).collect()
    }

    /// The pages that a cache of this size would find; `next` has each access' next of its page.
    fn hits(&self, room: usize, next: &[usize]) -> usize {
        let mut kept: BTreeMap<usize, u32> = BTreeMap::new();
        let mut hits = 0;
        for (at, (page, counts)) in self.accesses.iter().enumerate() {
            // A kept page stands under the access that needs it next.
            if kept.remove(&at).is_some() && *counts {
                hits += 1;
            }
            if next[at] != usize::MAX {
                kept.insert(next[at], *page);
            }
            if kept.len() > room {
                kept.pop_last();
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(size: u32) -> Pages {
        Pages::new(NonZeroU32::new(size).unwrap())
    }

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

    /// Three prompts in turn, of two pages each, in caches of all sizes: Belady's cache keeps what
    /// comes back first. The numbers are by hand.
    #[test]
    fn the_best_cache_keeps_what_comes_back_first() {
        let mut best = BestCache::new(NonZeroU32::MIN);
        for _ in 0..2 {
            for prompt in [[1, 2, 0], [3, 4, 0], [5, 6, 0]] {
                best.take(None, &prompt);
            }
        }
        let next = |at: usize| if at < 9 { at + 9 } else { usize::MAX };
        let next: Vec<usize> = (0..18).map(next).collect();
        let hits: Vec<usize> = (0..10).map(|room| best.hits(room, &next)).collect();
        // The last token of a prompt is computed, so six of the nine pages count.
        assert_eq!(hits, [0, 1, 2, 2, 3, 4, 4, 5, 6, 6]);
        assert_eq!(best.shares(), [(4096, 6.0 / 18.0)]);
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
