//! The model of trials and rounds: a start's value is its trial's effect, plus its round's effect,
//! plus chance.
//!
//! Rounds are interleaved, so a round's effect on one trial is its effect on all. The model takes
//! that out of every difference, and estimates chance from all trials together. Cells may be
//! missing: the effects are the least-squares effects, as `np.linalg.lstsq` gives them (the
//! additive two-way layout; Scheffé 1959, "The Analysis of Variance"). It assumes that trials and
//! rounds do not interact, and that residuals are independent, normal and equally large in all
//! cells. A trial is held against another where rounds connect them, directly or through others.

use std::collections::BTreeMap;

use crate::moments::mean_if_any;

/// The variation that the trials and rounds of an experiment leave unexplained.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Residual {
    pub squares: f64,
    pub freedom: f64,
}

impl Residual {
    /// Both together, as an estimate of the same variance.
    pub fn and(self, other: Residual) -> Residual {
        Residual { squares: self.squares + other.squares, freedom: self.freedom + other.freedom }
    }

    /// The standard deviation; nothing where nothing is left to estimate it from.
    pub fn deviation(self) -> Option<f64> {
        (self.freedom >= 1.0).then(|| (self.squares / self.freedom).sqrt())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// The amount by which the second one is above the first.
    pub estimate: f64,
    /// Its variance, where the variance of a single value is 1.
    pub variance: f64,
    pub values: [usize; 2],
}

#[derive(Clone, Debug)]
pub struct Fit {
    trials: Vec<Option<Side>>,
    /// The rounds in order, with their effects and the part of the experiment that they belong to.
    rounds: Vec<(u32, f64, usize)>,
    /// The variances of the rounds' effects in units of a value's; a part's first round has 0.
    variances: Vec<Vec<f64>>,
    residual: Residual,
}

#[derive(Clone, Debug)]
struct Side {
    mean: f64,
    /// The share of each round in their mean: 1 / `values` where the round has a value, else 0.
    shares: Vec<f64>,
    values: usize,
}

/// Squares below this one, for each value, are due to rounding: values are logarithms.
const ROUNDING: f64 = 1e-24;

impl Fit {
    /// The model of the values of each trial, by round; a trial has at most one value in a round.
    pub fn new(values: &[Vec<(u32, f64)>]) -> Self {
        let mut places: BTreeMap<u32, usize> = BTreeMap::new();
        for (round, _) in values.iter().flatten() {
            places.insert(*round, 0);
        }
        for (number, place) in places.values_mut().enumerate() {
            *place = number;
        }
        let many = places.len();
        let trials: Vec<Option<Side>> = values.iter().map(|of| Side::new(of, &places)).collect();
        // Least squares for the rounds alone, once each trial's mean is taken out.
        let mut matrix = vec![vec![0.0; many]; many];
        let mut right = vec![0.0; many];
        for (of, side) in values.iter().zip(&trials) {
            let Some(side) = side else { continue };
            for (round, value) in of {
                let place = places[round];
                matrix[place][place] += 1.0;
                right[place] += value - side.mean;
            }
            let taken = side.shares.iter().enumerate();
            for (row, share) in taken.filter(|(_, share)| **share > 0.0) {
                for (column, other) in side.shares.iter().enumerate() {
                    matrix[row][column] -= side.values as f64 * share * other;
                }
            }
        }
        let parts = parts(&trials, many);
        let variances = inverse(matrix, &parts);
        let effects = variances.iter().map(|row| dot(row, &right));
        let mut rounds: Vec<(u32, f64, usize)> = places
            .keys()
            .zip(effects)
            .zip(&parts)
            .map(|((round, effect), part)| (*round, effect, *part))
            .collect();
        // An effect is a distance from the part's mean, a trial's effect its level over all rounds.
        let centre = |part: usize| {
            let of = rounds.iter().filter(|(.., own)| *own == part);
            let of: Vec<f64> = of.map(|(_, effect, _)| *effect).collect();
            mean_if_any(&of).unwrap_or_default()
        };
        let centres: Vec<f64> = (0..many).map(centre).collect();
        for (_, effect, part) in &mut rounds {
            *effect -= centres[*part];
        }
        let mut fit = Fit { trials, rounds, variances, residual: Residual::default() };
        fit.residual = fit.left(values, &places);
        fit
    }

    fn left(&self, values: &[Vec<(u32, f64)>], places: &BTreeMap<u32, usize>) -> Residual {
        let (mut squares, mut count) = (0.0, 0.0);
        for (place, of) in values.iter().enumerate() {
            let Some(level) = self.level(place) else { continue };
            for (round, value) in of {
                squares += (value - level - self.rounds[places[round]].1).powi(2);
                count += 1.0;
            }
        }
        let trials = self.trials.iter().flatten().count() as f64;
        let mut parts: Vec<usize> = self.rounds.iter().map(|(.., part)| *part).collect();
        parts.sort_unstable();
        parts.dedup();
        let freedom = count - trials - (self.rounds.len() - parts.len()) as f64;
        Residual { squares: if squares <= ROUNDING * count { 0.0 } else { squares }, freedom }
    }

    pub fn residual(&self) -> Residual {
        self.residual
    }

    /// A trial's level over all rounds that are connected with its own, with or without a value.
    pub fn level(&self, trial: usize) -> Option<f64> {
        let side = self.trials.get(trial)?.as_ref()?;
        let effects: Vec<f64> = self.rounds.iter().map(|(_, effect, _)| *effect).collect();
        Some(side.mean - dot(&side.shares, &effects))
    }

    /// The rounds with their effects, told from the mean of the rounds connected with each.
    pub fn rounds(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.rounds.iter().map(|(round, effect, _)| (*round, *effect))
    }

    /// The difference of a trial from the first; nothing without values or connecting rounds.
    pub fn apart(&self, base: usize, trial: usize) -> Option<Contrast> {
        let [a, b] = [base, trial].map(|place| self.trials.get(place)?.as_ref());
        let (a, b) = (a?, b?);
        if self.part(a) != self.part(b) {
            return None;
        }
        let each = 1.0 / a.values as f64 + 1.0 / b.values as f64;
        Some(Contrast {
            estimate: self.level(trial)? - self.level(base)?,
            variance: each + self.form(&minus(a, b), &minus(a, b)),
            values: [a.values, b.values],
        })
    }

    /// The least correlation between the differences of two trials from a third one.
    pub fn correlation(&self, base: usize, trials: &[usize]) -> f64 {
        let Some(Some(a)) = self.trials.get(base) else { return 0.0 };
        // Trials that have values in the same rounds have the same correlations.
        let mut kinds: Vec<(&Side, usize)> = Vec::new();
        for side in trials.iter().filter_map(|place| self.trials[*place].as_ref()) {
            match kinds.iter_mut().find(|(kind, _)| kind.shares == side.shares) {
                Some((_, count)) => *count += 1,
                None => kinds.push((side, 1)),
            }
        }
        let common =
            |b: &Side, c: &Side| 1.0 / a.values as f64 + self.form(&minus(a, b), &minus(a, c));
        let variance = |b: &Side| common(b, b) + 1.0 / b.values as f64;
        let mut least: f64 = 1.0;
        for (place, (b, count)) in kinds.iter().enumerate() {
            for (c, _) in &kinds[place..] {
                let is_alone = std::ptr::eq(*b, *c) && *count == 1;
                if !is_alone {
                    least = least.min(common(b, c) / (variance(b) * variance(c)).sqrt());
                }
            }
        }
        least.clamp(0.0, 1.0)
    }

    fn part(&self, side: &Side) -> Option<usize> {
        let first = side.shares.iter().position(|share| *share > 0.0)?;
        Some(self.rounds[first].2)
    }

    fn form(&self, left: &[f64], right: &[f64]) -> f64 {
        let rows = left.iter().zip(&self.variances);
        rows.map(|(value, row)| value * dot(row, right)).sum()
    }
}

impl Side {
    fn new(values: &[(u32, f64)], places: &BTreeMap<u32, usize>) -> Option<Side> {
        let all: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
        let mut shares = vec![0.0; places.len()];
        for (round, _) in values {
            shares[places[round]] = 1.0 / values.len() as f64;
        }
        Some(Side { mean: mean_if_any(&all)?, shares, values: values.len() })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn minus(a: &Side, b: &Side) -> Vec<f64> {
    let pairs = b.shares.iter().zip(&a.shares);
    pairs.map(|(b, a)| b - a).collect()
}

/// The part of each round, named by its first: rounds that share a trial are of one part.
fn parts(trials: &[Option<Side>], rounds: usize) -> Vec<usize> {
    let mut parts: Vec<usize> = (0..rounds).collect();
    for side in trials.iter().flatten() {
        let own = side.shares.iter().enumerate();
        let own: Vec<usize> =
            own.filter(|(_, share)| **share > 0.0).map(|(round, _)| parts[round]).collect();
        let first = own.iter().copied().min().unwrap_or_default();
        if own.iter().any(|part| *part != first) {
            for part in &mut parts {
                if own.contains(part) {
                    *part = first;
                }
            }
        }
    }
    parts
}

/// The inverse of a matrix without the rows and columns of the first round of each part, which stay
/// zero. Gauss and Jordan's elimination; the rest is positive definite, so the diagonal serves as
/// pivots.
fn inverse(mut matrix: Vec<Vec<f64>>, parts: &[usize]) -> Vec<Vec<f64>> {
    let many = matrix.len();
    let kept: Vec<usize> = (0..many).filter(|place| parts[*place] != *place).collect();
    let mut inverse = vec![vec![0.0; many]; many];
    for place in &kept {
        inverse[*place][*place] = 1.0;
    }
    for pivot in &kept {
        let by = matrix[*pivot][*pivot];
        for column in &kept {
            matrix[*pivot][*column] /= by;
            inverse[*pivot][*column] /= by;
        }
        let (own, own_inverse) = (matrix[*pivot].clone(), inverse[*pivot].clone());
        for row in kept.iter().filter(|row| *row != pivot) {
            let by = matrix[*row][*pivot];
            for column in &kept {
                matrix[*row][*column] -= by * own[*column];
                inverse[*row][*column] -= by * own_inverse[*column];
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::{Fit, Residual};

    fn close(got: f64, wanted: f64) -> bool {
        (got - wanted).abs() < 1e-9
    }

    /// Two trials in common rounds: mean and deviation of the differences.
    #[test]
    fn two_trials_are_a_paired_test() {
        let fit =
            Fit::new(&[vec![(1, 1.0), (2, 5.0), (3, 3.0)], vec![(1, 2.0), (2, 7.0), (3, 6.0)]]);
        let apart = fit.apart(0, 1).unwrap();
        assert!(close(apart.estimate, 2.0) && close(apart.variance, 2.0 / 3.0));
        // The differences 1, 2 and 3 have the variance 1, the variance of two values together.
        let Residual { squares, freedom } = fit.residual();
        assert!(close(squares / freedom, 0.5) && freedom == 2.0);
        assert!(close(fit.level(0).unwrap(), 3.0) && close(fit.level(1).unwrap(), 5.0));
    }

    /// Missing cells, against NumPy's least squares; `twoway/twoway.py` has the table.
    #[test]
    fn missing_cells_are_least_squares() {
        let fit = Fit::new(&[
            vec![(1, 0.10), (2, 0.35), (3, 0.18), (4, 0.21)],
            vec![(1, 0.22), (3, 0.33)],
            vec![(2, 0.51), (3, 0.29), (4, 0.40)],
            vec![(4, 0.05)],
        ]);
        let wanted = include_str!("twoway/twoway.csv");
        let rows = wanted.lines().filter(|line| !line.starts_with('#')).skip(1);
        for row in rows {
            let cells: Vec<&str> = row.split(',').collect();
            let number = |place: usize| cells[place].parse::<f64>().unwrap();
            let trial = cells[0].parse::<usize>().unwrap();
            let apart = fit.apart(0, trial).unwrap();
            assert!(close(apart.estimate, number(1)), "{row}: {apart:?}");
            assert!(close(apart.variance, number(2)), "{row}: {apart:?}");
            let Residual { squares, freedom } = fit.residual();
            assert!(close(squares, number(3)) && freedom == number(4), "{row}");
            if trial == 3 {
                continue;
            }
            let correlation = fit.correlation(0, &[trial, 3]);
            assert!(close(correlation, number(5)), "{row}: {correlation}");
        }
    }

    /// All trials in all rounds: any two differences from one are correlated by a half.
    #[test]
    fn complete_rounds_have_a_correlation_of_a_half() {
        let row = |by: f64| (1..=3).map(|round| (round, by * f64::from(round))).collect();
        let fit = Fit::new(&[row(1.0), row(2.0), row(0.5), row(1.5)]);
        assert!(close(fit.correlation(0, &[1, 2, 3]), 0.5));
    }

    #[test]
    fn what_no_round_connects_is_not_compared() {
        let fit = Fit::new(&[vec![(1, 1.0)], vec![(2, 2.0)], vec![]]);
        assert_eq!((fit.apart(0, 1), fit.apart(0, 2)), (None, None));
        assert_eq!(fit.residual().freedom, 0.0);
        // A third trial that is in both rounds connects them.
        let fit = Fit::new(&[vec![(1, 1.0)], vec![(2, 2.0)], vec![(1, 0.0), (2, 3.0)]]);
        let apart = fit.apart(0, 1).unwrap();
        assert!(close(apart.estimate, -2.0) && close(apart.variance, 4.0));
    }
}
