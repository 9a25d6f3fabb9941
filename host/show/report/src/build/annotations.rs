//! The checks of a build as annotations of a GitHub log.

use super::{Build, Check, Outcome};
use audit::github::annotation;

/// A line for each check that does not simply pass, the worst first: GitHub shows ten of a level.
pub fn annotations(build: &Build) -> String {
    let mut checks = build.checks();
    checks.sort_by_key(|check| std::cmp::Reverse(check.outcome));
    let lines = checks.iter().filter_map(|check| line(build, check));
    lines.collect()
}

fn line(build: &Build, check: &Check) -> Option<String> {
    let level = match check.outcome {
        Outcome::Passes => return None,
        Outcome::Notes => "notice",
        Outcome::Warns => "warning",
        Outcome::Fails => "error",
    };
    let title = format!("{}: {}", build.scenario, check.name);
    let words: Vec<&str> =
        std::iter::once(&check.seen).chain(&check.more).map(String::as_str).collect();
    Some(annotation(level, &[("title", &title)], &words.join("\n")))
}
