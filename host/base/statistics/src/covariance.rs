//! Covariances of several whole numbers of each of many things, in memory that does not grow.
//!
//! Sums are of integers, so the order in which things come makes no difference.

use super::interval::LEVEL;
use super::{Interval, student};

/// Sums of the numbers of things, and of their products.
#[derive(Clone, Debug)]
pub struct Products<const N: usize> {
    count: u64,
    sums: [u128; N],
    products: [[u128; N]; N],
}

impl<const N: usize> Default for Products<N> {
    fn default() -> Self {
        Products { count: 0, sums: [0; N], products: [[0; N]; N] }
    }
}

impl<const N: usize> Products<N> {
    pub fn add(&mut self, own: [u64; N]) {
        self.count += 1;
        for (i, a) in own.into_iter().enumerate() {
            self.sums[i] += u128::from(a);
            for (j, b) in own.into_iter().enumerate().take(i + 1) {
                let product = &mut self.products[i][j];
                *product = product.saturating_add(u128::from(a) * u128::from(b));
            }
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The means of the numbers; not numbers of no things.
    pub fn means(&self) -> [f64; N] {
        self.sums.map(|sum| sum as f64 / self.count as f64)
    }

    /// The covariances of the numbers over these things, as `np.cov` with `ddof=0`. They are the
    /// mean of the products less the product of the means, which loses digits where a spread is far
    /// smaller than its mean.
    pub fn covariances(&self) -> [[f64; N]; N] {
        let means = self.means();
        let mut covariances = [[0.0; N]; N];
        for (i, products) in self.products.iter().enumerate() {
            for (j, product) in products.iter().enumerate().take(i + 1) {
                let covariance = *product as f64 / self.count as f64 - means[i] * means[j];
                (covariances[i][j], covariances[j][i]) = (covariance, covariance);
            }
        }
        covariances
    }
}

impl Products<2> {
    /// The 95 % interval of the first numbers' total over the second numbers' total. The things are
    /// clusters, and the error is the ratio estimator's, as of [`super::clusters::Mean`]. The
    /// interval has no width if all things have the same ratio. `None` of fewer than two things,
    /// and if the second numbers are all 0.
    pub fn ratio(&self) -> Option<Interval> {
        let [sum, whole] = self.means();
        if self.count < 2 || whole <= 0.0 {
            return None;
        }
        let ratio = sum / whole;
        let freedom = self.count as f64 - 1.0;
        let error = (of_sum(&self.covariances(), [1.0, -ratio]) / freedom).sqrt() / whole;
        let half = student::quantile(1.0 - LEVEL / 100.0, freedom) * error;
        Some(Interval { low: ratio - half, high: ratio + half })
    }
}

/// Computes the variance of a sum of numbers times factors, from covariances; at least 0.
pub fn of_sum<const N: usize>(covariances: &[[f64; N]; N], factors: [f64; N]) -> f64 {
    let rows = factors.iter().zip(covariances);
    let products = rows.map(|(factor, row)| {
        let own = row.iter().zip(factors).map(|(cell, other)| cell * other);
        factor * own.sum::<f64>()
    });
    products.sum::<f64>().max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clusters::{Cluster, Mean};

    fn ratio(things: &[[u64; 2]]) -> Option<Interval> {
        let mut products = Products::default();
        things.iter().for_each(|own| products.add(*own));
        products.ratio()
    }

    /// Two things by hand: the ratio is 4 / 3 and the residuals are a third each, so the error is
    /// 2 / 9, and Student's quantile of one degree of freedom is 12.706. More things have the
    /// error of clusters.
    #[test]
    fn ratios_have_the_error_of_clusters() {
        let two = ratio(&[[1, 1], [3, 2]]).unwrap();
        let half = 12.706_205 * 2.0 / 9.0;
        assert!((two.low - 4.0 / 3.0 + half).abs() < 1e-5, "{two:?}");
        assert!((two.high - 4.0 / 3.0 - half).abs() < 1e-5, "{two:?}");

        let things = [[30, 20], [55, 31], [12, 10], [70, 33], [41, 25]];
        let clusters = things.map(|[sum, count]| Cluster { sum: sum as f64, count });
        let mean = Mean::from_clusters(&clusters).unwrap();
        let half = 2.776_445 * mean.error.unwrap();
        let five = ratio(&things).unwrap();
        assert!((five.low - mean.mean + half).abs() < 1e-5, "{five:?}");
        assert!((five.high - mean.mean - half).abs() < 1e-5, "{five:?}");
        assert_eq!((ratio(&[[2, 1]]), ratio(&[[0, 0], [0, 0]])), (None, None));
        let same = ratio(&[[20, 10], [40, 20], [2, 1]]).unwrap();
        assert!((same.low - 2.0).abs() < 1e-6 && (same.high - 2.0).abs() < 1e-6, "{same:?}");
    }
}
