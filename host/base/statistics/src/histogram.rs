//! A histogram of whole numbers, which holds the distribution of any number of samples.
//!
//! Count, mean, deviation, minimum and maximum are exact. A percentile comes from the buckets,
//! which are narrow relative to their values (HDR histogram): it is within [`ERROR`] of NumPy's.

use super::Ranked;

/// The most by which a percentile may differ from the samples' percentile, as a share of it. Three
/// significant digits make buckets of at most 1/1024 of their values; a bucket's middle represents
/// its values.
pub const ERROR: f64 = 1.0 / 2048.0;

/// Leading bits of a value that its cell keeps: three significant digits take 2,000 different ones.
const BITS: u32 = 11;
/// Cells of each power of two, but for the values that all have cells of their own.
const HALF: usize = 1 << (BITS - 1);

/// The largest value that is counted as such; greater ones count as this. 146 years in nanoseconds.
const LARGEST: u64 = i64::MAX as u64 / 2;

/// Counts of whole numbers. Histograms of parts, merged in any order, give the histogram of the
/// whole.
#[derive(Clone, Debug)]
pub struct Histogram {
    cells: Cells,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { cells: Cells::default(), sum: 0, squares: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    pub fn add(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        let value = value.min(LARGEST);
        self.cells.add(Cells::cell(value), times);
        let wide = u128::from(value);
        let (sum, squares) = match times {
            1 => (wide, wide * wide),
            times => {
                let times = u128::from(times);
                (wide * times, (wide * wide).saturating_mul(times))
            }
        };
        self.sum = self.sum.saturating_add(sum);
        self.squares = self.squares.saturating_add(squares);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (cell, times) in other.cells.taken() {
            self.cells.add(cell, times);
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.cells.total
    }

    /// The statistics, each value divided by `scale`; `None` if nothing was counted. Mean and
    /// deviation (divided by n, as `np.std`) follow from whole numbers, in which nothing cancels.
    pub fn counted(&self, scale: f64) -> Option<Statistics> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let mut upto = 0;
        let cells = self.cells.taken().map(|(cell, times)| {
            upto += times;
            (upto, Cells::middle(cell).clamp(self.min, self.max))
        });
        let n = u128::from(count);
        let (whole, rest) = (self.sum / n, self.sum % n);
        // The sum of squared distances to the whole part of the mean, in integers: nothing cancels.
        let about =
            self.squares.saturating_sub(whole.saturating_mul(self.sum.saturating_add(rest)));
        let part = rest as f64 / n as f64;
        let variance = (about as f64 / n as f64 - part * part).max(0.0);
        Some(Statistics {
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

/// The number of values of each cell. The cells are the cells of an HDR histogram of three
/// significant digits (Gil Tene, HdrHistogram); a test compares them. A run counts every event
/// several times, and this takes a quarter of the time of the crate of that name.
#[derive(Clone, Debug, Default)]
struct Cells {
    counts: Vec<u64>,
    total: u64,
}

impl Cells {
    #[inline]
    fn cell(value: u64) -> usize {
        // The number of its last bits that do not count.
        let dropped = (u64::BITS - BITS) - (value | ((1 << BITS) - 1)).leading_zeros();
        dropped as usize * HALF + (value >> dropped) as usize
    }

    fn middle(cell: usize) -> u64 {
        let dropped = (cell / HALF).saturating_sub(1);
        let lowest = ((cell - dropped * HALF) as u64) << dropped;
        lowest + (1 << dropped) / 2
    }

    #[inline]
    fn add(&mut self, cell: usize, times: u64) {
        if cell >= self.counts.len() {
            self.grow(cell);
        }
        let count = &mut self.counts[cell];
        *count = count.saturating_add(times);
        self.total = self.total.saturating_add(times);
    }

    #[cold]
    fn grow(&mut self, cell: usize) {
        self.counts.resize((cell / HALF + 1) * HALF, 0);
    }

    /// The cells that hold any value, in order, and the number in each.
    fn taken(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|(_, times)| *times > 0)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    count: u64,
    pub mean: f64,
    /// The standard deviation of the population.
    pub std: f64,
    pub min: f64,
    pub max: f64,
    /// The number of values up to and with each cell, and the cell's value.
    cells: Vec<(u64, u64)>,
    scale: f64,
}

impl Ranked for Statistics {
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

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram as Theirs;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..63u32).prop_map(|(value, shift)| (value >> 1 >> shift).min(LARGEST))
    }

    proptest! {
        #[test]
        fn cells_are_those_of_an_hdr_histogram(values in prop::collection::vec((value(), 1..5u64), 1..100)) {
            let mut theirs = Theirs::<u64>::new_with_bounds(1, 60_000_000_000, 3).unwrap();
            theirs.auto(true);
            let mut ours = Histogram::default();
            for (value, times) in values {
                theirs.record_n(value, times).unwrap();
                ours.add(value, times);
            }
            let mut upto = 0;
            let cells: Vec<(u64, u64)> = theirs
                .iter_recorded()
                .map(|cell| {
                    upto += cell.count_at_value();
                    let middle = theirs.median_equivalent(cell.value_iterated_to());
                    (upto, middle.clamp(ours.min, ours.max))
                })
                .collect();
            prop_assert_eq!(ours.count(), theirs.len());
            prop_assert_eq!(ours.counted(1.0).unwrap().cells, cells);
        }
    }
}
