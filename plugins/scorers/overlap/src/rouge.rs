//! ROUGE-L of two texts, as google-research's `rouge_score` 0.1.2 computes it (`rouge_scorer.py`,
//! `_score_lcs`; `tokenize.py`): Lin, "ROUGE: A Package for Automatic Evaluation of Summaries",
//! 2004.

use std::collections::HashMap;

const MOST_WORDS: usize = 50_000;

/// F1 of the longest common subsequence; `None` if a text is too long for it.
pub fn l(answer: &str, reference: &str) -> Option<f64> {
    let (answer, reference) = (answer.to_lowercase(), reference.to_lowercase());
    let (answer, reference) = (words(&answer), words(&reference));
    if answer.len().max(reference.len()) > MOST_WORDS {
        return None;
    }
    if answer.is_empty() || reference.is_empty() {
        return Some(0.0);
    }
    let common = longest_common_subsequence(&reference, &answer) as f64;
    let precision = common / answer.len() as f64;
    let recall = common / reference.len() as f64;
    if precision + recall > 0.0 {
        Some(2.0 * precision * recall / (precision + recall))
    } else {
        Some(0.0)
    }
}

/// Runs of letters and digits of ASCII, of a text in lower case.
fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()))
        .filter(|word| !word.is_empty())
        .collect()
}

/// The length of the longest common subsequence, 64 words at a time: Hyyrö, "Bit-Parallel
/// LCS-length Computation Revisited", 2004.
fn longest_common_subsequence(one: &[&str], other: &[&str]) -> usize {
    let blocks = one.len().div_ceil(64);
    let mut places: HashMap<&str, Vec<(usize, u64)>> = HashMap::new();
    for (at, word) in one.iter().enumerate() {
        let (block, bit) = (at / 64, 1 << (at % 64));
        let places = places.entry(word).or_default();
        match places.last_mut() {
            Some((last, bits)) if *last == block => *bits |= bit,
            _ => places.push((block, bit)),
        }
    }
    // A bit is 0 where the subsequence grows by one.
    let mut rows = vec![u64::MAX; blocks];
    for word in other {
        let Some(places) = places.get(word) else {
            // Without a match no row changes.
            continue;
        };
        let mut places = places.iter().peekable();
        let mut carry = false;
        for (block, row) in rows.iter_mut().enumerate() {
            let matches = match places.peek() {
                Some((at, bits)) if *at == block => {
                    places.next();
                    *bits
                }
                _ => 0,
            };
            let shared = *row & matches;
            let (sum, first) = row.overflowing_add(shared);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            *row = sum | (*row & !matches);
        }
    }
    let zeros: u32 = (rows.iter().enumerate())
        .map(|(block, row)| {
            let used = (one.len() - block * 64).min(64);
            let mask = if used == 64 { u64::MAX } else { (1 << used) - 1 };
            (!row & mask).count_ones()
        })
        .sum();
    zeros as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the textbook.
    fn by_table(one: &[&str], other: &[&str]) -> usize {
        let mut row = vec![0; other.len() + 1];
        for a in one {
            let mut before = 0;
            for (at, b) in other.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if a == b { before + 1 } else { above.max(row[at]) };
                before = above;
            }
        }
        row[other.len()]
    }

    #[test]
    fn bits_and_table_agree() {
        let names: Vec<String> = (0..7).map(|n| n.to_string()).collect();
        let mut state = 1_u32;
        for length in [1, 3, 63, 64, 65, 130, 200] {
            let mut draw = || {
                let word = |_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    names[(state >> 16) as usize % names.len()].as_str()
                };
                (0..length).map(word).collect::<Vec<_>>()
            };
            let (one, other) = (draw(), draw());
            let expected = by_table(&one, &other);
            assert_eq!(longest_common_subsequence(&one, &other), expected, "{length}");
        }
    }

    #[test]
    fn long_texts_are_measured_up_to_a_bound() {
        let long = "a ".repeat(MOST_WORDS);
        assert_eq!(l(&long, &long), Some(1.0));
        assert_eq!(l(&format!("{long} a"), "a"), None);
    }
}
