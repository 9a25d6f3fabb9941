//! The checks, each a function of a text. Callers decide the consequences.

use std::collections::HashSet;

/// The least words for repeated n-grams to count: short lists and refrains repeat too.
const LEAST_WORDS: usize = 50;

/// Characters at the end of a text that are searched for a loop.
const TAIL: usize = 4096;

/// The least characters of a loop, and the least repetitions of its piece.
const LOOP: (usize, usize) = (64, 8);

/// Special tokens without the form `<|name|>`: of Llama 2, Mistral, Gemma, T5, thinking models.
const TOKENS: [&str; 10] = [
    "</s>",
    "<unk>",
    "<pad>",
    "<eos>",
    "<bos>",
    "[INST]",
    "[/INST]",
    "<start_of_turn>",
    "<end_of_turn>",
    "</think>",
];

/// The share of a text's 4-grams of words that are repeats; 0 for a short text.
pub fn repetition(text: &str) -> f64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() < LEAST_WORDS {
        return 0.0;
    }
    let distinct: HashSet<&[&str]> = words.windows(4).collect();
    1.0 - distinct.len() as f64 / (words.len() - 3) as f64
}

/// True if a text ends in a piece that repeats again and again. Read backwards, the longest border
/// of each beginning gives its smallest period (Knuth, Morris and Pratt, "Fast Pattern Matching in
/// Strings", 1977).
pub fn ends_in_a_loop(text: &str) -> bool {
    let tail: Vec<char> = text.trim_end().chars().rev().take(TAIL).collect();
    let mut borders = vec![0_usize; tail.len()];
    let mut border = 0;
    for at in 1..tail.len() {
        while border > 0 && tail[at] != tail[border] {
            border = borders[border - 1];
        }
        if tail[at] == tail[border] {
            border += 1;
        }
        borders[at] = border;
        let length = at + 1;
        // A line of one character, as Markdown has below a title, is no loop before it is long.
        let (least, times) = if length - border == 1 { (256, 256) } else { LOOP };
        if length >= least && length >= times * (length - border) {
            return true;
        }
    }
    false
}

/// True if a text has a listed special token, or `<|name|>`, also with DeepSeek's wide bars.
pub fn leaks_tokens(text: &str) -> bool {
    TOKENS.iter().any(|token| text.contains(token))
        || has_named_token(text, "<|", "|>")
        || has_named_token(text, "<｜", "｜>")
}

fn has_named_token(text: &str, open: &str, close: &str) -> bool {
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '▁');
    text.match_indices(open).any(|(at, _)| {
        let rest = &text[at + open.len()..];
        let end = rest.find(|c: char| !named(c)).unwrap_or(rest.len());
        (1..=40).contains(&end) && rest[end..].starts_with(close)
    })
}

/// True if a text has characters that no tokenizer should give: U+FFFD, control characters other
/// than tab and line breaks, and codes that are no characters.
pub fn has_broken_characters(text: &str) -> bool {
    text.chars().any(|c| {
        let code = u32::from(c);
        let is_none = (0xFDD0..=0xFDEF).contains(&code) || code & 0xFFFE == 0xFFFE;
        c == '\u{fffd}'
            || is_none
            || (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}'))
    })
}

/// True if a text has letters of scripts that do not go together.
pub fn mixes_scripts(text: &str) -> bool {
    let mut counts = [0_usize; SCRIPTS];
    let mut letters = 0;
    // Of the word so far: whether it has a Latin and a Cyrillic letter.
    let (mut latin, mut cyrillic) = (false, false);
    let mut previous = None;
    for c in text.chars() {
        if !c.is_alphabetic() {
            (latin, cyrillic, previous) = (false, false, None);
            continue;
        }
        letters += 1;
        let script = script(u32::from(c));
        // A Greek letter alone is a symbol of science.
        if let Some(script) = script
            && (script != GREEK || previous == Some(GREEK))
        {
            counts[script] += 1;
        }
        latin |= script == Some(LATIN);
        cyrillic |= script == Some(CYRILLIC);
        if latin && cyrillic {
            return true;
        }
        previous = script;
    }
    let frequent = (counts.iter()).filter(|count| **count > 0 && **count * 20 >= letters);
    frequent.count() >= 3
}

const LATIN: usize = 0;
const GREEK: usize = 1;
const CYRILLIC: usize = 2;
const SCRIPTS: usize = 14;

/// The script of a letter by the blocks of Unicode that today's texts use; `None` for others.
fn script(code: u32) -> Option<usize> {
    Some(match code {
        0x41..=0x24F | 0x1E00..=0x1EFF => LATIN,
        0x370..=0x3FF | 0x1F00..=0x1FFF => GREEK,
        0x400..=0x52F => CYRILLIC,
        0x530..=0x58F => 3,
        0x590..=0x5FF => 4,
        0x600..=0x6FF | 0x750..=0x77F | 0xFB50..=0xFDFF | 0xFE70..=0xFEFF => 5,
        0x900..=0x97F => 6,
        0x980..=0xDFF => 7,
        0xE00..=0xE7F => 8,
        0x10A0..=0x10FF => 9,
        // Chinese characters, and the Japanese syllables among them.
        0x3040..=0x30FF
        | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0x2_0000..=0x3_134F => 10,
        0x1100..=0x11FF | 0x3130..=0x318F | 0xAC00..=0xD7AF => 11,
        0x1200..=0x137F => 12,
        0x1000..=0x109F | 0x1780..=0x17FF | 0xE80..=0xEFF => 13,
        _ => return None,
    })
}
