//! Samples counted by value and block, for percentiles of any mixture of the blocks: NumPy's to the
//! last bit of values that are kept exactly, and within 1/8192 of others.

use std::collections::HashMap;

use crate::{between, place};

/// Bits of a value that are kept if there are many samples: the middle of a cell represents its
/// values, within 1/8192.
const BITS: u32 = 12;

#[derive(Debug)]
pub struct Counting {
    blocks: usize,
    exact: bool,
    counts: HashMap<u64, Box<[u32]>>,
}

/// Cells in ascending order, each with the number of samples of each block up to and with it.
#[derive(Debug)]
pub struct Cells {
    blocks: usize,
    values: Vec<f64>,
    upto: Vec<u32>,
}

impl Counting {
    /// No samples yet. Where it is not `exact`, values are rounded to their leading 12 bits.
    pub fn new(blocks: usize, exact: bool) -> Self {
        Counting { blocks, exact, counts: HashMap::new() }
    }

    /// Counts a value, in whole steps, a number of times in a block.
    pub fn add(&mut self, block: usize, value: u64, times: u64) {
        let (blocks, key) = (self.blocks, self.key(value));
        let counts = (self.counts.entry(key)).or_insert_with(|| vec![0; blocks].into());
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        counts[block] = counts[block].saturating_add(times);
    }

    fn key(&self, value: u64) -> u64 {
        if self.exact {
            return value;
        }
        let (low, width) = leading(value, BITS);
        low + width / 2
    }

    /// The cells, their values divided by `scale`.
    pub fn finish(self, scale: f64) -> Cells {
        let mut counts: Vec<_> = self.counts.into_iter().collect();
        counts.sort_unstable_by_key(|(key, _)| *key);
        let mut sums = vec![0_u32; self.blocks];
        let mut cells = Cells {
            blocks: self.blocks,
            values: Vec::with_capacity(counts.len()),
            upto: Vec::with_capacity(counts.len() * self.blocks),
        };
        for (key, counts) in counts {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = sum.saturating_add(count);
            }
            cells.values.push(key as f64 / scale);
            cells.upto.extend_from_slice(&sums);
        }
        cells
    }
}

/// The value with zeros after its first `bits` bits, and the number of values that share these.
pub fn leading(value: u64, bits: u32) -> (u64, u64) {
    let dropped = (u64::BITS - value.leading_zeros()).saturating_sub(bits);
    (value >> dropped << dropped, 1 << dropped)
}

impl Cells {
    pub fn count(&self) -> u64 {
        let last = self.upto.len().saturating_sub(self.blocks);
        self.upto[last..].iter().map(|count| u64::from(*count)).sum()
    }

    /// The percentile of the mixture in which each block occurs as often as `weights` states:
    /// `np.percentile` of its samples. `None` if it has none.
    pub fn percentile(&self, percent: f64, weights: &[u32]) -> Option<f64> {
        let last = self.values.len().checked_sub(1)?;
        let count = self.upto(last, weights);
        if count == 0 {
            return None;
        }
        let (below, share) = place(count, percent);
        let cell = self.cell(below, weights);
        let next = match share {
            0.0 => cell,
            _ => self.cell(below + 1, weights).min(last),
        };
        Some(between(self.values[cell], self.values[next], share))
    }

    /// Counts the blocks with samples at or beyond the percentile, on its side of the median.
    pub fn blocks_beyond(&self, percent: f64) -> usize {
        let Some(last) = self.values.len().checked_sub(1) else { return 0 };
        let whole = vec![1; self.blocks];
        let (below, _) = place(self.count(), percent);
        let cell = self.cell(below, &whole);
        let upto = |cell: usize, block: usize| self.upto[cell * self.blocks + block];
        let beyond = |block: &usize| match (percent >= 50.0, cell) {
            (true, 0) => upto(last, *block) > 0,
            (true, cell) => upto(last, *block) > upto(cell - 1, *block),
            (false, cell) => upto(cell, *block) > 0,
        };
        (0..self.blocks).filter(beyond).count()
    }

    fn cell(&self, rank: u64, weights: &[u32]) -> usize {
        let (mut low, mut high) = (0, self.values.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.upto(middle, weights) <= rank {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.min(self.values.len() - 1)
    }

    fn upto(&self, cell: usize, weights: &[u32]) -> u64 {
        let counts = &self.upto[cell * self.blocks..][..self.blocks];
        let weighed = counts.iter().zip(weights);
        weighed.map(|(count, weight)| u64::from(*count) * u64::from(*weight)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ranked, Sorted};

    #[test]
    fn percentiles_of_mixtures_are_those_of_their_samples() {
        let mut counting = Counting::new(3, true);
        let samples: Vec<u64> = (0..300).map(|i| (i * 7919) % 1009).collect();
        for (i, sample) in samples.iter().enumerate() {
            counting.add(i / 100, *sample, 1);
        }
        let cells = counting.finish(1.0);
        assert_eq!(cells.count(), 300);
        for weights in [[1, 1, 1], [2, 0, 1], [0, 3, 0]] {
            let mixed = samples.iter().enumerate().flat_map(|(i, sample)| {
                std::iter::repeat_n(*sample as f64, weights[i / 100] as usize)
            });
            let sorted = Sorted::new(mixed.collect()).unwrap();
            for percent in [1.0, 25.0, 50.0, 90.0, 99.0, 99.9] {
                assert_eq!(
                    cells.percentile(percent, &weights),
                    Some(sorted.percentile(percent)),
                    "P{percent} of {weights:?}"
                );
            }
        }
        assert_eq!(cells.percentile(50.0, &[0, 0, 0]), None);
    }

    #[test]
    fn blocks_beyond_a_percentile_are_counted() {
        let mut counting = Counting::new(4, true);
        for i in 0..400_u64 {
            let block = (i / 100) as usize;
            // Only the last block has slow ones.
            counting.add(block, i % 100 + if block == 3 { 1000 } else { 0 }, 1);
        }
        let cells = counting.finish(1.0);
        assert_eq!([50.0, 80.0, 99.0].map(|percent| cells.blocks_beyond(percent)), [4, 1, 1]);
        assert_eq!(cells.blocks_beyond(1.0), 3);
    }

    #[test]
    fn cells_are_narrow() {
        let mut counting = Counting::new(1, false);
        for value in [0, 1, 4095, 4096, 123_456_789, u64::MAX / 3] {
            let key = counting.key(value);
            assert!(key.abs_diff(value) as f64 <= value as f64 / 4096.0, "{value}");
        }
        counting.add(0, 1_000_000_007, 5);
        let cells = counting.finish(1e6);
        let value = cells.percentile(50.0, &[1]).unwrap();
        assert!((value / 1_000.0 - 1.0).abs() < 1.0 / 4096.0, "{value}");
    }
}
