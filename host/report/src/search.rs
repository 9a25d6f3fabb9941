//! What a search found, as text: the answer of each tier, and a table of the loads that were tried.

pub mod progress;

use std::fmt::Write as _;

use search::answer::{Ended, Found};
use search::decide::{Decided, Decision, Doubt, Failure};
use search::level::Level;
use search::{Answer, Load};

/// The answer as text.
pub fn text(answer: &Answer) -> String {
    let mut text = String::new();
    for (number, found) in answer.tiers.iter().enumerate() {
        let _ = writeln!(text, "{}", found.tier);
        for line in conclusion(answer.load, found) {
            let _ = writeln!(text, "  {line}");
        }
        let _ = writeln!(
            text,
            "  {:>12} {:>9} {:>5}  {:<26} result",
            unit(answer.load),
            "requests",
            "runs",
            "misses (of those allowed)"
        );
        for level in &answer.levels {
            if let Some(decided) = level.tiers.get(number) {
                let _ = writeln!(text, "  {}", row(level, decided));
            }
        }
    }
    let away = (answer.levels.iter())
        .flat_map(|level| level.little.iter().map(move |little| (level.at, little)))
        .filter(|(_, little)| !little.agrees());
    for (at, little) in away {
        let _ = writeln!(
            text,
            "note: at {}, {} requests were unanswered on average where their rate and latency imply {}: the load was not steady",
            amount(answer.load, at),
            short(little.unanswered),
            short(little.per_s * little.latency_s),
        );
    }
    let _ = writeln!(text, "{} runs, {} requests", answer.probes, answer.requests);
    text
}

fn conclusion(load: Load, found: &Found) -> Vec<String> {
    let holds = |at: f64| amount(load, at);
    let mut lines = Vec::new();
    lines.push(match (found.passed, found.failed) {
        (Some(passed), Some(failed)) => format!(
            "holds at {}, does not hold at {}",
            holds(passed),
            holds(failed)
        ),
        (Some(passed), None) => format!("holds at {}; none was shown to fail", holds(passed)),
        (None, Some(failed)) => {
            format!("no load was shown to hold; {} does not hold", holds(failed))
        }
        (None, None) => "nothing was shown either way".to_owned(),
    });
    match found.confirmed {
        Some(true) => lines.push("confirmed by runs of its own".to_owned()),
        Some(false) => {
            lines.push("not confirmed: runs of its own did not show it again".to_owned())
        }
        None => {}
    }
    lines.push(
        match found.ended {
            Ended::Narrow => "the interval is as narrow as asked for",
            Ended::Undecided => "what lies between could not be decided with the requests that a load may have (--requests-each)",
            Ended::Highest => "the highest load to be tried holds: raise --most",
            Ended::Lowest => "the lowest load to be tried was not shown to hold: lower --least, or the objectives",
            Ended::Budget => "the search used up its loads (--loads) or requests (--requests-in-all)",
        }
        .to_owned(),
    );
    if !found.undecided.is_empty() {
        let loads: Vec<String> = found.undecided.iter().map(|at| short(*at)).collect();
        lines.push(format!("undecided: {}", loads.join(", ")));
    }
    for violation in &found.violations {
        lines.push(format!(
            "warning: {} failed although {} passed; an engine whose latency falls with load makes the interval doubtful",
            holds(violation.failed),
            holds(violation.passed)
        ));
    }
    lines
}

fn row(level: &Level, decided: &Decided) -> String {
    // The objective that is closest to what it allows, or furthest beyond it.
    let worst = (decided.limits.iter())
        .filter(|stated| stated.requests > 0)
        .max_by(|a, b| (a.high / a.allowed).total_cmp(&(b.high / b.allowed)));
    let misses = worst.map_or(String::new(), |stated| {
        let share = stated.bad as f64 / stated.requests as f64;
        format!(
            "{} % in {}..{} (≤ {} %)",
            short(100.0 * share),
            short(100.0 * stated.low),
            short(100.0 * stated.high),
            short(100.0 * stated.allowed)
        )
    });
    let confirms = if level.confirms { ", confirms" } else { "" };
    format!(
        "{:>12} {:>9} {:>5}  {misses:<26} {}{confirms}",
        short(level.at),
        level.requests,
        level.looks,
        decision(decided)
    )
}

/// A decision in words.
pub(crate) fn decision(decided: &Decided) -> String {
    match &decided.decision {
        Decision::Pass => "holds".to_owned(),
        Decision::Fail { why } => match why {
            Failure::Misses(limit) => {
                let limit = decided
                    .limits
                    .get(*limit)
                    .map(|stated| stated.limit.to_string());
                format!("does not hold: {}", limit.unwrap_or_default())
            }
            Failure::Growth(backlog) => format!(
                "does not hold: the backlog grew from {} to {} requests",
                short(backlog.second_quarter),
                short(backlog.fourth_quarter)
            ),
            Failure::Stopped(alarm) => format!(
                "does not hold: stopped after {} s, when the backlog had grown from {} to {} requests",
                short(alarm.progress.at.as_secs_f64()),
                short(alarm.second_quarter),
                short(alarm.fourth_quarter)
            ),
            Failure::Contradicted => "does not hold: further runs contradict the first".to_owned(),
        },
        Decision::Undecided { why, more } => {
            let more = more.map_or(String::new(), |more| {
                format!(" (some {more} more would decide)")
            });
            match why {
                Doubt::NoRun => "not measured".to_owned(),
                Doubt::TooFew => format!("undecided: too few requests{more}"),
                Doubt::Close => format!("undecided: too close to call{more}"),
                Doubt::Unknown => "undecided: some answers do not show the metric".to_owned(),
                Doubt::Invalid(why) => format!("undecided: the runs are not valid: {why}"),
            }
        }
    }
}

/// A load with its unit.
pub(crate) fn amount(load: Load, at: f64) -> String {
    format!("{} {}", short(at), unit(load))
}

pub(crate) fn unit(load: Load) -> &'static str {
    match load {
        Load::Rate => "req/s",
        Load::Concurrency => "in flight",
        Load::Sessions => "sessions",
    }
}

/// A number with four digits, without zeros at its end.
pub(crate) fn short(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let places = (3 - number.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (number, text) in [
            (12.0, "12"),
            (0.03125, "0.03125"),
            (1234.56, "1235"),
            (12.3456, "12.35"),
            (0.5, "0.5"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(short(number), text);
        }
    }
}
