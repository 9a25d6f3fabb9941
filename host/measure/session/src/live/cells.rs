//! Distributions for display during a run: of the whole run, of its last seconds, and in fixed
//! buckets. Each consists of counts, so that parts can be merged, and takes the same memory however
//! many samples there are.
//!
//! They are coarser than the result's (`statistics`), which come from the records.

pub mod packed;

use hdrhistogram::Histogram;

use model::units::Nanos;

/// Largest relative error of a percentile: half a cell of two significant digits.
pub const ERROR: f64 = 1.0 / 256.0;

/// The length of the recent past in seconds.
pub const RECENT_S: u64 = 10;

/// Significant digits that cells keep apart.
const DIGITS: u8 = 2;

/// Differences below this are ignored, in nanoseconds: no latency is below a microsecond.
const FINEST: u64 = 1_000;

/// The range of fresh cells; larger values make them grow. A minute in nanoseconds.
const EXPECTED: u64 = 60_000_000_000;

#[derive(Clone, Debug)]
pub struct Cells {
    cells: Histogram<u64>,
    sum: u128,
    least: u64,
    most: u64,
}

impl Default for Cells {
    fn default() -> Self {
        let mut cells = Histogram::new_with_bounds(FINEST, EXPECTED, DIGITS)
            .unwrap_or_else(|error| unreachable!("these bounds are valid: {error}"));
        cells.auto(true);
        Cells { cells, sum: 0, least: u64::MAX, most: 0 }
    }
}

impl Cells {
    /// Counts a span this many times.
    pub fn add(&mut self, span: Nanos, times: u64) {
        if self.cells.record_n(span.0, times).is_err() {
            self.cells.saturating_record_n(span.0, times);
        }
        self.sum += u128::from(span.0) * u128::from(times);
        self.least = self.least.min(span.0);
        self.most = self.most.max(span.0);
    }

    pub fn merge(&mut self, other: &Cells) {
        // Fails only where cells may not grow.
        let _ = self.cells.add(&other.cells);
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.most = self.most.max(other.most);
    }

    fn clear(&mut self) {
        self.cells.reset();
        (self.sum, self.least, self.most) = (0, u64::MAX, 0);
    }

    /// The summary; nothing if nothing was counted.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let count = self.cells.len();
        if count == 0 {
            return None;
        }
        let percentile = |percent: f64| {
            let cell = self.cells.value_at_quantile(percent / 100.0);
            let middle = self.cells.median_equivalent(cell);
            Nanos(middle.clamp(self.least, self.most)).as_millis_f64()
        };
        Some(Quantiles {
            count,
            mean_ms: self.sum as f64 / count as f64 / 1e6,
            p50_ms: percentile(50.0),
            p90_ms: percentile(90.0),
            p99_ms: percentile(99.0),
            max_ms: Nanos(self.most).as_millis_f64(),
        })
    }
}

/// A summary of a distribution: percentiles within [`ERROR`] of the samples', exact otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

/// A distribution over time: cells for each of the last seconds, and for all before. The oldest
/// second becomes part of the past when a new one begins.
#[derive(Clone, Debug)]
pub struct Seconds {
    last: [Second; RECENT_S as usize],
    past: Cells,
}

#[derive(Clone, Debug, Default)]
struct Second {
    number: u64,
    cells: Cells,
}

#[derive(Clone, Debug, Default)]
pub struct Distribution {
    pub recent: Cells,
    pub whole: Cells,
}

impl Default for Seconds {
    fn default() -> Self {
        Seconds { last: std::array::from_fn(|_| Second::default()), past: Cells::default() }
    }
}

impl Seconds {
    pub fn add(&mut self, at: Nanos, span: Nanos, times: u64) {
        let number = second(at);
        let held = &mut self.last[(number % RECENT_S) as usize];
        if number > held.number {
            self.past.merge(&held.cells);
            held.cells.clear();
            held.number = number;
        }
        // A late span's second has passed.
        let cells = if number == held.number { &mut held.cells } else { &mut self.past };
        cells.add(span, times);
    }

    /// The seconds until now, including the present one, and all there is.
    pub fn at(&self, now: Nanos) -> Distribution {
        let now = second(now);
        let (mut recent, mut whole) = (Cells::default(), self.past.clone());
        for held in &self.last {
            if held.number <= now && held.number + RECENT_S > now {
                recent.merge(&held.cells)
            } else {
                whole.merge(&held.cells)
            }
        }
        whole.merge(&recent);
        Distribution { recent, whole }
    }
}

fn second(at: Nanos) -> u64 {
    at.0 / 1_000_000_000
}

/// Counts by fixed upper bounds, exact at each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buckets {
    bounds: &'static [Nanos],
    counts: Vec<u64>,
    sum: u128,
}

impl Buckets {
    /// With these bounds, which ascend; beyond the last there is one bucket more.
    pub fn new(bounds: &'static [Nanos]) -> Self {
        Buckets { bounds, counts: vec![0; bounds.len() + 1], sum: 0 }
    }

    /// Counts a span this many times.
    pub fn add(&mut self, span: Nanos, times: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < span);
        self.counts[bucket] += times;
        self.sum += u128::from(span.0) * u128::from(times);
    }

    /// Returns the number of samples in each bucket, by its upper bound in seconds.
    pub fn each(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bounds = self.bounds.iter().map(|bound| bound.as_secs_f64());
        bounds.chain([f64::INFINITY]).zip(self.counts.iter().copied())
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub(crate) fn sum_s(&self) -> f64 {
        self.sum as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::{Ranked, Sorted};

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;

    /// Spans over four orders of magnitude, in no order.
    fn spans(count: u64) -> impl Iterator<Item = Nanos> {
        (0..count).map(move |i| {
            let share = (i * 7_919 % count) as f64 / count as f64;
            Nanos((10f64.powf(4.0 * share) * 20_000.0) as u64)
        })
    }

    #[test]
    fn percentiles_are_within_their_bound_of_the_samples() {
        let mut cells = Cells::default();
        spans(5_000).for_each(|span| cells.add(span, 1));
        let seen = cells.quantiles().unwrap();
        let sorted = Sorted::new(spans(5_000).map(Nanos::as_millis_f64).collect()).unwrap();
        for (percent, figure) in [(50.0, seen.p50_ms), (90.0, seen.p90_ms), (99.0, seen.p99_ms)] {
            let exact = sorted.percentile(percent);
            // A cell's half, and a rank's step between two of the samples.
            let apart = (figure - exact).abs() / exact;
            assert!(apart < ERROR + 0.002, "P{percent}: {figure} for {exact}");
        }
        assert!((seen.mean_ms - sorted.mean()).abs() < 1e-9 * sorted.mean());
        assert_eq!((seen.count, seen.max_ms), (5_000, sorted.max()));
    }

    #[test]
    fn parts_merged_are_the_whole() {
        let (mut whole, mut parts) = (Cells::default(), [Cells::default(), Cells::default()]);
        for (number, span) in spans(1_000).chain([Nanos(90 * 60 * SECOND)]).enumerate() {
            whole.add(span, 2);
            parts[number % 2].add(span, 2);
        }
        let [mut one, other] = parts;
        one.merge(&other);
        assert_eq!(one.quantiles(), whole.quantiles());
    }

    #[test]
    fn empty_cells_have_no_summary() {
        assert_eq!(Cells::default().quantiles(), None);
        let nothing = Seconds::default().at(Nanos(7));
        assert_eq!((nothing.recent.quantiles(), nothing.whole.quantiles()), (None, None));
    }

    #[test]
    fn recent_cells_expire_total_cells_stay() {
        let mut seconds = Seconds::default();
        seconds.add(Nanos(0), Nanos(5 * MS), 1);
        seconds.add(Nanos(SECOND), Nanos(7 * MS), 2);
        let counts = |seconds: &Seconds, at: u64| {
            let seen = seconds.at(Nanos(at * SECOND));
            let count = |cells: Cells| cells.quantiles().map_or(0, |seen| seen.count);
            (count(seen.recent), count(seen.whole))
        };
        let seen = [1, 9, 10, 11].map(|at| counts(&seconds, at));
        assert_eq!(seen, [(3, 3), (3, 3), (2, 3), (0, 3)]);
        // The twelfth second takes the second's place, so late values of the second are dropped.
        seconds.add(Nanos(11 * SECOND), Nanos(9 * MS), 1);
        seconds.add(Nanos(SECOND), Nanos(11 * MS), 1);
        assert_eq!(counts(&seconds, 11), (1, 5));
        let seen = seconds.at(Nanos(11 * SECOND));
        let (recent, whole) = (seen.recent.quantiles(), seen.whole.quantiles());
        let (recent, whole) = (recent.unwrap(), whole.unwrap());
        assert_eq!((recent.p50_ms, recent.max_ms), (9.0, 9.0));
        assert_eq!((whole.mean_ms, whole.max_ms), (7.8, 11.0));
    }

    #[test]
    fn bucket_bounds_are_inclusive() {
        static BOUNDS: [Nanos; 2] = [Nanos(10), Nanos(20)];
        let mut buckets = Buckets::new(&BOUNDS);
        for (span, times) in [(10, 1), (11, 2), (20, 3), (21, 4)] {
            buckets.add(Nanos(span), times);
        }
        let counts: Vec<u64> = buckets.each().map(|(_, count)| count).collect();
        assert_eq!(counts, [1, 5, 4]);
        assert_eq!(buckets.each().last().unwrap().0, f64::INFINITY);
        assert_eq!((buckets.count(), buckets.sum_s()), (10, 176e-9));
    }
}
