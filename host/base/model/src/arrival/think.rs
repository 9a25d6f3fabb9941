//! Think time: the pause of a user in a closed loop between an answer and the next request. It is a
//! function of seed, user and turn, so a user's pauses do not depend on the server.

use crate::random::mix;
use crate::units::Nanos;

/// The think time of users.
#[model::apply(model::document!)]
#[derive(Copy, Eq)]
pub struct Think {
    /// On average.
    pub time: Nanos,
    /// Variation of the think time.
    pub spread: ThinkSpread,
}

crate::words! {
    /// The variation of users' think time.
    pub enum ThinkSpread {
        /// Always the same.
        Constant = "constant",
        /// Exponentially distributed.
        Exponential = "exponential",
    }
}

impl Think {
    /// Returns this user's think time before its request of this turn; turn 1 follows its first
    /// answer.
    pub fn pause(&self, seed: u64, user: u32, turn: u32) -> Nanos {
        match self.spread {
            ThinkSpread::Constant => self.time,
            ThinkSpread::Exponential => {
                let place = u64::from(user) << 32 | u64::from(turn);
                let word = mix(mix(seed).wrapping_add(place));
                // 53 bits: in [0, 1), so the logarithm is finite.
                let unit = (word >> 11) as f64 / (1u64 << 53) as f64;
                Nanos::from_secs_f64(-(-unit).ln_1p() * self.time.as_secs_f64())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_pauses_have_their_mean_and_depend_on_seed_user_and_turn() {
        let think = Think { time: Nanos(2_000_000_000), spread: ThinkSpread::Exponential };
        let mut all: Vec<f64> = Vec::new();
        for user in 0..200 {
            for turn in 1..=500 {
                assert_eq!(think.pause(7, user, turn), think.pause(7, user, turn));
                all.push(think.pause(7, user, turn).as_secs_f64());
            }
        }
        all.sort_by(f64::total_cmp);
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        assert!((mean - 2.0).abs() < 0.03, "{mean}");
        let median = all[all.len() / 2];
        assert!((median - 2.0 * 2f64.ln()).abs() < 0.03, "{median}");
        let few: Vec<Nanos> = [(1, 0, 1), (2, 0, 1), (1, 1, 1), (1, 0, 2)]
            .map(|(seed, user, turn)| think.pause(seed, user, turn))
            .to_vec();
        assert!((1..4).all(|i| few[i] != few[0]), "{few:?}");
    }

    #[test]
    fn constant_pauses_do_not_vary() {
        let think = Think { time: Nanos(5), spread: ThinkSpread::Constant };
        assert_eq!((think.pause(1, 2, 3), think.pause(4, 5, 6)), (Nanos(5), Nanos(5)));
    }
}
