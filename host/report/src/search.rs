//! What a search found, as text and as a page: the answer of each tier, and the loads that were tried.

mod page;
pub mod progress;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt::Write as _;

use search::answer::{Ended, Found};
use search::decision::Decided;
use search::level::Level;
use search::{Answer, Load};

pub use page::page;

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
            "  {:>12} {:>9} {:>5}  result",
            unit(answer.load),
            "requests",
            "runs"
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
    if let Some(estimate) = found.estimate {
        lines.push(format!(
            "best guess: {}, which no test stands behind",
            holds(estimate)
        ));
    }
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
    let confirms = if level.confirms { " (confirming)" } else { "" };
    format!(
        "{:>12} {:>9} {:>5}  {decided}{confirms}",
        short(level.at),
        level.requests,
        level.looks,
    )
}

/// A load with its unit.
pub fn amount(load: Load, at: f64) -> String {
    format!("{} {}", short(at), unit(load))
}

/// What a load is counted in.
pub fn unit(load: Load) -> &'static str {
    match load {
        Load::Rate => "req/s",
        Load::Concurrency => "in flight",
        Load::Sessions => "sessions",
    }
}

/// A number with four digits, without zeros at its end.
pub fn short(number: f64) -> String {
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
