//! The difference of two sides in a figure, and its certainty.
//!
//! **One run per side.** The runs' blocks are resampled ([`bootstrap`](crate::bootstrap)). They do
//! not show the variation of whole runs from one to the next, so that enters from outside
//! ([`RunVariation`]).
//!
//! **Several runs per side.** The variation between runs of the same scenario counts. Intervals are
//! Student's, over one value per run ([`between_runs`]). A permutation test would not assume a
//! distribution, but three runs against three allow only twenty permutations: it could never show
//! anything at 5 %.

use crate::interval::{Interval, LEVEL};
use crate::moments::{mean, variance};
use crate::student;

/// A standard error, and the degrees of freedom with which it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StandardError {
    pub error: f64,
    pub freedom: f64,
}

impl StandardError {
    /// The standard error of the difference of two sides' means. Where sides have the same number
    /// of values, Student's test keeps its level though they vary differently, and one degree of
    /// freedom more matters with so few: `scipy.stats.ttest_ind`. Else the degrees of freedom are
    /// Welch's (1947, "The generalization of Student's problem when several different population
    /// variances are involved"; `equal_var=False`). A side of one value is assumed to vary as the
    /// other does. `None` if neither side has two values, or one has none.
    pub fn between(a: &[f64], b: &[f64]) -> Option<Self> {
        let (many, more) = (a.len() as f64, b.len() as f64);
        let (error, freedom) = match (variance(a), variance(b)) {
            (Some(va), Some(vb)) => {
                let (ea, eb) = (va / many, vb / more);
                let freedom = if a.len() != b.len() && ea + eb > 0.0 {
                    let spread = ea * ea / (many - 1.0) + eb * eb / (more - 1.0);
                    (ea + eb) * (ea + eb) / spread
                } else {
                    many + more - 2.0
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
        Some(StandardError { error, freedom })
    }

    /// The degrees of freedom of the sum of two independent errors (Satterthwaite 1946, "An
    /// approximate distribution of estimates of variance components").
    pub fn joint_freedom(self, other: StandardError) -> f64 {
        let (ours, theirs) = (self.error.powi(2), other.error.powi(2));
        if ours + theirs == 0.0 {
            return self.freedom;
        }
        let spread = ours * ours / self.freedom + theirs * theirs / other.freedom;
        (ours + theirs).powi(2) / spread
    }

    /// The p-value: how likely a difference this large is if there is none.
    pub fn probability(self, difference: f64) -> f64 {
        if difference == 0.0 {
            return 1.0;
        }
        student::two_sided(difference.abs() / self.error, self.freedom)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    pub interval: Interval,
    pub sure: StandardError,
    /// The p-value: how likely a difference this large is if there is none.
    pub probability: f64,
    /// The standard deviation from run to run that is in the error beside the variation of a run's
    /// blocks, as a share of the figure.
    pub run_variation: Option<f64>,
    /// True if the metric walks through the run, so that the run is one sample of it.
    pub walks: bool,
}

impl Estimate {
    /// The smallest true difference that nine of ten such comparisons find at 5 %.
    pub fn detectable(&self) -> f64 {
        student::detectable(1.0 - LEVEL / 100.0, self.sure.freedom) * self.sure.error
    }

    /// True if the difference is surely smaller than a limit, by two one-sided tests at 5 %
    /// (Schuirmann 1987, "A comparison of the two one-sided tests procedure and the power
    /// approach").
    pub fn is_within(&self, difference: f64, limit: f64) -> bool {
        let away = student::quantile(2.0 * (1.0 - LEVEL / 100.0), self.sure.freedom);
        difference.abs() + away * self.sure.error <= limit
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunVariation {
    /// The standard deviation of one run, as a share of the figure.
    pub share: f64,
    /// The degrees of freedom with which it is known; infinite if it is assumed.
    pub freedom: f64,
    /// True if it contains the variation that the blocks of a run show too.
    pub is_whole: bool,
}

impl RunVariation {
    /// The same, for a figure that varies `sensitivity` times as much as assumed. Variation from
    /// repeats is of the figure itself already.
    #[must_use]
    pub fn times(self, sensitivity: f64) -> Self {
        if self.is_whole {
            return self;
        }
        RunVariation { share: self.share * sensitivity, ..self }
    }

    /// The standard error of two runs with this variation, given the error from within them. It is
    /// the root of the sum of squares where both are independent, else the larger of the two.
    pub(crate) fn beside(self, within: StandardError) -> StandardError {
        let between = StandardError { error: self.share * 2.0_f64.sqrt(), freedom: self.freedom };
        if !self.is_whole {
            return StandardError {
                error: within.error.hypot(between.error),
                freedom: within.joint_freedom(between),
            };
        }
        // The error from repeats contains the error from the blocks, and is known no better than
        // their number allows.
        StandardError {
            error: within.error.max(between.error),
            freedom: within.freedom.min(between.freedom),
        }
    }
}

/// The difference of sides, at least one of them with several runs, with one value per run:
/// Student's test, or Welch's where sides have different numbers of runs
/// ([`StandardError::between`]). Where a side has one run, both vary by `pooled`, if given. `None`
/// if neither has several.
pub fn between_runs(a: &[f64], b: &[f64], pooled: Option<RunVariation>) -> Option<Estimate> {
    let difference = mean(b) - mean(a);
    let own = StandardError::between(a, b)?;
    let sure = pooled.filter(|_| a.len().min(b.len()) == 1).map_or(own, |varies| {
        let error = |values: &[f64]| mean(values) / (values.len() as f64).sqrt();
        StandardError { error: varies.share * error(a).hypot(error(b)), freedom: varies.freedom }
    });
    let away = student::quantile(1.0 - LEVEL / 100.0, sure.freedom) * sure.error;
    Some(Estimate {
        interval: Interval { low: difference - away, high: difference + away },
        sure,
        probability: sure.probability(difference),
        run_variation: None,
        walks: false,
    })
}
