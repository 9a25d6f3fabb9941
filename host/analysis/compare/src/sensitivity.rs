//! The variation of a figure from run to run beyond the variation of the engine's pace, because it
//! follows the load.
//!
//! By the clock of its steps, an engine whose steps all take 1 % longer is an engine to which
//! requests come 1 % faster. So where requests come by a rate, a figure changes by that 1 %, and
//! again by its change with 1 % more load: a fuller batch, longer queues. Where the engine's
//! answers decide the times of requests (a closed loop, or all at once), only the clock changes.
//!
//! The way in which a figure follows the load shows within a run. The load of a block of n requests
//! that come by chance varies by 1/√n. No figure follows the load more closely than its variation
//! from block to block shows. All of that variation is taken for the load's doing, though some is
//! not, such as the lengths of answers. A regression on the load would leave that out, and more. A
//! few bursts decide a queue's figure, and their after-effects reach across blocks. In the
//! laboratory, a regression finds a third of the sensitivity of a P99 of the TTFT. It calls equal
//! engines different in up to 12 of 100 comparisons instead of 2 (0.8 of capacity, pace varying by
//! 2 %).

use statistics::bootstrap::Draws;
use statistics::decomposition::Decomposition;
use statistics::variance;

/// The factor from the variation of the pace to a figure's from run to run, if the blocks show it.
/// `load` is the variation of the load between the run's blocks.
pub(super) fn sensitivity(draws: &Draws, taken: &Decomposition, load: f64) -> Option<f64> {
    // A rate cannot follow the load more closely than in proportion.
    if matches!(taken, Decomposition::Rate(..)) {
        return Some(1.0);
    }
    let logarithm = |weights: &[u32]| taken.mixed(weights).filter(|own| *own > 0.0).map(f64::ln);
    let parts = draws.parts(&logarithm)?;
    Some(1.0 + variance(&parts)?.sqrt() / load)
}
