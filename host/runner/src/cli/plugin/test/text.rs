//! The report of `runner plugin test` as text.

use std::fmt::Write;
use std::io::IsTerminal;

use plugins::case::{Checks, SuiteReport, TimedReport};

/// Colours, used if stdout is a terminal and `NO_COLOR` is not set.
#[derive(Clone, Copy)]
enum Colour {
    Red = 31,
    Green = 32,
    Cyan = 36,
}

fn painted(text: &str, colour: Colour) -> String {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\u{1b}[{}m{text}\u{1b}[0m", colour as u8)
    } else {
        text.to_owned()
    }
}

/// The heading: which plugin is tested.
pub fn heading(report: &SuiteReport) -> String {
    format!(
        "{} {}, a {}: {}\n",
        shown(&report.plugin.name),
        shown(&report.plugin.version),
        report.plugin.kind.name(),
        report.plugin.file
    )
}

/// One line about a case, and its failures.
pub fn case(case: &TimedReport, width: usize) -> String {
    let report = &case.report;
    let word = match report.holds() {
        true => painted("ok  ", Colour::Green),
        false => painted("FAIL", Colour::Red),
    };
    let checks = report.checks.sum();
    let mut text = format!(
        "{word}  {:<width$}  {checks:>5} checks  {:>6.0} ms\n",
        shown(&report.name),
        case.seconds * 1e3
    );
    for written in &report.written {
        let word = if written.removed { "removed" } else { "wrote" };
        let _ = writeln!(
            text,
            "      {word} {}/{}",
            shown(&report.name),
            written.file
        );
    }
    for failure in &report.failures {
        let headline = shown(&failure.headline());
        let _ = writeln!(text, "      {}", headline.replace('\n', "\n      "));
        for line in failure.diff().unwrap_or_default().lines() {
            let line = shown(line);
            let line = match line.as_bytes().first() {
                Some(b'-') => painted(&line, Colour::Red),
                Some(b'+') => painted(&line, Colour::Green),
                Some(b'@') => painted(&line, Colour::Cyan),
                _ => line,
            };
            let _ = writeln!(text, "        {line}");
        }
    }
    text
}

/// The summary of all cases.
pub fn summary(report: &SuiteReport) -> String {
    let all = report.cases.len();
    let cases = match all {
        1 => "1 case".to_owned(),
        _ => format!("{all} cases"),
    };
    let verdict = match (report.failed, all) {
        (0, 1) => painted("passed", Colour::Green),
        (0, _) => painted("all passed", Colour::Green),
        (1, 1) => painted("failed", Colour::Red),
        (failed, _) => painted(&format!("{failed} failed"), Colour::Red),
    };
    format!(
        "{cases}: {verdict}; {}; {:.1} s\n",
        counts(&report.checks),
        report.seconds
    )
}

fn counts(checks: &Checks) -> String {
    let counts = [
        (checks.requests, "requests written"),
        (checks.decodings, "decodings"),
        (checks.damaged, "damaged replies"),
        (checks.draws, "sequences drawn"),
        (checks.scored, "exchanges scored"),
    ];
    let told = counts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, of)| format!("{count} {of}")).collect();
    match told.is_empty() {
        true => "nothing was checked".to_owned(),
        false => told.join(", "),
    }
}

/// Text from a plugin, with control characters escaped so that they cannot move the terminal's cursor.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            control if control.is_control() => shown.extend(control.escape_default()),
            letter => shown.push(letter),
        }
    }
    shown
}
