//! The random number generators of CPython and NumPy, to the bit.
//!
//! The Python tools that a plugin may have to reproduce draw their prompts from these generators,
//! so the same seed must give the same numbers here. This module has the streams and the kinds of
//! draws that datasets need. The plugin chooses the generator, its seed, and the order of draws.
//!
//! | type | in Python |
//! | --- | --- |
//! | [`Python`] | the module `random` after `random.seed(n)` |
//! | [`NumpyLegacy`] | the module `numpy.random` after `numpy.random.seed(n)` |
//! | [`NumpyGenerator`] | `numpy.random.default_rng(n)` |

mod pcg64;

use rand_mt::Mt;

use pcg64::Pcg64;

/// A double in `[0, 1)` with 53 random bits: the Mersenne Twister's `genrand_res53`.
fn unit_interval(twister: &mut Mt) -> f64 {
    let high = twister.next_u32() >> 5;
    let low = twister.next_u32() >> 6;
    (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
}

/// A number whose bits all depend on all bits of another, one-to-one: the finaliser of SplitMix64
/// (<https://doi.org/10.1145/2714064.2660195>).
#[must_use]
pub fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// The generator behind Python's module `random`, as it stands after `random.seed(seed)`.
///
/// ```
/// use runner_plugin::random::Python;
/// let mut cards = [1, 2, 3, 4, 5];
/// Python::new(42).shuffle(&mut cards);
/// assert_eq!(cards, [4, 2, 3, 5, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct Python(Box<Mt>);

impl Python {
    /// As `random.seed(seed)` with an integer: the seed's 32-bit words, lowest first, are the key.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32];
        let key = if words[1] == 0 { &words[..1] } else { &words[..] };
        Self(Box::new(Mt::new_with_key(key.iter().copied())))
    }

    /// As `random.random()`: uniform in `[0, 1)`.
    pub fn random(&mut self) -> f64 {
        unit_interval(&mut self.0)
    }

    /// As `random.getrandbits(bits)`.
    ///
    /// # Panics
    /// If `bits` is above 64.
    pub fn bits(&mut self, bits: u32) -> u64 {
        assert!(bits <= 64, "at most 64 bits can be drawn at a time, not {bits}");
        match bits {
            0 => 0,
            1..=32 => u64::from(self.0.next_u32() >> (32 - bits)),
            _ => {
                let low = u64::from(self.0.next_u32());
                let high = u64::from(self.0.next_u32() >> (64 - bits));
                low | high << 32
            }
        }
    }

    /// As `random.randrange(bound)`: uniform below `bound`.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero to draw");
        let bits = u64::BITS - bound.leading_zeros();
        loop {
            let drawn = self.bits(bits);
            if drawn < bound {
                return drawn;
            }
        }
    }

    /// As `random.shuffle(items)`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// As `random.choice(items)`; nothing is drawn if there are no items.
    pub fn choice<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() {
            return None;
        }
        let index = self.below(items.len() as u64) as usize;
        items.get(index)
    }

    /// The indices that `random.sample(items, count)` chooses of `items` items, in its order;
    /// `None` if there are fewer than `count`.
    pub fn sample(&mut self, items: usize, count: usize) -> Option<Vec<usize>> {
        if count > items {
            return None;
        }
        // Above this many items CPython remembers its draws, instead of taking from a list of all.
        let mut listed = 21;
        if count > 5 {
            let mut power = 1;
            while power < count * 3 {
                power *= 4;
            }
            listed += power;
        }
        let mut chosen = Vec::with_capacity(count);
        if items <= listed {
            let mut left: Vec<usize> = (0..items).collect();
            for taken in 0..count {
                let at = self.below((items - taken) as u64) as usize;
                chosen.push(left[at]);
                left[at] = left[items - taken - 1];
            }
        } else {
            let mut seen = std::collections::HashSet::with_capacity(count);
            while chosen.len() < count {
                let at = self.below(items as u64) as usize;
                if seen.insert(at) {
                    chosen.push(at);
                }
            }
        }
        Some(chosen)
    }
}

/// The generator behind `numpy.random.randint`, as it stands after `numpy.random.seed(seed)`.
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

    /// As one element of `generator.integers(low, high)`, by Lemire's method
    /// (<https://arxiv.org/abs/1805.10941>). Nothing is drawn if only one value is possible.
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

#[cfg(test)]
mod tests;
