//! Random numbers that a seed decides, the same on every machine: Steele, Lea and Flood's
//! SplitMix64.

/// The step of the generator's state with each number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of numbers from a seed.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(GAMMA);
        number
    }
}

/// The first number from a seed. Each seed gives another number, and its every bit depends on every
/// bit of the seed. So it gives one number of many without drawing the others.
pub fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator's first numbers from seed 1234567, as its authors' C program prints them.
    #[test]
    fn numbers_are_split_mix_64s() {
        let mut random = SplitMix64::new(1_234_567);
        let wanted =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| random.draw()), wanted);
        assert_eq!(mix(1_234_567), wanted[0]);
    }
}
