//! Distributions as they travel between processes: the counts of cells that are not empty. A cell
//! travels as its distance from the cell before, in nanoseconds, so parts add up span by span.

use model::units::Nanos;
use serde::{Deserialize, Serialize};

use super::{Buckets, Cells};

/// The bits after a span's highest one that travel: all, so each cell is sent by itself.
pub const FINE: u32 = u64::BITS;
/// The same if there are too many cells: spans are then known to one digit.
pub const COARSE: u32 = 3;

/// Counts of time spans, cell by cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PackedCells {
    /// In turn, the distance to the next cell and its number of spans, from the shortest span on.
    cells: Vec<u64>,
    sum: Nanos,
    least: Nanos,
    most: Nanos,
}

/// Counts by fixed bounds, which both sides know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PackedBuckets {
    counts: Vec<u64>,
    sum: Nanos,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a distribution cannot be read: {0}")]
pub struct NotPacked(pub(in crate::live) &'static str);

/// The middle of the spans that have the same highest bit, and the same bits after it.
fn rounded(span: u64, bits: u32) -> u64 {
    let width = 1 << span.max(1).ilog2().saturating_sub(bits);
    span - span % width + width / 2
}

impl PackedCells {
    pub fn new(cells: &Cells, bits: u32) -> Self {
        if cells.cells.is_empty() {
            return PackedCells::default();
        }
        let (mut packed, mut at) = (Vec::<u64>::new(), 0);
        for seen in cells.cells.iter_recorded() {
            let span = cells.cells.lowest_equivalent(seen.value_iterated_to());
            let (span, count) = (rounded(span, bits), seen.count_at_value());
            match packed.last_mut() {
                Some(held) if span == at => *held = held.saturating_add(count),
                _ => packed.extend([span - at, count]),
            }
            at = span;
        }
        PackedCells {
            cells: packed,
            sum: Nanos(u64::try_from(cells.sum).unwrap_or(u64::MAX)),
            least: Nanos(cells.least),
            most: Nanos(cells.most),
        }
    }

    /// Adds its counts to other cells. After an error these may hold a part of it.
    pub fn add_to(&self, cells: &mut Cells) -> Result<(), NotPacked> {
        let (pairs, []) = self.cells.as_chunks::<2>() else {
            return Err(NotPacked("a count is missing"));
        };
        if pairs.is_empty() {
            return Ok(());
        }
        if self.least > self.most {
            return Err(NotPacked("its shortest span is longer than its longest"));
        }
        let mut at = 0_u64;
        for (place, [step, count]) in pairs.iter().enumerate() {
            if place > 0 && *step == 0 {
                return Err(NotPacked("a cell is repeated"));
            }
            at = at.checked_add(*step).ok_or(NotPacked("there is no such span"))?;
            if cells.cells.record_n(at, *count).is_err() {
                cells.cells.saturating_record_n(at, *count);
            }
        }
        cells.sum += u128::from(self.sum.0);
        cells.least = cells.least.min(self.least.0);
        cells.most = cells.most.max(self.most.0);
        Ok(())
    }
}

impl PackedBuckets {
    pub fn new(buckets: &Buckets) -> Self {
        PackedBuckets {
            counts: buckets.counts.clone(),
            sum: Nanos(u64::try_from(buckets.sum).unwrap_or(u64::MAX)),
        }
    }

    pub fn add_to(&self, buckets: &mut Buckets) -> Result<(), NotPacked> {
        if self.counts.len() != buckets.counts.len() {
            return Err(NotPacked("its bounds differ"));
        }
        for (held, more) in buckets.counts.iter_mut().zip(&self.counts) {
            *held = held.saturating_add(*more);
        }
        buckets.sum += u128::from(self.sum.0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::cells::ERROR;

    fn cells(spans: impl IntoIterator<Item = u64>) -> Cells {
        let mut cells = Cells::default();
        spans.into_iter().for_each(|span| cells.add(Nanos(span), 1));
        cells
    }

    /// Spans from nothing to the longest, three of each width.
    fn of_all_widths() -> impl Iterator<Item = u64> {
        (0..64).flat_map(|bits| [0, 1, 77].map(|more| (1_u64 << bits) + (1 << bits) / 100 * more))
    }

    #[test]
    fn packed_cells_survive_json() {
        let sent = cells(of_all_widths().filter(|span| *span < 1 << 56));
        let packed = PackedCells::new(&sent, FINE);
        let text = serde_json::to_string(&packed).unwrap();
        let read: PackedCells = serde_json::from_str(&text).unwrap();
        let mut there = Cells::default();
        read.add_to(&mut there).unwrap();
        assert_eq!(there.quantiles(), sent.quantiles());
        assert_eq!(PackedCells::new(&there, FINE), packed);
        let nothing = PackedCells::new(&Cells::default(), FINE);
        let mut still_nothing = Cells::default();
        nothing.add_to(&mut still_nothing).unwrap();
        assert_eq!(still_nothing.quantiles(), None);
    }

    #[test]
    fn packed_parts_add_up_to_the_whole() {
        let spans: Vec<u64> = (0..5_000).map(|i| 20_000 + i * i * 977).collect();
        let whole = cells(spans.iter().copied()).quantiles().unwrap();
        let mut together = Cells::default();
        for part in 0..4 {
            let own = cells(spans.iter().copied().skip(part).step_by(4));
            let packed = PackedCells::new(&own, FINE);
            packed.add_to(&mut together).unwrap();
        }
        assert_eq!(together.quantiles().unwrap(), whole);
    }

    #[test]
    fn coarse_cells_are_few_and_precise_to_one_digit() {
        let sent = cells((0..200_000).map(|i| 1_000 + i * i));
        let [fine, coarse] = [FINE, COARSE].map(|bits| PackedCells::new(&sent, bits));
        assert!(coarse.cells.len() * 8 < fine.cells.len());
        let mut there = Cells::default();
        coarse.add_to(&mut there).unwrap();
        let (exact, seen) = (sent.quantiles().unwrap(), there.quantiles().unwrap());
        assert_eq!(
            (seen.count, seen.mean_ms, seen.max_ms),
            (exact.count, exact.mean_ms, exact.max_ms)
        );
        for (seen, exact) in
            [(seen.p50_ms, exact.p50_ms), (seen.p90_ms, exact.p90_ms), (seen.p99_ms, exact.p99_ms)]
        {
            let apart = (seen - exact).abs() / exact;
            assert!(apart < 16.0 * ERROR + 0.01, "{seen} for {exact}");
        }
    }

    #[test]
    fn malformed_distribution_is_refused() {
        let good = PackedCells {
            cells: vec![3, 1],
            sum: Nanos(1_600),
            least: Nanos(1_600),
            most: Nanos(1_600),
        };
        let mut cells = Cells::default();
        good.add_to(&mut cells).unwrap();
        for wrong in [vec![3], vec![u64::MAX, 1, 5, 1], vec![3, 1, 0, 1]] {
            let wrong = PackedCells { cells: wrong, ..good.clone() };
            assert!(wrong.add_to(&mut Cells::default()).is_err(), "{wrong:?}");
        }
        let mut buckets = Buckets::new(&[Nanos(5)]);
        let other = PackedBuckets { counts: vec![1], sum: Nanos(1) };
        assert!(other.add_to(&mut buckets).is_err());
    }
}
