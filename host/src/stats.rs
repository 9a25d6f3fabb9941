//! Statistics of samples: percentiles, mean, deviation. Pure arithmetic; what the samples mean
//! is the caller's affair.
//!
//! Nothing here depends on the order in which samples came, to the last bit: sums are taken over
//! the sorted samples, so results of the same records are equal however they were merged.

/// Samples in ascending order; at least one. No samples have no statistics, and so no value of
/// this type.
#[derive(Clone, Debug, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Sorts the samples; `None` where there are none.
    pub fn new(mut samples: Vec<f64>) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        samples.sort_unstable_by(f64::total_cmp);
        Some(Sorted(samples))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The smallest.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The standard deviation of the population (divided by n, as `np.std`).
    pub fn std(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|x| (x - mean) * (x - mean)).sum();
        (squares / self.0.len() as f64).sqrt()
    }

    /// The value below which `percent` of the samples lie, by linear interpolation between the
    /// two nearest: `np.percentile` with its default method, rounding included. `percent` is held
    /// to 0..=100.
    pub fn percentile(&self, percent: f64) -> f64 {
        let last = self.0.len() - 1;
        let position = last as f64 * (percent.clamp(0.0, 100.0) / 100.0);
        let below = (position.floor() as usize).min(last);
        let above = (below + 1).min(last);
        let share = position - below as f64;
        let (a, b) = (self.0[below], self.0[above]);
        // NumPy interpolates from the nearer end, which keeps the result within the two.
        if share >= 0.5 {
            b - (b - a) * (1.0 - share)
        } else {
            a + (b - a) * share
        }
    }

    /// The 50th percentile.
    pub fn median(&self) -> f64 {
        self.percentile(50.0)
    }
}

#[cfg(test)]
mod tests;
