//! Differences between trials: ratios with intervals, and which of several are shown.
//!
//! A run's figure is taken as its logarithm, so a difference is a ratio, and a mean over scenarios is a geometric mean.
//! The unit is a start of the engine: what several scenarios of one start have in common (where memory was placed, how
//! warm the machine was) varies from start to start. Of each start there is one value, the mean over its scenarios.
//!
//! Differences are tested as `compare` tests repeats: Student's test over one value per start, Welch's where sides have
//! different numbers of them. A side of one start is assumed to vary as the other does. Of several differences, Holm's
//! procedure decides which are shown: the probability of showing any that is not there is at most 5 %, whichever the
//! others are (Holm 1979, "A simple sequentially rejective multiple test procedure").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use result::stats::student;

/// The share of cases in which an interval does not hold the truth, and in which something is shown that is not there.
pub const OUTSIDE: f64 = 0.05;

/// Differences below this share are due to rounding.
const ROUNDING: f64 = 1e-9;

/// The arithmetic mean; nothing of no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The variance, divided by n - 1; nothing of fewer than two values.
fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// A figure over repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The ends of its 95 % interval, by Student's distribution; absent of one repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// How many repeats it is of.
    pub repeats: usize,
}

/// A figure over repeats; nothing of none.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let mean = mean(values)?;
    let interval = variance(values).map(|variance| {
        let error = (variance / values.len() as f64).sqrt();
        let away = student::quantile(OUTSIDE, (values.len() - 1) as f64) * error;
        [mean - away, mean + away]
    });
    Some(Spread {
        mean,
        interval,
        repeats: values.len(),
    })
}

/// How much better a trial is than another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Gain {
    /// By how many percent it is better; negative if it is worse. For a figure to minimize, 25 % better is 1/1.25 of
    /// it.
    pub percent: f64,
    /// The ends of the 95 % interval; absent if neither side has more than one repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The p-value: how likely a difference this large is if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Repeats of the other side and of this one.
    pub repeats: [usize; 2],
}

/// How much better the second side is than the first, given the logarithms of its figures; nothing if a side has none.
pub fn gain(base: &[f64], side: &[f64]) -> Option<Gain> {
    let apart = mean(side)? - mean(base)?;
    let apart = if apart.abs() < ROUNDING { 0.0 } else { apart };
    let percent = |log: f64| 100.0 * log.exp_m1();
    let error = error(base, side);
    let away = error.map(|(error, freedom)| student::quantile(OUTSIDE, freedom) * error);
    Some(Gain {
        percent: percent(apart),
        interval: away.map(|away| [percent(apart - away), percent(apart + away)]),
        probability: error.map(|(error, freedom)| match apart == 0.0 {
            true => 1.0,
            false => student::two_sided(apart.abs() / error, freedom),
        }),
        repeats: [base.len(), side.len()],
    })
}

/// The standard error of a difference of means, and its degrees of freedom.
fn error(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let (many, more) = (a.len() as f64, b.len() as f64);
    match (variance(a), variance(b)) {
        (Some(va), Some(vb)) => {
            let (ea, eb) = (va / many, vb / more);
            let pooled = many + more - 2.0;
            // Where sides have as many, Student's test keeps its level though they vary differently.
            let freedom = match a.len() == b.len() || ea + eb == 0.0 {
                true => pooled,
                false => (ea + eb).powi(2) / (ea * ea / (many - 1.0) + eb * eb / (more - 1.0)),
            };
            Some(((ea + eb).sqrt(), freedom))
        }
        (Some(variance), None) => Some(((variance * (1.0 + 1.0 / many)).sqrt(), many - 1.0)),
        (None, Some(variance)) => Some(((variance * (1.0 + 1.0 / more)).sqrt(), more - 1.0)),
        (None, None) => None,
    }
}

/// Which of several differences are shown, by their p-values; those without one are not.
pub fn shown(probabilities: &[Option<f64>]) -> Vec<bool> {
    let mut order: Vec<(usize, f64)> = probabilities
        .iter()
        .enumerate()
        .filter_map(|(place, p)| Some((place, (*p)?)))
        .collect();
    order.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut shown = vec![false; probabilities.len()];
    let many = order.len();
    for (rank, (place, p)) in order.into_iter().enumerate() {
        if p > OUTSIDE / (many - rank) as f64 {
            break;
        }
        shown[place] = true;
    }
    shown
}

/// A change of all trials from round to round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Drift {
    /// By how many percent figures get better with each round; negative if they get worse.
    pub percent_per_round: f64,
    /// The p-value: how likely a trend this large is if there is none.
    pub probability: f64,
}

/// Whether the machine changed during a lab: the trend over rounds that trials have in common. Each group is a trial's
/// rounds and logarithms. Nothing where nothing is left to estimate an error from.
pub fn drift(groups: &[Vec<(f64, f64)>]) -> Option<Drift> {
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    let (mut values, mut trials) = (0.0, 0.0);
    for group in groups.iter().filter(|group| group.len() > 1) {
        let (rounds, logs): (Vec<f64>, Vec<f64>) = group.iter().copied().unzip();
        let (centre, level) = (mean(&rounds)?, mean(&logs)?);
        for (round, log) in group {
            xx += (round - centre).powi(2);
            xy += (round - centre) * (log - level);
            yy += (log - level).powi(2);
        }
        values += group.len() as f64;
        trials += 1.0;
    }
    let freedom = values - trials - 1.0;
    if xx == 0.0 || freedom < 1.0 {
        return None;
    }
    let slope = xy / xx;
    let rest = (yy - slope * xy).max(0.0);
    // What rounding leaves of values that do not vary is no trend.
    let slope = if slope.abs() < ROUNDING { 0.0 } else { slope };
    let error = (rest / freedom / xx).sqrt();
    Some(Drift {
        percent_per_round: 100.0 * slope.exp_m1(),
        probability: match slope == 0.0 {
            true => 1.0,
            false => student::two_sided(slope.abs() / error, freedom),
        },
    })
}

/// How many digits after the point a number has in tables: four digits in all, or all before the point.
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

    fn logs(values: &[f64]) -> Vec<f64> {
        values.iter().map(|value| value.ln()).collect()
    }

    /// Against scipy.stats.ttest_ind of the logarithms.
    #[test]
    fn gains_are_students() {
        let (base, side) = (logs(&[100.0, 102.0, 98.0]), logs(&[110.0, 111.0, 109.0]));
        let found = gain(&base, &side).unwrap();
        assert!((found.percent - 10.0119).abs() < 1e-3, "{found:?}");
        let [low, high] = found.interval.unwrap();
        assert!(
            low > 5.9 && low < 7.0 && high > 13.0 && high < 14.2,
            "{found:?}"
        );
        let p = found.probability.unwrap();
        assert!(p > 0.001 && p < 0.004, "{p}");
        assert_eq!(found.repeats, [3, 3]);
    }

    #[test]
    fn one_repeat_has_no_interval_of_its_own() {
        assert_eq!(spread(&[5.0]).unwrap().interval, None);
        assert_eq!(spread(&[]), None);
        let lone = gain(&logs(&[100.0]), &logs(&[110.0])).unwrap();
        assert_eq!((lone.interval, lone.probability), (None, None));
        // It is assumed to vary as the other side does.
        let beside = gain(&logs(&[100.0, 101.0, 99.0]), &logs(&[110.0])).unwrap();
        assert!(beside.probability.unwrap() < 0.05);
        assert_eq!(gain(&[], &logs(&[1.0])), None);
    }

    #[test]
    fn what_does_not_vary_is_the_same_or_different() {
        let same = gain(&logs(&[7.0; 3]), &logs(&[7.0; 3])).unwrap();
        assert_eq!((same.percent, same.probability), (0.0, Some(1.0)));
        let other = gain(&logs(&[7.0; 3]), &logs(&[7.1; 3])).unwrap();
        assert_eq!(other.probability, Some(0.0));
    }

    #[test]
    fn holm_shows_less_of_more() {
        assert_eq!(shown(&[Some(0.03)]), [true]);
        assert_eq!(shown(&[Some(0.03), Some(0.5)]), [false, false]);
        assert_eq!(
            shown(&[Some(0.03), None, Some(0.001), Some(0.02)]),
            [true, false, true, true]
        );
        assert_eq!(shown(&[Some(0.026), Some(0.02)]), [true, true]);
        assert_eq!(shown(&[]), Vec::<bool>::new());
    }

    #[test]
    fn a_trend_that_trials_share_is_a_drift() {
        let slower = |start: f64| {
            let log = |round: u32| start - 0.03 * f64::from(round) + 1e-4 * f64::from(round % 2);
            (1..=4)
                .map(|round| (f64::from(round), log(round)))
                .collect::<Vec<_>>()
        };
        let found = drift(&[slower(1.0), slower(2.0)]).unwrap();
        assert!((found.percent_per_round + 2.95).abs() < 0.1 && found.probability < 1e-6);
        let still = drift(&[vec![(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)]]).unwrap();
        assert_eq!(still.probability, 1.0);
        assert_eq!(drift(&[vec![(1.0, 2.0)]]), None);
    }
}
