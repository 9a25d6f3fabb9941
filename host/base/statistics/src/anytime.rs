//! The mean of values that come one at a time, and its certainty at every look, whenever one stops.
//!
//! A user who looks after each value and stops as soon as Student's interval is narrow enough stops
//! too early. The interval is narrow where the values happen to lie close together, and holds the
//! mean less often than it claims. A confidence sequence holds it at all times at once, with 95 %
//! probability. This one is for independent normal values of unknown variance. It holds the means
//! against which the t statistic does not reach the bound of Ville's inequality. The evidence is
//! the likelihood ratio of the t statistic, averaged over normal effects with the weight of `PRIOR`
//! values (Lai 1976, "On confidence sequences"; Pérez-Ortiz, Lardy, de Heide and Grünwald 2024,
//! "E-statistics, group invariance and anytime-valid testing"; Wang and Ramdas 2025, "Anytime-valid
//! t-tests and confidence sequences for Gaussian means with unknown variance").

use super::interval::LEVEL;
use super::{Interval, moments};

/// Values that the prior distribution of effects is worth. The more, the narrower the interval of
/// many values and the wider the interval of a few. From 0.15 on, three values have no interval at
/// all.
const PRIOR: f64 = 0.1;

/// The fewest values that have an interval.
pub const FEWEST: usize = 3;

/// Computes the distance from the mean of `values` values to which the interval reaches, in
/// standard errors, in closed form; `None` for fewer than [`FEWEST`].
pub fn quantile(values: usize) -> Option<f64> {
    if values < FEWEST {
        return None;
    }
    let count = values as f64;
    let freedom = count - 1.0;
    let outside = 1.0 - LEVEL / 100.0;
    // The evidence against a mean at t is g^(-1/2) ((1 + t²/ν) / (1 + t²/(g ν)))^(n/2), and reaches
    // 1/α at the quantile.
    let growth = (count + PRIOR) / PRIOR;
    let ratio = (growth.sqrt() / outside).powf(2.0 / count);
    (ratio < growth).then(|| (freedom * (ratio - 1.0) / (1.0 - ratio / growth)).sqrt())
}

/// Computes the interval in which the mean of many more independent normal values lies, with 95 %
/// confidence at any time of looking; `None` of fewer than [`FEWEST`] values.
pub fn mean(values: &[f64]) -> Option<Interval> {
    let quantile = quantile(values.len())?;
    let count = values.len() as f64;
    let mean = moments::mean(values);
    let away = quantile * (moments::variance(values)? / count).sqrt();
    Some(Interval { low: mean - away, high: mean + away })
}

/// Computes the number of values until the interval reaches no further than `within` from their
/// mean, if their standard deviation is `deviation`, in the same unit. `None` if more than `most`.
pub fn needed(deviation: f64, within: f64, most: usize) -> Option<usize> {
    (FEWEST..=most).find(|values| {
        let away = quantile(*values).map(|quantile| quantile * deviation / (*values as f64).sqrt());
        away.is_some_and(|away| away <= within)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::Random;

    const REFERENCE: [(usize, f64); 5] = [
        (3, 13.221_902_3),
        (4, 6.538_232_07),
        (5, 5.411_513_06),
        (8, 4.418_451_4),
        (10, 4.182_671_84),
    ];

    /// Evidence by its definition is 20 at these quantiles: the density of the noncentral t
    /// statistic against the central one, averaged over effects with standard deviation 1/√PRIOR.
    /// `reference.py` prints them by numeric integration in Python (`scipy.stats.nct`,
    /// `scipy.integrate.quad`).
    #[test]
    fn quantiles_are_those_of_the_definition() {
        for (values, wanted) in REFERENCE {
            let got = quantile(values).unwrap();
            assert!((got - wanted).abs() < 1e-7 * wanted, "{values}: {got}, {wanted}");
        }
        assert_eq!(quantile(2), None);
    }

    /// Of sequences that are looked at after each value, from the third to the sixtieth.
    #[test]
    fn the_mean_is_held_at_all_times_at_once() {
        let mut random = Random::new(31);
        let (sequences, mut student) = (2000, 0);
        let lost = (0..sequences).filter(|_| {
            let mut values: Vec<f64> = Vec::new();
            let (mut lost, mut lost_by_student) = (false, false);
            for _ in 0..60 {
                values.push(10.0 + random.normal());
                let Some(found) = mean(&values) else { continue };
                lost |= found.low > 10.0 || found.high < 10.0;
                let student = crate::student::interval(&values, 0.05).unwrap();
                lost_by_student |= student.low > 10.0 || student.high < 10.0;
            }
            student += usize::from(lost_by_student);
            lost
        });
        let lost = lost.count();
        // At most 5 % of them, and Student's interval loses it four times as often.
        assert!(lost <= 100, "{lost} of {sequences}");
        assert!(student > 300, "{student} of {sequences}");
    }

    #[test]
    fn as_many_values_are_needed_as_make_the_interval_narrow_enough() {
        let found = needed(2.0, 5.0, 100).unwrap();
        let away = |values: usize| quantile(values).unwrap() * 2.0 / (values as f64).sqrt();
        assert!(away(found) <= 5.0 && away(found - 1) > 5.0, "{found}");
        assert_eq!(needed(0.0, 5.0, 100), Some(FEWEST));
        assert_eq!(needed(50.0, 5.0, 20), None);
    }
}
