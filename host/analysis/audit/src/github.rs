//! An audit as annotations in a GitHub log: one line per finding, linked to its file and line.

use std::fmt::Write;

use super::Report;
use result::finding::{Severity, Verdict};

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
    let totals = &report.totals;
    let _ = writeln!(
        out,
        "{} results: {} valid, {} suspect, {} invalid",
        report.results.len(),
        totals.valid,
        totals.suspect,
        totals.invalid
    );
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
