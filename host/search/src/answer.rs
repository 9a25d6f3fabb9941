//! What a search found: for each tier, the interval in which the highest load lies that holds, and what it rests on.
//!
//! The answer is an interval from the highest load that passed to the lowest that failed. It assumes that a tier that
//! holds at a load holds at every lower one. Where the runs contradict that, the answer says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Load;
use crate::level::Level;
use crate::slo::Tier;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Answer {
    /// What was varied.
    pub load: Load,
    /// What was found for each tier, in their order.
    pub tiers: Vec<Found>,
    /// Every load that was tried, from the lowest, confirmations after what they confirm.
    pub levels: Vec<Level>,
    /// How many runs were made, valid or not.
    pub probes: u32,
    /// Requests of all valid runs.
    pub requests: u64,
}

/// What was found for a tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Found {
    /// The tier.
    pub tier: Tier,
    /// The highest load that passed, of those below every failed one; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<f64>,
    /// The lowest load that failed; absent if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<f64>,
    /// Where the share of bad requests is what is allowed, by the shares that were seen: the best guess, which no test
    /// stands behind. It lies within the interval; absent without both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<f64>,
    /// Whether runs of its own showed again that the highest passed load holds; absent if none were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<bool>,
    /// Loads between the two that were not decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<f64>,
    /// Loads that failed although a higher one passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// Why the search for it ended.
    pub ended: Ended,
}

/// A load that failed below one that passed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Violation {
    /// The load that failed.
    pub failed: f64,
    /// The higher load that passed.
    pub passed: f64,
}

/// Why the search for a tier's answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The interval is as narrow as was asked for.
    Narrow,
    /// What is left of the interval could not be decided with the requests that a load may have.
    Undecided,
    /// The highest load to be tried passed.
    Highest,
    /// The lowest load to be tried did not pass.
    Lowest,
    /// The number of loads or of requests was used up.
    Budget,
}

impl Found {
    /// The width of the interval, as a share of its lower end; absent if it has not both ends.
    pub fn width(&self) -> Option<f64> {
        Some(self.failed? / self.passed? - 1.0)
    }
}

/// What was seen at a load of an objective, in independent requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub at: f64,
    pub bad: f64,
    pub requests: f64,
}

/// The load at which the share of bad requests is what is allowed: between the two neighbouring loads that have less and
/// more, by the logit of the share over the logarithm of the load. Where the shares fall with the load, they are pooled
/// until they do not (isotonic regression; Ayer et al. 1955, "An empirical distribution function for sampling with
/// incomplete information"). No shape is assumed beyond that: close to capacity, shares bend sharply. `None` if all
/// shares are on one side.
pub(crate) fn crossing(seen: &[Seen], allowed: f64) -> Option<f64> {
    let mut seen = seen.to_vec();
    seen.retain(|own| own.requests > 0.0);
    seen.sort_by(|a, b| a.at.total_cmp(&b.at));
    // The logarithm of the load, weighted, and the counts.
    let mut pools: Vec<[f64; 3]> = Vec::new();
    for own in seen {
        let mut pool = [own.at.ln() * own.requests, own.bad, own.requests];
        while let Some(before) = pools
            .last()
            .filter(|before| before[1] / before[2] >= pool[1] / pool[2])
        {
            pool = [0, 1, 2].map(|place| pool[place] + before[place]);
            pools.pop();
        }
        pools.push(pool);
    }
    let first = pools.iter().position(|own| own[1] / own[2] > allowed)?;
    let (below, above) = (pools.get(first.checked_sub(1)?)?, &pools[first]);
    // Half a request more of either kind, because the logit of nothing is infinite.
    let logit = |own: &[f64; 3]| ((own[1] + 0.5) / (own[2] - own[1] + 0.5)).ln();
    let x = |own: &[f64; 3]| own[0] / own[2];
    let wanted = (allowed / (1.0 - allowed)).ln();
    let share = ((wanted - logit(below)) / (logit(above) - logit(below))).clamp(0.0, 1.0);
    Some((x(below) + share * (x(above) - x(below))).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(at: f64, bad: f64, requests: f64) -> Seen {
        Seen { at, bad, requests }
    }

    #[test]
    fn the_crossing_lies_between_the_neighbours() {
        // The odds grow with the eighth power of the load, and are 1 to 99 at 3.
        let exact = |at: f64| {
            let odds = (at / 3.0_f64).powi(8) / 99.0;
            seen(at, 1e9 * odds / (1.0 + odds), 1e9)
        };
        let all = [exact(3.6), exact(2.9), exact(1.0), exact(3.2)];
        assert!((crossing(&all, 0.01).unwrap() - 3.0).abs() < 1e-6);
        assert_eq!(crossing(&all[1..3], 0.01), None, "all are below");
        assert_eq!(crossing(&[], 0.01), None);
        // None are bad below, and all above.
        let step = crossing(&[seen(2.0, 0.0, 500.0), seen(4.0, 500.0, 500.0)], 0.01).unwrap();
        assert!((2.0..3.0).contains(&step), "{step}");
    }

    #[test]
    fn shares_that_fall_are_pooled() {
        let all = [
            seen(1.0, 1.0, 1000.0),
            seen(2.0, 30.0, 1000.0),
            seen(2.1, 2.0, 9000.0),
            seen(4.0, 300.0, 1000.0),
        ];
        let found = crossing(&all, 0.01).unwrap();
        assert!((2.1..3.0).contains(&found), "{found}");
    }
}
