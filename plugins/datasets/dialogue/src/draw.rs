//! Independent generators for the parts of a session, so that the values of one depend only on the
//! seed, the session's number and the part.

use runner_plugin::random::{NumpyGenerator, mixed};

/// The generator of a `part` of session `session`. Equal arguments give equal numbers.
#[must_use]
pub fn generator(seed: u64, session: u64, part: u64) -> NumpyGenerator {
    NumpyGenerator::new(mixed(mixed(mixed(seed) ^ session) ^ part))
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
