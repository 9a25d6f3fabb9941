//! A metric's samples by block of consecutive requests: the base of the intervals of one run.
//!
//! Requests of one run are not independent samples: requests in flight together share a batch and a
//! queue. A block is long enough that little of this dependence crosses its ends, and `dependence`
//! corrects for the rest.
//!
//! **The fill is apart.** Requests that were sent before the first answer had ended meet an engine
//! that fills, in every run alike. So the difference of their latencies from later ones is no
//! chance. They have blocks of their own.

use std::collections::HashMap;

use super::cells::leading;
use super::dependence::inflation;
use super::interval::{LEVEL, NORMAL};
use super::moments::{mean, variance_about};
use super::{Ranked, student};

/// Largest number of blocks after the fill. Batch means work best with few long ones: beyond
/// twenty, more blocks add little about the variance, and shorter ones capture less of the
/// dependence (Schmeiser 1982).
pub const MOST: u64 = 20;
/// Smallest number of blocks that a run is cut into. Half of them must hold samples for an estimate
/// of their variance.
pub const FEWEST: u64 = 10;
/// Requests that a block has if there are enough of them.
const EACH: u64 = 5;
/// Largest number of blocks of the fill.
const FILL: u64 = 10;
/// The most samples that are kept one by one; with one more, all are counted in cells.
const KEPT: usize = 100_000;
/// Leading bits of a value that its cell keeps: a cell is narrower than 1/1024 of its values.
const BITS: u32 = 11;
/// Bits that name the block in a packed sample.
const NAME: u32 = 5;

/// The block that each request of a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    requests: u64,
    fill: u64,
    blocks: u64,
    /// Index of the first request, and the number of indexes from it to the last.
    first: u64,
    span: u64,
}

impl Layout {
    /// The layout of `requests` requests; the first `fill` of them were sent before the first
    /// answer had ended. Their indexes go from `first` to `last`; in a slice of a run, they are
    /// further apart. `None` if there are too few.
    pub fn new(requests: u64, fill: u64, first: u64, last: u64) -> Option<Self> {
        // Where most of the run is the fill, it is the run.
        let fill = if 2 * fill > requests { 0 } else { fill };
        let rest = requests - fill;
        (rest >= FEWEST).then(|| Layout {
            requests,
            fill,
            blocks: (rest / EACH).clamp(FEWEST, MOST),
            first,
            span: last.saturating_sub(first).saturating_add(1),
        })
    }

    /// The layout of a part of the run, from one instant to another: blocks of equal length, and no
    /// fill. Its requests have the instants at which they were sent for their indexes.
    pub fn over(from: u64, to: u64) -> Self {
        Layout {
            requests: MOST * EACH,
            fill: 0,
            blocks: MOST,
            first: from,
            span: to.saturating_sub(from).max(1),
        }
    }

    pub fn fill(&self) -> u64 {
        self.fill
    }

    pub fn blocks(&self) -> usize {
        self.blocks as usize
    }

    fn fills(&self) -> usize {
        self.fill.min(FILL) as usize
    }

    fn at(&self, place: u64) -> usize {
        if place < self.fill {
            return (place * self.fills() as u64 / self.fill) as usize;
        }
        let (place, rest) = (place - self.fill, self.requests - self.fill);
        let block = u128::from(place) * u128::from(self.blocks) / u128::from(rest);
        self.fills() + (block as u64).min(self.blocks - 1) as usize
    }

    fn block(&self, index: u64) -> usize {
        let into = index.saturating_sub(self.first);
        let place = u128::from(into) * u128::from(self.requests) / u128::from(self.span);
        self.at((place as u64).min(self.requests - 1))
    }
}

#[derive(Clone, Debug)]
pub struct Blocks {
    layout: Layout,
    scale: f64,
    /// The sum in whole steps and the count of each block: whole numbers, so that order does not
    /// matter.
    sums: Vec<(u128, u64)>,
    store: Store,
}

#[derive(Clone, Debug)]
enum Store {
    /// The value in whole steps, and in the lowest bits its block.
    Samples(Vec<u64>),
    Cells(HashMap<u64, Box<[u32]>>),
}

impl Blocks {
    /// No samples yet. They are rounded to `1 / scale`.
    pub fn new(layout: Layout, scale: f64) -> Self {
        Blocks {
            layout,
            scale,
            sums: vec![(0, 0); layout.fills() + layout.blocks()],
            store: Store::Samples(Vec::new()),
        }
    }

    pub fn add(&mut self, index: u64, sample: f64) {
        let (block, value) = (self.layout.block(index), self.steps(sample));
        let (sum, count) = &mut self.sums[block];
        *sum += u128::from(value);
        *count += 1;
        match &mut self.store {
            Store::Samples(samples) if samples.len() < KEPT => {
                samples.push(value << NAME | block as u64);
            }
            Store::Samples(samples) => {
                let samples = std::mem::take(samples);
                let mut cells = HashMap::new();
                for packed in samples {
                    let block = (packed & ((1 << NAME) - 1)) as usize;
                    count_in(&mut cells, self.sums.len(), packed >> NAME, block);
                }
                count_in(&mut cells, self.sums.len(), value, block);
                self.store = Store::Cells(cells);
            }
            Store::Cells(cells) => count_in(cells, self.sums.len(), value, block),
        }
    }

    fn steps(&self, sample: f64) -> u64 {
        ((sample * self.scale).round().max(0.0) as u64).min(u64::MAX >> NAME)
    }

    /// The mean of each block with samples, in order: of the fill, and of the time after it.
    pub(crate) fn means(&self) -> [Vec<f64>; 2] {
        let means = |sums: &[(u128, u64)]| {
            let held = sums.iter().filter(|(_, count)| *count > 0);
            held.map(|(sum, count)| *sum as f64 / *count as f64 / self.scale).collect()
        };
        let (fill, rest) = self.sums.split_at(self.layout.fills());
        [means(fill), means(rest)]
    }

    /// The deviations of a mean and of a median over one request, as shares of the two. They assume
    /// requests as independent as blocks after the fill; `None` if there are too few.
    pub fn deviations(&self, figures: &impl Ranked) -> Option<[f64; 2]> {
        let [_, means] = self.means();
        let fills = self.layout.fills();
        let median = figures.percentile(50.0);
        let counts = self.counts_above(median).into_iter();
        let shares: Vec<f64> = counts.map(|(above, count)| above as f64 / count as f64).collect();
        let whole = mean(&means);
        if means.len() < FEWEST as usize / 2 || whole <= 0.0 || median <= 0.0 {
            return None;
        }
        let count: u64 = self.sums[fills..].iter().map(|(_, count)| count).sum();
        let requests = (count as f64 / means.len() as f64).sqrt();
        let deviation = |values: &[f64]| variance_about(values, mean(values)).sqrt() * requests;
        // A fifth of the samples lies between these two.
        let width = figures.percentile(60.0) - figures.percentile(40.0);
        Some([deviation(&means) / whole, deviation(&shares) * width / 0.2 / median])
    }

    pub(crate) fn fill_requests(&self) -> u64 {
        self.sums[..self.layout.fills()].iter().map(|(_, count)| *count).sum()
    }

    /// The share of the samples that are of the fill.
    pub(crate) fn fill_share(&self) -> f64 {
        let all: u64 = self.sums.iter().map(|(_, count)| *count).sum();
        self.fill_requests() as f64 / all.max(1) as f64
    }

    /// The design effect of the event that a sample is above a value: the factor by which
    /// dependence multiplies the variance of its share. At least 1.
    pub(crate) fn design_effect(&self, value: f64) -> f64 {
        design_effect(&self.counts_above(value))
    }

    /// True if most of the samples at or above a value are of the fill, by counting. They say
    /// nothing of the time after it, and the design effect leaves them out.
    pub fn is_of_fill(&self, value: f64) -> bool {
        let above = self.above(self.steps(value).saturating_sub(1));
        let (fill, rest) = above.split_at(self.layout.fills());
        fill.iter().sum::<u64>() > rest.iter().sum::<u64>()
    }

    /// For each block after the fill with samples, the number above a value and of all.
    fn counts_above(&self, value: f64) -> Vec<(u64, u64)> {
        let above = self.above(self.steps(value)).into_iter().zip(&self.sums);
        let after = above.skip(self.layout.fills()).map(|(above, (_, count))| (above, *count));
        after.filter(|(_, count)| *count > 0).collect()
    }

    /// Counts the samples of each block that are above `limit` steps.
    fn above(&self, limit: u64) -> Vec<u64> {
        let mut above = vec![0_u64; self.sums.len()];
        match &self.store {
            Store::Samples(samples) => {
                for packed in samples.iter().filter(|packed| *packed >> NAME > limit) {
                    above[(packed & ((1 << NAME) - 1)) as usize] += 1;
                }
            }
            Store::Cells(cells) => {
                let limit = key(limit);
                for (_, counts) in cells.iter().filter(|(cell, _)| **cell > limit) {
                    for (above, count) in above.iter_mut().zip(counts) {
                        *above += u64::from(*count);
                    }
                }
            }
        }
        above
    }
}

/// The largest of the design effects of values at the median, the upper quartile and the upper
/// tenth (Kish 1965, "Survey Sampling"). Each is corrected for the remaining dependence between
/// blocks, and widened for their small number. `values` has the requests after the fill, in the
/// order of sending.
pub fn design_effect_of(values: &[u32], blocks: usize) -> f64 {
    let mut sorted: Vec<u32> = values.to_vec();
    sorted.sort_unstable();
    let effects = [2, 4, 10].map(|part| {
        let Some(limit) = sorted.get(sorted.len() - sorted.len().div_ceil(part)) else {
            return 1.0;
        };
        let counts: Vec<(u64, u64)> = (0..blocks)
            .map(|block| {
                let own =
                    &values[block * values.len() / blocks..(block + 1) * values.len() / blocks];
                let above = own.iter().filter(|value| *value > limit).count();
                (above as u64, own.len() as u64)
            })
            .filter(|(_, count)| *count > 0)
            .collect();
        design_effect(&counts)
    });
    effects.into_iter().fold(1.0, f64::max)
}

/// The design effect of an event, from the number of samples of each block that show it and their
/// total. It is the variance of the blocks' shares over the binomial one, times the inflation for
/// the dependence between blocks. It is widened as Student's quantile is for a variance that rests
/// on few blocks. At least 1.
fn design_effect(counts: &[(u64, u64)]) -> f64 {
    let shares: Vec<f64> =
        (counts.iter()).map(|(above, count)| *above as f64 / (*count).max(1) as f64).collect();
    let blocks = shares.len() as f64;
    if blocks < FEWEST as f64 / 2.0 {
        return 1.0;
    }
    let share = mean(&shares);
    if share <= 0.0 || share >= 1.0 {
        return 1.0;
    }
    let samples: u64 = counts.iter().map(|(_, count)| count).sum();
    let binomial = share * (1.0 - share) * blocks / samples as f64;
    let variance = variance_about(&shares, share);
    let (factor, _) = inflation(&shares);
    let wider = student::quantile(1.0 - LEVEL / 100.0, blocks - 1.0) / NORMAL;
    (variance * factor / binomial * wider * wider).max(1.0)
}

fn count_in(cells: &mut HashMap<u64, Box<[u32]>>, blocks: usize, value: u64, block: usize) {
    let counts = cells.entry(key(value)).or_insert_with(|| vec![0; blocks].into());
    counts[block] = counts[block].saturating_add(1);
}

fn key(value: u64) -> u64 {
    leading(value, BITS).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_lie_in_blocks_in_order() {
        let layout = Layout::new(1000, 50, 0, 999).unwrap();
        let places: Vec<usize> = (0..1000).map(|index| layout.block(index)).collect();
        assert!(places.is_sorted());
        assert_eq!((places[0], places[4], places[5], places[49]), (0, 0, 1, 9));
        assert_eq!((places[50], places[999]), (10, 29));
        // Every third request of a run, as in a slice.
        let slice = Layout::new(334, 0, 1, 1000).unwrap();
        let places: Vec<usize> = (0..334).map(|i| slice.block(1 + 3 * i)).collect();
        assert!(places.is_sorted() && places[333] == 19);
        assert_eq!(Layout::new(9, 0, 0, 8), None);
        // A run in which most requests were sent at the beginning has no other part.
        assert_eq!(Layout::new(100, 60, 0, 99).unwrap().fill(), 0);
    }

    #[test]
    fn order_and_number_do_not_change_design_effects() {
        let layout = Layout::new(KEPT as u64 + 1000, 0, 0, KEPT as u64 + 999).unwrap();
        let sample = |index: u64| 10.0 + (index / 7000 % 5) as f64;
        let mut counted = Blocks::new(layout, 1e6);
        (0..KEPT as u64 + 1000).for_each(|index| counted.add(index, sample(index)));
        assert!(matches!(counted.store, Store::Cells(_)));
        let mut kept = Blocks::new(Layout::new(1000, 0, 0, 999).unwrap(), 1e6);
        let mut turned = kept.clone();
        (0..1000).for_each(|index| kept.add(index, sample(index * 101)));
        (0..1000).rev().for_each(|index| turned.add(index, sample(index * 101)));
        for value in [10.0, 11.5, 13.0] {
            assert_eq!(kept.design_effect(value), turned.design_effect(value));
            let [few, many] = [&kept, &counted].map(|blocks| blocks.design_effect(value));
            // A hundred times the samples of the same course are no more independent ones.
            assert!((many / few / 101.0 - 1.0).abs() < 0.1, "{many} {few}");
        }
        assert_eq!(kept.means()[1], turned.means()[1]);
    }

    #[test]
    fn a_tail_is_of_the_fill_where_most_of_its_samples_are() {
        // The first 50 requests wait, and every hundredth of the others does, half as long.
        let mut blocks = Blocks::new(Layout::new(1000, 50, 0, 999).unwrap(), 1e6);
        let sample = |index: u64| match index {
            0..50 => 100.0 + index as f64,
            _ if index.is_multiple_of(100) => 50.0,
            _ => 10.0,
        };
        (0..1000).for_each(|index| blocks.add(index, sample(index)));
        assert!(blocks.is_of_fill(120.0) && blocks.is_of_fill(50.0));
        assert!(!blocks.is_of_fill(10.0));
        let mut flat = Blocks::new(Layout::new(1000, 50, 0, 999).unwrap(), 1e6);
        (0..1000).for_each(|index| flat.add(index, 10.0));
        assert!(!flat.is_of_fill(10.0));
    }

    #[test]
    fn what_does_not_vary_has_no_design_effect() {
        let mut blocks = Blocks::new(Layout::new(100, 0, 0, 99).unwrap(), 1e6);
        (0..100).for_each(|index| blocks.add(index, 5.0));
        assert_eq!(blocks.design_effect(5.0), 1.0);
        assert_eq!(design_effect_of(&[3; 100], 20), 1.0);
        assert_eq!(design_effect_of(&[], 20), 1.0);
    }
}
