//! The card as text: a line for each case, and below it the deviations.

use std::fmt::Write;

use crate::card::{Card, CaseCard, Outcome, Totals};
use crate::types::Verdict;

/// The width of the column of verdicts.
const VERDICT: usize = 14;

pub fn text(card: &Card) -> String {
    let mut text = String::new();
    let version = card.client.version.as_deref().map(|version| format!(" {version}"));
    let client = card.client.title.clone() + &version.unwrap_or_default();
    let _ = writeln!(text, "{client}, judged by runner {}", card.runner);
    let mut part = None;
    for case in &card.cases {
        if part.replace(case.part) != Some(case.part) {
            let _ = writeln!(text, "\n{}", case.part.title());
        }
        line(&mut text, case);
    }
    if let Some(ceiling) = &card.ceiling {
        let _ = writeln!(text, "\nCeiling\n  {}", ceiling.label());
    }
    let _ = writeln!(text, "\n{}", totals(&card.totals));
    text
}

fn line(text: &mut String, case: &CaseCard) {
    let label = match &case.outcome {
        Outcome::NotApplicable(_) => "-",
        outcome => outcome.label(),
    };
    let _ = writeln!(text, "  {label:<VERDICT$}{:<24} {}", case.name, case.title);
    let indent = " ".repeat(VERDICT + 2);
    match &case.outcome {
        Outcome::Judged(_) => {
            let off = case.checks.iter().filter(|check| check.verdict != Verdict::Exact);
            for check in off {
                let _ = writeln!(text, "{indent}{}: {}", check.figure, check.words);
                if let (true, Some(fits)) = (check.figure.starts_with("load."), &check.fits) {
                    let _ = writeln!(text, "{indent}  requested: {}; found: {fits}", check.claimed);
                }
            }
        }
        Outcome::Failed(why) => {
            let _ = writeln!(text, "{indent}{why}");
            for line in &case.last_lines {
                let _ = writeln!(text, "{indent}| {line}");
            }
        }
        Outcome::NotApplicable(why) => {
            let _ = writeln!(text, "{indent}{why}");
        }
    }
}

/// The totals, in a line.
pub fn totals(totals: &Totals) -> String {
    let parts = [
        (totals.exact, "exact"),
        (totals.within_stated_error, "within the error that it states"),
        (totals.another_definition, "by another definition than it claims"),
        (totals.wrong, "wrong"),
        (totals.failed, "failed"),
        (totals.not_applicable, "not applicable"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, label)| format!("{count} {label}")).collect();
    if parts.is_empty() { "no case".to_owned() } else { parts.join(", ") }
}
