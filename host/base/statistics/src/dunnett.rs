//! Dunnett's distribution: the largest of several differences from one reference, each divided by
//! its standard error, where no difference is there.
//!
//! The differences have the reference and the estimate of the error in common, so they are
//! correlated. Given both, they are independent (Dunnett 1955, "A multiple comparison procedure for
//! comparing several treatments with a control"). The distribution is integrated numerically over
//! both; `dunnett/dunnett.py` compares it with SciPy.

use crate::{bisect, student};

/// A correlation above this one is taken for it. That makes the test a little stricter, and keeps
/// the integrand smooth.
const MOST_CORRELATED: f64 = 0.9;

/// Degrees of freedom from which on the error counts as known.
const MANY: f64 = 1e5;

/// The largest ratio that is tabulated, and the distance of the table's places.
const TABLE: (f64, f64) = (9.0, 0.03);

/// The distribution of the largest of several ratios, on either side of zero.
#[derive(Clone, Debug)]
pub struct Dunnett {
    many: usize,
    freedom: f64,
    /// The probability that any ratio is larger, if the error is known, by the ratio.
    known: Vec<f64>,
    /// The estimate of the standard error, as a share of the true one, and its probability.
    errors: Vec<(f64, f64)>,
}

impl Dunnett {
    /// The distribution for `many` differences, with the correlation of any two of them and the
    /// degrees of freedom of the error; it covers all differences that are at least as correlated.
    pub fn new(many: usize, correlation: f64, freedom: f64) -> Self {
        let mut of = Dunnett { many, freedom, known: Vec::new(), errors: Vec::new() };
        // One difference has Student's distribution.
        if many > 1 {
            let correlation = correlation.clamp(0.0, MOST_CORRELATED);
            let places = (TABLE.0 / TABLE.1).round() as usize + 4;
            of.known = (0..places)
                .map(|place| any_beyond(place as f64 * TABLE.1, many as f64, correlation))
                .collect();
            of.errors = errors(freedom);
        }
        of
    }

    pub fn many(&self) -> usize {
        self.many
    }

    /// The probability that any of the ratios lies at least that far from zero: the p-value of
    /// `scipy.stats.dunnett` with its two-sided alternative. Assumes normal values of one variance.
    pub fn two_sided(&self, ratio: f64) -> f64 {
        if self.many <= 1 {
            return student::two_sided(ratio, self.freedom);
        }
        if ratio.is_infinite() {
            return 0.0;
        }
        let each = self.errors.iter();
        let sum: f64 =
            each.map(|(error, weight)| weight * self.known_beyond(ratio.abs() * error)).sum();
        sum.clamp(0.0, 1.0)
    }

    /// The distance from zero beyond which the largest ratio lies so often, by bisection.
    pub fn quantile(&self, outside: f64) -> f64 {
        let (mut low, mut high) = (0.0, student::quantile(outside, self.freedom));
        while self.two_sided(high) > outside && high < 1e12 {
            (low, high) = (high, high * 2.0);
        }
        bisect(low, high, 60, |ratio| self.two_sided(ratio) > outside)
    }

    /// A place of the table, interpolated by the cubic through its four neighbours.
    fn known_beyond(&self, ratio: f64) -> f64 {
        if ratio >= TABLE.0 {
            return 0.0;
        }
        let at = ratio / TABLE.1;
        let place = at.floor() as usize;
        // The function is even, so that its first place has a neighbour below zero.
        let value = |step: i64| self.known[(place as i64 + step).unsigned_abs() as usize];
        let x = at - at.floor();
        let [a, b, c, d] = [-1, 0, 1, 2].map(value);
        -x * (x - 1.0) * (x - 2.0) / 6.0 * a + (x + 1.0) * (x - 1.0) * (x - 2.0) / 2.0 * b
            - (x + 1.0) * x * (x - 2.0) / 2.0 * c
            + (x + 1.0) * x * (x - 1.0) / 6.0 * d
    }
}

/// The probability that any of `many` equally correlated normal numbers lies beyond a distance from
/// zero: by the trapezoidal rule over their common part, which converges exponentially for such
/// integrands.
fn any_beyond(distance: f64, many: f64, correlation: f64) -> f64 {
    const STEP: f64 = 0.25;
    let (common, own) = (correlation.sqrt(), (1.0 - correlation).sqrt());
    let each = (0..28).map(|place| {
        let z = f64::from(place) * STEP;
        let weight = if place == 0 { 1.0 } else { 2.0 } * STEP * density(z);
        let tail = above((distance - common * z) / own) + above((distance + common * z) / own);
        weight * -(many * (-tail.min(1.0)).ln_1p()).exp_m1()
    });
    each.sum()
}

/// Estimates of a standard error, as shares of the true one, with their probabilities. They are the
/// root of a chi-squared number over its degrees of freedom, by the trapezoidal rule over its
/// logarithm.
fn errors(freedom: f64) -> Vec<(f64, f64)> {
    if freedom >= MANY {
        return vec![(1.0, 1.0)];
    }
    let step = 0.4 / (2.0 * freedom).sqrt();
    let log = |u: f64| freedom * (u - (2.0 * u).exp_m1() / 2.0);
    let side = |sign: f64| {
        let places = (0..).map(move |place| sign * f64::from(place) * step);
        let weights = places.map(|u| (u.exp(), log(u).exp()));
        weights.take_while(|(_, weight)| *weight > 1e-16)
    };
    let mut all: Vec<(f64, f64)> = side(1.0).chain(side(-1.0).skip(1)).collect();
    let sum: f64 = all.iter().map(|(_, weight)| weight).sum();
    for (_, weight) in &mut all {
        *weight /= sum;
    }
    all
}

fn density(z: f64) -> f64 {
    (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()
}

/// The probability that a normal number is larger, by the series of Marsaglia 2004, "Evaluating the
/// normal distribution".
fn above(z: f64) -> f64 {
    if z.abs() > 8.0 {
        return if z > 0.0 { 0.0 } else { 1.0 };
    }
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term.abs() > 1e-17 {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    0.5 - sum * density(z)
}

#[cfg(test)]
mod tests {
    use super::Dunnett;

    /// Against `scipy.stats.dunnett` and SciPy's quadrature: `dunnett/dunnett.py` wrote the table.
    #[test]
    fn it_is_what_scipy_says() {
        let table = include_str!("dunnett/dunnett.csv");
        let rows = table.lines().filter(|line| !line.starts_with('#')).skip(1);
        let mut many = 0;
        for row in rows {
            let cells: Vec<f64> = row.split(',').map(|cell| cell.parse().unwrap()).collect();
            let [k, correlation, freedom, ratio, wanted, quantile] = cells[..] else {
                panic!("{row}")
            };
            let of = Dunnett::new(k as usize, correlation, freedom);
            let got = of.two_sided(ratio);
            assert!((got - wanted).abs() < 1e-6, "{row}: {got}");
            let got = of.quantile(0.05);
            assert!((got / quantile - 1.0).abs() < 1e-5, "{row}: {got}");
            many += 1;
        }
        assert!(many >= 20, "{many} rows");
    }

    /// Two-sided 5 % points of the table of Dunnett 1964, "New tables for multiple comparisons with
    /// a control".
    #[test]
    fn quantiles_are_those_of_the_printed_table_and_of_student() {
        for (freedom, wanted) in [
            (5.0, [3.03, 3.29, 3.48, 3.62]),
            (10.0, [2.57, 2.76, 2.89, 2.99]),
            (20.0, [2.38, 2.54, 2.65, 2.73]),
        ] {
            for (k, wanted) in (2..).zip(wanted) {
                let got = Dunnett::new(k, 0.5, freedom).quantile(0.05);
                assert!((got - wanted).abs() < 0.0075, "{k}, {freedom}: {got}");
            }
        }
        let p = |many, ratio| Dunnett::new(many, 0.5, 4.0).two_sided(ratio);
        assert_eq!(p(1, 2.5), crate::student::two_sided(2.5, 4.0));
        assert!(p(2, 2.5) > p(1, 2.5) && p(3, 2.5) > p(2, 2.5));
        assert!((p(3, 0.0) - 1.0).abs() < 1e-9 && p(3, f64::INFINITY) == 0.0);
    }
}
