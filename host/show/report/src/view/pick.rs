//! Picks some of many items in bounded memory, and the same ones in any order.

use std::collections::BTreeMap;

use model::units::Nanos;

/// The first of each block of numbers; blocks double in length until they are few enough. Numbers
/// may have gaps, such as in a slice of a run.
pub(super) struct Even<T> {
    limit: usize,
    length: u64,
    /// The number and its data, by the block's place.
    kept: BTreeMap<u64, (u64, T)>,
}

impl<T> Even<T> {
    pub(super) fn new(limit: usize) -> Self {
        Even { limit, length: 1, kept: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, number: u64, make: impl FnOnce() -> T) {
        let block = number / self.length;
        if self.kept.get(&block).is_some_and(|(first, _)| *first <= number) {
            return;
        }
        self.kept.insert(block, (number, make()));
        while self.kept.len() > self.limit {
            self.length *= 2;
            let mut longer = BTreeMap::new();
            for (block, first) in std::mem::take(&mut self.kept) {
                longer.entry(block / 2).or_insert(first);
            }
            self.kept = longer;
        }
    }

    /// Returns the items in the order of their numbers.
    pub(super) fn finish(self) -> Vec<T> {
        self.kept.into_values().map(|(_, kept)| kept).collect()
    }
}

/// The items with the largest spans of time; of equal ones, the items with the lowest numbers.
pub(super) struct Largest<T> {
    limit: usize,
    kept: BTreeMap<(Nanos, std::cmp::Reverse<u64>), T>,
}

impl<T> Largest<T> {
    pub(super) fn new(limit: usize) -> Self {
        Largest { limit, kept: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, span: Nanos, number: u64, make: impl FnOnce() -> T) {
        let key = (span, std::cmp::Reverse(number));
        let full = self.kept.len() >= self.limit;
        if full && self.kept.keys().next().is_some_and(|least| *least > key) {
            return;
        }
        self.kept.insert(key, make());
        if full {
            self.kept.pop_first();
        }
    }

    pub(super) fn finish(self) -> Vec<T> {
        self.kept.into_values().rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_picked_evenly_and_in_any_order_the_same() {
        let pick = |numbers: &mut dyn Iterator<Item = u64>| {
            let mut even = Even::new(8);
            numbers.for_each(|number| even.add(number, || number));
            even.finish()
        };
        assert_eq!(pick(&mut (0..8)), (0..8).collect::<Vec<_>>());
        let some = [0, 16, 32, 48, 64, 80, 96];
        assert_eq!(pick(&mut (0..100)), some);
        assert_eq!(pick(&mut (0..100).rev()), some);
        // A slice has gaps.
        assert_eq!(pick(&mut (0..50).map(|n| n * 2 + 1)).len(), 7);
    }

    #[test]
    fn the_largest_are_the_same_in_any_order() {
        let pick = |numbers: &mut dyn Iterator<Item = u64>| {
            let mut largest = Largest::new(3);
            numbers.for_each(|number| largest.add(Nanos(number % 7), number, || number));
            largest.finish()
        };
        assert_eq!(pick(&mut (0..20)), [6, 13, 5]);
        assert_eq!(pick(&mut (0..20).rev()), [6, 13, 5]);
        assert_eq!(pick(&mut (0..2)), [1, 0]);
    }
}
