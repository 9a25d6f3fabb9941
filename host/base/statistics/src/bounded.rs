//! The mean of values on a scale, such as grades from 1 to 5: an interval that holds for few and
//! skewed values, because no value lies beyond the scale's ends.
//!
//! Student's interval takes its width from the spread that is seen. Five grades of 5 and one of 4
//! hide the rare 1. Here each end of the interval takes one value more, at the end of the scale. All
//! values then get random weights, the spacings of uniform numbers (a Dirichlet distribution of
//! ones), and the end is a quantile of the weighted mean (Gaffke 2005, "Three test statistics for a
//! nonparametric one-sided hypothesis on the mean of a nonnegative variable"). Of zeros and ones
//! these are Clopper and Pearson's bounds. No distribution on a scale is known for which they miss
//! the mean more often (Learned-Miller and Thomas 2020, "A new confidence interval for the mean of a
//! bounded random variable").
//!
//! Such weights are exponential numbers over their sum. So the weighted mean is at most t if the sum
//! of exponential numbers times (value - t) is at most zero. Its probability is Lugannani and Rice's
//! (1980, "Saddle point approximation for the distribution of the sum of independent random
//! variables"), within 1e-4 here.

use std::f64::consts::TAU;

use super::clusters::{Cluster, Mean};
use super::interval::LEVEL;
use super::{Interval, bisect, student};

/// Halvings that solve for an end.
const HALVINGS: u32 = 50;
/// Distance from the middle, in deviations, within which the approximation is not computed.
const MIDDLE: f64 = 1e-3;

/// The 95 % interval of the mean of clusters of values on a scale. `None` without values.
pub fn interval(clusters: &[Cluster], scale: [f64; 2]) -> Option<Interval> {
    let mean = Mean::from_clusters(clusters)?.mean;
    let values: u64 = clusters.iter().map(|own| own.count).sum();
    let each = values as f64 / clusters.len() as f64;
    let outside = (1.0 - LEVEL / 100.0) / 2.0;
    let solve = |added: f64, wanted: f64| {
        bisect(scale[0], scale[1], HALVINGS, |middle| {
            let own = clusters.iter().map(|own| own.sum - middle * own.count as f64);
            let parts: Vec<f64> = own.chain([(added - middle) * each]).collect();
            below_zero(&parts) < wanted
        })
    };
    let [least, most] = scale;
    Some(Interval {
        low: solve(least, outside).min(mean),
        high: solve(most, 1.0 - outside).max(mean),
    })
}

/// The probability that a sum of exponential numbers, each times its part, is at most zero.
fn below_zero(parts: &[f64]) -> f64 {
    let least = parts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = parts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least >= 0.0 {
        return 0.0;
    }
    if most <= 0.0 {
        return 1.0;
    }
    let slope = |at: f64| parts.iter().map(|own| own / (1.0 - at * own)).sum::<f64>();
    let at = bisect(1.0 / least, 1.0 / most, HALVINGS, |at| slope(at) < 0.0);
    let generated: f64 = parts.iter().map(|own| -(-at * own).ln_1p()).sum();
    let curvature: f64 = parts.iter().map(|own| (own / (1.0 - at * own)).powi(2)).sum();
    let away = at.signum() * (-2.0 * generated).max(0.0).sqrt();
    if away.abs() < MIDDLE {
        return 0.5;
    }
    let beyond = student::two_sided(away, f64::INFINITY) / 2.0;
    let normal = if away < 0.0 { beyond } else { 1.0 - beyond };
    let density = (-away * away / 2.0).exp() / TAU.sqrt();
    normal + density * (1.0 / away - 1.0 / (at * curvature.sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_mt::Mt64;

    fn alone(values: impl IntoIterator<Item = f64>) -> Vec<Cluster> {
        values.into_iter().map(|sum| Cluster { sum, count: 1 }).collect()
    }

    /// Clopper and Pearson's bounds, as printed for 10 of 100 and as in closed form for 0 of 20.
    #[test]
    fn intervals_of_zeros_and_ones_are_clopper_and_pearsons() {
        let of = |ones: u32, zeros: u32| {
            let values = (0..ones + zeros).map(|place| f64::from(u8::from(place < ones)));
            interval(&alone(values), [0.0, 1.0]).unwrap()
        };
        let tenth = of(10, 90);
        assert!((tenth.low - 0.049_005).abs() < 1e-4, "{tenth:?}");
        assert!((tenth.high - 0.176_223).abs() < 1e-4, "{tenth:?}");
        let none = of(0, 20);
        assert!(none.low < 1e-9 && (none.high - (1.0 - 0.025_f64.powf(0.05))).abs() < 1e-3);
        assert_eq!(interval(&[], [0.0, 1.0]), None);
    }

    /// Equal grades show that others are rare, and the more so the more there are.
    #[test]
    fn equal_grades_have_an_interval() {
        let of = |many: usize| interval(&alone(vec![5.0; many]), [1.0, 5.0]).unwrap();
        assert!(of(2).low < 2.0 && of(20).low > 4.0 && of(200).low > 4.9);
        assert_eq!(of(20).high, 5.0);
    }

    /// Turns that repeat each other say no more than one of them.
    #[test]
    fn turns_of_a_conversation_count_as_what_they_show() {
        let turns = |size: u64| -> Vec<Cluster> {
            let of = |i: u64| Cluster { sum: (size * (1 + i % 5)) as f64, count: size };
            (0..20).map(of).collect()
        };
        let [one, ten] = [1, 10].map(|size| interval(&turns(size), [1.0, 5.0]).unwrap());
        assert!((one.low - ten.low).abs() < 1e-9 && (one.high - ten.high).abs() < 1e-9);
    }

    /// Grades from 1 to 5 by these probabilities, which the interval does not know.
    const GRADES: [[f64; 5]; 4] = [
        [0.05, 0.02, 0.03, 0.05, 0.85],
        [0.05, 0.05, 0.05, 0.15, 0.7],
        [0.1, 0.0, 0.0, 0.0, 0.9],
        [0.6, 0.25, 0.1, 0.03, 0.02],
    ];

    /// Student's interval held the first kind in 60 of 100 samples of ten.
    #[test]
    fn few_skewed_grades_hold_their_mean() {
        let mut random = Mt64::new(5);
        let mut uniform = move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let trials = 300;
        for shares in GRADES {
            let grades = || (1..).map(f64::from);
            let mean: f64 = shares.iter().zip(grades()).map(|(share, grade)| share * grade).sum();
            for many in [10, 20] {
                let mut held = 0;
                for _ in 0..trials {
                    let mut draw = || {
                        let mut left = uniform();
                        let is_it = |(share, _): &(&f64, f64)| {
                            left -= **share;
                            left < 0.0
                        };
                        shares.iter().zip(grades()).find(is_it).map_or(5.0, |(_, grade)| grade)
                    };
                    let values: Vec<f64> = (0..many).map(|_| draw()).collect();
                    let found = interval(&alone(values), [1.0, 5.0]).unwrap();
                    held += u32::from(found.low <= mean && mean <= found.high);
                }
                assert!(held >= 276, "{shares:?}, {many}: {held} of {trials}");
            }
        }
    }
}
