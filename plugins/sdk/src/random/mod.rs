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

mod numpy;
mod pcg64;
mod python;

pub use numpy::{NumpyGenerator, NumpyLegacy};
pub use python::Python;

use rand_mt::Mt;

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

#[cfg(test)]
mod tests;
