//! Classes of characters, for splitting and normalizing texts: one byte a character, from the
//! tables that the `tokenizers` crate's own regular expressions and normalizers stand on.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};
use unicode_normalization_alignments::char::canonical_combining_class;
use unicode_normalization_alignments::{IsNormalized, is_nfc_quick};

/// `\p{L}`.
pub(super) const LETTER: u8 = 1;
/// `\p{N}`.
pub(super) const NUMBER: u8 = 2;
/// `\s`.
pub(super) const SPACE: u8 = 4;
/// It may change in normalization form C, or join with a character before it.
pub(super) const UNSETTLED: u8 = 8;

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`: the first characters of a word of `o200k`.
pub(super) const UPPER: u8 = 16;
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`: the later characters of such a word.
pub(super) const LOWER: u8 = 32;
/// `\p{Han}`.
pub(super) const HAN: u8 = 64;

const PATTERNS: [(&str, u8); 6] = [
    (r"\p{L}", LETTER),
    (r"\p{N}", NUMBER),
    (r"\s", SPACE),
    (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", UPPER),
    (r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", LOWER),
    (r"\p{Han}", HAN),
];

/// Marks behind the table: the variation selectors. No other character there is of any class.
const LAST_MARKS: std::ops::RangeInclusive<char> = '\u{e0100}'..='\u{e01ef}';

/// Characters from here on are none of these, but for [`LAST_MARKS`].
const END: usize = 0x4_0000;

/// Large blocks of settled characters, first and last: ideographs, Hangul, private use, old
/// scripts, and unassigned code points. Skipping them saves most of the table's time.
const SETTLED: [(u32, u32); 6] = [
    (0x3400, 0xa66e),
    (0xac00, 0xd7a3),
    (0xe000, 0xf8ff),
    (0x1_2000, 0x1_60ff),
    (0x1_7000, 0x1_bc9c),
    (0x2_0000, 0x2_f7ff),
];

static CLASSES: LazyLock<Box<[u8]>> = LazyLock::new(|| {
    let mut classes = vec![0; END];
    for (pattern, bit) in PATTERNS {
        let parsed = regex_syntax::parse(pattern).expect("a fixed pattern is valid or never was");
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
            unreachable!("a property is a class of characters");
        };
        for range in class.ranges() {
            let end = (range.end() as usize + 1).min(END);
            if range.start() as usize >= end {
                continue;
            }
            for class in &mut classes[range.start() as usize..end] {
                *class |= bit;
            }
        }
    }
    // Below, every character is settled.
    let mut from = 0x300;
    for (first, last) in SETTLED.into_iter().chain([(0x3_0000, END as u32)]) {
        for c in (from..first).filter_map(char::from_u32) {
            if !is_settled(c) {
                classes[c as usize] |= UNSETTLED;
            }
        }
        from = last + 1;
    }
    classes.into_boxed_slice()
});

fn is_settled(c: char) -> bool {
    canonical_combining_class(c) == 0 && is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes
}

#[derive(Clone, Copy)]
pub(super) struct Classes(&'static [u8]);

impl Classes {
    /// Reads them from the tables, once a process.
    pub(super) fn read() -> Self {
        Classes(&CLASSES)
    }

    #[inline]
    pub(super) fn get(self, c: char) -> u8 {
        match self.0.get(c as usize) {
            Some(class) => *class,
            None if LAST_MARKS.contains(&c) => UPPER | LOWER,
            None => 0,
        }
    }

    #[inline]
    pub(super) fn is(self, c: char, classes: u8) -> bool {
        self.get(c) & classes != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_behind_the_table_are_of_no_class() {
        let behind = char::from_u32(END as u32).unwrap()..=char::MAX;
        for (pattern, bit) in PATTERNS {
            let parsed = regex_syntax::parse(pattern).unwrap();
            let HirKind::Class(Class::Unicode(class)) = parsed.kind() else {
                panic!("{pattern} is a class");
            };
            let found: Vec<char> = (class.ranges().iter())
                .flat_map(|range| range.start().max(*behind.start())..=range.end())
                .collect();
            let marks: Vec<char> = match bit {
                UPPER | LOWER => LAST_MARKS.collect(),
                _ => Vec::new(),
            };
            assert_eq!(found, marks, "{pattern}");
        }
        assert_eq!(behind.clone().find(|c| !is_settled(*c)), None);
        assert_eq!(('\0'..'\u{300}').find(|c| !is_settled(*c)), None);
        let blocks = SETTLED.into_iter().chain([(0x3_0000, END as u32)]);
        for (first, last) in blocks {
            let mut block = (first..=last).filter_map(char::from_u32);
            assert_eq!(block.find(|c| !is_settled(*c)), None, "{first:x}");
        }
    }
}
