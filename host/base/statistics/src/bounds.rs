//! Bounds of a share by Clopper and Pearson (1934, "The use of confidence or fiducial limits
//! illustrated in the case of the binomial"), and a bound of a number of events. The numbers need
//! not be whole, because requests depend on each other. Bounds of a share assume the given number
//! of independent requests, and no approximation: the share lies beyond a bound in no more than the
//! level of cases.

use crate::beta::binomial;
use crate::bisect;
use crate::interval::NORMAL;

/// The smallest number of independent requests, none of them bad, that shows at a level that no
/// more than a share are bad. It is 459 for one in a hundred at 1 %, by `(1 - allowed)^n <= level`.
/// It is infinite if none may be bad.
pub fn fewest(allowed: f64, level: f64) -> f64 {
    (level.ln() / (-allowed).ln_1p()).ceil()
}

/// The one-sided upper bound of a share, if `bad` of `requests` independent requests were seen:
/// `scipy.stats.beta.isf(level, bad + 1, requests - bad)`.
pub fn upper(bad: f64, requests: f64, level: f64) -> f64 {
    if bad >= requests {
        return 1.0;
    }
    solve(|share| binomial(requests, share, bad) > level)
}

/// The one-sided lower bound of the same share:
/// `scipy.stats.beta.ppf(level, bad, requests - bad + 1)`.
pub fn lower(bad: f64, requests: f64, level: f64) -> f64 {
    if bad < 1.0 {
        return 0.0;
    }
    solve(|share| 1.0 - binomial(requests, share, bad - 1.0) <= level)
}

/// The power of the odds with which long queues get rare.
const RARE: f64 = 1.5;

/// The one-sided lower bound of the share of requests that miss a limit because they wait in a
/// queue, however slowly it changes. It takes the number of runs, each with an empty queue at its
/// start, and the sum of the logarithms of the odds of their misses.
///
/// In heavy traffic a queue is a reflected Brownian motion. Let it be beyond a level for a share p
/// of the time in the long run. From empty on, it is beyond that level for a share s of a run with a
/// probability of at most (odds(p) / odds(s))^1.5, for runs of every length: by simulation, of p
/// from 0.01 to 0.5, of every s above it, and of lengths from a quarter to 64 times the variance over the
/// squared drift (20,000 motions each). Independent runs are combined by the product of their
/// probabilities (Fisher 1932, "Statistical Methods for Research Workers").
pub fn late(runs: u32, odds: f64, level: f64) -> f64 {
    if runs == 0 {
        return 0.0;
    }
    solve(|share| {
        let own = (share / (1.0 - share)).ln();
        let product = (RARE * (f64::from(runs) * own - odds)).min(0.0);
        let (mut term, mut sum) = (1.0, 0.0);
        for run in 0..runs {
            sum += term;
            term *= -product / f64::from(run + 1);
        }
        product.exp() * sum <= level
    })
}

/// The largest mean number of events with which no more than `seen` are seen in one of forty cases.
/// It is by Wilson and Hilferty's approximation of the chi-squared distribution (1931, "The
/// distribution of chi-square"). Assumes that events come as in a Poisson process.
pub fn most_events(seen: f64) -> f64 {
    let next = seen + 1.0;
    let root = 1.0 - 1.0 / (9.0 * next) + NORMAL / (3.0 * next.sqrt());
    next * root.powi(3)
}

/// Finds the share at which a condition ends that holds from zero on.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    bisect(0.0, 1.0, 50, holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_requests_are_those_of_the_tables() {
        assert_eq!(fewest(0.01, 0.01), 459.0);
        assert_eq!(fewest(0.05, 0.05), 59.0);
        assert_eq!(fewest(0.1, 0.05), 29.0);
        assert_eq!(fewest(0.001, 0.01), 4603.0);
        for (allowed, level) in [(0.01, 0.01), (0.001, 0.0005), (0.5, 0.001)] {
            let fewest = fewest(allowed, level);
            assert!(upper(0.0, fewest, level) <= allowed);
            assert!(upper(0.0, fewest - 1.0, level) > allowed);
        }
    }

    /// Of a run with even odds, 1 % less the level to the power of 2/3; the second run says it again.
    #[test]
    fn most_requests_of_a_run_are_late_by_chance_where_many_are_in_the_long_run() {
        let one = late(1, 0.0, 0.001);
        assert!((one / (1.0 - one) - 0.01).abs() < 1e-6, "{one}");
        assert!(late(2, 0.0, 0.001) > 4.0 * one && late(2, 0.0, 0.001) < 0.2);
        assert_eq!(late(0, 0.0, 0.1), 0.0);
    }

    /// Clopper and Pearson's bounds, as printed for 10 of 100 at 95 % on both sides, and the bounds
    /// of all and none.
    #[test]
    fn bounds_are_those_of_the_tables() {
        assert!((lower(10.0, 100.0, 0.025) - 0.049_005).abs() < 1e-5);
        assert!((upper(10.0, 100.0, 0.025) - 0.176_223).abs() < 1e-5);
        assert_eq!((lower(0.0, 50.0, 0.05), upper(50.0, 50.0, 0.05)), (0.0, 1.0));
        assert!((upper(0.0, 29.0, 0.05) - 0.098).abs() < 0.001);
        assert!((lower(29.0, 29.0, 0.05) - 0.902).abs() < 0.001);
    }
}
