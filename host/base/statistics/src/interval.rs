//! 95 % confidence intervals of one run's figures, from samples that depend on each other.
//!
//! **Means** rest on the means of blocks of consecutive requests (`blocks`), with the remaining
//! dependence between blocks corrected for (`dependence`). Student's quantile is adjusted for their
//! skewness (Willink 2005, "A confidence interval and test for the mean of an asymmetric
//! distribution", as in Tafazzoli and Wilson's Skart, 2011).
//!
//! **Percentiles** lie between order statistics. The rank of a percentile has a binomial
//! distribution; dependent samples are worth fewer independent ones, by the design effect of being
//! above it. An end that no sample bounds is infinite, and a percentile that no sample bounds, or
//! beyond which less than half an independent sample is expected, has no interval.
//!
//! **Waiting is rare and comes in bursts.** A run may hold none of the bursts that another one
//! does, and then nothing in its times to first token shows that. The number of requests in flight
//! does show the changes of the load itself: with n independent loads, a share of loads may be of a
//! kind that none of them is. The upper end of such a metric's mean allows for that share, with
//! waits as long as the longest seen, and no shorter than the time between two answers' ends. Where
//! the batch is full, a request waits at least for the next end.
//!
//! The share of runs whose intervals hold the truth is measured: `host/benches/statistics`.

use super::beta::binomial;
use super::blocks::Blocks;
use super::dependence::{correlation, inflation};
use super::moments::{self, skewness, variance_about};
use super::student::{self, adjusted};
use super::{Figures, Ranked};

/// The share of runs whose intervals are to hold the truth, in percent.
pub const LEVEL: f64 = 95.0;

/// The standard normal distribution's 97.5th percentile.
pub const NORMAL: f64 = 1.959_963_984_540_054;

/// Independent samples that must be expected beyond a percentile for an interval of it.
const BEYOND: f64 = 0.5;

/// A burst that a run holds with less than this probability is allowed for.
const UNSEEN: f64 = 0.1;

/// Correlation of the fill's blocks from which on they are one path rather than independent values.
const PATH: f64 = 0.4;

/// Percentiles above this are of the tail; the design effect at this one counts for them too,
/// because few samples beyond a percentile show little of how they cluster.
const TAIL: f64 = 90.0;

/// The interval in which a figure lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end; negative infinity if the samples do not bound it.
    pub low: f64,
    /// Its upper end; infinity if the samples do not bound it.
    pub high: f64,
}

/// The loads that a metric depends on, as a run shows them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loads {
    /// The number of independent loads that the run holds.
    pub independent: f64,
    /// The mean time between the ends of two answers, in the metric's unit.
    pub between_ends: f64,
}

/// The interval of the mean of the samples by batch means (Schmeiser 1982, "Batch size effects in
/// the analysis of simulation output"), as the top of this file says; `None` if there are too few
/// blocks. `loads` is given for metrics that contain a wait, which is zero most of the time.
pub fn mean(blocks: &Blocks, figures: &Figures, loads: Option<Loads>) -> Option<Interval> {
    mean_with_fill(blocks, figures, loads, FillVariance::ALL)
}

/// The part of the variance between a fill's blocks that is by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FillVariance {
    pub chance: f64,
    /// The variance of a request's work, relative to the mean work squared. The mean of a queue of
    /// n requests that wait for each other varies by 4/3 of it, divided by n, and no more is
    /// chance.
    pub work: f64,
}

impl FillVariance {
    /// All of it is by chance.
    pub const ALL: Self = FillVariance { chance: 1.0, work: f64::INFINITY };

    /// The variance of the mean of the fill's blocks, which hold `requests` requests.
    fn of(self, means: &[f64], requests: u64) -> f64 {
        let queue = 4.0 / 3.0 * self.work * moments::mean(means).powi(2) / requests.max(1) as f64;
        self.chance * of_fill(means).min(queue)
    }
}

/// The same where only a part of the variance of the fill is by chance.
pub fn mean_with_fill(
    blocks: &Blocks,
    figures: &Figures,
    loads: Option<Loads>,
    variance: FillVariance,
) -> Option<Interval> {
    let [fill, rest] = blocks.means();
    let count = rest.len() as f64;
    if count < 5.0 {
        return None;
    }
    let centre = figures.mean();
    let own = moments::mean(&rest);
    let (factor, freedom) = inflation(&rest);
    let squares = variance_about(&rest, own);
    let share = blocks.fill_share();
    let error = ((1.0 - share).powi(2) * factor * squares / count
        + share.powi(2) * variance.of(&fill, blocks.fill_requests()))
    .sqrt();
    let quantile = student::quantile(1.0 - LEVEL / 100.0, freedom);
    let skewness = skewness(&rest, own, squares);
    let low = centre - adjusted(quantile, skewness, count) * error;
    let mut high = centre - adjusted(-quantile, skewness, count) * error;
    if let Some(loads) = loads {
        let missed = 1.0 - UNSEEN.powf(1.0 / loads.independent.max(1.0));
        high = high.max(centre + missed * (figures.max().max(loads.between_ends) - centre));
    }
    Some(Interval { low: low.max(0.0), high })
}

/// The interval of the mean of samples that follow a trend which every run has alike, such as the
/// trend of an engine that fills. The differences of blocks from their neighbours are chance (von
/// Neumann 1941, "Distribution of the ratio of the mean square successive difference to the
/// variance"). Chance that lasts for longer than a block is not in it.
pub fn mean_beside_trend(blocks: &Blocks, figures: &Figures) -> Option<Interval> {
    let [fill, rest] = blocks.means();
    let count = rest.len() as f64;
    if count < 5.0 {
        return None;
    }
    let centre = figures.mean();
    let share = blocks.fill_share();
    let error = ((1.0 - share).powi(2) * beside_trend(&rest) / count
        + share.powi(2) * beside_trend(&fill) / (fill.len() as f64).max(1.0))
    .sqrt();
    // Two thirds of the degrees of freedom of the variance about a mean.
    let freedom = (2.0 * (count - 1.0) / 3.0).max(1.0);
    let quantile = student::quantile(1.0 - LEVEL / 100.0, freedom);
    let own = moments::mean(&rest);
    let skewness = skewness(&rest, own, variance_about(&rest, own));
    Some(Interval {
        low: (centre - adjusted(quantile, skewness, count) * error).max(0.0),
        high: centre - adjusted(-quantile, skewness, count) * error,
    })
}

/// The variance of values about a trend: half the mean square of their successive differences.
fn beside_trend(values: &[f64]) -> f64 {
    let steps = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
    steps.sum::<f64>() / (2.0 * (values.len() as f64 - 1.0)).max(1.0)
}

/// The variance of the mean of the fill's blocks. Where each waits for earlier ones, they are one
/// path, and the mean of a random walk of n steps of variance s² has the variance s² n / 3.
fn of_fill(means: &[f64]) -> f64 {
    let count = means.len() as f64;
    if count < 3.0 {
        return 0.0;
    }
    if correlation(means) > PATH {
        let steps: Vec<f64> = means.windows(2).map(|pair| pair[1] - pair[0]).collect();
        return variance_about(&steps, moments::mean(&steps)) * count / 3.0;
    }
    variance_about(means, moments::mean(means)) / count
}

/// The interval of a percentile of the samples between two order statistics, with the number of
/// samples divided by their design effect (Woodruff 1952, "Confidence intervals for medians and
/// other position measures"). For independent samples, it is the interval of
/// `scipy.stats.quantile_test`. `None` if they are worth too few independent ones. `loads` is given
/// for metrics that contain a wait.
pub fn percentile(
    blocks: &Blocks,
    figures: &Figures,
    percent: f64,
    loads: Option<Loads>,
) -> Option<Interval> {
    let count = figures.count() as f64;
    if is_of_fill(blocks, figures, percent) {
        return None;
    }
    let effect_at = |percent| blocks.design_effect(figures.percentile(percent));
    let mut effect = effect_at(percent);
    if percent > TAIL {
        effect = effect.max(effect_at(TAIL));
        // Bursts that the run does not hold make the tail: see above.
        effect = effect.max(loads.map_or(1.0, |loads| count / loads.independent.max(1.0)));
    }
    let independent = count / effect;
    let share = percent / 100.0;
    if independent * share.min(1.0 - share) < BEYOND {
        return None;
    }
    let [below, above] = ranks(independent, share);
    let at = |rank: f64| figures.at((rank - 1.0).max(0.0) as u64);
    let low = below.map(|rank| at((rank / independent * count).floor().max(1.0)));
    let high = above.map(|rank| at((rank / independent * count).ceil().min(count)));
    (low.is_some() || high.is_some()).then(|| Interval {
        low: low.unwrap_or(f64::NEG_INFINITY),
        high: high.unwrap_or(f64::INFINITY),
    })
}

/// True if a percentile of the tail is one of the fill: then one run shows nothing of how it
/// varies.
pub fn is_of_fill(blocks: &Blocks, figures: &Figures, percent: f64) -> bool {
    percent > TAIL && blocks.is_of_fill(figures.percentile(percent))
}

/// The ranks, from 1 and not whole, of the order statistics of `independent` independent samples
/// between which a share lies. The value of rank r is below the quantile if at least r samples are
/// below it, and above it if at most r - 1 are.
fn ranks(independent: f64, share: f64) -> [Option<f64>; 2] {
    let outside = (1.0 - LEVEL / 100.0) / 2.0;
    let search = |holds: &dyn Fn(f64) -> bool, mut from: f64, mut to: f64| {
        for _ in 0..60 {
            let middle = f64::midpoint(from, to);
            if holds(middle) {
                from = middle;
            } else {
                to = middle;
            }
        }
        from
    };
    let surely_below = |rank: f64| binomial(independent, share, rank - 1.0) <= outside;
    let surely_above = |rank: f64| binomial(independent, share, rank - 1.0) >= 1.0 - outside;
    let below = search(&surely_below, 0.0, independent);
    let above = search(&|rank| !surely_above(rank), 0.0, independent + 1.0);
    [Some(below).filter(|rank| *rank >= 1.0), Some(above).filter(|_| surely_above(independent))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spread;
    use crate::blocks::Layout;
    use simulator::Random;

    fn gathered(samples: &[f64]) -> (Blocks, Figures) {
        let count = samples.len() as u64;
        let layout = Layout::new(count, 0, 0, count - 1).unwrap();
        let (mut blocks, mut spread) = (Blocks::new(layout, 1e6), Spread::new(1e6));
        for (index, sample) in (0..).zip(samples) {
            blocks.add(index, *sample);
            spread.add(*sample);
        }
        (blocks, spread.figures().unwrap())
    }

    /// Ranks as in tables of distribution-free intervals: of 100 samples, the median lies between
    /// the 40th and the 61st, and the 99th percentile above the 97th, without an upper end.
    #[test]
    fn ranks_are_those_of_the_tables() {
        let [below, above] = ranks(100.0, 0.5).map(Option::unwrap);
        assert_eq!((below.floor(), above.ceil()), (40.0, 61.0));
        let [below, above] = ranks(100.0, 0.99);
        assert_eq!((below.unwrap().floor(), above), (97.0, None));
        // 1 - p^n reaches 97.5 % with 368 samples.
        assert_eq!(ranks(367.0, 0.99)[1], None);
        assert!(ranks(368.0, 0.99)[1].is_some());
    }

    #[test]
    fn independent_samples_have_the_interval_they_should() {
        let mut random = Random::new(5);
        let samples: Vec<f64> = (0..2000).map(|_| 10.0 + random.normal()).collect();
        let (blocks, figures) = gathered(&samples);
        let found = mean(&blocks, &figures, None).unwrap();
        let half = (found.high - found.low) / 2.0;
        // 1.96 / √2000, and up to twice that for the uncertainty of twenty blocks.
        assert!((0.035..0.1).contains(&half), "{found:?}");
        let found = percentile(&blocks, &figures, 50.0, None).unwrap();
        assert!(found.low < 10.0 && found.high > 10.0, "{found:?}");
        let found = percentile(&blocks, &figures, 99.0, None).unwrap();
        assert!(found.low < 12.326 && found.high > 12.326, "{found:?}");
    }

    #[test]
    fn dependence_widens_and_few_samples_leave_ends_open() {
        let mut random = Random::new(6);
        let mut at = 0.0;
        let mut next = |kept: f64| {
            at = kept * at + (1.0 - kept * kept).sqrt() * random.normal();
            10.0 + at
        };
        let [alone, alike] =
            [0.0, 0.95].map(|kept| (0..1000).map(|_| next(kept)).collect::<Vec<f64>>());
        let width = |samples: &[f64]| {
            let (blocks, figures) = gathered(samples);
            let found = mean(&blocks, &figures, None).unwrap();
            found.high - found.low
        };
        assert!(width(&alike) > 3.0 * width(&alone));
        let (blocks, figures) = gathered(&alone[..100]);
        let found = percentile(&blocks, &figures, 99.0, None).unwrap();
        assert!(found.high.is_infinite() && found.low.is_finite(), "{found:?}");
        let (blocks, figures) = gathered(&alone[..30]);
        assert_eq!(percentile(&blocks, &figures, 99.0, None), None);
    }

    /// Samples that vary by 1 about a level, which rises by 2 in every run.
    #[test]
    fn a_trend_is_no_chance() {
        let mut random = Random::new(7);
        let noise: Vec<f64> = (0..2000).map(|_| random.normal()).collect();
        let rising: Vec<f64> = (noise.iter().enumerate())
            .map(|(place, own)| 10.0 + own + place as f64 / 1000.0)
            .collect();
        let (blocks, figures) = gathered(&rising);
        let width = |of: Option<Interval>| of.map(|own| own.high - own.low).unwrap();
        let beside = width(mean_beside_trend(&blocks, &figures)) / 2.0;
        // 1.96 / √2000, and up to twice that, as of samples without a trend.
        assert!((0.035..0.1).contains(&beside), "{beside}");
        assert!(width(mean(&blocks, &figures, None)) > 10.0 * beside);
    }

    #[test]
    fn what_does_not_vary_is_certain() {
        let (blocks, figures) = gathered(&[7.5; 500]);
        let certain = Some(Interval { low: 7.5, high: 7.5 });
        assert_eq!(mean(&blocks, &figures, None), certain);
        assert_eq!(percentile(&blocks, &figures, 99.0, None), certain);
    }

    #[test]
    fn rare_waits_raise_the_upper_end_of_a_mean() {
        let mut samples = vec![50.0; 1000];
        samples[500] = 250.0;
        let (blocks, figures) = gathered(&samples);
        let few = Loads { independent: 20.0, between_ends: 100.0 };
        let found = mean(&blocks, &figures, Some(few)).unwrap();
        // Of twenty loads, a tenth may be of a kind that none of them is: 1 - 0.1^(1/20).
        assert!((found.high - (50.2 + 0.108_7 * 199.8)).abs() < 0.1, "{found:?}");
        samples[500] = 50.0;
        let (blocks, figures) = gathered(&samples);
        let found = mean(&blocks, &figures, Some(few)).unwrap();
        assert!((found.high - (50.0 + 0.108_7 * 50.0)).abs() < 0.1, "{found:?}");
    }
}
