//! The part of NumPy's legacy random stream that arrivals need: `np.random.seed(seed)` and then
//! `np.random.gamma`, number for number. Others turn the numbers into due times.

use rand_mt::Mt;

/// `np.random` after `np.random.seed(seed)`.
pub(super) struct Legacy {
    twister: Mt,
    /// The second of a pair of normal variates, kept for the next call.
    gauss: Option<f64>,
}

impl Legacy {
    /// A stream at its beginning. Only the lowest 32 bits of larger seeds count, since NumPy takes
    /// no more.
    pub(super) fn new(seed: u64) -> Self {
        Legacy { twister: Mt::new(seed as u32), gauss: None }
    }

    /// A double in [0, 1) of 53 bits from two words.
    fn double(&mut self) -> f64 {
        let high = f64::from(self.twister.next_u32() >> 5);
        let low = f64::from(self.twister.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// Exponential with mean 1: `np.random.standard_exponential()`.
    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.double()).ln()
    }

    /// Normal with mean 0 and deviation 1, by Marsaglia's polar method.
    fn gauss(&mut self) -> f64 {
        if let Some(gauss) = self.gauss.take() {
            return gauss;
        }
        loop {
            let x = 2.0 * self.double() - 1.0;
            let y = 2.0 * self.double() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.gauss = Some(factor * x);
                return factor * y;
            }
        }
    }

    /// Gamma with this shape and scale 1: `np.random.standard_gamma(shape)`. Below 1 by Ahrens and
    /// Dieter's method, above by Marsaglia and Tsang's; at 1 it is the exponential.
    pub(super) fn gamma(&mut self, shape: f64) -> f64 {
        if shape == 1.0 {
            return self.exponential();
        }
        if shape < 1.0 {
            return loop {
                let u = self.double();
                let v = self.exponential();
                if u <= 1.0 - shape {
                    let x = u.powf(1.0 / shape);
                    if x <= v {
                        break x;
                    }
                } else {
                    let y = -((1.0 - u) / shape).ln();
                    let x = (1.0 - shape + shape * y).powf(1.0 / shape);
                    if x <= v + y {
                        break x;
                    }
                }
            };
        }
        let b = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * b).sqrt();
        loop {
            let (x, v) = loop {
                let x = self.gauss();
                let v = 1.0 + c * x;
                if v > 0.0 {
                    break (x, v * v * v);
                }
            };
            let u = self.double();
            if u < 1.0 - 0.0331 * (x * x) * (x * x) || u.ln() < 0.5 * x * x + b * (1.0 - v + v.ln())
            {
                return b * v;
            }
        }
    }
}
