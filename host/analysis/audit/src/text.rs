//! An audit as text for people: the findings of each result, and at the end the meaning of each
//! kind of finding.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Audited, Headline, Id, Report};
use crate::claim::Claim;
use result::finding::{Severity, Verdict};

/// The width that lines are broken at.
const WIDTH: usize = 110;

pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for result in &report.results {
        of_result(&mut out, result);
    }
    if !report.headlines.is_empty() {
        let _ =
            writeln!(out, "Figures stated elsewhere in the files that rest on doubtful results:");
        for headline in &report.headlines {
            of_headline(&mut out, headline, &report.results);
        }
        out.push('\n');
    }
    meanings(&mut out, report);
    let _ = writeln!(out, "{}: {}", counted(report.results.len(), "result"), report.totals);
    out
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn of_result(out: &mut String, result: &Audited) {
    let claim = &result.claim;
    let _ = writeln!(out, "{}  {}", claim.source.place(), result.verdict.name());
    wrapped(out, "  ", "  ", &described(claim));
    for finding in &result.findings {
        let first = format!("  {:<8} {}: ", finding.severity.name(), finding.id.name());
        wrapped(out, &first, "           ", &finding.seen);
        if let Some(formula) = &finding.formula {
            wrapped(out, "           = ", "             ", formula);
        }
    }
    out.push('\n');
}

/// A claim described on one line: the tool, the last headings, the settings.
pub fn described(claim: &Claim) -> String {
    let mut parts = vec![claim.tool.label().to_owned()];
    let skip = claim.source.headings.len().saturating_sub(2);
    let headings: Vec<String> =
        claim.source.headings.iter().skip(skip).chain(&claim.source.caption).cloned().collect();
    if !headings.is_empty() {
        parts.push(headings.join(" > "));
    }
    parts.extend(claim.model.clone());
    parts.extend(claim.scenario.clone());
    if let Some(requests) = claim.asked.requests {
        parts.push(counted(requests as usize, "request"));
    }
    match claim.asked.request_rate {
        Some(rate) if rate.is_finite() => parts.push(format!("{rate} req/s")),
        Some(_) => parts.push("all at once".into()),
        None => {}
    }
    if let Some(cap) = claim.asked.max_concurrency {
        parts.push(format!("at most {cap} in flight"));
    }
    parts.join(", ")
}

fn of_headline(out: &mut String, headline: &Headline, results: &[Audited]) {
    let first = format!("  {}:{}: ", headline.file, headline.quote.line);
    wrapped(out, &first, "    ", &headline.quote.words);
    let places: Vec<String> =
        headline.rests_on.iter().map(|index| results[*index].claim.source.place()).collect();
    let ids: Vec<&str> = headline.findings.iter().map(|id| id.name()).collect();
    if !places.is_empty() {
        let verdict = headline.verdict.name();
        let rests = format!("rests on {}, {verdict}: {}", places.join(" and "), ids.join(", "));
        wrapped(out, "    ", "      ", &rests);
    }
    if let Some(seen) = &headline.seen {
        wrapped(out, "    ", "      ", seen);
    }
}

/// The reason for each kind of finding and the advice, once for each kind found.
fn meanings(out: &mut String, report: &Report) {
    let findings = report.results.iter().flat_map(|result| &result.findings);
    let ids: BTreeSet<Id> = findings.map(|finding| finding.id).collect();
    if ids.is_empty() {
        return;
    }
    let _ = writeln!(out, "Meaning of the findings:");
    for id in ids {
        let words = format!("{}. To do: {}.", id.why(), id.advice());
        wrapped(out, &format!("  {}: ", id.name()), "    ", &words);
    }
    out.push('\n');
}

/// Writes words broken at the width, the first line behind `first` and the others behind `next`.
pub fn wrapped(out: &mut String, first: &str, next: &str, words: &str) {
    let mut line = first.to_owned();
    let mut empty = true;
    for word in words.split_whitespace() {
        // A unit stays with its number.
        let glued = matches!(word, "%" | "ms" | "s" | "-" | "1)");
        if !empty && !glued && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = next.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The way a verdict is shown in a table.
pub fn verdict(result: &Audited) -> String {
    let mut grave: Vec<&str> = (result.findings.iter())
        .filter(|finding| finding.severity != Severity::Note)
        .map(|finding| finding.id.name())
        .collect();
    grave.dedup();
    match result.verdict {
        Verdict::Valid => "valid".into(),
        other => format!("{}: {}", other.name(), grave.join(", ")),
    }
}

/// The audit as such lines, and a last one with the totals.
pub fn github(report: &Report) -> String {
    let mut out = String::new();
    for result in &report.results {
        let source = &result.claim.source;
        for finding in &result.findings {
            let mut seen = finding.seen.clone();
            if let Some(formula) = &finding.formula {
                let _ = write!(seen, " = {formula}");
            }
            let message = format!("{seen}\n{}\n{}", finding.why, finding.advice);
            let level = level(finding.severity);
            line(&mut out, level, &source.file, source.line, finding.id.name(), &message);
        }
    }
    for headline in &report.headlines {
        let level = match headline.verdict {
            Verdict::Invalid => "error",
            Verdict::Suspect => "warning",
            Verdict::Valid => "notice",
        };
        let ids: Vec<&str> = headline.findings.iter().map(|id| id.name()).collect();
        let rests =
            (!ids.is_empty()).then(|| format!("rests on a doubtful result: {}", ids.join(", ")));
        let seen = rests.into_iter().chain(headline.seen.clone()).collect::<Vec<_>>().join("; ");
        let message = format!("`{}` {seen}", headline.quote.words);
        line(&mut out, level, &headline.file, Some(headline.quote.line), "headline", &message);
    }
    let _ = writeln!(out, "{} results: {}", report.results.len(), report.totals);
    out
}

/// The level of an annotation on a finding of that severity.
pub fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Invalid => "error",
        Severity::Suspect => "warning",
        Severity::Note => "notice",
    }
}

fn line(out: &mut String, level: &str, file: &str, at: Option<usize>, title: &str, message: &str) {
    let at = at.map(|at| at.to_string());
    let mut about = vec![("file", file)];
    about.extend(at.as_deref().map(|at| ("line", at)));
    about.push(("title", title));
    out.push_str(&annotation(level, &about, message));
}

/// An annotation: a line of that level, such as `warning`, with properties in that order.
pub fn annotation(level: &str, about: &[(&str, &str)], message: &str) -> String {
    let about = about.iter().map(|(name, value)| format!("{name}={}", property(value)));
    let about = about.collect::<Vec<_>>().join(",");
    format!("::{level} {about}::{}\n", data(message))
}

/// A message as a command's data.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A text as a command's property, which commas and colons would end.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
