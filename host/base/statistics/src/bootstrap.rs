//! The difference of two runs by resampling their blocks.
//!
//! Both runs are cut into the same number of blocks, and a resample draws blocks by their place in
//! the run: the same places of both. The common part of the two at a place (the prompts, the
//! arrivals, the length of the queue by then) is no difference between them. So the interval does
//! not include it either. If nothing is in common, this is the two-sample bootstrap. The
//! bootstrapped quantity is the ratio of the two figures. The interval is as asymmetric as the
//! percentile bootstrap's. It is widened for the small number of blocks with Student's quantile
//! (Hesterberg 2015, "What teachers should know about the bootstrap"), and for the dependence
//! between blocks ([`dependence`]). Rates are over the run's time, which ends when the last answer
//! happens to end; blocks do not show that, so it is added ([`Decomposition::edge`]). The variation
//! of whole runs from one to the next ([`RunVariation`]) is added too.

use rand_mt::Mt64;

use crate::decomposition::Decomposition;
use crate::difference::{Estimate, RunVariation, StandardError};
use crate::interval::{Interval, LEVEL};
use crate::{Ranked, Sorted, dependence, student};

pub const RESAMPLES: usize = 2000;
const SEED: u64 = 0x636f_6d70;

/// The blocks that resamples contain, with their counts, for runs of a given number of blocks.
#[derive(Clone, Debug)]
pub struct Draws {
    weights: Vec<Vec<u32>>,
    blocks: usize,
    are_turns: bool,
}

impl Draws {
    /// The draws, with replacement (Efron 1979, "Bootstrap methods"), by the Mersenne Twister with
    /// one seed: the same for the same number of blocks.
    pub fn new(blocks: usize) -> Self {
        let mut random = Mt64::new(SEED);
        let draw = |_| {
            let mut weights = vec![0; blocks];
            for _ in 0..blocks {
                let block = ((random.next_u64() >> 32) * blocks as u64) >> 32;
                weights[block as usize] += 1;
            }
            weights
        };
        Draws { weights: (0..RESAMPLES).map(draw).collect(), blocks, are_turns: false }
    }

    /// The draws of turns that two sides took one after the other. Work in flight does not cross
    /// the ends of turns, and the sides share slow changes, so differences of turns depend on their
    /// neighbours only where this shows ([`dependence::of_turns`]).
    pub fn of_turns(turns: usize) -> Self {
        Draws { are_turns: true, ..Draws::new(turns) }
    }

    /// The difference of one run per side, with each figure decomposed by block; `means` are the
    /// means of the figure's metric, which show whether it walks. `None` if too many resamples lack
    /// the figure. Assumes that blocks are alike, except for the dependence that is corrected for.
    pub fn estimate(
        &self,
        [a, b]: [&Decomposition; 2],
        means: Option<[&Decomposition; 2]>,
        figures: [f64; 2],
        varies: Option<RunVariation>,
    ) -> Option<Estimate> {
        let [baseline, value] = figures;
        // A slower side is slower in proportion, early in a queue and late: the ratio of both is
        // steadier over a run than their difference.
        let in_proportion = baseline > 0.0;
        let apart = |weights: &[u32]| {
            let (a, b) = (a.mixed(weights)?, b.mixed(weights)?);
            if in_proportion { (a > 0.0).then(|| b / a - 1.0) } else { Some(b - a) }
        };
        let drawn: Vec<f64> = (self.weights.iter()).filter_map(|weights| apart(weights)).collect();
        if drawn.len() < RESAMPLES / 2 {
            return None;
        }
        let whole = apart(&vec![1; self.blocks])?;
        let drawn = Sorted::new(drawn)?;
        let blocks = self.blocks as f64;
        let parts = self.parts(&apart)?;
        let (factor, freedom) = match self.are_turns {
            true => dependence::of_turns(&parts),
            false => dependence::inflation(&parts),
        };
        let mut sure = StandardError {
            error: drawn.std() * (factor * blocks / (blocks - 1.0)).sqrt(),
            freedom,
        };
        let walk = means.and_then(walk).filter(|_| in_proportion && !self.are_turns);
        if let Some(error) = walk {
            sure = StandardError { error: error.max(sure.error), freedom: dependence::WALKING };
        }
        let (unit, edge) =
            if in_proportion { (baseline, a.edge().hypot(b.edge())) } else { (1.0, 0.0) };
        let within = sure.error.hypot(edge);
        let joint = StandardError { error: within, ..sure };
        let varies = varies.filter(|_| in_proportion);
        let joint = match varies {
            Some(varies) => varies.beside(joint),
            None => joint,
        };
        // The share of the error from the run-to-run variation and the end.
        let added = (joint.error.powi(2) - sure.error.powi(2)).max(0.0).sqrt();
        let outside = 1.0 - LEVEL / 100.0;
        let quantile = student::quantile(outside, joint.freedom);
        let away = quantile * sure.error;
        let low = whole - drawn.percentile(100.0 * outside / 2.0);
        let high = drawn.percentile(100.0 * (1.0 - outside / 2.0)) - whole;
        // As lopsided as the resamples are, and as wide as it must be.
        let usual = student::quantile(outside, f64::INFINITY) * drawn.std();
        let wider = if usual > 0.0 { away / usual } else { 1.0 };
        let reach = |by: f64| unit * (wider * by.max(0.0)).hypot(quantile * added);
        let difference = value - baseline;
        let sure = StandardError { error: unit * joint.error, ..joint };
        Some(Estimate {
            interval: Interval { low: difference - reach(low), high: difference + reach(high) },
            sure,
            probability: sure.probability(difference),
            run_variation: varies.map(|varies| varies.share),
            walks: walk.is_some(),
        })
    }

    /// Computes the part that each block adds to a figure, by leaving it out: the pseudo-values of
    /// the jackknife (Tukey 1958, "Bias and confidence in not quite large samples"). `None` if the
    /// run as a whole does not have the figure.
    pub fn parts(&self, figure: &impl Fn(&[u32]) -> Option<f64>) -> Option<Vec<f64>> {
        let blocks = self.blocks as f64;
        let whole = figure(&vec![1; self.blocks])?;
        let without = |left: usize| {
            let weights: Vec<u32> =
                (0..self.blocks).map(|block| u32::from(block != left)).collect();
            figure(&weights).unwrap_or(whole)
        };
        let parts = (0..self.blocks).map(|block| blocks * whole - (blocks - 1.0) * without(block));
        Some(parts.collect())
    }
}

/// The standard error of a walk, if two sides' means by block are one.
fn walk([a, b]: [&Decomposition; 2]) -> Option<f64> {
    let (Decomposition::Ratio(a), Decomposition::Ratio(b)) = (a, b) else { return None };
    // A block in which nothing was measured, as where all failed, has no mean.
    let both = a.iter().zip(b).filter(|(a, b)| a[1] > 0.0 && b[1] > 0.0);
    let (a, b): (Vec<f64>, Vec<f64>) = both.map(|(a, b)| (a[0] / a[1], b[0] / b[1])).unzip();
    (a.len() > 4).then(|| dependence::walk(&a, &b))?
}
