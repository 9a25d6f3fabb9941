//! The difference of two sides in a figure, and its certainty.
//!
//! **One run per side.** Both runs are cut into the same number of blocks, and a resample draws
//! blocks by their place in the run: the same places of both. What the two have in common at a
//! place (the prompts, the arrivals, how full the queue is by then) is no difference between them,
//! and so the interval does not include it either. If nothing is in common, this is the two-sample
//! bootstrap. The bootstrapped quantity is the ratio of the two figures. The interval is as
//! asymmetric as the percentile bootstrap's, widened for the small number of blocks with Student's
//! quantile (Hesterberg 2015, "What teachers should know about the bootstrap"), and for the
//! dependence between blocks (`dependence`). Rates are over the run's time, which ends when the
//! last answer happens to end; blocks do not show that, so it is added (`Decomposed::edge`). So is how
//! much whole runs vary from one to the next (`variation`).
//!
//! **Several runs per side.** What counts is how much runs of the same scenario vary. Intervals are
//! Student's, over one value per run. A permutation test would not assume a distribution, but three
//! runs against three allow only twenty permutations: it could never show anything at 5 %.

use rand_mt::Mt64;

use crate::decomposed::Decomposed;
use crate::interval::{Interval, LEVEL};
use crate::{Ranked, Sorted, dependence, student};

/// The number of resamples for an interval.
pub const RESAMPLES: usize = 2000;
const SEED: u64 = 0x636f_6d70;
/// Differences below this share of the figure are due to rounding.
const ROUNDING: f64 = 1e-9;

/// The difference of two sides, and its certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The 95 % confidence interval of the difference.
    pub interval: Interval,
    /// The standard error of the difference, and how well it is known.
    pub sure: Sure,
    /// The p-value: how likely a difference this large is if there is none.
    pub probability: f64,
    /// The standard deviation from run to run that is in the error beside what a run's blocks show,
    /// as a share of the figure.
    pub run_variation: Option<f64>,
    /// True if the metric walks through the run, so that the run is one sample of it.
    pub walks: bool,
}

/// The blocks that resamples contain, and how often, for runs of a given number of blocks.
#[derive(Clone, Debug)]
pub struct Draws {
    weights: Vec<Vec<u32>>,
    blocks: usize,
}

impl Draws {
    /// The draws, the same for the same number of blocks.
    pub fn of(blocks: usize) -> Self {
        let mut random = Mt64::new(SEED);
        let draw = |_| {
            let mut weights = vec![0; blocks];
            for _ in 0..blocks {
                let block = ((random.next_u64() >> 32) * blocks as u64) >> 32;
                weights[block as usize] += 1;
            }
            weights
        };
        Draws {
            weights: (0..RESAMPLES).map(draw).collect(),
            blocks,
        }
    }

    /// For one run per side, with each figure decomposed by block; `means` are those of the
    /// figure's metric, which show whether it walks. `None` if too many resamples lack the figure.
    pub fn estimate(
        &self,
        [a, b]: [&Decomposed; 2],
        means: Option<[&Decomposed; 2]>,
        figures: [f64; 2],
        varies: Option<Varies>,
    ) -> Option<Estimate> {
        let [baseline, value] = figures;
        // What one side is slower by, it is slower by in proportion, early in a queue and late: the
        // ratio of both is steadier over a run than their difference.
        let in_proportion = baseline > 0.0;
        let apart = |weights: &[u32]| {
            let (a, b) = (a.of(weights)?, b.of(weights)?);
            match in_proportion {
                true => (a > 0.0).then(|| b / a - 1.0),
                false => Some(b - a),
            }
        };
        let drawn: Vec<f64> = (self.weights.iter())
            .filter_map(|weights| apart(weights))
            .collect();
        if drawn.len() < RESAMPLES / 2 {
            return None;
        }
        let whole = apart(&vec![1; self.blocks])?;
        let drawn = Sorted::new(drawn)?;
        let blocks = self.blocks as f64;
        let (factor, freedom) = dependence::inflation(&self.parts(&apart)?);
        let mut sure = Sure {
            error: drawn.std() * (factor * blocks / (blocks - 1.0)).sqrt(),
            freedom,
        };
        let walk = means.and_then(walk).filter(|_| in_proportion);
        if let Some(error) = walk {
            sure = Sure {
                error: error.max(sure.error),
                freedom: dependence::WALKING,
            };
        }
        let (unit, edge) = match in_proportion {
            true => (baseline, a.edge().hypot(b.edge())),
            false => (1.0, 0.0),
        };
        let within = sure.error.hypot(edge);
        let joint = Sure {
            error: within,
            ..sure
        };
        let varies = varies.filter(|_| in_proportion);
        let joint = match varies {
            Some(varies) => varies.beside(joint),
            None => joint,
        };
        // What the run-to-run variation and the end add to the error.
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
        let sure = Sure {
            error: unit * joint.error,
            ..joint
        };
        Some(Estimate {
            interval: Interval {
                low: difference - reach(low),
                high: difference + reach(high),
            },
            sure,
            probability: sure.probability(difference),
            run_variation: varies.map(|varies| varies.share),
            walks: walk.is_some(),
        })
    }

    /// Computes the part that each block adds to a figure, by leaving it out: the pseudo-values of
    /// the jackknife. `None` if the run as a whole does not have the figure.
    pub fn parts(&self, figure: &impl Fn(&[u32]) -> Option<f64>) -> Option<Vec<f64>> {
        let blocks = self.blocks as f64;
        let whole = figure(&vec![1; self.blocks])?;
        let without = |left: usize| {
            let weights: Vec<u32> = (0..self.blocks)
                .map(|block| u32::from(block != left))
                .collect();
            figure(&weights).unwrap_or(whole)
        };
        let parts = (0..self.blocks).map(|block| blocks * whole - (blocks - 1.0) * without(block));
        Some(parts.collect())
    }
}

/// The standard error of a walk, if two sides' means by block are one.
fn walk([a, b]: [&Decomposed; 2]) -> Option<f64> {
    let (Decomposed::Ratio(a), Decomposed::Ratio(b)) = (a, b) else {
        return None;
    };
    // A block in which nothing was measured, as where all failed, has no mean.
    let both = a.iter().zip(b).filter(|(a, b)| a[1] > 0.0 && b[1] > 0.0);
    let (a, b): (Vec<f64>, Vec<f64>) = both.map(|(a, b)| (a[0] / a[1], b[0] / b[1])).unzip();
    (a.len() > 4).then(|| dependence::walk(&a, &b))?
}

impl Estimate {
    /// The smallest true difference that nine of ten such comparisons find at 5 %.
    pub fn detectable(&self) -> f64 {
        let found = student::quantile(1.0 - LEVEL / 100.0, self.sure.freedom);
        // One in ten lies further below its mean than this, on one side.
        let nine_of_ten = student::quantile(0.2, self.sure.freedom);
        (found + nine_of_ten) * self.sure.error
    }

    /// True if the difference is surely smaller than a limit, by two one-sided tests at 5 %.
    pub fn is_within(&self, difference: f64, limit: f64) -> bool {
        let away = student::quantile(2.0 * (1.0 - LEVEL / 100.0), self.sure.freedom);
        difference.abs() + away * self.sure.error <= limit
    }
}

/// The variation of one figure from run to run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Varies {
    /// The standard deviation of one run, as a share of the figure.
    pub share: f64,
    /// The degrees of freedom with which it is known; infinite if it is assumed.
    pub freedom: f64,
    /// True if it contains the variation that the blocks of a run show too.
    pub is_whole: bool,
}

impl Varies {
    /// The same, of a figure that varies that many times as much as what is assumed. What repeats
    /// show is of the figure itself.
    #[must_use]
    pub fn times(self, sensitivity: f64) -> Self {
        if self.is_whole {
            return self;
        }
        Varies {
            share: self.share * sensitivity,
            ..self
        }
    }

    /// The standard error of two runs that vary so, given the one from within them.
    fn beside(self, within: Sure) -> Sure {
        let between = Sure {
            error: self.share * 2.0_f64.sqrt(),
            freedom: self.freedom,
        };
        if !self.is_whole {
            return Sure {
                error: within.error.hypot(between.error),
                freedom: within.joint_freedom(between),
            };
        }
        // What repeats show contains what the blocks show, and is known no better than by so many
        // repeats.
        Sure {
            error: within.error.max(between.error),
            freedom: within.freedom.min(between.freedom),
        }
    }
}

/// A standard error, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sure {
    /// The standard error.
    pub error: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
}

impl Sure {
    /// The degrees of freedom of the sum of two independent errors (Welch and Satterthwaite).
    fn joint_freedom(self, other: Sure) -> f64 {
        let (ours, theirs) = (self.error.powi(2), other.error.powi(2));
        if ours + theirs == 0.0 {
            return self.freedom;
        }
        let spread = ours * ours / self.freedom + theirs * theirs / other.freedom;
        (ours + theirs).powi(2) / spread
    }

    /// The p-value: how likely a difference this large is if there is none.
    fn probability(self, difference: f64) -> f64 {
        if difference == 0.0 {
            return 1.0;
        }
        student::two_sided(difference.abs() / self.error, self.freedom)
    }
}

/// For sides of which at least one has several runs, with one value per run; `None` if neither has.
/// A side of one run is assumed to vary as the other does.
pub fn between_runs(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let (many, more) = (a.len() as f64, b.len() as f64);
    let difference = mean(b) - mean(a);
    let (error, freedom) = match (variance(a), variance(b)) {
        (Some(va), Some(vb)) => {
            let (ea, eb) = (va / many, vb / more);
            let freedom = match a.len() == b.len() {
                // Where sides have as many runs, the t test keeps its level though they vary
                // differently, and one degree of freedom more matters with so few.
                true => many + more - 2.0,
                // Welch and Satterthwaite.
                false if ea + eb > 0.0 => {
                    let spread = ea * ea / (many - 1.0) + eb * eb / (more - 1.0);
                    (ea + eb) * (ea + eb) / spread
                }
                false => many + more - 2.0,
            };
            ((ea + eb).sqrt(), freedom)
        }
        (Some(variance), None) if !b.is_empty() => {
            ((variance * (1.0 + 1.0 / many)).sqrt(), many - 1.0)
        }
        (None, Some(variance)) if !a.is_empty() => {
            ((variance * (1.0 + 1.0 / more)).sqrt(), more - 1.0)
        }
        _ => return None,
    };
    let away = student::quantile(1.0 - LEVEL / 100.0, freedom) * error;
    Some(Estimate {
        interval: Interval {
            low: difference - away,
            high: difference + away,
        },
        sure: Sure { error, freedom },
        probability: Sure { error, freedom }.probability(difference),
        run_variation: None,
        walks: false,
    })
}

/// The interval of the mean of several runs' values; `None` of fewer than two.
pub fn of_runs(values: &[f64]) -> Option<Interval> {
    let many = values.len() as f64;
    let error = (variance(values)? / many).sqrt();
    let away = student::quantile(1.0 - LEVEL / 100.0, many - 1.0) * error;
    let mean = mean(values);
    Some(Interval {
        low: mean - away,
        high: mean + away,
    })
}

/// True if two figures are the same but for rounding.
pub fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

/// The arithmetic mean; not a number of no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance, divided by n - 1; `None` of fewer than two.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// Says of each of several differences if it is shown, by their p-values: Benjamini and Hochberg's
/// procedure at 5 %. If no figure differs, it shows any in 5 of 100 comparisons, however many
/// figures there are; if many differ, 5 % of those shown are false.
pub fn shown(probabilities: &[f64]) -> Vec<bool> {
    let level = 1.0 - LEVEL / 100.0;
    let mut sorted: Vec<f64> = probabilities.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let many = sorted.len() as f64;
    let limit = (1..)
        .zip(&sorted)
        .filter(|(rank, p)| **p <= level * f64::from(*rank) / many)
        .map(|(_, p)| *p)
        .last();
    let is_shown = |p: &f64| limit.is_some_and(|limit| *p <= limit);
    probabilities.iter().map(is_shown).collect()
}
