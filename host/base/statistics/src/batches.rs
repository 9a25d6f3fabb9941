//! The design effect of an event, from batches whose length follows from the samples.
//!
//! Samples that wait in one queue show an event together. Its number varies more than for
//! independent samples, by the design effect. That is the variance of the numbers in batches of
//! consecutive samples, divided by the binomial one (Kish 1965, "Survey Sampling"). Batches are
//! made longer until neighbours are hardly correlated (Law and Carson 1979, "A sequential procedure
//! for determining the length of a steady-state simulation"). The remaining correlation widens the
//! variance further ([`inflation`]). [`blocks`](crate::blocks) has a fixed number of blocks
//! instead, and widens for their small number.

use crate::dependence::{correlation, inflation};
use crate::moments::{mean, variance_about};

/// Batches that a run is cut into at least.
pub const FEWEST: usize = 20;
/// Doublings of that number at most.
const FINEST: u32 = 4;
/// Samples that a batch has, where there are enough of them.
const EACH: usize = 8;
/// Samples that a run must have to show a design effect; a shorter one is worth a single sample.
const LEAST: usize = 2 * FEWEST;
/// Correlation of neighbouring batches from which on they are made longer.
const CORRELATED: f64 = 0.2;

/// Computes the design effect of an event, given which of consecutive samples show it, and the
/// number of batches that it rests on. From 1, of independent samples and of an event that never or
/// always comes, to the number of samples, of a run too short to show it.
pub fn design_effect(shown: &[bool]) -> (f64, u32) {
    let many = shown.len();
    if many < LEAST {
        return (many.max(1) as f64, FEWEST as u32);
    }
    let seen = shown.iter().filter(|shown| **shown).count();
    let mut batches = FEWEST;
    while batches < FEWEST << FINEST && many / (2 * batches) >= EACH {
        batches *= 2;
    }
    if seen == 0 || seen == many {
        return (1.0, batches as u32);
    }
    loop {
        let shares = shares(shown, batches);
        if batches > FEWEST && correlation(&shares) >= CORRELATED {
            batches /= 2;
            continue;
        }
        let share = seen as f64 / many as f64;
        let binomial = share * (1.0 - share) * batches as f64 / many as f64;
        let variance = variance_about(&shares, mean(&shares));
        let (factor, _) = inflation(&shares);
        let effect = (variance / binomial * factor).clamp(1.0, many as f64);
        return (effect, batches as u32);
    }
}

fn shares(shown: &[bool], batches: usize) -> Vec<f64> {
    let many = shown.len();
    (0..batches)
        .map(|batch| {
            let own = &shown[batch * many / batches..(batch + 1) * many / batches];
            own.iter().filter(|shown| **shown).count() as f64 / own.len() as f64
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulator::Random;

    fn effect_of(shown: impl FnMut(usize) -> bool, many: usize) -> (f64, u32) {
        design_effect(&(0..many).map(shown).collect::<Vec<_>>())
    }

    #[test]
    fn independent_requests_are_worth_what_they_are() {
        let mut random = Random::new(5);
        let effects: Vec<f64> =
            (0..200).map(|_| effect_of(|_| random.uniform() < 0.1, 4000).0).collect();
        let mean = effects.iter().sum::<f64>() / 200.0;
        assert!((1.0..1.2).contains(&mean), "{mean}");
    }

    /// Clusters of fifty: the number of independent requests is the number of clusters.
    #[test]
    fn clusters_are_worth_one_request_each() {
        let mut random = Random::new(6);
        let mut effects = Vec::new();
        for _ in 0..50 {
            let mut bad = false;
            let drawn = effect_of(
                |place| {
                    if place % 50 == 0 {
                        bad = random.uniform() < 0.1;
                    }
                    bad
                },
                20_000,
            );
            effects.push(drawn.0);
        }
        let mean = effects.iter().sum::<f64>() / 50.0;
        assert!((45.0..65.0).contains(&mean), "{mean}");
    }

    #[test]
    fn short_runs_and_events_that_never_come_show_little() {
        assert_eq!(effect_of(|_| true, 39), (39.0, 20));
        assert_eq!(effect_of(|_| false, 4000), (1.0, 320));
        // A run that turns bad half way is hardly more than one request.
        let (effect, batches) = effect_of(|place| place > 500, 1000);
        assert!(effect > 200.0 && batches == 20, "{effect} {batches}");
    }
}
