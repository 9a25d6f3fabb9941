//! Independent generators for the parts of a session, so that the values of one depend only on the
//! seed, the session's number and the part.

use runner_plugin::random::NumpyGenerator;

/// The generator of a `part` of session `session`. Equal arguments give equal numbers.
#[must_use]
pub fn generator(seed: u64, session: u64, part: u64) -> NumpyGenerator {
    NumpyGenerator::new(mixed(mixed(mixed(seed) ^ session) ^ part))
}

/// Every bit of the result depends on every bit of the number: the finaliser of SplitMix64
/// (<https://doi.org/10.1145/2714064.2660195>), one-to-one.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_part_of_every_session_draws_its_own_numbers() {
        let mut seen = BTreeSet::new();
        for seed in 0..8 {
            for session in 0..64 {
                for part in 0..8 {
                    let drawn = generator(seed, session, part).integers(0, u64::MAX);
                    assert_eq!(generator(seed, session, part).integers(0, u64::MAX), drawn);
                    assert!(seen.insert(drawn), "{seed}, {session}, {part}");
                }
            }
        }
    }
}
