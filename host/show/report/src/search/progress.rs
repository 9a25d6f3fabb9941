//! The messages of a search under way: a line before each run and one after it.

use std::fmt::Write as _;
use std::time::Duration;

use super::{amount, best, lasting, rounded, short, time};
use model::number::percent;
use search::{Load, Probe, Purpose, Search};

/// The time that a search likely takes, and the most that it takes, before it sends anything.
pub fn forecast(search: &Search) -> Vec<String> {
    let config = search.config();
    let requests = config.likely_requests();
    let at = amount(config.load, config.start);
    let likely = match config.load {
        Load::Rate => format!(
            "{}, less at higher loads",
            lasting(requests as f64 / config.start, &format!("at {at}"))
        ),
        Load::Concurrency | Load::Sessions => "the first run shows how long they take".to_owned(),
    };
    let most = match (search.seconds_left(), config.requests_in_all) {
        (Some(seconds), _) => {
            format!("at most: {} (--within), with the best estimate by then", whole(seconds))
        }
        (None, Some(requests)) => format!("at most: {requests} requests (--requests-in-all)"),
        (None, None) => "at most: no limit of time; --within 10m sets one".to_owned(),
    };
    vec![
        format!(
            "likely: about {requests} requests for an interval of {}; {likely}",
            percent(config.width)
        ),
        most,
    ]
}

/// A time in whole seconds.
fn whole(seconds: f64) -> String {
    model::duration::format(Duration::from_secs(seconds as u64))
}

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
        if let Some((more, at)) = found.more.zip(found.estimate) {
            let _ = write!(line, "; {}{}", rounded(more), time(&answer, at, more));
        }
        line
    });
    let left = search.seconds_left().map(|left| format!("left: {} (--within)", whole(left)));
    of_load.chain(of_tiers).chain(left).collect()
}
