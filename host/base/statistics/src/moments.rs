//! Means, variances and the median of values as they are held, without sorting or counting them.
//!
//! Sums run in the order of the values. Where the order may differ from run to run,
//! [`Sorted`](crate::Sorted) and [`Histogram`](crate::Histogram) give the same bits in any order.
//! Two things differ between functions, and their names say so. A mean of no values is not a number
//! or absent, and a variance is divided by n - 1 about the values' own mean or a given one.

/// Figures that differ by less than this share are the same but for rounding.
const ROUNDING: f64 = 1e-9;

/// The arithmetic mean; not a number of no values. As `np.mean`, but that the sum is taken from
/// the first value to the last and not in pairs.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The arithmetic mean as [`mean`] computes it; `None` of no values.
pub fn mean_if_any(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| mean(values))
}

pub fn squares_about(values: &[f64], centre: f64) -> f64 {
    values.iter().map(|x| (x - centre) * (x - centre)).sum()
}

/// The sample variance: squared distances from the mean over n - 1, without bias for independent
/// values, as `np.var` with `ddof=1`. `None` of fewer than two.
pub fn variance(values: &[f64]) -> Option<f64> {
    (values.len() > 1).then(|| variance_about(values, mean(values)))
}

/// The sample variance about a mean that is known already; 0 of one value that is the mean.
pub fn variance_about(values: &[f64], mean: f64) -> f64 {
    squares_about(values, mean) / (values.len() as f64 - 1.0).max(1.0)
}

/// The third standardised moment of independent values, without bias: `scipy.stats.skew` with
/// `bias=False`, given the mean and the sample variance. Takes three values or more.
pub fn skewness(values: &[f64], mean: f64, variance: f64) -> f64 {
    let n = values.len() as f64;
    // A variance that is nothing but rounding has no skewness.
    if variance <= (mean * 1e-12).powi(2) {
        return 0.0;
    }
    let cubes: f64 = values.iter().map(|x| (x - mean).powi(3)).sum();
    cubes * n / ((n - 1.0) * (n - 2.0)) / variance.powf(1.5)
}

/// The middle of several values; of an even number the mean of the two in the middle, as
/// `np.median`. `None` of no values. The 50th percentile of [`Ranked`](crate::Ranked) may differ
/// from it in the last bit.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// True if two figures are the same but for rounding: apart by at most a billionth of the larger.
pub fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By NumPy 2.4 and SciPy 1.17: `np.mean`, `np.var(ddof=1)`, `np.median`, `skew(bias=False)`.
    #[test]
    fn moments_are_numpys_and_too_few_values_have_none() {
        let values = [3.0, 1.0, 2.0, 10.0];
        assert_eq!((mean(&values), median(values.to_vec())), (4.0, Some(2.5)));
        assert_eq!(variance(&values), Some(50.0 / 3.0));
        assert!((skewness(&values, 4.0, 50.0 / 3.0) - 1.763_632_614_803_888).abs() < 1e-12);
        assert_eq!(median(vec![7.0, 1.0, 3.0]), Some(3.0));
        assert!(mean(&[]).is_nan());
        assert_eq!((mean_if_any(&[]), median(Vec::new())), (None, None));
        assert_eq!((variance(&[]), variance(&[5.0])), (None, None));
        assert_eq!(variance_about(&[5.0], 5.0), 0.0);
        assert_eq!(skewness(&[0.1; 11], 0.1, 1e-34), 0.0);
    }
}
