//! A figure of a run as the sum of its blocks: its value in any mixture of them.

use std::sync::Arc;

use crate::cells::Cells;

/// Samples that must lie on either side of a percentile for its interval to mean anything.
pub const TAIL: f64 = 5.0;
/// Blocks that the samples beyond a percentile must lie in.
const SPREAD: usize = 5;

#[derive(Clone, Debug)]
pub enum Decomposition {
    /// A sum over another: a mean, a share.
    Ratio(Vec<[f64; 2]>),
    /// Amounts over slices of the run's time, and the uncertainty of that time, as a share of it.
    Rate(Vec<[f64; 2]>, f64),
    Percentile(Arc<Cells>, f64),
}

impl Decomposition {
    /// The figure of the mixture in which each block occurs as often as `weights` states: sums over
    /// sums, or `np.percentile` of the mixture's samples. `None` if the mixture does not have it.
    pub fn mixed(&self, weights: &[u32]) -> Option<f64> {
        match self {
            Decomposition::Ratio(parts) | Decomposition::Rate(parts, _) => {
                let weighed = parts.iter().zip(weights).map(|([part, of], weight)| {
                    let weight = f64::from(*weight);
                    [part * weight, of * weight]
                });
                let [part, of] = weighed.fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d]);
                (of > 0.0).then(|| part / of)
            }
            Decomposition::Percentile(cells, percent) => cells.percentile(*percent, weights),
        }
    }

    /// Returns the share of the figure that chance at the run's end adds to its error.
    pub fn edge(&self) -> f64 {
        match self {
            Decomposition::Rate(_, edge) => *edge,
            Decomposition::Ratio(_) | Decomposition::Percentile(..) => 0.0,
        }
    }

    /// True if there are enough samples beyond it to compute an interval.
    pub fn is_supported(&self) -> bool {
        let Decomposition::Percentile(cells, percent) = self else { return true };
        let beyond = percent.min(100.0 - percent) / 100.0;
        // Equal to rounding: of 500 samples, 5 lie beyond the 99th percentile.
        cells.count() as f64 * beyond > TAIL - 1e-9
    }

    /// True if the samples beyond it lie in enough blocks to be more than the story of a few.
    pub fn is_spread(&self) -> bool {
        match self {
            Decomposition::Percentile(cells, percent) => cells.blocks_beyond(*percent) >= SPREAD,
            Decomposition::Ratio(_) | Decomposition::Rate(..) => true,
        }
    }
}
