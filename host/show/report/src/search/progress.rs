//! The messages of a search under way: a line before each run and one after it.

use std::fmt::Write as _;

use super::{amount, best, short};
use search::{Probe, Purpose, Search};

/// A run that is about to begin.
pub fn begins(probe: &Probe) -> String {
    let purpose = match probe.purpose {
        Purpose::Bracket => "for bounds",
        Purpose::Narrow => "between the bounds",
        Purpose::Confirm => "to confirm",
    };
    let look = match (probe.look, probe.attempt) {
        (1, 1) => String::new(),
        (look, 1) => format!(", run {look} at this load"),
        (look, attempt) => format!(", run {look} at this load, attempt {attempt}"),
    };
    format!(
        "== run {}: {}, {} requests, {purpose}{look} ==",
        probe.number,
        amount(probe.load, probe.at),
        probe.requests
    )
}

/// Describes the state after a run: of its load, and of each tier.
pub fn ended(search: &Search, number: u32) -> Vec<String> {
    let answer = search.answer();
    let of_load =
        (answer.levels.iter()).filter(|level| level.probes.contains(&number)).map(|level| {
            let tiers = answer.tiers.iter().zip(&level.tiers);
            let tiers: Vec<String> =
                tiers.map(|(found, decided)| format!("{}: {decided}", found.tier.name)).collect();
            format!("{}: {}", amount(answer.load, level.at), tiers.join("; "))
        });
    let of_tiers = (answer.tiers.iter()).map(|found| {
        let mut line = format!("{}: {}", found.tier.name, best(answer.load, found));
        if let (Some(passed), Some(failed)) = (found.passed, found.failed) {
            let width = 100.0 * (failed / passed - 1.0);
            let _ = write!(
                line,
                "; surely between {} and {} ({width:.1} %)",
                short(passed),
                amount(answer.load, failed)
            );
        }
        line
    });
    of_load.chain(of_tiers).collect()
}
