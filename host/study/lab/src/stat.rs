//! Differences between trials: ratios with intervals, and which of several are shown.
//!
//! A run's figure is taken as its logarithm, so a difference is a ratio, and a mean over scenarios
//! is a geometric mean. The unit is a start of the engine: the common effects on the scenarios of
//! one start (the place of memory, the warmth of the machine) vary from start to start. Each start
//! has one value, the mean over its scenarios.
//!
//! Trials are run in the same rounds. [`Fit`](statistics::twoway::Fit) removes the effect of rounds,
//! estimates the error from all trials together, and [`Family`] has Dunnett's test and intervals.
//! The probability of showing any difference that does not exist, or of any interval not holding
//! the truth, is at most 5 % over all trials of a stage.
//!
//! The arithmetic is in `statistics`.

use statistics::dunnett::Dunnett;
use statistics::trend::slope;
use statistics::twoway::{Contrast, Residual};
use statistics::{mean_if_any, student};

/// The share of cases in which an interval misses the truth, or a false difference is shown.
pub const OUTSIDE: f64 = 0.05;

/// Differences below this share are due to rounding.
const ROUNDING: f64 = 1e-9;

/// A figure over repeats.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The ends of its 95 % interval, by Student's distribution; absent with one repeat.
    pub interval: Option<[f64; 2]>,
    /// The number of repeats.
    pub repeats: usize,
}

/// A figure over repeats; nothing without repeats.
pub fn spread(values: &[f64]) -> Option<Spread> {
    Some(Spread {
        mean: mean_if_any(values)?,
        interval: student::interval(values, OUTSIDE).map(|own| [own.low, own.high]),
        repeats: values.len(),
    })
}

/// The gain of a trial over another.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Gain {
    /// The gain in percent; negative if it is worse. A figure to minimize is 25 % better at 1/1.25
    /// of its value.
    pub percent: f64,
    /// The ends of the 95 % interval, which holds for all trials of a table together; absent where
    /// nothing is left to estimate an error from, as with one repeat.
    pub interval: Option<[f64; 2]>,
    /// The p-value: how likely a difference this large is in any trial of the table if there is
    /// none.
    pub probability: Option<f64>,
    /// Repeats of the other side and of this one.
    pub repeats: [usize; 2],
}

/// Differences of several trials from one, which are judged together.
#[derive(Clone, Debug)]
pub struct Family {
    /// The standard deviation of a single value, as a logarithm, if it can be estimated.
    deviation: Option<f64>,
    freedom: f64,
    dunnett: Dunnett,
    /// The number of standard errors that an interval reaches to either side.
    reach: f64,
}

impl Family {
    /// A number of differences; any two have at least the given correlation.
    pub fn new(many: usize, correlation: f64, residual: Residual) -> Self {
        let deviation = residual.deviation();
        let many = if deviation.is_some() { many } else { 0 };
        let dunnett = Dunnett::new(many, correlation, residual.freedom.max(1.0));
        Family { deviation, freedom: residual.freedom, reach: dunnett.quantile(OUTSIDE), dunnett }
    }

    /// The same differences in another figure, which has an error of its own.
    pub fn with(&self, residual: Residual, many: usize, correlation: f64) -> Self {
        if residual.freedom == self.freedom && many == self.dunnett.many() {
            Family { deviation: residual.deviation(), ..self.clone() }
        } else {
            Family::new(many, correlation, residual)
        }
    }

    /// A difference as a gain, with its interval and p-value among all of them.
    pub fn gain(&self, apart: &Contrast) -> Gain {
        let estimate = rounded(apart.estimate);
        let error = self.deviation.map(|deviation| deviation * apart.variance.sqrt());
        Gain {
            percent: percent(estimate),
            interval: error.map(|error| {
                let away = self.reach * error;
                [percent(estimate - away), percent(estimate + away)]
            }),
            probability: error.map(|error| {
                if estimate == 0.0 { 1.0 } else { self.dunnett.two_sided(estimate.abs() / error) }
            }),
            repeats: apart.values,
        }
    }

    /// The variation of a single value, if known.
    pub fn noise(&self) -> Option<Noise> {
        Some(Noise {
            percent: percent(self.deviation?),
            freedom: self.freedom,
            outside: student::two_sided(self.reach, self.freedom),
        })
    }
}

/// The variation of starts of one trial within a round, and the certainty that a shown difference
/// needs.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Noise {
    /// The standard deviation from start to start, in percent.
    pub percent: f64,
    /// The degrees of freedom that it is estimated with.
    pub freedom: f64,
    /// The p-value by Student's test of a single difference at which it is shown among all of them.
    pub outside: f64,
}

/// The most rounds that are looked for.
pub const MOST_ROUNDS: u32 = 100;

impl Noise {
    /// The true gain, in percent, that a stage of a number of rounds shows in nine of ten cases.
    pub fn detectable(&self, rounds: u32) -> f64 {
        percent(self.needed(rounds, self.freedom))
    }

    /// The least number of rounds with this number of trials, above `were`, that shows a gain of
    /// that size in nine of ten cases; nothing beyond [`MOST_ROUNDS`].
    pub fn rounds(&self, gain: f64, trials: usize, were: u32) -> Option<u32> {
        let size = (gain / 100.0).ln_1p().abs();
        (were + 1..=MOST_ROUNDS).filter(|_| size > 0.0).find(|rounds| {
            let more = f64::from(rounds - were) * trials.saturating_sub(1) as f64;
            self.needed(*rounds, self.freedom + more) <= size
        })
    }

    fn needed(&self, rounds: u32, freedom: f64) -> f64 {
        let error = (self.percent / 100.0).ln_1p() * (2.0 / f64::from(rounds)).sqrt();
        student::detectable(self.outside, freedom) * error
    }
}

/// A difference of logarithms in percent.
fn percent(log: f64) -> f64 {
    100.0 * log.exp_m1()
}

/// A difference of logarithms; none where it is due to rounding.
fn rounded(apart: f64) -> f64 {
    if apart.abs() < ROUNDING { 0.0 } else { apart }
}

/// A change of all trials from round to round.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Drift {
    /// The gain of figures with each round, in percent; negative if they get worse.
    pub percent_per_round: f64,
    /// The p-value: how likely a trend this large is if there is none.
    pub probability: f64,
}

/// The trend of rounds' effects, which are common to all trials; a group for each experiment,
/// because the trials of the next experiment were chosen by the previous one. The remaining scatter
/// of rounds is the error, so a machine that is now faster and now slower does not drift. Nothing
/// if there is nothing to estimate the error from.
pub fn drift(experiments: &[Vec<(u32, f64)>]) -> Option<Drift> {
    let points = |effects: &Vec<(u32, f64)>| {
        effects.iter().map(|(round, effect)| (f64::from(*round), *effect)).collect()
    };
    let found = slope(&experiments.iter().map(points).collect::<Vec<_>>())?;
    let slope = rounded(found.slope);
    Some(Drift { percent_per_round: percent(slope), probability: found.sure.probability(slope) })
}

/// The number of digits after the point in tables: four digits in all, or all before the point.
pub fn places(value: f64) -> usize {
    match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        0.0 => 0,
        _ => 4,
    }
}

/// A number as messages show it.
pub fn figures(value: f64) -> String {
    format!("{value:.*}", places(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repeat_has_no_interval() {
        assert_eq!(spread(&[5.0]).unwrap().interval, None);
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn a_trend_over_rounds_is_a_drift_and_scatter_is_none() {
        let slower = |from: u32| -> Vec<(u32, f64)> {
            let effect = |round: u32| -0.03 * f64::from(round) + 1e-4 * f64::from(round % 2);
            (from..from + 4).map(|round| (round, effect(round))).collect()
        };
        let found = drift(&[slower(1), slower(5)]).unwrap();
        assert!((found.percent_per_round + 2.95).abs() < 0.1 && found.probability < 1e-6);
        // A difference between two experiments is no trend: other trials are in them.
        let level = |from: u32, effect: f64| vec![(from, effect), (from + 1, effect)];
        let still = drift(&[level(1, 0.0), level(3, -0.5)]).unwrap();
        assert_eq!(still.probability, 1.0);
        // Rounds that scatter by as much as the trend show none.
        let scatter = vec![(1, 0.01), (2, -0.03), (3, 0.03), (4, 0.0), (5, 0.02)];
        assert!(drift(&[scatter]).unwrap().probability > 0.3);
        assert_eq!(drift(&[vec![(1, 2.0)], level(2, 0.1)]), None);
    }

    /// A plan keeps its promise, by SciPy's noncentral distribution: 14 degrees miss by under 1 %.
    #[test]
    fn a_plan_states_the_rounds_to_show_a_gain() {
        let residual = Residual { squares: 14.0 * 1e-4, freedom: 14.0 };
        let noise = Family::new(1, 0.5, residual).noise().unwrap();
        assert!((noise.percent - 1.005).abs() < 1e-3 && (noise.outside - OUTSIDE).abs() < 1e-6);
        // (2.1448 + 1.3450) · 0.01 · √(2/3) is 2.849 %.
        assert!((noise.detectable(3) - 2.890).abs() < 0.01, "{noise:?}");
        assert_eq!(noise.rounds(2.9, 2, 1), Some(3));
        assert_eq!(noise.rounds(1.0, 2, 3), Some(23));
        assert_eq!(noise.rounds(-1.0, 2, 3), Some(23));
        assert_eq!(noise.rounds(0.1, 2, 3), None);
    }
}
