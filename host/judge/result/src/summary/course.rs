//! The course of figures over the steady window: whether they drifted from its beginning to its
//! end, and whether throughput oscillated with a period. A mean hides both.
//!
//! The window is cut into slices of equal length, and a figure's course is its means by slice. That
//! a course has a trend is judged by Mann and Kendall's test, with the variance that slices have
//! which resemble their neighbours (Hamed and Rao 1998), and how steep it is by Theil and Sen's
//! estimate (the median of all pairwise slopes): both tolerate a few outlying slices. That it has a
//! period is judged by its autocorrelation: one that falls below zero and then rises again.
//!
//! `finding` decides which of this is a reason for doubt.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flights::Span;
use crate::metric::{self, Reading};
use model::units::Nanos;
use statistics::dependence::inflation;
use statistics::{Ranked, Sorted, student};

/// The name of output throughput among the courses.
pub(crate) const THROUGHPUT: &str = "output-tokens-per-s";

/// Slices in which drift is looked for: enough for a trend, few enough to hold several requests
/// each.
const SLICES: usize = 32;
/// Slices that must hold something, for a trend to be judged.
const LEAST_SLICES: usize = 16;
/// Samples on which a course must rest.
const LEAST_SAMPLES: u64 = 100;
/// Finer slices, in which swings of throughput are looked for.
const FINE: usize = 256;
/// Length of a slice for detecting oscillation, in gaps between tokens. In shorter slices, the
/// number of engine steps that fall into each matters.
const GAPS: f64 = 20.0;
/// With fewer requests in flight, throughput comes and goes with each of them.
const CROWD: f64 = 8.0;
/// Number of slices needed to distinguish an oscillation from chance.
const LEAST_FINE: usize = 32;

/// The change of a figure from the beginning to the end of the steady window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Drift {
    /// The change from the beginning to the end, as a share of its median: Theil and Sen's
    /// slope over 32 slices of the window.
    pub change: f64,
    /// The certainty that it rose (above zero) or fell: Mann and Kendall's Z, corrected for the
    /// autocorrelation of the slices, and as certain as so many independent slices make it. Beyond
    /// 3.3 either way, chance alone does so once in a thousand courses.
    pub z: f64,
}

/// The oscillation of throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Swing {
    /// Length of the period in seconds.
    pub period_s: f64,
    /// Standard deviation of the throughput of slices, as a share of its mean.
    pub share: f64,
    /// The similarity of a slice to the one a period later: the autocorrelation at that lag.
    pub correlation: f64,
}

/// The data kept of the exchanges seen so far.
pub(super) struct Course {
    span: Span,
    tokens: Vec<u64>,
    ttft: Slices,
    tpot: Slices,
}

/// Sums of a metric's samples by slice, in whole nanoseconds, so that order does not matter.
#[derive(Default)]
struct Slices([(u64, u64); SLICES]);

impl Course {
    pub(super) fn over(span: Span) -> Self {
        Course {
            span,
            tokens: vec![0; FINE],
            ttft: Slices::default(),
            tpot: Slices::default(),
        }
    }

    /// Adds an answered exchange. Its time to first token belongs to the slice in which it was
    /// sent, its time per output token to that in which it ended. `is_of_fill` says that it was
    /// sent before the run's first answer had ended: its time to first token is of an engine that
    /// fills, and no part of the course.
    pub(super) fn add(&mut self, reading: &Reading<'_>, is_of_fill: bool) {
        let exchange = reading.exchange;
        let ttft = reading.ttft().filter(|_| !is_of_fill);
        for (slices, at, sample) in [
            (&mut self.ttft, exchange.sent, ttft),
            (&mut self.tpot, exchange.ended, reading.tpot()),
        ] {
            if let (Some(slice), Some(sample)) =
                (at.and_then(|at| self.span.part(at, SLICES)), sample)
            {
                let (sum, count) = &mut slices.0[slice];
                *sum = sum.saturating_add((sample * 1e6).round() as u64);
                *count += 1;
            }
        }
    }

    /// Adds tokens that came at an instant.
    pub(super) fn add_tokens(&mut self, at: Nanos, tokens: u64) {
        if let Some(slice) = self.span.part(at, FINE) {
            self.tokens[slice] = self.tokens[slice].saturating_add(tokens);
        }
    }

    /// The drift of each figure that rests on enough.
    pub(super) fn drift(&self) -> BTreeMap<String, Drift> {
        let throughput: Vec<f64> = (self.tokens.chunks(FINE / SLICES))
            .map(|fine| fine.iter().sum::<u64>() as f64)
            .collect();
        let enough = self.tokens.iter().sum::<u64>() >= LEAST_SAMPLES;
        let throughput = Some(throughput).filter(|_| enough);
        [
            (THROUGHPUT, throughput),
            (metric::TTFT, self.ttft.means()),
            (metric::TPOT, self.tpot.means()),
        ]
        .into_iter()
        .filter_map(|(name, course)| Some((name.to_owned(), drift(&course?)?)))
        .collect()
    }

    /// The swing of throughput, if it has one. `gap_ms` is the mean gap between tokens.
    pub(super) fn swing(&self, gap_ms: f64, mean_in_flight: f64) -> Option<Swing> {
        if mean_in_flight < CROWD {
            return None;
        }
        let seconds = self.span.to.since(self.span.from).as_secs_f64();
        let merged = (GAPS * gap_ms / 1000.0 / (seconds / FINE as f64)).ceil() as usize;
        let merged = merged.max(1);
        if FINE / merged < LEAST_FINE {
            return None;
        }
        let course: Vec<f64> = (self.tokens.chunks_exact(merged))
            .map(|fine| fine.iter().sum::<u64>() as f64)
            .collect();
        let slice_s = seconds * merged as f64 / FINE as f64;
        swing(&course, slice_s)
    }
}

impl Slices {
    /// The mean of each slice that has samples; absent if there are too few.
    fn means(&self) -> Option<Vec<f64>> {
        let held = self.0.iter().filter(|(_, count)| *count > 0);
        let means: Vec<f64> = held
            .map(|(sum, count)| *sum as f64 / *count as f64)
            .collect();
        let samples: u64 = self.0.iter().map(|(_, count)| count).sum();
        (samples >= LEAST_SAMPLES).then_some(means)
    }
}

/// The drift of a course; absent if it has too few slices, or if there is nothing to relate a
/// change to.
fn drift(course: &[f64]) -> Option<Drift> {
    let n = course.len();
    if n < LEAST_SLICES {
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
    Some(Drift {
        change: slope * (of - 1.0) / level,
        z: certain,
    })
}

/// Returns the rest of a course without an even change.
fn without_slope(course: &[f64], slope: f64) -> Vec<f64> {
    let places = course.iter().enumerate();
    places
        .map(|(place, value)| value - slope * place as f64)
        .collect()
}

/// Returns the rest of a course without one step from a level to another, at the place where that
/// leaves least, so that a step is not mistaken for slices that resemble their neighbours.
fn without_step(course: &[f64]) -> Vec<f64> {
    /// Slices that a level needs.
    const LEAST: usize = 3;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let left = |at: usize| -> Vec<f64> {
        let (before, after) = course.split_at(at);
        let levels = [mean(before), mean(after)];
        let both = before.iter().map(|value| value - levels[0]);
        both.chain(after.iter().map(|value| value - levels[1]))
            .collect()
    };
    let squares = |rest: &Vec<f64>| rest.iter().map(|value| value * value).sum::<f64>();
    let all = (LEAST..=course.len() - LEAST).map(left);
    all.min_by(|a, b| squares(a).total_cmp(&squares(b)))
        .unwrap_or_default()
}

/// Computes the factor by which the autocorrelation of a course without its trend multiplies the
/// variance of Mann and Kendall's score: that of its ranks, over the lags at which it is beyond
/// chance. At least 1: slices that alternate do not make a trend more certain.
fn resemblance(level: &[f64]) -> f64 {
    let n = level.len();
    let middle = (n - 1) as f64 / 2.0;
    // What differs by rounding alone is equal, and equal values share a rank.
    let most = level
        .iter()
        .fold(0.0_f64, |most, value| most.max(value.abs()));
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * most;
    let rank = |own: f64| {
        let equal = level.iter().filter(|value| same(**value, own)).count() as f64;
        let below = level
            .iter()
            .filter(|value| **value < own && !same(**value, own));
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

/// The oscillation of a course with slices of this length.
fn swing(course: &[f64], slice_s: f64) -> Option<Swing> {
    /// A resemblance below this is none; above that, it is one.
    const RESEMBLES: [f64; 2] = [0.1, 0.5];
    /// Peaks of the autocorrelation that differ by less are of one period.
    const ALIKE: f64 = 0.9;
    let n = course.len() as f64;
    let mean = course.iter().sum::<f64>() / n;
    let off: Vec<f64> = course.iter().map(|level| level - mean).collect();
    let variance = off.iter().map(|off| off * off).sum::<f64>() / n;
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
    // A period resembles itself at its multiples too, one of which may do so a little better by
    // chance.
    let lag = dip + lags[dip..].iter().position(|own| *own >= ALIKE * most)?;
    let peak = (lag..lags.len()).take_while(|at| lags[*at] >= ALIKE * most);
    let lag = peak.max_by(|one, other| lags[*one].total_cmp(&lags[*other]))?;
    let correlation = lags[lag];
    (correlation > some).then(|| Swing {
        period_s: lag as f64 * slice_s,
        share: variance.sqrt() / mean,
        correlation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::Random;

    /// Slices of about 1000 with an even spread of so much either way.
    fn course(seed: u64, n: usize, spread: f64, level: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut unit = || random.uniform();
        (0..n)
            .map(|i| 1000.0 * level(i as f64 / n as f64) * (1.0 + spread * (2.0 * unit() - 1.0)))
            .collect()
    }

    #[test]
    fn a_trend_is_told_from_noise() {
        let rising = drift(&course(1, SLICES, 0.05, |at| 1.0 + 0.3 * at)).unwrap();
        assert!((rising.change - 0.26).abs() < 0.04, "{rising:?}");
        assert!(rising.z > 4.5, "{rising:?}");
        let falling = drift(&course(2, SLICES, 0.05, |at| 1.0 - 0.3 * at)).unwrap();
        assert!(falling.change < -0.3 && falling.z < -4.5, "{falling:?}");
        let shown = |drift: Drift| drift.z.abs() > 3.3;
        let noisy = |seed| drift(&course(seed, SLICES, 0.3, |_| 1.0)).is_some_and(shown);
        assert!((0..1000).filter(|seed| noisy(*seed)).count() <= 5);
        // A figure that rises without any noise, and one that steps.
        let exact: Vec<f64> = (0..SLICES).map(|i| 1000.0 + 10.0 * i as f64).collect();
        assert!(shown(drift(&exact).unwrap()));
        for spread in [0.0, 0.01, 0.05] {
            let step = |at: f64| if at < 0.5 { 1.0 } else { 1.5 };
            let found = drift(&course(4, SLICES, spread, step)).unwrap();
            assert!(shown(found), "step, spread {spread}: {found:?}");
        }
        // One slice that is far off makes no trend.
        let mut level = course(3, SLICES, 0.05, |_| 1.0);
        level[SLICES - 1] = 9000.0;
        assert!(!drift(&level).is_some_and(shown));
        assert_eq!(drift(&level[..LEAST_SLICES - 1]), None);
    }

    #[test]
    fn a_period_is_told_from_noise_and_from_trends() {
        let wave = |at: f64| 1.0 + 0.4 * (at * 8.0 * std::f64::consts::TAU).sin();
        let found = swing(&course(1, FINE, 0.1, wave), 0.5).unwrap();
        assert!((found.period_s - 16.0).abs() <= 0.5, "{found:?}");
        assert!(found.share > 0.25 && found.correlation > 0.8, "{found:?}");
        // A stall every tenth slice.
        let stalls = |at: f64| {
            if ((at * FINE as f64) as usize).is_multiple_of(10) {
                0.1
            } else {
                1.0
            }
        };
        let found = swing(&course(2, FINE, 0.05, stalls), 0.5).unwrap();
        assert_eq!(found.period_s % 5.0, 0.0, "{found:?}");
        for seed in 0..200 {
            assert_eq!(swing(&course(seed, FINE, 0.5, |_| 1.0), 0.5), None);
            assert_eq!(swing(&course(seed, FINE, 0.1, |at| 1.0 + at), 0.5), None);
        }
        assert_eq!(swing(&[5.0; 64], 0.5), None);
    }
}
