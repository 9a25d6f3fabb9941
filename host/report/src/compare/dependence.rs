//! How much less a run's blocks tell than as many independent samples would.
//!
//! **Neighbours are alike.** What is left of dependence over the ends of blocks shows in the
//! correlation of each with the next, and is taken as that of an autoregressive process of first
//! order, which makes fewer of the blocks.
//!
//! **A queue walks.** Near and beyond what an engine can do, each request waits for what went
//! before it, so that times to first token wander or grow from the first request to the last.
//! The whole run then is one path of a walk, and its blocks say nothing of where another run's path would
//! lie. What they do say is how far it goes from block to block, and so how far it comes in a run.
//! Whether a metric walks is told by the test of Kwiatkowski, Phillips, Schmidt and Shin (1992), of
//! either side and of what they do not have in common. In trials, intervals that take no notice call two runs of
//! the same overloaded engine different in seven of ten cases (`trials`).

/// Critical values of the test: at 1 % of one side, at 2.5 % of what is not common.
const SIDE: f64 = 0.739;
const REST: f64 = 0.574;
/// Of a walk, differences are sure as if five values were known.
pub(super) const WALKING: f64 = 4.0;
/// Correlation beyond this would make less than two of the blocks.
const MOST: f64 = 0.9;

/// By how much dependence multiplies the variance of a mean of blocks, of which one value each is
/// given in their order, and how many degrees of freedom it leaves.
pub(super) fn inflation(values: &[f64]) -> (f64, f64) {
    let blocks = values.len() as f64;
    // The estimate falls short by about (1 + 3ρ) / n.
    let correlation = (blocks * correlation(values) + 1.0) / (blocks - 4.0);
    let correlation = correlation.clamp(0.0, MOST);
    let factor = (1.0 + correlation) / (1.0 - correlation);
    (factor, (blocks / factor - 1.0).max(WALKING))
}

/// Where two sides' means by block walk, how sure the ratio of their means is: its standard error.
pub(super) fn walk(a: &[f64], b: &[f64]) -> Option<f64> {
    let blocks = a.len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / blocks;
    let (ours, theirs) = (mean(a), mean(b));
    if ours <= 0.0 {
        return None;
    }
    let ratio = theirs / ours;
    let rest: Vec<f64> = a
        .iter()
        .zip(b)
        .map(|(a, b)| (b - ratio * a) / ours)
        .collect();
    // Correlations of independent blocks are about normal, with a deviation of 1 / √n.
    let deviation = 1.0 / blocks.sqrt();
    let walks = [a, b]
        .iter()
        .any(|side| level(side) > SIDE || correlation(side) > 2.7 * deviation)
        || level(&rest) > REST
        || correlation(&rest) > 2.0 * deviation;
    let steps: f64 = rest
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).powi(2))
        .sum();
    // A walk of n steps of variance s² that begins at nothing has a mean of variance s² n / 3.
    walks.then(|| (steps / (blocks - 1.0) * blocks / 3.0).sqrt())
}

/// The test's statistic: small where values keep to a level, large where they walk or grow.
fn level(values: &[f64]) -> f64 {
    let blocks = values.len() as f64;
    let mean = values.iter().sum::<f64>() / blocks;
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

/// The correlation of each value with the next.
fn correlation(values: &[f64]) -> f64 {
    let blocks = values.len() as f64;
    let mean = values.iter().sum::<f64>() / blocks;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    if is_nothing(squares, mean, blocks) {
        return 0.0;
    }
    let products = values
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean));
    products.sum::<f64>() / squares
}

/// Whether a sum of squared distances is what rounding leaves of none.
fn is_nothing(squares: f64, mean: f64, many: f64) -> bool {
    squares <= many * (mean * 1e-12).powi(2)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::normal;
    use super::*;

    fn noise(seed: u64, many: usize) -> Vec<f64> {
        let mut random = rand_mt::Mt64::new(seed);
        (0..many).map(|_| 10.0 + normal(&mut random)).collect()
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
        assert_eq!(
            inflation(&[3.0; 20]).0,
            (1.0 + 1.0 / 16.0) / (1.0 - 1.0 / 16.0)
        );
    }
}
