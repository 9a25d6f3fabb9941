//! The formats of the report.

use quick_junit::{Report, TestCaseStatus};

use super::{Project, SAMPLE, WORDS};
use crate::command_line::transcript;

/// A backend with one case that holds, a second that differs, and a third that traps.
fn mixed() -> Project {
    let project = Project::asking("", "reply.lines", WORDS);
    project.write("cases/differs/sample.json", SAMPLE);
    project.write("cases/differs/reply.lines", "one\nend\n");
    project.test(&["--bless"]).with_code(0);
    project.write(
        "cases/differs/events.json",
        "[\n  {\"frame\":0,\"kind\":\"text\",\"text\":\"eins#1\",\"tokens\":1},\n  {\"frame\":1,\"kind\":\"end\"}\n]\n",
    );
    project.write("cases/traps/config.toml", "fault = \"trusting\"\n");
    project.write("cases/traps/sample.json", SAMPLE);
    project.write("cases/traps/request.http", "POST /1\n");
    project.write("cases/traps/reply.lines", "one\nT\u{1b}WO\n");
    std::fs::copy(&project.component, project.path("unsteady.wasm")).unwrap();
    project
}

fn shown(project: &Project, form: &str) -> String {
    let words = ["--plugin", "unsteady.wasm", "--format", form];
    let ended = crate::support::process::run(&mut project.command(&words)).with_code(4);
    assert!(!ended.stdout.contains('\u{1b}'), "{:?}", ended.stdout);
    ended.stdout
}

/// Removes the differences between machines: times, and the component's digest.
fn redacted(text: &str) -> String {
    let mut shown = Vec::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        // The place of the panic in the guest's source.
        while let Some(start) = line.find("panicked at ")
            && let Some(length) = line[start..].find(" only words")
        {
            line.replace_range(start..start + length + 1, "");
        }
        for (before, after) in [("  ", " ms"), ("; ", " s")] {
            if let Some(end) = line.strip_suffix(after)
                && let Some(start) = end.rfind(before)
                && end[start..].trim_start_matches([';', ' ']).parse::<f64>().is_ok()
            {
                line = format!("{}{before}TIME{after}", end[..start].trim_end());
            }
        }
        for (before, after) in [("time=\"", '"'), ("\"seconds\": ", ','), ("\"digest\": \"", '"')] {
            if let Some(start) = line.find(before).map(|at| at + before.len()) {
                let end = line[start..].find(after).map_or(line.len(), |at| start + at);
                line.replace_range(start..end, "REDACTED");
            }
        }
        shown.push(line);
    }
    shown.join("\n")
}

#[test]
fn text() {
    transcript("plugin-test-text", &redacted(&shown(&mixed(), "text")));
}

#[test]
fn json() {
    let mut report: serde_json::Value = serde_json::from_str(&shown(&mixed(), "json")).unwrap();
    // They come from the sandbox, and appear in the results of runs.
    let limits = report["limits"].take();
    assert!(limits["memory-bytes"].as_u64() > Some(0), "{limits}");
    let report = serde_json::to_string_pretty(&report).unwrap();
    transcript("plugin-test-json", &redacted(&report));
}

#[test]
fn junit() {
    let xml = shown(&mixed(), "junit");
    let report = Report::deserialize_from_str(&xml).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (3, 2, 0));
    let suite = &report.test_suites[0];
    assert_eq!(suite.name.as_str(), "unsteady");
    let failed: Vec<(&str, bool)> = suite
        .test_cases
        .iter()
        .map(|case| (case.name.as_str(), !matches!(case.status, TestCaseStatus::Success { .. })))
        .collect();
    assert_eq!(failed, [("differs", true), ("traps", true), ("words", false)]);
    transcript("plugin-test-junit", &redacted(&xml));
}
