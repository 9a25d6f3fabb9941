//! NumPy's generator `np.random.default_rng(seed)`, number for number: PCG64, seeded by
//! `SeedSequence`. Tools in Python that draw with it can be repeated here.

/// The words of entropy that a `SeedSequence` keeps.
const POOL: usize = 4;
const INIT_A: u32 = 0x43b0_d7e5;
const MULT_A: u32 = 0x931e_8875;
const INIT_B: u32 = 0x8b51_f9dd;
const MULT_B: u32 = 0x58f3_8ded;
const MIX_L: u32 = 0xca01_f9dd;
const MIX_R: u32 = 0x4973_f715;
const STEP: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// A permuted congruential generator of 128 bits with an output of 64, `PCG64`.
#[derive(Clone, Debug)]
pub struct Generator {
    state: u128,
    increment: u128,
}

/// Mixes a word into a hash whose constant changes with each word.
fn hashed(word: u32, constant: &mut u32, factor: u32) -> u32 {
    let word = word ^ *constant;
    *constant = constant.wrapping_mul(factor);
    let word = word.wrapping_mul(*constant);
    word ^ word >> 16
}

/// The first eight words of `SeedSequence(seed).generate_state`.
fn words(seed: u64) -> [u32; 8] {
    // A seed of 64 bits is at most two words; the rest of the pool is zero.
    let entropy = [seed as u32, (seed >> 32) as u32, 0, 0];
    let mut constant = INIT_A;
    let mut pool = entropy.map(|word| hashed(word, &mut constant, MULT_A));
    for from in 0..POOL {
        for to in (0..POOL).filter(|to| *to != from) {
            let word = hashed(pool[from], &mut constant, MULT_A);
            let mixed = MIX_L.wrapping_mul(pool[to]).wrapping_sub(MIX_R.wrapping_mul(word));
            pool[to] = mixed ^ mixed >> 16;
        }
    }
    let mut constant = INIT_B;
    std::array::from_fn(|place| hashed(pool[place % POOL], &mut constant, MULT_B))
}

impl Generator {
    /// `np.random.default_rng(seed)`.
    pub fn new(seed: u64) -> Self {
        let words = words(seed).map(u128::from);
        let half = |at: usize| words[at] | words[at + 1] << 32;
        let [start, sequence] = [0, 4].map(|at| half(at) << 64 | half(at + 2));
        let mut generator = Generator { state: 0, increment: sequence << 1 | 1 };
        generator.step();
        generator.state = generator.state.wrapping_add(start);
        generator.step();
        generator
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(STEP).wrapping_add(self.increment);
    }

    fn next(&mut self) -> u64 {
        self.step();
        let (high, low) = ((self.state >> 64) as u64, self.state as u64);
        (high ^ low).rotate_right((self.state >> 122) as u32)
    }

    /// A double of this range, as `Generator.uniform(low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / 9_007_199_254_740_992.0)
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
