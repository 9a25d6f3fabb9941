use std::collections::BTreeMap;

use super::*;
use crate::tests::golden;
use crate::workload::Workload;

/// A sweep of an engine that has enough at 400 requests in flight, in two repeats.
pub(crate) fn swept() -> Sweep {
    let loads = [1.0, 100.0, 200.0, 400.0, 800.0, 1600.0];
    let all: Vec<At> = loads.into_iter().map(At::Load).chain([At::Unlimited]).collect();
    let runs = (1..=2).flat_map(|repeat| {
        all.iter().enumerate().map(move |(place, at)| {
            let load = at.number().min(2000.0);
            let noise = 1.0 + 0.01 * f64::from(repeat) - 0.002 * place as f64;
            let tokens = 25.0 * load.min(400.0) * noise;
            let latency = 500.0 + 1.5 * (load - 400.0).max(0.0) * noise;
            SweptRun {
                at: *at,
                repeat,
                folder: format!("run-{repeat}-{place}"),
                verdict: match (repeat, place) {
                    (2, 1) => Verdict::Invalid,
                    _ => Verdict::Valid,
                },
                doubts: Vec::new(),
                curve: [Some(tokens), Some(latency)],
                figures: BTreeMap::from([
                    ("throughput.output-tokens-per-s".to_owned(), tokens),
                    ("e2e.p99".to_owned(), latency),
                    ("requests.success-share".to_owned(), 1.0),
                ]),
            }
        })
    });
    Sweep {
        load: Load::Concurrency,
        throughput: "throughput.output-tokens-per-s".to_owned(),
        latency: "e2e.p99".to_owned(),
        planned: all.iter().chain(&all).copied().collect(),
        runs: runs.collect(),
    }
}

fn workload() -> Workload {
    let fact =
        |name: &str, is: &str| crate::workload::Fact { name: name.to_owned(), is: is.to_owned() };
    Workload {
        name: "Random 128/128".to_owned(),
        requests: vec![
            fact("Prompts", "128 tokens each"),
            fact("Arrival", "closed, at most 1 in flight"),
        ],
        machines: vec![fact("Engine", "vllm 0.11.0")],
    }
}

#[test]
fn the_verdicts_of_runs_are_counted() {
    let mut sweep = swept();
    for run in &mut sweep.runs[..6] {
        run.verdict = Verdict::Suspect;
    }
    let text = page(&sweep, "chat", None).markdown();
    assert!(text.contains("of 14 runs, 6 suspect and 1 invalid"), "{text}");
    assert!(text.contains("| 1 valid, 1 suspect |"), "{text}");
    assert!(text.contains("| 1 suspect, 1 invalid |"), "{text}");
}

#[test]
fn a_doubtful_verdict_names_its_findings() {
    let mut sweep = swept();
    let run = &mut sweep.runs[8];
    assert_eq!(run.verdict, Verdict::Invalid);
    run.doubts = vec!["failures".to_owned()];
    let line = ended(Load::Concurrency, run);
    assert!(line.contains(": invalid (failures), "), "{line}");
    let table = text(&sweep);
    assert!(table.contains("  invalid (failures)\n"), "{table}");

    use crate::exchanges::{facts, reply};
    use model::exchange::Kind::{End, Text};
    use model::exchange::{Class, Outcome};
    let answer = |index| reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
    let mut all: Vec<_> = (0..10).map(answer).collect();
    let at = search::sweep::Run { number: 1, at: At::Load(10.0), repeat: 1, seed: 1 };
    let figure: Figure = "e2e.p99".parse().unwrap();
    let of = |all: &[_]| {
        let summary = Summary::new(&facts(), all);
        let findings = summary.findings.len();
        let run = SweptRun::new(&at, "run", &summary, [&figure, &figure]);
        (run.verdict, run.doubts, findings)
    };
    let (verdict, doubts, _) = of(&all);
    let unknown = vec!["tokens-unknown".to_owned()];
    assert_eq!((verdict, doubts), (Verdict::Suspect, unknown));
    for exchange in &mut all[1..9] {
        exchange.outcome = Outcome::Incomplete {
            class: Class::Truncated,
            reason: None,
            message: "cut off".to_owned(),
        };
    }
    let (verdict, doubts, findings) = of(&all);
    assert_eq!((verdict, doubts), (Verdict::Invalid, vec!["failures".to_owned()]));
    assert!(findings > 1, "others do not decide it");
}

#[test]
fn the_page_equals_its_golden() {
    let page = page(&swept(), "20260102-030405-chat-sweep", Some(&workload()));
    golden("src/cases/sweep.md", &page.markdown());
    let html = page.html();
    let charts: Vec<&str> = page.charts().map(|chart| chart.name.as_str()).collect();
    assert_eq!(charts, ["throughput-latency", "over-load"]);
    for part in ["knee at ", "Pareto front", "over-load-wide-title"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_sweep_that_has_just_begun_has_a_page() {
    let mut sweep = swept();
    sweep.runs.clear();
    let page = page(&sweep, "chat", None);
    assert!(page.markdown().contains("14 of 14 runs are not made yet"));
    assert_eq!(page.charts().count(), 0);
    page.html();
}
