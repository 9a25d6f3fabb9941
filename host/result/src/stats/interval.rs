//! 95 % confidence intervals, by the percentile bootstrap over the samples.
//!
//! A resample draws as many samples as there are, with replacement; the interval holds the middle
//! 95 % of the figure over [`RESAMPLES`] of them. The draws come from a fixed seed, so the same
//! samples have the same intervals.
//!
//! The cost is bounded. A percentile does not require drawing every sample: the ranks that a resample
//! has at a percentile are order statistics of uniform numbers, and these are drawn directly, from
//! gamma variates. The mean is drawn in full up to [`DRAWN`] samples; beyond that, its interval is the
//! one of the normal distribution, from which the bootstrap's no longer differs.

use rand_mt::Mt64;

use super::{Ranked, Sorted, between, place};

/// Resamples an interval comes from.
pub const RESAMPLES: usize = 1000;

/// So many samples are drawn again for the interval of their mean.
pub const DRAWN: u64 = 10_000;

/// The share of resamples that an interval holds, in percent.
pub const LEVEL: f64 = 95.0;

/// The standard normal distribution's 97.5th percentile.
const NORMAL: f64 = 1.959_963_984_540_054;

const SEED: u64 = 0x626f_6f74;

/// Where a figure lies with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The interval of a percentile; `None` of fewer than two samples.
pub fn percentile(samples: &impl Ranked, percent: f64) -> Option<Interval> {
    let n = samples.count();
    let (below, share) = place(n, percent);
    let mut random = Mt64::new(SEED);
    let n_samples = n as f64;
    middle(n, || {
        // Of n uniform numbers in order, the one of rank `below` and the next, by their distances.
        let first = gamma(&mut random, below + 1);
        let next = first + exponential(&mut random);
        let whole = next + gamma(&mut random, n - 1 - below);
        let drawn = |upto: f64| samples.at((n_samples * (upto / whole)) as u64);
        match share {
            0.0 => drawn(first),
            share => between(drawn(first), drawn(next), share),
        }
    })
}

/// The interval of the mean of samples with the given mean and standard deviation; `None` for fewer
/// than two.
pub fn mean(samples: &impl Ranked, mean: f64, std: f64) -> Option<Interval> {
    let n = samples.count();
    if n > DRAWN {
        let away = NORMAL * std / (n as f64).sqrt();
        let (low, high) = (mean - away, mean + away);
        return Some(Interval { low, high });
    }
    let mut random = Mt64::new(SEED);
    middle(n, || {
        // In whole draws of a rank; the bias of n / 2^32 is far below what is resolved.
        let drawn = (0..n).map(|_| samples.at(((random.next_u64() >> 32) * n) >> 32));
        drawn.sum::<f64>() / n as f64
    })
}

/// The middle part of the values that resamples give.
fn middle(n: u64, resample: impl FnMut() -> f64) -> Option<Interval> {
    if n < 2 {
        return None;
    }
    let drawn = Sorted::new(std::iter::repeat_with(resample).take(RESAMPLES).collect())?;
    let outside = (100.0 - LEVEL) / 2.0;
    Some(Interval {
        low: drawn.percentile(outside),
        high: drawn.percentile(100.0 - outside),
    })
}

/// Uniform over (0, 1].
fn uniform(random: &mut Mt64) -> f64 {
    ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

fn exponential(random: &mut Mt64) -> f64 {
    -uniform(random).ln()
}

fn normal(random: &mut Mt64) -> f64 {
    // Box and Muller.
    let radius = (2.0 * exponential(random)).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

/// The sum of a number of exponential variates, by Marsaglia and Tsang's method.
fn gamma(random: &mut Mt64, shape: u64) -> f64 {
    if shape == 0 {
        return 0.0;
    }
    let d = shape as f64 - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && uniform(random).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}
