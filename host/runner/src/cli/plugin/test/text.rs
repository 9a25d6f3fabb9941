//! The report of `runner plugin test` as text.

use crate::cli::print::{Colour, StyledText};
use plugins::case::{Checks, SuiteReport, TimedReport};

pub fn heading(report: &SuiteReport) -> String {
    let plugin = &report.plugin;
    let facts = plugin.loaded.as_ref().map(|loaded| {
        let (name, version, kind) = (&loaded.name, &loaded.version, loaded.kind.name());
        format!("{name} {version}, a {kind}: ")
    });
    format!("{}{}\n", facts.unwrap_or_default(), plugin.file)
}

pub fn case(case: &TimedReport, width: usize) -> StyledText {
    let report = &case.report;
    let mut text = StyledText::default();
    if report.holds() {
        text.painted("ok  ", Colour::Green)
    } else {
        text.painted("FAIL", Colour::Red)
    };
    let checks = report.checks.sum();
    text.plain(&format!(
        "  {:<width$}  {checks:>5} checks  {:>6.0} ms\n",
        report.name,
        case.seconds * 1e3
    ));
    for written in &report.written {
        let word = if written.removed { "removed" } else { "wrote" };
        let file = &written.file;
        text.plain(&format!("      {word} {}/{file}\n", report.name));
    }
    for line in &report.log {
        text.plain(&format!("      log: {line}\n"));
    }
    for failure in &report.failures {
        let headline = failure.headline().replace('\n', "\n      ");
        text.plain(&format!("      {headline}\n"));
        for line in failure.diff().unwrap_or_default().lines() {
            text.plain("        ");
            match line.as_bytes().first() {
                Some(b'-') => text.painted(line, Colour::Red),
                Some(b'+') => text.painted(line, Colour::Green),
                Some(b'@') => text.painted(line, Colour::Cyan),
                _ => text.plain(line),
            };
            text.plain("\n");
        }
    }
    text
}

pub fn summary(report: &SuiteReport) -> StyledText {
    let all = report.cases.len();
    let mut text = StyledText::default();
    text.plain(&match all {
        1 => "1 case: ".to_owned(),
        _ => format!("{all} cases: "),
    });
    match (report.failed, all) {
        (0, 1) => text.painted("passed", Colour::Green),
        (0, _) => text.painted("all passed", Colour::Green),
        (1, 1) => text.painted("failed", Colour::Red),
        (failed, _) => text.painted(&format!("{failed} failed"), Colour::Red),
    };
    text.plain(&format!("; {}; {:.1} s\n", counts(&report.checks), report.seconds));
    if !report.untouched.is_empty() {
        text.plain(&format!("no case has {}\n", report.untouched.join("; ")));
    }
    text
}

fn counts(checks: &Checks) -> String {
    let counts = [
        (checks.requests, "requests written"),
        (checks.decodings, "decodings"),
        (checks.damaged, "damaged replies"),
        (checks.draws, "sequences drawn"),
        (checks.scored, "exchanges scored"),
    ];
    let parts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, of)| format!("{count} {of}")).collect();
    if parts.is_empty() { "nothing was checked".to_owned() } else { parts.join(", ") }
}
