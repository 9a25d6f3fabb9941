//! A histogram of whole numbers, which holds the distribution of any number of samples.
//!
//! Count, mean, deviation, minimum and maximum are exact. A percentile comes from the buckets, which
//! are narrow relative to their values (HDR histogram): it is within [`ERROR`] of NumPy's.

use hdrhistogram::Histogram as Cells;

use super::Ranked;

/// How much a percentile may differ from that of the samples, as a share of it. Three significant
/// digits make buckets of at most 1/1024 of their values; a bucket's middle represents its values.
pub const ERROR: f64 = 1.0 / 2048.0;

/// Significant digits that the cells keep apart.
const DIGITS: u8 = 3;

/// What a fresh histogram has cells for; larger values make it grow. A minute in nanoseconds.
const EXPECTED: u64 = 60_000_000_000;

/// The largest value that is counted as such; greater ones count as this. 146 years in nanoseconds.
const LARGEST: u64 = i64::MAX as u64 / 2;

/// Counts of whole numbers. Histograms of parts, merged in any order, give the histogram of the whole.
#[derive(Clone, Debug)]
pub struct Histogram {
    cells: Cells<u64>,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let mut cells = Cells::new_with_bounds(1, EXPECTED, DIGITS)
            .unwrap_or_else(|error| unreachable!("these bounds are valid: {error}"));
        cells.auto(true);
        Histogram {
            cells,
            sum: 0,
            squares: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Histogram {
    /// Counts a value a number of times.
    pub fn add(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let value = value.min(LARGEST);
        // Fails only where there is no memory address for the cell.
        if self.cells.record_n(value, times).is_err() {
            self.cells.saturating_record_n(value, times);
        }
        let (wide, times) = (u128::from(value), u128::from(times));
        let squares = match times {
            1 => wide * wide,
            times => (wide * wide).saturating_mul(times),
        };
        self.sum = self.sum.saturating_add(wide * times);
        self.squares = self.squares.saturating_add(squares);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all that another one has counted.
    pub fn merge(&mut self, other: &Histogram) {
        for cell in other.cells.iter_recorded() {
            let value = cell.value_iterated_to();
            let times = cell.count_at_value();
            if self.cells.record_n(value, times).is_err() {
                self.cells.saturating_record_n(value, times);
            }
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.cells.len()
    }

    /// The statistics, each value divided by `scale`; `None` if nothing was counted.
    pub fn counted(&self, scale: f64) -> Option<Counted> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let mut upto = 0;
        let cells = self.cells.iter_recorded().map(|cell| {
            upto += cell.count_at_value();
            let middle = self.cells.median_equivalent(cell.value_iterated_to());
            (upto, middle.clamp(self.min, self.max))
        });
        let n = u128::from(count);
        let (whole, rest) = (self.sum / n, self.sum % n);
        // The sum of squared distances to the whole part of the mean, in integers: nothing cancels.
        let about = self
            .squares
            .saturating_sub(whole.saturating_mul(self.sum.saturating_add(rest)));
        let part = rest as f64 / n as f64;
        let variance = (about as f64 / n as f64 - part * part).max(0.0);
        Some(Counted {
            count,
            mean: (whole as f64 + part) / scale,
            std: variance.sqrt() / scale,
            min: self.min as f64 / scale,
            max: self.max as f64 / scale,
            cells: cells.collect(),
            scale,
        })
    }
}

/// The statistics of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    count: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the population.
    pub std: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many values there are up to and with each cell, and the cell's value.
    cells: Vec<(u64, u64)>,
    scale: f64,
}

impl Ranked for Counted {
    fn count(&self) -> u64 {
        self.count
    }

    fn at(&self, rank: u64) -> f64 {
        let cell = self.cells.partition_point(|(upto, _)| *upto <= rank);
        let cell = cell.min(self.cells.len() - 1);
        // The first and the last are known exactly.
        match rank {
            0 => self.min,
            rank if rank + 1 >= self.count => self.max,
            _ => self.cells[cell].1 as f64 / self.scale,
        }
    }
}
