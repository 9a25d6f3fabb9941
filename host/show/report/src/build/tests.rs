use super::*;
use crate::comparisons::{USUAL, exchanges, measured, named, options, plan, side};
use compare::compare;
use result::finding::Finding;
use result::threshold::Checked;

/// A run of a usual engine, or of an engine whose first tokens take `times` times as long.
fn run(folder: &str, times: f64) -> Run {
    let engine = crate::comparisons::Engine { ttft: times, ..USUAL };
    let measured = measured(folder, plan(&[]), &exchanges(engine, 60, 5.0));
    let mut summary = measured.reported.summary;
    summary.findings.clear();
    summary.verdict = Verdict::Valid;
    Run { folder: folder.to_owned(), summary }
}

fn build(runs: Vec<Run>, baseline: Baseline) -> Build {
    Build { scenario: "chat".to_owned(), runs, baseline, allows_invalid: false }
}

fn threshold(held: bool, seen: f64) -> Checked {
    crate::fixture::threshold("ttft.p99 <= 200 ms", held, seen)
}

fn finding(severity: Severity) -> Finding {
    let texts = ["P99 of the send lag is 9 ms", "requests left late", "use a quieter machine"];
    crate::fixture::finding(result::finding::Id::SendLag, severity, texts)
}

fn outcomes(build: &Build) -> Vec<(Subject, Outcome, String)> {
    build.checks().into_iter().map(|check| (check.subject, check.outcome, check.seen)).collect()
}

/// A comparison of an engine with another whose first tokens take `times` times as long.
fn compared(times: f64, conditions: &[&str]) -> Baseline {
    let engine = crate::comparisons::Engine { ttft: times, ..USUAL };
    let [a, b] = [USUAL, engine].map(|engine| exchanges(engine, 300, 5.0));
    let mut options = options(named(&["ttft.mean"]), 300);
    options.conditions = (conditions.iter()).map(|text| text.parse().unwrap()).collect();
    Baseline::Compared(Box::new(compare(&[side(&a), side(&b)], &options).unwrap()))
}

#[test]
fn a_threshold_fails_if_it_does_not_hold_in_one_run() {
    let mut runs = vec![run("a", 1.0), run("b", 1.0), run("c", 1.0)];
    for (run, seen) in runs.iter_mut().zip([150.0, 250.0, 160.0]) {
        run.summary.thresholds = vec![threshold(seen <= 200.0, seen)];
    }
    let mut build = build(runs, Baseline::NotRequested);
    let checks = outcomes(&build);
    let expected = [
        (Subject::Run, Outcome::Passes, "3 runs, verdict valid"),
        (Subject::Threshold, Outcome::Fails, "250.00 (b)"),
    ];
    assert_eq!(
        checks,
        expected.map(|(subject, outcome, seen)| (subject, outcome, seen.to_owned()))
    );
    build.runs.remove(1);
    assert_eq!(outcomes(&build)[1].1, Outcome::Passes);
    assert_eq!(outcomes(&build)[1].2, "150.00 (a); 160.00 (c)");
}

#[test]
fn a_suspect_finding_is_a_doubt_and_an_invalid_one_fails() {
    let mut own = run("a", 1.0);
    own.summary.findings = vec![finding(Severity::Suspect)];
    own.summary.verdict = Verdict::Suspect;
    let mut build = build(vec![own], Baseline::NotRequested);
    let checks = build.checks();
    assert_eq!(checks[0].seen, "1 run, verdict suspect");
    assert_eq!((checks[1].name.as_str(), checks[1].outcome), ("send-lag", Outcome::Warns));
    assert_eq!(checks[1].more, ["requests left late", "use a quieter machine"]);
    let summary = &mut build.runs[0].summary;
    summary.findings = vec![finding(Severity::Invalid)];
    summary.verdict = Verdict::Invalid;
    let fails = |build: &Build| build.checks().iter().map(|check| check.outcome).min();
    assert_eq!(fails(&build), Some(Outcome::Fails));
    build.allows_invalid = true;
    assert_eq!(fails(&build), Some(Outcome::Warns));
}

#[test]
fn a_build_without_a_baseline_passes_and_says_so() {
    let mut build = build(vec![run("a", 1.0)], Baseline::None("main".to_owned()));
    let last = |build: &Build| outcomes(build).pop().unwrap();
    assert_eq!(last(&build).1, Outcome::Notes);
    assert!(markdown(&build).contains("There is no baseline yet"));
    for (fails, outcome) in [(false, Outcome::Warns), (true, Outcome::Fails)] {
        let reasons = vec!["client's processor (machine): one in A, other in B".to_owned()];
        build.baseline = Baseline::NotComparable { reasons, fails };
        let (subject, found, seen) = last(&build);
        assert_eq!((subject, found), (Subject::Baseline, outcome));
        assert!(seen.starts_with("NOTHING WAS COMPARED: client's processor"), "{seen}");
        assert!(markdown(&build).contains("NOTHING WAS COMPARED: the baseline is not comparable"));
    }
}

#[test]
fn worse_figures_fail_on_condition_and_warn_otherwise() {
    let failing = |times, conditions: &[&str]| {
        let build = build(vec![run("a", 1.0)], compared(times, conditions));
        let checks = build.checks().into_iter().filter(|check| check.outcome != Outcome::Passes);
        checks.map(|check| (check.subject, check.outcome)).collect::<Vec<_>>()
    };
    let assumed = (Subject::Baseline, Outcome::Warns);
    assert_eq!(failing(1.5, &["ttft.mean +5%"]), [assumed, (Subject::Condition, Outcome::Fails)]);
    // Worse beyond chance, and not by that much.
    assert_eq!(failing(1.5, &["ttft.mean +90%"]), [assumed, (Subject::Baseline, Outcome::Warns)]);
    assert_eq!(failing(1.5, &[]), [(Subject::Baseline, Outcome::Warns)]);
    assert_eq!(failing(1.0, &["ttft.mean +5%"]), [assumed]);
    // A condition that cannot be checked does not pass.
    let absent = failing(1.0, &["queue.mean +5%"]);
    assert_eq!(absent[1], (Subject::Baseline, Outcome::Fails));
}

#[test]
fn junit_has_a_test_for_each_check_and_its_outcome() {
    let mut own = run("a", 1.0);
    own.summary.thresholds = vec![threshold(false, 250.0)];
    own.summary.findings = vec![finding(Severity::Suspect)];
    let build = build(vec![own], Baseline::None("main".to_owned()));
    let xml = junit(&build).unwrap();
    let report = quick_junit::Report::deserialize_from_str(&xml).unwrap();
    let suite = &report.test_suites[0];
    assert_eq!((suite.tests, suite.failures), (4, 1), "{xml}");
    assert_eq!(xml.matches("<skipped").count(), 2, "{xml}");
    let cases = &suite.test_cases;
    assert_eq!(cases[1].name.as_str(), "ttft.p99 <= 200 ms");
    assert_eq!(cases[1].classname.as_ref().unwrap().as_str(), "chat.threshold");
    assert!(xml.contains(r#"message="250.00""#), "{xml}");
}

#[test]
fn foreign_text_breaks_no_form() {
    let mut own = run("a", 1.0);
    let mut found = finding(Severity::Suspect);
    found.seen = "one\n::error::two\u{1b}[2J | <script>`x`".to_owned();
    own.summary.findings = vec![found];
    let mut build = build(vec![own], Baseline::NotRequested);
    build.scenario = "chat,title=x::y\n::error::z</details>".to_owned();
    let lines = annotations(&build);
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(
        lines.starts_with("::warning title=chat%2Ctitle=x%3A%3Ay%0A%3A%3Aerror%3A%3Az</details>%3A send-lag::one%0A::error"),
        "{lines}"
    );
    let page = markdown(&build);
    assert!(!page.contains("<script>") && !page.contains("z</details>"), "{page}");
    quick_junit::Report::deserialize_from_str(&junit(&build).unwrap()).unwrap();
}

#[test]
fn annotations_list_failures_and_doubts_worst_first() {
    let mut own = run("a", 1.0);
    own.summary.thresholds = vec![threshold(false, 250.0)];
    own.summary.findings = vec![finding(Severity::Suspect)];
    let build = build(vec![own], Baseline::None("main".to_owned()));
    assert_eq!(
        annotations(&build),
        "::error title=chat%3A ttft.p99 <= 200 ms::250.00\n\
         ::warning title=chat%3A send-lag::P99 of the send lag is 9 ms%0Arequests left late%0Ause a quieter machine\n\
         ::notice title=chat%3A there is a baseline::nothing was compared: no baseline in main%0Athe first run passes; store its runs as the baseline of the next\n"
    );
}
