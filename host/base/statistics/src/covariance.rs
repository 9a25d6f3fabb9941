//! Covariances of several whole numbers of each of many things, in memory that does not grow.
//!
//! Sums are of integers, so the order in which things come makes no difference.

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
    /// Adds the numbers of one thing.
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

    /// The number of things.
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

/// Computes the variance of a sum of numbers, each with its factor, from their covariances; at
/// least 0.
pub fn of_sum<const N: usize>(covariances: &[[f64; N]; N], factors: [f64; N]) -> f64 {
    let rows = factors.iter().zip(covariances);
    let products = rows.map(|(factor, row)| {
        let own = row.iter().zip(factors).map(|(cell, other)| cell * other);
        factor * own.sum::<f64>()
    });
    products.sum::<f64>().max(0.0)
}
