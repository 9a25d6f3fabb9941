//! Made-up prompts as runs of streams of words. Each stream is an endless sequence of words; any
//! position can be computed by itself. So a block's content depends only on the seed and the
//! block's name.

use crate::words::Words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) stream: u64,
    pub(crate) from: u32,
    pub(crate) length: u32,
}

/// The kinds of streams, so that no two of them share a name by accident.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A block, by its scope, its hash id and its size.
    Block = 1,
    /// Content after a prompt's last whole block, or in place of blocks without ids.
    Rest = 2,
    /// A prompt without blocks, by its row.
    Row = 3,
    /// A session's prompts without blocks: a later one continues an earlier one.
    Session = 4,
    /// A round of a session: its addition to the prompt before.
    Round = 5,
    Answer = 6,
    /// A prompt that is not measured.
    Spare = 7,
}

/// The name of a stream: SplitMix64's finalizer over its parts.
pub(crate) fn stream(kind: Kind, parts: &[u64]) -> u64 {
    parts.iter().fold(mixed(kind as u64), |name, part| mixed(name ^ mixed(*part)))
}

/// A text as a number: FNV-1a, with 64 bits, and mixed.
pub(crate) fn hash(text: &str) -> u64 {
    let hashed = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed(hashed)
}

/// SplitMix64: the finalizer of Steele, Lea and Flood (2014).
pub(crate) fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The words of runs, one after the other, as indices into `words`.
pub(crate) fn indices<'a>(
    words: &'a Words,
    seed: u64,
    runs: &'a [Run],
) -> impl Iterator<Item = usize> + 'a {
    runs.iter().flat_map(move |run| {
        let base = mixed(run.stream ^ mixed(seed));
        (u64::from(run.from)..u64::from(run.from) + u64::from(run.length))
            .map(move |position| words.pick(mixed(base.wrapping_add(position))))
    })
}

/// The beginning of runs, of this many words.
pub(crate) fn cut(runs: &mut Vec<Run>, length: u32) {
    let mut left = length;
    for run in runs.iter_mut() {
        run.length = run.length.min(left);
        left -= run.length;
    }
    runs.retain(|run| run.length > 0);
}

/// The end of runs, of this many words.
pub(crate) fn end(runs: &mut Vec<Run>, words: u32) {
    let mut left = length(runs).saturating_sub(words);
    for run in runs.iter_mut() {
        let out = run.length.min(left);
        (run.from, run.length) = (run.from + out, run.length - out);
        left -= out;
    }
    runs.retain(|run| run.length > 0);
}

pub(crate) fn length(runs: &[Run]) -> u32 {
    runs.iter().fold(0, |sum: u32, run| sum.saturating_add(run.length))
}
