//! The course of a value over time, as its means by slices of equal length: whether it has a trend,
//! and whether it oscillates.
//!
//! A trend is judged by Mann and Kendall's test (Mann 1945, "Nonparametric tests against trend").
//! Its variance is for slices that resemble their neighbours (Hamed and Rao 1998, "A modified
//! Mann-Kendall trend test for autocorrelated data"). Its steepness is Theil and Sen's estimate
//! (Sen 1968, "Estimates of the regression coefficient based on Kendall's tau"): the median of all
//! pairwise slopes. Both tolerate a few outlying slices, and assume no distribution.
//!
//! An oscillation is judged by the autocorrelation: one that falls below zero or nearly so, and
//! then rises again. That assumes one period over the whole course.

use crate::dependence::inflation;
use crate::moments::{mean, squares_about};
use crate::{Ranked, Sorted, student};

/// Slices that a trend takes.
const LEAST: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The change from the first slice to the last, as a share of the course's median.
    pub change: f64,
    /// The certainty that it rose (above zero) or fell: Mann and Kendall's Z, corrected for the
    /// autocorrelation of the slices, as certain as the equivalent number of independent slices
    /// makes it.
    pub z: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oscillation {
    /// Length of the period, in slices.
    pub period: usize,
    /// Standard deviation of the slices, as a share of their mean.
    pub share: f64,
    /// The autocorrelation at the lag of the period.
    pub correlation: f64,
}

/// Computes the trend of a course. `None` of fewer than 16 slices, or of a median up to zero.
pub fn trend(course: &[f64]) -> Option<Trend> {
    let n = course.len();
    if n < LEAST {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut score = 0i64;
    for (i, before) in course.iter().enumerate() {
        for (j, after) in course.iter().enumerate().skip(i + 1) {
            slopes.push((after - before) / (j - i) as f64);
            score += match after.total_cmp(before) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Equal => 0,
                std::cmp::Ordering::Less => -1,
            };
        }
    }
    let of = n as f64;
    let median = |values: Vec<f64>| Some(Sorted::new(values)?.percentile(50.0));
    let level = median(course.to_vec()).filter(|level| *level > 0.0)?;
    let slope = median(slopes)?;
    let (factor, freedom) = [without_slope(course, slope), without_step(course)]
        .map(|rest| {
            let (inflated, freedom) = inflation(&rest);
            (resemblance(&rest).max(inflated), freedom)
        })
        .into_iter()
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    let variance = of * (of - 1.0) * (2.0 * of + 5.0) / 18.0 * factor;
    let score = (score - score.signum()) as f64 / variance.sqrt();
    // Of few independent slices, the score is as certain as Student's distribution says, and that
    // is stated as the normal distribution's Z of the same probability.
    let probability = student::two_sided(score, freedom);
    let certain = match score {
        0.0 => 0.0,
        score => student::quantile(probability, f64::INFINITY).copysign(score),
    };
    Some(Trend { change: slope * (of - 1.0) / level, z: certain })
}

/// Returns the rest of a course without an even change.
fn without_slope(course: &[f64], slope: f64) -> Vec<f64> {
    let places = course.iter().enumerate();
    places.map(|(place, value)| value - slope * place as f64).collect()
}

/// Returns the rest of a course without one step from a level to another, at the place where that
/// leaves least. So a step is not mistaken for slices that resemble their neighbours.
fn without_step(course: &[f64]) -> Vec<f64> {
    /// Slices that a level needs.
    const LEVEL: usize = 3;
    let left = |at: usize| -> Vec<f64> {
        let (before, after) = course.split_at(at);
        let levels = [mean(before), mean(after)];
        let both = before.iter().map(|value| value - levels[0]);
        both.chain(after.iter().map(|value| value - levels[1])).collect()
    };
    let squares = |rest: &Vec<f64>| rest.iter().map(|value| value * value).sum::<f64>();
    let all = (LEVEL..=course.len() - LEVEL).map(left);
    all.min_by(|a, b| squares(a).total_cmp(&squares(b))).unwrap_or_default()
}

/// Computes the factor by which the autocorrelation of a course without its trend multiplies the
/// variance of Mann and Kendall's score. The autocorrelation is of its ranks, over the lags at
/// which it is beyond chance. At least 1: slices that alternate do not make a trend more certain.
fn resemblance(level: &[f64]) -> f64 {
    let n = level.len();
    let middle = (n - 1) as f64 / 2.0;
    // Values that differ by rounding alone are equal, and equal values share a rank.
    let most = level.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * most;
    let rank = |own: f64| {
        let equal = level.iter().filter(|value| same(**value, own)).count() as f64;
        let below = level.iter().filter(|value| **value < own && !same(**value, own));
        below.count() as f64 + (equal - 1.0) / 2.0 - middle
    };
    let ranks: Vec<f64> = level.iter().map(|own| rank(*own)).collect();
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    if squares == 0.0 {
        return 1.0;
    }
    let of = n as f64;
    let beyond_chance = 1.96 / of.sqrt();
    let sum: f64 = (1..n - 2)
        .map(|lag| {
            let products = ranks.iter().zip(&ranks[lag..]).map(|(a, b)| a * b);
            let correlation = products.sum::<f64>() / squares;
            let left = (n - lag) as f64;
            if correlation.abs() > beyond_chance {
                left * (left - 1.0) * (left - 2.0) * correlation
            } else {
                0.0
            }
        })
        .sum();
    (1.0 + 2.0 / (of * (of - 1.0) * (of - 2.0)) * sum).max(1.0)
}

/// Finds the oscillation of a course. `None` if it has none, or if its mean is not above zero.
pub fn oscillation(course: &[f64]) -> Option<Oscillation> {
    /// A resemblance below this is none; above that, it is one.
    const RESEMBLES: [f64; 2] = [0.1, 0.5];
    /// Peaks of the autocorrelation that differ by less are of one period.
    const ALIKE: f64 = 0.9;
    let n = course.len() as f64;
    let mean = mean(course);
    let off: Vec<f64> = course.iter().map(|level| level - mean).collect();
    let variance = squares_about(course, mean) / n;
    if !(mean > 0.0 && variance > 0.0) {
        return None;
    }
    // Of the pairs there are: the usual estimate falls towards nothing as they become fewer.
    let correlation = |lag: usize| {
        let pairs = off.iter().zip(&off[lag..]);
        let product: f64 = pairs.map(|(one, other)| one * other).sum();
        product / (n - lag as f64) / variance
    };
    let lags: Vec<f64> = (0..=course.len() / 3).map(correlation).collect();
    let [none, some] = RESEMBLES;
    let dip = lags.iter().position(|correlation| *correlation < none)?;
    let most = lags[dip..].iter().copied().reduce(f64::max)?;
    // A period resembles itself at its multiples too, and by chance a little better at one.
    let lag = dip + lags[dip..].iter().position(|own| *own >= ALIKE * most)?;
    let peak = (lag..lags.len()).take_while(|at| lags[*at] >= ALIKE * most);
    let lag = peak.max_by(|one, other| lags[*one].total_cmp(&lags[*other]))?;
    let correlation = lags[lag];
    (correlation > some).then(|| Oscillation {
        period: lag,
        share: variance.sqrt() / mean,
        correlation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::Random;

    const SLICES: usize = 32;
    const FINE: usize = 256;

    /// Slices of about 1000, spread evenly by `spread` either way.
    fn course(seed: u64, n: usize, spread: f64, level: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut unit = || random.uniform();
        (0..n)
            .map(|i| 1000.0 * level(i as f64 / n as f64) * (1.0 + spread * (2.0 * unit() - 1.0)))
            .collect()
    }

    #[test]
    fn a_trend_is_told_from_noise() {
        let rising = trend(&course(1, SLICES, 0.05, |at| 1.0 + 0.3 * at)).unwrap();
        assert!((rising.change - 0.26).abs() < 0.04, "{rising:?}");
        assert!(rising.z > 4.5, "{rising:?}");
        let falling = trend(&course(2, SLICES, 0.05, |at| 1.0 - 0.3 * at)).unwrap();
        assert!(falling.change < -0.3 && falling.z < -4.5, "{falling:?}");
        let shown = |trend: Trend| trend.z.abs() > 3.3;
        let noisy = |seed| trend(&course(seed, SLICES, 0.3, |_| 1.0)).is_some_and(shown);
        assert!((0..1000).filter(|seed| noisy(*seed)).count() <= 5);
        // A figure that rises without any noise, and one that steps.
        let exact: Vec<f64> = (0..SLICES).map(|i| 1000.0 + 10.0 * i as f64).collect();
        assert!(shown(trend(&exact).unwrap()));
        for spread in [0.0, 0.01, 0.05] {
            let step = |at: f64| if at < 0.5 { 1.0 } else { 1.5 };
            let found = trend(&course(4, SLICES, spread, step)).unwrap();
            assert!(shown(found), "step, spread {spread}: {found:?}");
        }
        // One slice that is far off makes no trend.
        let mut level = course(3, SLICES, 0.05, |_| 1.0);
        level[SLICES - 1] = 9000.0;
        assert!(!trend(&level).is_some_and(shown));
        assert_eq!(trend(&level[..LEAST - 1]), None);
    }

    #[test]
    fn a_period_is_told_from_noise_and_from_trends() {
        let wave = |at: f64| 1.0 + 0.4 * (at * 8.0 * std::f64::consts::TAU).sin();
        let found = oscillation(&course(1, FINE, 0.1, wave)).unwrap();
        assert!((31..=33).contains(&found.period), "{found:?}");
        assert!(found.share > 0.25 && found.correlation > 0.8, "{found:?}");
        // A stall every tenth slice.
        let stalls = |at: f64| {
            if ((at * FINE as f64) as usize).is_multiple_of(10) { 0.1 } else { 1.0 }
        };
        let found = oscillation(&course(2, FINE, 0.05, stalls)).unwrap();
        assert_eq!(found.period % 10, 0, "{found:?}");
        for seed in 0..200 {
            assert_eq!(oscillation(&course(seed, FINE, 0.5, |_| 1.0)), None);
            assert_eq!(oscillation(&course(seed, FINE, 0.1, |at| 1.0 + at)), None);
        }
        assert_eq!(oscillation(&[5.0; 64]), None);
    }
}
