//! What a search found: for each tier, the interval in which the highest load lies that holds, and what it rests on.
//!
//! The answer is an interval from the highest load that passed to the lowest that failed. It assumes that a tier that
//! holds at a load holds at every lower one. Where the runs contradict that, the answer says so.

use serde::{Deserialize, Serialize};

use crate::config::Load;
use crate::level::Level;
use crate::slo::Tier;

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Where the share of bad requests is what is allowed, by a line through the shares that were seen: the best guess,
    /// which no test stands behind. It lies within the interval; absent without both ends, and where hardly any of the
    /// loads has a share near what is allowed.
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Violation {
    /// The load that failed.
    pub failed: f64,
    /// The higher load that passed.
    pub passed: f64,
}

/// Why the search for a tier's answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What was seen at a load of an objective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub at: f64,
    /// The share of bad requests.
    pub share: f64,
    /// How many independent bad requests it rests on.
    pub worth: f64,
}

/// Shares that are up to so many times what is allowed, or as small a part of it, are near enough for a line. The
/// smallest of these is taken that has shares on both sides, so that the line is short; if none has, the smallest that
/// has two shares.
const NEAR: [f64; 5] = [4.0, 8.0, 16.0, 32.0, 64.0];

/// The load at which the share of bad requests is what is allowed: where a line through the shares crosses it, the
/// logit of the share over the logarithm of the load. Each counts as much as the independent bad requests it rests on,
/// because that is the inverse of its variance. `None` if fewer than two loads are near, or the share does not grow.
pub(crate) fn crossing(seen: &[Seen], allowed: f64) -> Option<f64> {
    let of = |sides| {
        NEAR.into_iter()
            .find_map(|near| line(seen, allowed, near, sides))
    };
    of(2).or_else(|| of(1))
}

fn line(seen: &[Seen], allowed: f64, near: f64, sides: usize) -> Option<f64> {
    let logit = |share: f64| (share / (1.0 - share)).ln();
    let most = (allowed * near).min(f64::midpoint(1.0, allowed));
    let is_near = |own: &&Seen| own.worth > 0.0 && own.share > allowed / near && own.share < most;
    let near: Vec<&Seen> = seen.iter().filter(is_near).collect();
    let above = near.iter().filter(|own| own.share > allowed).count();
    if near.len() < 2 || above.min(near.len() - above) + 1 < sides {
        return None;
    }
    let weight: f64 = near.iter().map(|own| own.worth).sum();
    let mean = |of: &dyn Fn(&Seen) -> f64| {
        near.iter().map(|own| own.worth * of(own)).sum::<f64>() / weight
    };
    let (x, y) = (mean(&|own| own.at.ln()), mean(&|own| logit(own.share)));
    let squares = mean(&|own| (own.at.ln() - x).powi(2));
    let products = mean(&|own| (own.at.ln() - x) * (logit(own.share) - y));
    if squares <= 0.0 || products <= 0.0 {
        return None;
    }
    Some((x + (logit(allowed) - y) * squares / products).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_where_the_line_is() {
        // A share of load^8 / 1e6 or so: 1 % at 3.16.
        let seen = |at: f64, worth: f64| {
            let odds = 0.01 / 0.99 * (at / 3.0_f64).powi(8);
            Seen {
                at,
                share: odds / (1.0 + odds),
                worth,
            }
        };
        let mut all = vec![seen(2.5, 3.0), seen(2.9, 40.0), seen(3.3, 10.0)];
        assert!((crossing(&all, 0.01).unwrap() - 3.0).abs() < 1e-9);
        // What is far from the allowed share counts for nothing.
        all.push(Seen {
            at: 6.0,
            share: 0.9,
            worth: 1e6,
        });
        assert!((crossing(&all, 0.01).unwrap() - 3.0).abs() < 1e-9);
        assert_eq!(crossing(&all[..1], 0.01), None);
        assert_eq!(crossing(&[], 0.01), None);
        assert!(
            (crossing(&all[..2], 0.01).unwrap() - 3.0).abs() < 1e-9,
            "both are below"
        );
        let falls = [
            seen(2.9, 5.0),
            Seen {
                at: 3.1,
                ..seen(2.8, 5.0)
            },
        ];
        assert_eq!(crossing(&falls, 0.01), None);
    }
}
