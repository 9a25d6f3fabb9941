//! Samples in ascending order, and bounds from their ranks.
//!
//! Results do not depend on the order in which samples came, to the last bit: sums are taken over
//! the sorted samples.

use crate::moments::{mean, squares_about};

/// Values in ascending order, accessible by their rank.
pub trait Ranked {
    /// Counts the values; at least one.
    fn count(&self) -> u64;

    /// The value of that rank, from 0; ranks beyond the last are the last.
    fn at(&self, rank: u64) -> f64;

    /// The value below which `percent` of the samples lie, by linear interpolation between the two
    /// nearest. It is `np.percentile` with its default method (definition 7 of Hyndman and Fan
    /// 1996, "Sample quantiles in statistical packages"), rounding included. `percent` is held to
    /// 0..=100.
    fn percentile(&self, percent: f64) -> f64 {
        let (below, share) = place(self.count(), percent);
        between(self.at(below), self.at(below + 1), share)
    }

    /// Values that are less than a bound, by bisection: `np.searchsorted` with `side='left'`.
    fn below(&self, bound: f64) -> u64 {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at(middle) < bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Finds the rank below a percentile, from 0, and the share of the way to the next rank.
pub fn place(count: u64, percent: f64) -> (u64, f64) {
    let last = count.saturating_sub(1);
    let position = last as f64 * (percent.clamp(0.0, 100.0) / 100.0);
    let below = (position.floor() as u64).min(last);
    (below, position - below as f64)
}

/// The value that far from `a` to `b`. NumPy interpolates from the nearer end, which keeps the
/// result within the two.
pub fn between(a: f64, b: f64, share: f64) -> f64 {
    if share >= 0.5 { b - (b - a) * (1.0 - share) } else { a + (b - a) * share }
}

/// At least one sample, in ascending order: no samples have no statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    pub fn new(mut samples: Vec<f64>) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        samples.sort_unstable_by(f64::total_cmp);
        Some(Sorted(samples))
    }

    pub fn min(&self) -> f64 {
        self.0[0]
    }

    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The arithmetic mean, summed from the smallest up.
    pub fn mean(&self) -> f64 {
        mean(&self.0)
    }

    /// The standard deviation of the population (divided by n, as `np.std`).
    pub fn std(&self) -> f64 {
        (squares_about(&self.0, self.mean()) / self.0.len() as f64).sqrt()
    }
}

impl Ranked for Sorted {
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    fn at(&self, rank: u64) -> f64 {
        let last = self.0.len() - 1;
        self.0[usize::try_from(rank).unwrap_or(last).min(last)]
    }
}
