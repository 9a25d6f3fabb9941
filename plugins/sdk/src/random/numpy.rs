//! NumPy's two generators: the legacy global one on the Mersenne Twister, and `default_rng` on
//! PCG64.

use rand_mt::Mt;

use super::{pcg64::Pcg64, unit_interval};

/// The generator behind `numpy.random.randint` and its like, as it stands after
/// `numpy.random.seed(seed)`.
///
/// Its seeding differs from Python's `random`, so the two give different streams for one seed.
#[derive(Clone, Debug)]
pub struct NumpyLegacy(Box<Mt>);

impl NumpyLegacy {
    /// As `numpy.random.seed(seed)`. NumPy accepts no seed larger than 32 bits.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self(Box::new(Mt::new(seed)))
    }

    /// As `numpy.random.random_sample()`: uniform in `[0, 1)`.
    pub fn random(&mut self) -> f64 {
        unit_interval(&mut self.0)
    }

    /// As one element of `numpy.random.randint(low, high)`: uniform from `low` to `high - 1`, by
    /// masking and rejection. Nothing is drawn if only one value is possible.
    ///
    /// # Panics
    /// If `low` is not below `high`.
    pub fn randint(&mut self, low: u64, high: u64) -> u64 {
        assert!(low < high, "no number from {low} to below {high} to draw");
        let span = high - 1 - low;
        let mask = match span {
            0 => return low,
            _ => u64::MAX >> span.leading_zeros(),
        };
        loop {
            let drawn = mask
                & if span <= u64::from(u32::MAX) {
                    u64::from(self.0.next_u32())
                } else {
                    self.word()
                };
            if drawn <= span {
                return low + drawn;
            }
        }
    }

    /// As `numpy.random.exponential(scale)`, up to the last bit of the platform's logarithm.
    pub fn exponential(&mut self, scale: f64) -> f64 {
        scale * -(1.0 - self.random()).ln()
    }

    /// 64 bits, the high half drawn first.
    fn word(&mut self) -> u64 {
        let high = u64::from(self.0.next_u32());
        high << 32 | u64::from(self.0.next_u32())
    }
}

/// The generator of `numpy.random.default_rng(seed)`.
///
/// ```
/// use runner_plugin::random::NumpyGenerator;
/// let mut generator = NumpyGenerator::new(42);
/// assert_eq!([generator.integers(0, 10), generator.integers(0, 10)], [0, 7]);
/// ```
#[derive(Clone, Debug)]
pub struct NumpyGenerator(Pcg64);

impl NumpyGenerator {
    /// As `numpy.random.default_rng(seed)`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Pcg64::new(seed))
    }

    /// As `generator.random()`: uniform in `[0, 1)`.
    pub fn random(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// As one element of `generator.integers(low, high)`: uniform from `low` to `high - 1`, by
    /// Lemire's method (<https://arxiv.org/abs/1805.10941>). Nothing is drawn if only one value is
    /// possible.
    ///
    /// # Panics
    /// If `low` is not below `high`.
    pub fn integers(&mut self, low: u64, high: u64) -> u64 {
        assert!(low < high, "no number from {low} to below {high} to draw");
        let span = high - 1 - low;
        low + match span {
            0 => 0,
            _ if span < u64::from(u32::MAX) => u64::from(self.lemire32(span as u32)),
            _ if span == u64::from(u32::MAX) => u64::from(self.0.next_u32()),
            _ => self.lemire64(span),
        }
    }

    /// Uniform from 0 to `span`, of 32-bit words.
    fn lemire32(&mut self, span: u32) -> u32 {
        let count = span + 1;
        let mut product = u64::from(self.0.next_u32()) * u64::from(count);
        if (product as u32) < count {
            let threshold = (u32::MAX - span) % count;
            while (product as u32) < threshold {
                product = u64::from(self.0.next_u32()) * u64::from(count);
            }
        }
        (product >> 32) as u32
    }

    /// Uniform from 0 to `span`, of 64-bit words.
    fn lemire64(&mut self, span: u64) -> u64 {
        let count = span + 1;
        let mut product = u128::from(self.0.next_u64()) * u128::from(count);
        if (product as u64) < count {
            let threshold = (u64::MAX - span) % count;
            while (product as u64) < threshold {
                product = u128::from(self.0.next_u64()) * u128::from(count);
            }
        }
        (product >> 64) as u64
    }
}
