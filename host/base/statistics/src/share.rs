//! Shares: the certainty of the share of right answers, and whether two runs differ in it on the
//! same samples.
//!
//! A share's interval is Wilson's (1927, "Probable inference, the law of succession, and
//! statistical inference"): it stays within 0 and 1, and is honest where all answers are right. Two
//! runs over the same samples differ only in the answers that flipped, so these alone are tested
//! (McNemar 1947), exactly where they are few.

use super::beta::binomial;
use super::interval::NORMAL;
use super::{Interval, student};

/// Fewer flipped answers than this are tested by the binomial distribution itself.
pub const EXACT_BELOW: u64 = 25;

/// The 95 % interval of a share of `answers` independent answers, Wilson's:
/// `scipy.stats.binomtest(...).proportion_ci(method='wilson')`. Their number need not be whole:
/// dependent answers are worth fewer independent ones. `None` without answers.
pub fn wilson(share: f64, answers: f64) -> Option<Interval> {
    if answers <= 0.0 {
        return None;
    }
    let square = NORMAL * NORMAL;
    let middle = share + square / (2.0 * answers);
    let half =
        NORMAL * (share * (1.0 - share) / answers + square / (4.0 * answers * answers)).sqrt();
    let whole = 1.0 + square / answers;
    Some(Interval {
        low: ((middle - half) / whole).clamp(0.0, share),
        high: ((middle + half) / whole).clamp(share, 1.0),
    })
}

/// Answers to the same samples in two runs, each right or wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flips {
    /// Samples that both runs judged.
    pub samples: u64,
    /// Wrong in the first run and right in the second.
    pub gained: u64,
    /// Right in the first run and wrong in the second.
    pub lost: u64,
}

impl Flips {
    /// True if so few flipped that [`Flips::probability`] is exact.
    pub fn is_exact(&self) -> bool {
        self.gained + self.lost < EXACT_BELOW
    }

    /// Computes the probability that flips are at least as uneven if either direction is equally
    /// likely. It is McNemar's test, two-sided, with the binomial distribution below 25 flips, else
    /// the normal one, without a correction for continuity. Assumes independent samples
    /// (`statsmodels.stats.contingency_tables.mcnemar` with `correction=False`).
    pub fn probability(&self) -> f64 {
        let (gained, lost) = (self.gained as f64, self.lost as f64);
        let flipped = gained + lost;
        if flipped == 0.0 {
            return 1.0;
        }
        if self.is_exact() {
            (2.0 * binomial(flipped, 0.5, gained.min(lost))).min(1.0)
        } else {
            student::two_sided((gained - lost) / flipped.sqrt(), f64::INFINITY)
        }
    }

    /// The standard error of the difference, adjusted as [`Flips::interval`], so never zero.
    pub fn error(&self) -> f64 {
        let samples = self.samples as f64 + 2.0;
        let (gained, lost) =
            ((self.gained as f64 + 1.0) / samples, (self.lost as f64 + 1.0) / samples);
        ((gained + lost - (gained - lost).powi(2)) / samples).sqrt()
    }

    /// The 95 % interval of the second share minus the first: Wald's with one flip more each way
    /// (Bonett and Price 2012, "Adjusted Wald confidence interval for a difference of binomial
    /// proportions based on paired data"). `None` without samples.
    pub fn interval(&self) -> Option<Interval> {
        if self.samples == 0 {
            return None;
        }
        let middle = (self.gained as f64 - self.lost as f64) / (self.samples as f64 + 2.0);
        let half = NORMAL * self.error();
        Some(Interval { low: (middle - half).max(-1.0), high: (middle + half).min(1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: Interval, [low, high]: [f64; 2]) {
        let is_close = |a: f64, b: f64| (a - b).abs() < 6e-5;
        assert!(is_close(got.low, low) && is_close(got.high, high), "{got:?}, {low} to {high}");
    }

    /// The examples of Newcombe 1998, "Two-sided confidence intervals for the single proportion",
    /// table I, method 3.
    #[test]
    fn intervals_are_newcombes() {
        for (right, of, wanted) in [
            (81.0, 263.0, [0.2553, 0.3662]),
            (15.0, 148.0, [0.0624, 0.1605]),
            (0.0, 20.0, [0.0, 0.1611]),
            (1.0, 29.0, [0.0061, 0.1718]),
        ] {
            close(wilson(right / of, of).unwrap(), wanted);
            let mirrored = wilson(1.0 - right / of, of).unwrap();
            close(mirrored, [1.0 - wanted[1], 1.0 - wanted[0]]);
        }
        assert_eq!(wilson(0.5, 0.0), None);
    }

    fn flips(samples: u64, gained: u64, lost: u64) -> Flips {
        Flips { samples, gained, lost }
    }

    /// Binomial probabilities by hand, and the approval of a prime minister (Agresti 1990, page
    /// 350): 86 and 150 of 1600 flipped, so the statistic is 64² / 236 = 17.36. Beyond that the
    /// chi-squared distribution of one degree has 3.1e-5.
    #[test]
    fn tests_are_mcnemars() {
        for (found, wanted) in [
            (flips(10, 0, 0), 1.0),
            (flips(10, 3, 3), 1.0),
            (flips(10, 0, 5), 2.0 / 32.0),
            // (1 + 10 + 45) / 1024, both ways.
            (flips(100, 2, 8), 0.109_375),
            (flips(100, 8, 2), 0.109_375),
            (flips(1600, 86, 150), 3.099e-5),
        ] {
            let got = found.probability();
            assert!((got - wanted).abs() < 1e-3 * wanted, "{found:?}: {got}");
        }
        assert!(flips(100, 12, 12).is_exact() && !flips(100, 13, 12).is_exact());
    }

    /// The approval again: by hand, (86 - 150) / 1602 ± 1.96 √(((87 + 151) / 1602 - (64 / 1602)²) /
    /// 1602).
    #[test]
    fn intervals_of_differences_are_adjusted() {
        close(flips(1600, 86, 150).interval().unwrap(), [-0.058_726, -0.021_174]);
        let none = flips(50, 0, 0).interval().unwrap();
        assert!(none.low < 0.0 && none.high > 0.0 && none.low == -none.high);
        assert_eq!(flips(0, 0, 0).interval(), None);
    }
}
