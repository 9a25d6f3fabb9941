//! chrF of one sentence with one reference, as sacreBLEU 2.6.0 computes it by default
//! (`sacrebleu/metrics/chrf.py`): Popović, "chrF: character n-gram F-score for automatic MT
//! evaluation", 2015.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use judging::python;

const ORDER: usize = 6;

/// Weight of recall against precision, squared.
const FACTOR: f64 = 4.0;

/// The score, from 0 to 100, without white space; only of orders that fit into both texts.
pub fn score(answer: &str, reference: &str) -> f64 {
    let plain = |text: &str| text.chars().filter(|c| !python::is_space(*c)).collect();
    let (answer, reference): (Vec<char>, Vec<char>) = (plain(answer), plain(reference));
    let (mut precision, mut recall, mut orders) = (0.0, 0.0, 0.0);
    for (order, same) in (1..).zip(common(&answer, &reference)) {
        if answer.len() < order || reference.len() < order {
            break;
        }
        precision += f64::from(same) / (answer.len() - order + 1) as f64;
        recall += f64::from(same) / (reference.len() - order + 1) as f64;
        orders += 1.0;
    }
    if orders > 0.0 {
        precision /= orders;
        recall /= orders;
    }
    if precision + recall > 0.0 {
        100.0 * ((1.0 + FACTOR) * precision * recall / (FACTOR * precision + recall))
    } else {
        0.0
    }
}

/// The common n-grams of each order, each as often as in both texts. An n-gram's code is its
/// shorter prefix's number and its last character. Only the shorter text's n-grams have numbers.
fn common(one: &[char], other: &[char]) -> [u32; ORDER] {
    let (longer, shorter) = if one.len() > other.len() { (one, other) } else { (other, one) };
    let capacity = shorter.len() * ORDER;
    let mut numbers: HashMap<u64, u32, BuildHasherDefault<Mix>> =
        HashMap::with_capacity_and_hasher(capacity, BuildHasherDefault::default());
    // Occurrences of the n-gram in the shorter text that the longer has not matched yet; the first
    // entry is the empty n-gram.
    let mut left = Vec::with_capacity(capacity + 1);
    left.push(0_u32);
    for start in 0..shorter.len() {
        let mut number = 0;
        for character in &shorter[start..shorter.len().min(start + ORDER)] {
            let next = left.len() as u32;
            number = *numbers.entry(key(number, *character)).or_insert(next);
            if number == next {
                left.push(0);
            }
            left[number as usize] += 1;
        }
    }
    let mut same = [0; ORDER];
    for start in 0..longer.len() {
        let mut number = 0;
        let ngram = &longer[start..longer.len().min(start + ORDER)];
        for (character, same) in ngram.iter().zip(&mut same) {
            let Some(found) = numbers.get(&key(number, *character)) else { break };
            number = *found;
            if left[number as usize] > 0 {
                left[number as usize] -= 1;
                *same += 1;
            }
        }
    }
    same
}

fn key(number: u32, character: char) -> u64 {
    u64::from(number) << 21 | u64::from(u32::from(character))
}

/// A quick hash of one number: keys are small, and collisions cost time alone.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_100_and_others_nothing() {
        assert_eq!(score("the cat", "the  cat"), 100.0);
        assert_eq!(score("abc", "xyz"), 0.0);
        assert_eq!(score("", "xyz"), 0.0);
        assert_eq!(score("", ""), 0.0);
    }

    #[test]
    fn an_ngram_counts_as_often_as_both_have_it() {
        let characters = |text: &str| text.chars().collect::<Vec<_>>();
        let same = common(&characters("aaab"), &characters("aab"));
        assert_eq!(same, [3, 2, 1, 0, 0, 0]);
    }
}
