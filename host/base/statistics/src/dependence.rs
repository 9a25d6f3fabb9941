//! The dependence of a run's blocks: they carry less information than the same number of
//! independent samples.
//!
//! **Neighbours are alike.** The dependence that remains across the ends of blocks shows in the
//! correlation of each with the next. It is modelled as a first-order autoregressive process, which
//! reduces the effective number of blocks.
//!
//! **A queue walks.** Near and beyond an engine's capacity, each request waits for earlier ones, so
//! times to first token wander or grow from the first request to the last. The whole run is then
//! one path of a random walk, and its blocks do not show where another run's path would lie. They
//! do show its moves from block to block, and so the size of its moves in a run. The test of
//! Kwiatkowski, Phillips, Schmidt and Shin (1992) decides whether a metric walks, applied to either
//! side and to the difference of the sides. In trials, intervals that ignore this call two runs of
//! the same overloaded engine different in seven of ten cases (`trials`).

use crate::moments::{mean, squares_about};

/// Critical values of the test: at 1 % for one side, at 2.5 % for the rest that is not common.
const SIDE: f64 = 0.739;
const REST: f64 = 0.574;
/// For a walk, differences are as certain as if five values were known.
pub const WALKING: f64 = 4.0;
/// Correlation beyond this would make less than two of the blocks.
const MOST: f64 = 0.9;

/// The factor by which dependence multiplies the variance of a mean of blocks, given one value per
/// block in order, and the degrees of freedom it leaves. Assumes that the remaining dependence is a
/// first-order autoregressive process (as the autoregressive method of Fishman 1978, "Principles of
/// Discrete Event Simulation"). The correlation is corrected for its bias (Marriott and Pope 1954,
/// "Bias in the estimation of autocorrelations"). Takes five blocks or more.
pub fn inflation(values: &[f64]) -> (f64, f64) {
    let blocks = values.len() as f64;
    // The estimate falls short by about (1 + 3ρ) / n.
    let correlation = (blocks * correlation(values) + 1.0) / (blocks - 4.0);
    let correlation = correlation.clamp(0.0, MOST);
    let factor = (1.0 + correlation) / (1.0 - correlation);
    (factor, (blocks / factor - 1.0).max(WALKING))
}

/// The same for the differences of turns, which are independent unless the correlation of
/// neighbours is beyond chance (one of twenty). Takes any number from two.
pub fn of_turns(values: &[f64]) -> (f64, f64) {
    let turns = values.len() as f64;
    if turns >= 5.0 && correlation(values) > 1.64 / turns.sqrt() {
        return inflation(values);
    }
    (1.0, turns - 1.0)
}

/// The standard error of the ratio of two sides' means, if their means by block walk; `None` if
/// they do not. Both sides have the same number of blocks. The test is by Kwiatkowski, Phillips,
/// Schmidt and Shin, without lags (`statsmodels.tsa.stattools.kpss` with `nlags=0`), or of the
/// correlation of neighbours.
pub fn walk(a: &[f64], b: &[f64]) -> Option<f64> {
    let blocks = a.len() as f64;
    let (ours, theirs) = (mean(a), mean(b));
    if ours <= 0.0 {
        return None;
    }
    let ratio = theirs / ours;
    let rest: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b - ratio * a) / ours).collect();
    // Correlations of independent blocks are about normal, with a deviation of 1 / √n.
    let deviation = 1.0 / blocks.sqrt();
    let walks = [a, b].iter().any(|side| level(side) > SIDE || correlation(side) > 2.7 * deviation)
        || level(&rest) > REST
        || correlation(&rest) > 2.0 * deviation;
    let steps: f64 = rest.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    // A walk of n steps of variance s² that begins at nothing has a mean of variance s² n / 3.
    walks.then(|| (steps / (blocks - 1.0) * blocks / 3.0).sqrt())
}

/// The test's statistic: small if values stay at a level, large if they walk or grow.
fn level(values: &[f64]) -> f64 {
    let blocks = values.len() as f64;
    let mean = mean(values);
    let (mut sum, mut sums, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        sum += value - mean;
        sums += sum * sum;
        squares += (value - mean) * (value - mean);
    }
    if is_nothing(squares, mean, blocks) {
        return 0.0;
    }
    sums / (blocks * squares)
}

/// The correlation of each value with the next: the autocorrelation at lag 1 about the common mean
/// (`statsmodels.tsa.stattools.acf`). 0 where values differ by rounding alone.
pub fn correlation(values: &[f64]) -> f64 {
    let blocks = values.len() as f64;
    let mean = mean(values);
    let squares = squares_about(values, mean);
    if is_nothing(squares, mean, blocks) {
        return 0.0;
    }
    let products = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
    products.sum::<f64>() / squares
}

/// True if a sum of squared distances is zero up to rounding.
fn is_nothing(squares: f64, mean: f64, many: f64) -> bool {
    squares <= many * (mean * 1e-12).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::Random;

    fn noise(seed: u64, many: usize) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..many).map(|_| 10.0 + random.normal()).collect()
    }

    fn walked(seed: u64, many: usize) -> Vec<f64> {
        let steps = noise(seed, many).into_iter();
        steps
            .scan(10.0, |at, step| {
                *at += step - 10.0;
                Some(*at)
            })
            .collect()
    }

    #[test]
    fn noise_is_not_taken_for_a_walk() {
        let seen = (0..400).filter(|i| walk(&noise(2 * i, 20), &noise(2 * i + 1, 20)).is_some());
        let seen = seen.count();
        assert!(seen < 40, "{seen} of 400 runs of noise");
    }

    #[test]
    fn walks_and_growth_are_seen() {
        let seen = (0..400).filter(|i| {
            let up = |values: Vec<f64>| values.into_iter().map(|x| x + 100.0).collect::<Vec<_>>();
            walk(&up(walked(2 * i, 20)), &up(walked(2 * i + 1, 20))).is_some()
        });
        let seen = seen.count();
        assert!(seen > 320, "{seen} of 400 walks");
        let growing: Vec<f64> = (1..=20).map(f64::from).collect();
        assert!(walk(&growing, &growing).is_some());
    }

    #[test]
    fn dependence_makes_fewer_of_the_blocks() {
        let (factor, freedom) = inflation(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]);
        assert_eq!((factor, freedom), (1.0, 9.0));
        let (factor, freedom) = inflation(&walked(1, 20));
        assert!(factor > 4.0 && freedom == WALKING, "{factor} {freedom}");
        assert_eq!(inflation(&[3.0; 20]).0, (1.0 + 1.0 / 16.0) / (1.0 - 1.0 / 16.0));
    }
}
