//! Byte-level byte-pair encoding with the tokens of the `tokenizers` crate, but many times faster:
//! nothing is kept but tokens, and words are remembered.

use std::sync::{Mutex, PoisonError};

use super::class::Classes;
use super::composed;
use super::merge::{Memory, Merges};
use super::split::Pattern;
use super::table::{Key, Strings};

pub(super) struct ByteLevel {
    pub(super) classes: Classes,
    /// True if texts are brought into normalization form C.
    pub(super) composes: bool,
    pub(super) pattern: Pattern,
    pub(super) merges: Merges,
    pub(super) added: AddedTokens,
    /// Tokens that the model puts before a text and behind it.
    pub(super) around: [Vec<u32>; 2],
    pub(super) spelling: Spelling,
    /// A memory for each thread that encodes at the same time.
    pub(super) memories: Mutex<Vec<Memory>>,
    /// True if its file alone determines it.
    pub(super) stands_alone: bool,
}

/// Tokens that are found in a text before all else, such as a chat template's markers.
#[derive(Default)]
pub(super) struct AddedTokens {
    firsts: Vec<u8>,
    /// The lengths that they have, the longest first.
    lengths: Vec<usize>,
    ids: Strings,
}

/// Words that are found before the first of them is encoded. Of the words of a large vocabulary,
/// few are in the processor's cache; this many are fetched at the same time.
const AHEAD: usize = 16;

/// Most lengths of added tokens, and the longest: wherever one may begin, each length is looked up.
const LENGTHS: usize = 64;
const LONGEST: usize = 256;

/// The bytes of each token, end to end in the order of ids. An id that is no token has none.
pub(super) struct Spelling {
    pub(super) bytes: Vec<u8>,
    /// The beginnings of each id's bytes, and the end of the last.
    pub(super) starts: Vec<u32>,
}

impl ByteLevel {
    /// Hands the tokens of a text to `each`, some at a time.
    pub(super) fn encode(&self, text: &str, special: bool, mut each: impl FnMut(&[u32])) {
        let mut memory = self.lock().pop().unwrap_or_default();
        let [before, behind] = &self.around;
        if special {
            each(before);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, added) = self.added.find(rest);
            rest = &rest[piece.len()..];
            let piece = if self.composes { composed(self.classes, piece) } else { piece.into() };
            let mut words = self.pattern.words(self.classes, &piece);
            let mut ahead = [Key::default(); AHEAD];
            loop {
                let mut found = 0;
                for (key, word) in ahead.iter_mut().zip(&mut words) {
                    *key = memory.announce(word.as_bytes());
                    found += 1;
                }
                for word in &ahead[..found] {
                    memory.announce_again(*word);
                }
                for word in &ahead[..found] {
                    each(memory.encode(&self.merges, *word));
                }
                if found < AHEAD {
                    break;
                }
            }
            if let Some((token, id)) = added {
                each(&[id]);
                rest = &rest[token.len()..];
            }
        }
        if special {
            each(behind);
        }
        self.lock().push(memory);
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let bytes = self.spelling.bytes(ids);
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    pub(super) fn decoded_bytes(&self, ids: &[u32]) -> u64 {
        // A byte that is no text is replaced by a character of three.
        let of = |id: &u32| 3 * u64::from(self.spelling.length(*id));
        ids.iter().map(of).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Memory>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AddedTokens {
    /// Absent if looking for them would take too long.
    pub(super) fn new<'t>(tokens: impl Iterator<Item = (&'t str, u32)>) -> Option<Self> {
        let mut added = AddedTokens::default();
        for (token, id) in tokens {
            added.firsts.push(*token.as_bytes().first()?);
            added.lengths.push(token.len());
            added.ids.set(token.as_bytes(), id);
        }
        added.firsts.sort_unstable();
        added.firsts.dedup();
        added.lengths.sort_unstable_by(|one, two| two.cmp(one));
        added.lengths.dedup();
        let is_quick = added.lengths.len() <= LENGTHS
            && added.lengths.first().is_none_or(|longest| *longest <= LONGEST);
        is_quick.then_some(added)
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.ids.entries()
    }

    /// Finds the longest of the leftmost of them; returns the text before it and it.
    fn find<'t>(&self, text: &'t str) -> (&'t str, Option<(&'t str, u32)>) {
        let bytes = text.as_bytes();
        let next = |from: usize| {
            let rest = &bytes[from..];
            let found = match *self.firsts.as_slice() {
                [] => None,
                [one] => memchr::memchr(one, rest),
                [one, two] => memchr::memchr2(one, two, rest),
                [one, two, three] => memchr::memchr3(one, two, three, rest),
                _ => rest.iter().position(|byte| self.firsts.contains(byte)),
            };
            found.map(|at| from + at)
        };
        let mut at = next(0);
        while let Some(start) = at {
            let found = self.lengths.iter().find_map(|length| {
                let id = self.ids.get(bytes.get(start..start + length)?)?;
                Some((&text[start..start + length], id))
            });
            if found.is_some() {
                return (&text[..start], found);
            }
            at = next(start + 1);
        }
        (text, None)
    }
}

impl Spelling {
    fn length(&self, id: u32) -> u32 {
        self.word(id).map_or(0, |word| word.len() as u32)
    }

    /// Returns the bytes that an id spells; absent if there is no such id.
    pub(super) fn word(&self, id: u32) -> Option<&[u8]> {
        let at = |id: usize| self.starts.get(id).map(|start| *start as usize);
        let range = at(id as usize)?..at(id as usize + 1)?;
        self.bytes.get(range)
    }

    /// Returns the bytes that each id spells, in order.
    pub(super) fn words(&self) -> impl Iterator<Item = &[u8]> {
        let ranges = self.starts.windows(2);
        ranges.map(|range| &self.bytes[range[0] as usize..range[1] as usize])
    }

    fn bytes(&self, ids: &[u32]) -> Vec<u8> {
        let end = self.starts.len() as u32 - 1;
        let mut spelled = Vec::with_capacity(8 * ids.len());
        // Ids that follow each other are spelled by one piece of memory.
        for run in ids.chunk_by(|one, two| one.checked_add(1) == Some(*two)) {
            let (first, last) = (run[0].min(end), run[run.len() - 1].saturating_add(1).min(end));
            let range = self.starts[first as usize] as usize..self.starts[last as usize] as usize;
            spelled.extend_from_slice(&self.bytes[range]);
        }
        spelled
    }
}
