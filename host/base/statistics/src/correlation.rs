//! Correlation of the ranks of two values, in bounded memory.

use std::collections::BTreeMap;

use crate::cells::leading;

/// Leading bits of a value that are kept: values up to 127 are exact, others within 1/128.
const BITS: u32 = 7;

/// Pairs of values, counted. Values that share their leading bits are equal, and so have the same
/// rank.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    counts: BTreeMap<(u64, u64), u64>,
}

impl Pairs {
    pub fn add(&mut self, one: u64, other: u64) {
        let kept = |value| leading(value, BITS).0;
        *self.counts.entry((kept(one), kept(other))).or_default() += 1;
    }

    /// Spearman's rank correlation, from -1 to 1: Pearson's correlation of the ranks, equal values
    /// with the mean of theirs (`scipy.stats.spearmanr`). `None` if one of the values is the same in
    /// all pairs, and if there are fewer than two.
    pub fn spearman(&self) -> Option<f64> {
        let ones = ranks(self.counts.iter().map(|((one, _), count)| (*one, *count)));
        let others = ranks(self.counts.iter().map(|((_, other), count)| (*other, *count)));
        let (mut products, mut of_one, mut of_other) = (0.0, 0.0, 0.0);
        for ((one, other), count) in &self.counts {
            let (x, y, many) = (ones[one], others[other], *count as f64);
            products += many * x * y;
            of_one += many * x * x;
            of_other += many * y * y;
        }
        let both = (of_one * of_other).sqrt();
        (both > 0.0).then(|| (products / both).clamp(-1.0, 1.0))
    }
}

/// The mean rank of each value, less the mean of all ranks.
fn ranks(values: impl Iterator<Item = (u64, u64)>) -> BTreeMap<u64, f64> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for (value, count) in values {
        *counts.entry(value).or_default() += count;
    }
    let middle = counts.values().sum::<u64>() as f64 / 2.0;
    let mut before = 0;
    let ranked = counts.into_iter().map(|(value, count)| {
        let rank = before as f64 + count as f64 / 2.0 - middle;
        before += count;
        (value, rank)
    });
    ranked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spearman(pairs: &[(u64, u64)]) -> Option<f64> {
        let mut counted = Pairs::default();
        pairs.iter().for_each(|(x, y)| counted.add(*x, *y));
        counted.spearman()
    }

    /// By `scipy.stats.spearmanr`, the first from its documentation.
    #[test]
    fn correlations_are_scipys_and_of_values_that_vary() {
        for (pairs, known) in [
            (&[(1, 5), (2, 6), (3, 7), (4, 8), (5, 7)][..], 0.820_782_681_668_123_3),
            (&[(1, 9), (2, 5), (3, 0)], -1.0),
            (&[(1, 1), (1, 2), (2, 1), (2, 2)], 0.0),
            (
                &[(1, 4), (1, 4), (1, 9), (2, 9), (2, 3), (3, 1), (3, 1), (3, 2)],
                -0.801_875_373_874_480_3,
            ),
        ] {
            let found = spearman(pairs).unwrap();
            assert!((found - known).abs() < 1e-12, "{found} {known}");
        }
        for pairs in [&[][..], &[(1, 2)], &[(3, 1), (3, 2)], &[(1, 7), (2, 7)]] {
            assert_eq!(spearman(pairs), None, "{pairs:?}");
        }
    }

    #[test]
    fn memory_has_a_bound() {
        let mut counted = Pairs::default();
        for value in 0..200_000_u64 {
            counted.add(value, 1);
        }
        assert!(counted.counts.len() < 1000, "{}", counted.counts.len());
        // The growth of one value with the other is still seen.
        let mut grows = Pairs::default();
        (0..10_000).for_each(|value| grows.add(value, value * value));
        assert!(grows.spearman().unwrap() > 0.999);
    }
}
