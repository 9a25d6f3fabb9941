//! NumPy's generator `np.random.default_rng(seed)`, number for number: PCG64, seeded by
//! `SeedSequence`. Draws of tools in Python are repeated with it. Plugins draw with its file too.

#[allow(dead_code, reason = "plugins draw 32 bits too")]
#[path = "../../../../plugins/sdk/src/random/pcg64.rs"]
mod pcg64;

/// A permuted congruential generator of 128 bits with an output of 64, `PCG64`.
#[derive(Clone, Debug)]
pub struct Generator(pcg64::Pcg64);

impl Generator {
    /// `np.random.default_rng(seed)`.
    pub fn new(seed: u64) -> Self {
        Generator(pcg64::Pcg64::new(seed))
    }

    /// A double of this range, as `Generator.uniform(low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.0.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `numpy.random.default_rng(seed).uniform(low, high)` of NumPy 2.
    #[test]
    fn numbers_are_numpys() {
        for (seed, low, high, expected) in NUMPYS {
            let drawn = Generator::new(seed).uniform(low, high);
            assert_eq!(drawn.to_bits(), f64::to_bits(expected), "{seed}: {drawn}");
        }
        let mut generator = Generator::new(1);
        let drawn: [f64; 3] = std::array::from_fn(|_| generator.uniform(0.0, 1.0));
        assert_eq!(drawn, THREE);
    }

    const NUMPYS: [(u64, f64, f64, f64); 5] = [
        (0, 0.0, 1.0, 0.6369616873214543),
        (42, 0.25, 0.75, 0.6369780242779817),
        (4294967295, 0.0, 1000000.0, 251943.5680449965),
        (4294967296, 0.0, 1.0, 0.8897387912781343),
        (18446744073709551615, -3.0, 1234567.891, 839538.1429495085),
    ];
    const THREE: [f64; 3] = [0.5118216247002567, 0.9504636963259353, 0.14415961271963373];
}
