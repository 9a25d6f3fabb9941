//! Byte-pair encoding of one word: neighbours merge, those of the lowest rank first, the leftmost of these first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::{Merge, Pairs, Strings};

/// What a word's bytes become.
pub(super) struct Merges {
    /// The token of each byte.
    pub(super) bytes: [u32; 256],
    /// What neighbours become.
    pub(super) pairs: Pairs,
    /// Words that are tokens as they stand, whatever merges say.
    pub(super) whole: Option<Strings>,
}

/// Up to so many tokens, the next merge is looked for from end to end; a longer word takes a queue.
const SHORT: usize = 48;
/// No merge.
const NEVER: Merge = Merge {
    rank: u32::MAX,
    token: 0,
};

/// What merging takes, kept from word to word.
#[derive(Default)]
pub(super) struct Scratch {
    tokens: Vec<u32>,
    merges: Vec<Merge>,
    links: Vec<Link>,
    queue: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

/// A token of a long word.
#[derive(Clone, Copy)]
struct Link {
    token: u32,
    /// The neighbours' places; [`END`] where there is none.
    before: u32,
    after: u32,
    merged_away: bool,
}

const END: u32 = u32::MAX;

impl Merges {
    /// The tokens of a word.
    pub(super) fn encode<'s>(&self, word: &[u8], scratch: &'s mut Scratch) -> &'s [u32] {
        scratch.tokens.clear();
        if let Some(token) = self.whole.as_ref().and_then(|whole| whole.get(word)) {
            scratch.tokens.push(token);
            return &scratch.tokens;
        }
        let tokens = word.iter().map(|byte| self.bytes[usize::from(*byte)]);
        scratch.tokens.extend(tokens);
        if word.len() <= SHORT {
            self.merge_short(scratch);
        } else {
            self.merge_long(scratch);
        }
        &scratch.tokens
    }

    fn of(&self, left: u32, right: u32) -> Merge {
        self.pairs.get(left, right).unwrap_or(NEVER)
    }

    fn merge_short(&self, scratch: &mut Scratch) {
        let Scratch { tokens, merges, .. } = scratch;
        merges.clear();
        merges.extend(tokens.windows(2).map(|pair| self.of(pair[0], pair[1])));
        while let Some((at, merge)) = merges
            .iter()
            .copied()
            .enumerate()
            .min_by_key(|(_, merge)| merge.rank)
            .filter(|(_, merge)| *merge != NEVER)
        {
            tokens[at] = merge.token;
            tokens.remove(at + 1);
            merges.remove(at);
            if at > 0 {
                merges[at - 1] = self.of(tokens[at - 1], tokens[at]);
            }
            if at < merges.len() {
                merges[at] = self.of(tokens[at], tokens[at + 1]);
            }
        }
    }

    fn merge_long(&self, scratch: &mut Scratch) {
        let Scratch {
            tokens,
            links,
            queue,
            ..
        } = scratch;
        links.clear();
        queue.clear();
        let last = tokens.len() as u32 - 1;
        links.extend((0u32..).zip(tokens.iter()).map(|(at, token)| Link {
            token: *token,
            before: at.checked_sub(1).unwrap_or(END),
            after: if at == last { END } else { at + 1 },
            merged_away: false,
        }));
        let candidate = |links: &[Link], at: u32| {
            let link = links[at as usize];
            let after = links.get(link.after as usize)?;
            let merge = self.pairs.get(link.token, after.token)?;
            Some(Reverse((merge.rank, at, merge.token)))
        };
        queue.extend((0..last).filter_map(|at| candidate(links, at)));
        while let Some(Reverse((rank, at, token))) = queue.pop() {
            // Its tokens may have merged with others since.
            let stands = !links[at as usize].merged_away
                && candidate(links, at) == Some(Reverse((rank, at, token)));
            if !stands {
                continue;
            }
            let away = links[at as usize].after;
            let after = links[away as usize].after;
            links[away as usize].merged_away = true;
            links[at as usize].token = token;
            links[at as usize].after = after;
            if let Some(after) = links.get_mut(after as usize) {
                after.before = at;
            }
            let before = links[at as usize].before;
            if before != END {
                queue.extend(candidate(links, before));
            }
            queue.extend(candidate(links, at));
        }
        tokens.clear();
        tokens.extend(links.iter().filter(|l| !l.merged_away).map(|l| l.token));
    }
}

/// Words that were encoded before, up to a size; then it begins anew.
#[derive(Default)]
pub(super) struct Memory {
    words: Strings,
    tokens: Vec<u32>,
    /// Where each word's tokens end.
    ends: Vec<u32>,
    scratch: Scratch,
}

/// Most bytes that remembered words may take.
const MEMORY_BYTES: usize = 64 << 20;
/// Longer words hardly come again. In scripts without spaces, and in prompts of random tokens, words are long.
const LONGEST: usize = 4 << 10;

impl Memory {
    /// The tokens of a word.
    #[inline]
    pub(super) fn encode<'m>(&'m mut self, merges: &Merges, word: &[u8]) -> &'m [u32] {
        match self.words.get(word) {
            Some(number) => {
                let number = number as usize;
                let start = match number {
                    0 => 0,
                    _ => self.ends[number - 1] as usize,
                };
                &self.tokens[start..self.ends[number] as usize]
            }
            None => self.learn(merges, word),
        }
    }

    #[cold]
    fn learn<'m>(&'m mut self, merges: &Merges, word: &[u8]) -> &'m [u32] {
        let tokens = merges.encode(word, &mut self.scratch);
        if word.len() <= LONGEST {
            let size = self.words.size() + size_of_val(&*self.tokens) + size_of_val(&*self.ends);
            if size > MEMORY_BYTES {
                self.words = Strings::default();
                self.tokens.clear();
                self.ends.clear();
            }
            self.words.set(word, self.ends.len() as u32);
            self.tokens.extend_from_slice(tokens);
            self.ends.push(self.tokens.len() as u32);
        }
        tokens
    }
}
