//! The Levenshtein distance of two sequences, and the steps of each kind in a shortest alignment:
//! Myers' bit-parallel algorithm (1999) in blocks, as Hyyrö has it (2003), which computes 64 cells
//! at once.
//!
//! Several alignments are the shortest, and differ in their counts. This path is RapidFuzz's, which
//! `jiwer` uses. From the end it takes a deletion if possible, otherwise an insertion if the
//! previous cell is less than its neighbour, otherwise a step of both.

use std::collections::HashMap;

const MOST_CELLS: u64 = 1 << 35;

/// The most cells whose differences are kept for an alignment: 2 bits each, 64 MiB.
const MOST_KEPT: u64 = 1 << 28;

/// The bits of a block.
const BLOCK: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub hits: u64,
    pub substitutions: u64,
    pub deletions: u64,
    pub insertions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Insertions, deletions and substitutions of a shortest alignment.
    pub distance: u64,
    /// The steps by kind, if requested and if the sequences are not too long.
    pub counts: Option<Counts>,
}

/// Differences between a cell and its upper neighbour, for 64 cells: +1, and −1.
#[derive(Clone, Copy)]
struct Vertical {
    plus: u64,
    minus: u64,
}

pub fn align(reference: &[u32], answer: &[u32], with_counts: bool) -> Option<Alignment> {
    // As RapidFuzz does, because it decides between alignments.
    let prefix = (reference.iter().zip(answer)).take_while(|(one, other)| one == other).count();
    let (one, other) = (&reference[prefix..], &answer[prefix..]);
    let suffix =
        (one.iter().rev().zip(other.iter().rev())).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[..one.len() - suffix], &other[..other.len() - suffix]);
    let cells = (one.len() as u64).saturating_mul(other.len() as u64);
    if cells > MOST_CELLS {
        return None;
    }
    let keep = with_counts && cells <= MOST_KEPT;
    let (distance, kept) = distance(one, other, keep);
    let counts = keep.then(|| {
        let mut counts = steps(one, other, &kept);
        counts.hits += (prefix + suffix) as u64;
        counts
    });
    Some(Alignment { distance, counts })
}

/// The distance, and with `keep` the differences of every cell, a row for each item of `other`.
fn distance(one: &[u32], other: &[u32], keep: bool) -> (u64, Vec<Vertical>) {
    if one.is_empty() {
        return (other.len() as u64, Vec::new());
    }
    let blocks = one.len().div_ceil(BLOCK);
    let last = 1 << ((one.len() - 1) % BLOCK);
    let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
    for (place, item) in one.iter().enumerate() {
        places.entry(*item).or_default().push(place);
    }
    let mut vertical = vec![Vertical { plus: !0, minus: 0 }; blocks];
    let mut kept = Vec::with_capacity(if keep { blocks * other.len() } else { 0 });
    let mut matches = vec![0_u64; blocks];
    let mut distance = one.len() as u64;
    for item in other {
        let of_item = places.get(item).map_or(&[][..], Vec::as_slice);
        for place in of_item {
            matches[place / BLOCK] |= 1 << (place % BLOCK);
        }
        let (mut carried_plus, mut carried_minus) = (1, 0);
        for (block, cells) in vertical.iter_mut().enumerate() {
            let Vertical { plus, minus } = *cells;
            let equal = matches[block] | carried_minus;
            let diagonal = ((equal & plus).wrapping_add(plus) ^ plus) | equal | minus;
            let across_plus = minus | !(diagonal | plus);
            let across_minus = diagonal & plus;
            if block + 1 == blocks {
                distance += u64::from(across_plus & last != 0);
                distance -= u64::from(across_minus & last != 0);
            }
            let shifted_plus = across_plus << 1 | carried_plus;
            let shifted_minus = across_minus << 1 | carried_minus;
            (carried_plus, carried_minus) =
                (across_plus >> (BLOCK - 1), across_minus >> (BLOCK - 1));
            *cells = Vertical {
                plus: shifted_minus | !(diagonal | shifted_plus),
                minus: shifted_plus & diagonal,
            };
        }
        for place in of_item {
            matches[place / BLOCK] = 0;
        }
        if keep {
            kept.extend_from_slice(&vertical);
        }
    }
    (distance, kept)
}

/// Walks an alignment from its end.
fn steps(one: &[u32], other: &[u32], kept: &[Vertical]) -> Counts {
    let blocks = one.len().div_ceil(BLOCK);
    let at = |row: usize, column: usize| (&kept[row * blocks + column / BLOCK], column % BLOCK);
    let mut counts = Counts::default();
    let (mut column, mut row) = (one.len(), other.len());
    while column > 0 && row > 0 {
        let (here, bit) = at(row - 1, column - 1);
        if here.plus >> bit & 1 == 1 {
            counts.deletions += 1;
            column -= 1;
            continue;
        }
        row -= 1;
        let before = (row > 0).then(|| at(row - 1, column - 1));
        if before.is_some_and(|(before, bit)| before.minus >> bit & 1 == 1) {
            counts.insertions += 1;
            continue;
        }
        column -= 1;
        if one[column] == other[row] {
            counts.hits += 1;
        } else {
            counts.substitutions += 1;
        }
    }
    counts.deletions += column as u64;
    counts.insertions += row as u64;
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance by the textbook's table.
    fn plainly(one: &[u32], other: &[u32]) -> u64 {
        let mut before: Vec<u64> = (0..=one.len() as u64).collect();
        for (row, item) in other.iter().enumerate() {
            let mut now = vec![row as u64 + 1];
            for (column, own) in one.iter().enumerate() {
                let both = before[column] + u64::from(own != item);
                now.push(both.min(before[column + 1] + 1).min(now[column] + 1));
            }
            before = now;
        }
        before[one.len()]
    }

    #[test]
    fn blocks_give_the_distance_of_the_whole_table() {
        let mut state = 7_u32;
        let mut draw = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for round in 0..300 {
            let kinds = 1 + draw(6);
            let [one, other] = [0; 2].map(|_: u32| {
                let length = draw(if round % 3 == 0 { 210 } else { 20 });
                (0..length).map(|_| draw(kinds)).collect::<Vec<_>>()
            });
            let aligned = align(&one, &other, true).unwrap();
            assert_eq!(aligned.distance, plainly(&one, &other), "{one:?} {other:?}");
            let counts = aligned.counts.unwrap();
            assert_eq!(
                aligned.distance,
                counts.substitutions + counts.deletions + counts.insertions
            );
            let of_one = counts.hits + counts.substitutions + counts.deletions;
            let of_other = counts.hits + counts.substitutions + counts.insertions;
            assert_eq!((of_one, of_other), (one.len() as u64, other.len() as u64));
        }
    }

    #[test]
    fn long_sequences_have_no_counts_and_longer_no_distance() {
        let (one, other) = (vec![1; 16_385], vec![2; 16_385]);
        let aligned = align(&one, &other, true).unwrap();
        assert_eq!((aligned.distance, aligned.counts), (16_385, None));
        assert_eq!(align(&vec![1; 200_000], &vec![2; 200_000], true), None);
    }
}
