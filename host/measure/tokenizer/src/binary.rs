//! The binary form of a byte-level tokenizer, for a cache between processes: its tables as they
//! are, in columns of little endian numbers. Reading it takes a tenth of the time of its
//! `tokenizer.json`, because no text is parsed and no merge is looked up by its spelling.
//!
//! This module owns the form; callers own the place of the bytes and their integrity. Any bytes
//! give a tokenizer with consistent tables, or none.

use super::byte_level::{AddedTokens, ByteLevel, Spelling};
use super::class::Classes;
use super::merge::Merges;
use super::read::MOST_IDS;
use super::split::Pattern;
use super::table::{Merge, Pairs, Strings};
use super::{Facts, ParsedModel};

/// The number of a build that writes and reads this form: made of the version and of the sources
/// that decide the contents and the meaning of the tables.
pub const BUILD: u64 = {
    let sources: [&str; 8] = [
        env!("CARGO_PKG_VERSION"),
        include_str!("byte_level.rs"),
        include_str!("binary.rs"),
        include_str!("merge.rs"),
        include_str!("read.rs"),
        include_str!("shape.rs"),
        include_str!("split.rs"),
        include_str!("table.rs"),
    ];
    // FNV-1a, of 64 bits.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut source = 0;
    while source < sources.len() {
        let bytes = sources[source].as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x100_0000_01b3);
            at += 1;
        }
        source += 1;
    }
    hash
};

/// The bytes of a tokenizer. Absent if more than its file decides it, or if its tables lack the
/// regularity that this form assumes; no known model has such tables.
pub(super) fn write(facts: &Facts, model: &ByteLevel) -> Option<Vec<u8>> {
    let ByteLevel {
        classes: _,
        composes,
        pattern,
        merges,
        added,
        around,
        spelling,
        memories: _,
        stands_alone,
    } = model;
    let pattern = Pattern::KNOWN.iter().position(|(_, own)| own == pattern)?;
    let entries = merges.pairs.entries();
    let in_order = (0..).zip(entries).all(|(at, own)| own.merge.rank == at);
    // Added tokens come behind the vocabulary's, and spell the same bytes as there.
    let words = spelling.words();
    let lengths: Vec<u32> = words.map(|word| word.len() as u32).collect();
    if !stands_alone || !in_order || !lengths.starts_with(&merges.lengths) {
        return None;
    }
    let mut whole = Vec::new();
    for (word, id) in merges.whole.iter().flat_map(Strings::entries) {
        if spelling.word(id) != Some(word) {
            return None;
        }
        whole.push(id);
    }

    let mut out = Writer::default();
    out.number(u32::from(*composes));
    out.number(u32::try_from(pattern).ok()?);
    out.number(facts.vocabulary_size);
    out.number(facts.base_size);
    out.column(facts.special.iter().copied());
    for ids in around {
        out.column(ids.iter().copied());
    }
    out.number(u32::try_from(added.tokens().count()).ok()?);
    for (token, id) in added.tokens() {
        out.number(id);
        out.bytes(token);
    }
    out.column(merges.bytes.iter().copied());
    out.column(entries.iter().map(|own| own.left));
    out.column(entries.iter().map(|own| own.right));
    out.column(entries.iter().map(|own| own.merge.token));
    out.number(u32::try_from(merges.lengths.len()).ok()?);
    out.column(lengths.into_iter());
    out.bytes(&spelling.bytes);
    out.number(u32::from(merges.whole.is_some()));
    out.column(whole.into_iter());
    Some(out.0)
}

pub(super) fn read(bytes: &[u8]) -> Option<ParsedModel<ByteLevel>> {
    let mut from = Reader(bytes);
    let composes = from.flag()?;
    let (_, pattern) = *Pattern::KNOWN.get(from.number()? as usize)?;
    let vocabulary_size = from.number()?;
    let base_size = from.number()?;
    let special = from.column()?.ids().collect();
    let around = [from.column()?, from.column()?].map(|ids| ids.ids().collect::<Vec<u32>>());
    let mut added = Vec::new();
    for _ in 0..from.number()? {
        let id = from.number()?;
        added.push((std::str::from_utf8(from.bytes()?).ok()?, id));
    }
    let added = AddedTokens::new(added.into_iter())?;
    let bytes = from.column()?;
    let (left, right, merged) = (from.column()?, from.column()?, from.column()?);
    let vocabulary = from.number()?;
    let lengths = from.column()?;
    let spelled = from.bytes()?;
    let has_whole = from.flag()?;
    let whole_ids = from.column()?;

    let holds_together = from.0.is_empty()
        && lengths.0.len() <= MOST_IDS as usize
        && vocabulary as usize <= lengths.0.len()
        && left.0.len() == right.0.len()
        && left.0.len() == merged.0.len()
        && [bytes, left, right, merged, whole_ids]
            .iter()
            .all(|column| column.ids().all(|id| id < vocabulary));
    if !holds_together {
        return None;
    }
    let mut tokens = [0; 256];
    if bytes.0.len() != tokens.len() {
        return None;
    }
    tokens.iter_mut().zip(bytes.ids()).for_each(|(token, id)| *token = id);
    let mut starts = Vec::with_capacity(lengths.0.len() + 1);
    let mut end: u32 = 0;
    starts.push(end);
    for length in lengths.ids() {
        end = end.checked_add(length)?;
        starts.push(end);
    }
    if end as usize != spelled.len() {
        return None;
    }
    let spelling = Spelling { bytes: spelled.to_vec(), starts };
    let mut pairs = Pairs::with_capacity(left.0.len());
    for (rank, ((left, right), token)) in (0..).zip(left.ids().zip(right.ids()).zip(merged.ids())) {
        pairs.set(left, right, Merge { rank, token });
    }
    let mut whole = Strings::with_capacity(whole_ids.0.len());
    for id in whole_ids.ids() {
        whole.set(spelling.word(id)?, id);
    }
    let facts = Facts {
        vocabulary_size,
        base_size,
        added_tokens: around.iter().map(|ids| ids.len() as u32).sum(),
        special,
        approximate: false,
    };
    let model = ByteLevel {
        classes: Classes::read(),
        composes,
        pattern,
        merges: Merges {
            bytes: tokens,
            pairs,
            lengths: lengths.ids().take(vocabulary as usize).collect(),
            whole: has_whole.then_some(whole),
        },
        added,
        around,
        spelling,
        memories: Default::default(),
        stands_alone: true,
    };
    Some(ParsedModel { facts, model })
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn column(&mut self, numbers: impl ExactSizeIterator<Item = u32>) {
        self.number(numbers.len() as u32);
        self.0.extend(numbers.flat_map(u32::to_le_bytes));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }
}

struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn taken(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        let bytes = self.taken(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let length = self.number()? as usize;
        self.taken(length)
    }

    fn column(&mut self) -> Option<Column<'b>> {
        let length = 4 * self.number()? as usize;
        let (numbers, _) = self.taken(length)?.as_chunks();
        Some(Column(numbers))
    }
}

/// Numbers that are not copied: a copy takes longer than reading them.
#[derive(Clone, Copy)]
struct Column<'b>(&'b [[u8; 4]]);

impl<'b> Column<'b> {
    fn ids(self) -> impl Iterator<Item = u32> + 'b {
        self.0.iter().map(|own| u32::from_le_bytes(*own))
    }
}
