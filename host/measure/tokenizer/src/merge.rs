//! Byte-pair encoding of one word: the lowest rank merges first, and of these the leftmost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::table::{Key, Merge, Pairs, Strings};

/// The tokens of single bytes, and the merges of neighbours into longer ones.
pub(super) struct Merges {
    pub(super) bytes: [u32; 256],
    pub(super) pairs: Pairs,
    pub(super) lengths: Vec<u32>,
    /// Words that are tokens as they stand, without merges.
    pub(super) whole: Option<Strings>,
}

/// Up to this number of tokens, merges are looked for from end to end; longer words take a queue.
const SHORT: usize = 64;
const NEVER: Merge = Merge { rank: u32::MAX, token: 0 };

/// The buffers for merging, kept from word to word.
#[derive(Default)]
pub(super) struct Scratch {
    tokens: Vec<u32>,
    merges: Vec<Merge>,
    links: Vec<Link>,
    queue: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

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
    fn merged<'s>(&self, word: &[u8], scratch: &'s mut Scratch) -> &'s [u32] {
        scratch.tokens.clear();
        let tokens = word.iter().map(|byte| self.bytes[usize::from(*byte)]);
        scratch.tokens.extend(tokens);
        if word.len() <= SHORT {
            self.merge_short(scratch);
        } else {
            self.merge_long(scratch);
        }
        &scratch.tokens
    }

    fn pair(&self, left: u32, right: u32) -> Merge {
        self.pairs.get(left, right).unwrap_or(NEVER)
    }

    fn merge_short(&self, scratch: &mut Scratch) {
        let Scratch { tokens, merges, .. } = scratch;
        merges.clear();
        merges.extend(tokens.windows(2).map(|pair| self.pair(pair[0], pair[1])));
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
                merges[at - 1] = self.pair(tokens[at - 1], tokens[at]);
            }
            if at < merges.len() {
                merges[at] = self.pair(tokens[at], tokens[at + 1]);
            }
        }
    }

    fn merge_long(&self, scratch: &mut Scratch) {
        let Scratch { tokens, links, queue, .. } = scratch;
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

/// Words and parts of words that were encoded before, up to a size; then it begins anew.
///
/// A long word is encoded part by part. This is exact, because merging is local: a sequence of
/// tokens is the encoding of its bytes if, and only if, every two neighbours are the encoding of
/// their bytes. The first merge across the border of two tokens comes at the same step in the whole
/// word and in the bytes of the two tokens, because the merges before it are the same.
#[derive(Default)]
pub(super) struct Memory {
    /// Number of tokens of each word, with its only token, or the start of its tokens in `tokens`.
    words: Strings,
    tokens: Vec<u32>,
    one: [u32; 1],
    scratch: Scratch,
    joined: Tokens,
    part: Tokens,
    window: Tokens,
}

#[derive(Default)]
struct Tokens {
    ids: Vec<u32>,
    /// Place in the word at which each ends.
    ends: Vec<usize>,
}

/// Most bytes that remembered words may take.
const MEMORY_BYTES: usize = 48 << 20;
/// Longer parts of words hardly come again.
const REMEMBERED: usize = 4 * SHORT;
/// The least and the most bytes of a part of a long word. Its last bytes decide its end, not its
/// beginning: then the parts of texts that overlap are the same.
const PART: std::ops::Range<usize> = 12..SHORT - 8;

impl Memory {
    /// Announces a word that is encoded soon, so the processor fetches its place in the memory.
    #[inline]
    pub(super) fn announce<'w>(&self, word: &'w [u8]) -> Key<'w> {
        let word = Key::new(word);
        self.words.fetch(word);
        word
    }

    /// The same a little later: the processor fetches the bytes to compare it with.
    #[inline]
    pub(super) fn announce_again(&self, word: Key<'_>) {
        self.words.fetch_bytes(word);
    }

    #[inline]
    pub(super) fn encode<'m>(&'m mut self, merges: &Merges, word: Key<'_>) -> &'m [u32] {
        if let Some(whole) = &merges.whole
            && let Some((token, _)) = whole.look_up(word)
        {
            self.one = [*token];
            return &self.one;
        }
        if word.bytes.len() <= SHORT {
            self.remembered(merges, word)
        } else {
            self.by_parts(merges, word.bytes)
        }
    }

    #[inline]
    fn remembered<'m>(&'m mut self, merges: &Merges, word: Key<'_>) -> &'m [u32] {
        match self.words.look_up(word) {
            None => self.learn(merges, word.bytes),
            Some((token, 1)) => {
                self.one = [*token];
                &self.one
            }
            Some((start, count)) => &self.tokens[*start as usize..][..usize::from(count)],
        }
    }

    #[cold]
    fn learn<'m>(&'m mut self, merges: &Merges, word: &[u8]) -> &'m [u32] {
        let tokens = merges.merged(word, &mut self.scratch);
        let size = self.words.size() + size_of_val(&*self.tokens);
        if size > MEMORY_BYTES {
            self.words = Strings::default();
            self.tokens.clear();
        }
        // A word has no more tokens than bytes, and is short.
        match *tokens {
            [token] => self.words.set_both(word, token, 1),
            _ => {
                let start = self.tokens.len() as u32;
                self.tokens.extend_from_slice(tokens);
                self.words.set_both(word, start, tokens.len() as u16)
            }
        };
        tokens
    }

    fn within<'m>(&'m mut self, merges: &Merges, bytes: &[u8]) -> &'m [u32] {
        if bytes.len() <= REMEMBERED {
            self.remembered(merges, Key::new(bytes))
        } else {
            merges.merged(bytes, &mut self.scratch)
        }
    }

    fn by_parts<'m>(&'m mut self, merges: &Merges, word: &[u8]) -> &'m [u32] {
        let mut joined = std::mem::take(&mut self.joined);
        joined.truncate(0);
        let mut start = 0;
        while start < word.len() {
            let end = part_end(word, start);
            let mut part = std::mem::take(&mut self.part);
            part.set(merges, start, self.within(merges, &word[start..end]));
            self.join(merges, word, &mut joined, &part);
            self.part = part;
            start = end;
        }
        self.joined = joined;
        &self.joined.ids
    }

    /// Appends the tokens of the next part. Merges the tokens around the border anew, until they
    /// fit on both sides.
    fn join(&mut self, merges: &Merges, word: &[u8], joined: &mut Tokens, part: &Tokens) {
        let mut window = std::mem::take(&mut self.window);
        // The numbers of tokens merged anew on either side.
        let (mut before, mut behind) = (1.min(joined.ids.len()), 1);
        loop {
            let kept = joined.ids.len() - before;
            let (start, end) = (joined.start(kept), part.ends[behind - 1]);
            window.set(merges, start, self.within(merges, &word[start..end]));
            let first = window.ids[0];
            let fits_before = kept == 0
                || joined.ids.get(kept) == Some(&first)
                || self.within(merges, &word[joined.start(kept - 1)..window.ends[0]])
                    == [joined.ids[kept - 1], first];
            let last = window.ids.len() - 1;
            let fits_behind =
                behind == part.ids.len() || part.ids[behind - 1] == window.ids[last] || {
                    let start = match last {
                        0 => start,
                        _ => window.ends[last - 1],
                    };
                    self.within(merges, &word[start..part.ends[behind]])
                        == [window.ids[last], part.ids[behind]]
                };
            if fits_before && fits_behind {
                joined.truncate(kept);
                joined.extend(&window, 0);
                joined.extend(part, behind);
                break;
            }
            if !fits_before {
                before = (2 * before).min(joined.ids.len());
            }
            if !fits_behind {
                behind = (2 * behind).min(part.ids.len());
            }
        }
        self.window = window;
    }
}

/// Returns the end of the part that begins there: at a character, if possible.
fn part_end(word: &[u8], start: usize) -> usize {
    let most = word.len().min(start + PART.end);
    for end in start + PART.start..most {
        let begins_character = word[end] & 0xc0 != 0x80;
        let last = [word[end - 4], word[end - 3], word[end - 2], word[end - 1]];
        if begins_character && u32::from_le_bytes(last).wrapping_mul(0x9e37_79b1) >> 29 == 0 {
            return end;
        }
    }
    most
}

impl Tokens {
    /// Takes the tokens of bytes that begin there.
    fn set(&mut self, merges: &Merges, start: usize, ids: &[u32]) {
        self.truncate(0);
        let mut end = start;
        self.ids.extend_from_slice(ids);
        self.ends.extend(ids.iter().map(|id| {
            end += merges.lengths[*id as usize] as usize;
            end
        }));
    }

    fn start(&self, index: usize) -> usize {
        match index {
            0 => 0,
            _ => self.ends[index - 1],
        }
    }

    fn truncate(&mut self, len: usize) {
        self.ids.truncate(len);
        self.ends.truncate(len);
    }

    fn extend(&mut self, other: &Tokens, from: usize) {
        self.ids.extend_from_slice(&other.ids[from..]);
        self.ends.extend_from_slice(&other.ends[from..]);
    }
}
