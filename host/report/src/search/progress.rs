//! What is said while a search goes on: a line before each run and one after it.

use super::amount;
use search::level::Level;
use search::{Config, Probe, Purpose};

/// A run that is about to begin.
pub fn begins(probe: &Probe) -> String {
    let purpose = match probe.purpose {
        Purpose::Bracket => "for bounds",
        Purpose::Bisect => "between the bounds",
        Purpose::Confirm => "to confirm",
    };
    let look = match (probe.look, probe.attempt) {
        (1, 1) => String::new(),
        (look, 1) => format!(", look {look}"),
        (look, attempt) => format!(", look {look}, attempt {attempt}"),
    };
    format!(
        "== run {}: {}, {} requests, {purpose}{look} ==",
        probe.number,
        amount(probe.load, probe.at),
        probe.requests
    )
}

/// What is known of a load after a run.
pub fn ended(config: &Config, level: &Level) -> String {
    let tiers = config.tiers.iter().zip(&level.tiers);
    let tiers: Vec<String> = tiers
        .map(|(tier, decided)| format!("{}: {decided}", tier.name))
        .collect();
    format!("{}: {}", amount(config.load, level.at), tiers.join("; "))
}
