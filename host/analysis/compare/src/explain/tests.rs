//! Pairs of results as the tools wrote them, in `tests/explain`: each folder has `a` and `b`, a
//! run's folder or a file, and the explanation as text. `BLESS=1` rewrites the expectation.

#![allow(clippy::disallowed_methods, reason = "tests write files")]

use std::path::{Path, PathBuf};

use super::*;
use crate::exchanges::{ms, output_usage, reply};
use audit::claim::{Claim, Sample, Source, Tool};
use model::exchange::{Exchange, Kind as Event, ServerTimings};
use result::summary::{RunFacts, Summary};
use runs::{Reported, folder};
use std::convert::Infallible;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/explain")
}

/// The result `a` or `b` of a case.
fn account_of(case: &Path, name: &str) -> Account {
    let run = case.join(name);
    if !run.is_dir() {
        let file = format!("{name}.json");
        let content = std::fs::read(case.join(&file)).unwrap();
        let document = audit::claim::read(&file, &content).unwrap();
        let audited = audit::claims(&document.claims).swap_remove(0);
        return Account::of_claim(audited.claim, Vec::new());
    }
    let mut found = folder::runs(&run).unwrap();
    assert_eq!(found.len(), 1, "{}", run.display());
    let run = found.remove(0);
    let facts = run.facts().unwrap();
    let reported = Reported {
        folder: name.to_owned(),
        plan: run.plan().unwrap(),
        environment: None,
        status: run.status().unwrap(),
        summary: run.summarize(&facts).unwrap(),
    };
    Account::of_run(name.to_owned(), &reported, &facts, run.read().unwrap()).unwrap()
}

fn explained(case: &str) -> Explained {
    let case = root().join(case);
    explain(&account_of(&case, "a"), &account_of(&case, "b"))
}

#[test]
fn each_explanation_equals_its_expected_text() {
    let mut wrong = String::new();
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() >= 7, "{} cases", cases.len());
    for case in cases {
        let explanation = text(&explain(&account_of(&case, "a"), &account_of(&case, "b")));
        let expected = case.join("expected.txt");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&expected, &explanation).unwrap();
        }
        if std::fs::read_to_string(&expected).unwrap_or_default() != explanation {
            wrong += &format!(
                "{} differs; BLESS=1 writes it anew. Now:\n{explanation}\n",
                expected.display()
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn figure<'e>(explained: &'e Explained, name: &str) -> &'e Row {
    let mut rows = explained.figures.iter();
    rows.find(|row| row.figure == name).unwrap()
}

fn part(row: &Row, kind: Kind) -> &Part {
    let mut parts = row.parts.iter().filter(|part| part.value.is_some());
    parts.find(|part| part.kind == kind).unwrap()
}

/// The parts and the remainder add up to the difference, at both ends.
#[test]
fn parts_add_up() {
    for case in ["vllm", "definition", "lengths", "warm-up", "guidellm"] {
        for row in &explained(case).figures {
            let sum = |end: fn(&Range) -> f64| -> f64 {
                let parts = row.parts.iter().filter_map(|part| part.value.as_ref());
                parts.map(end).sum()
            };
            let low = row.remainder.low + sum(|range| range.high);
            let high = row.remainder.high + sum(|range| range.low);
            let near =
                |end: f64| (end - row.difference).abs() < 0.6e-2 + row.difference.abs() * 1e-9;
            assert!(near(low) && near(high), "{case}: {row:?}");
        }
    }
}

/// With a role chunk at once, vLLM's time to the first token is the time to the chunk. The whole
/// difference is the definition, and the rest is the clients' own few milliseconds.
#[test]
fn definition_explains_the_difference_of_its_pair() {
    let explained = explained("definition");
    let ttft = figure(&explained, "ttft.mean");
    assert!(ttft.difference < -290.0, "{ttft:?}");
    let definition = part(ttft, Kind::Definition);
    assert_eq!(definition.how, How::Recomputed);
    assert!(definition.value.unwrap().high < -290.0, "{definition:?}");
    assert!(ttft.remainder.high.abs() < 15.0, "{ttft:?}");
    // The time per token has the whole wait in it.
    let tpot = figure(&explained, "tpot.mean");
    assert!(tpot.difference > 15.0, "{tpot:?}");
    assert!(part(tpot, Kind::Definition).value.unwrap().low > 15.0);
    assert!(tpot.remainder.high.abs() < 1.5, "{tpot:?}");
}

/// Answers of 48 tokens instead of 16 at 10 ms each: the lengths make the difference of E2E.
#[test]
fn lengths_explain_the_difference_of_their_pair() {
    let explained = explained("lengths");
    let e2e = figure(&explained, "e2e.mean");
    assert!(e2e.difference > 310.0, "{e2e:?}");
    let lengths = part(e2e, Kind::Workload).value.unwrap();
    assert!(lengths.low > 300.0 && lengths.high < 360.0, "{lengths:?}");
    assert!(e2e.remainder.low.abs() < 20.0 && e2e.remainder.high.abs() < 20.0);
    let rate = figure(&explained, "throughput.output-tokens-per-s");
    assert!(part(rate, Kind::Workload).value.unwrap().low > 0.0, "{rate:?}");
}

/// The only cold request of twenty is the slowest: without it, nothing of the percentile remains.
#[test]
fn warm_up_explains_the_difference_of_its_pair() {
    let explained = explained("warm-up");
    let p99 = figure(&explained, "ttft.p99");
    let cold = part(p99, Kind::Schedule);
    assert_eq!(cold.how, How::Recomputed);
    let cold = cold.value.unwrap();
    assert!(cold.low > 40.0, "{p99:?}");
    assert!(p99.remainder.high.abs() < 20.0, "{p99:?}");
}

/// The lengths of the texts bound a figure that inference-perf divides by tokens of the text. Its
/// rate is brought to the server's count.
#[test]
fn tokens_of_the_text_are_a_definition() {
    let explained = explained("inference-perf");
    let tpot = figure(&explained, "tpot.mean");
    let counted = part(tpot, Kind::Definition).value.unwrap();
    let words: Vec<&str> = tpot.parts.iter().map(|part| part.words.as_str()).collect();
    assert!(words.iter().any(|words| words.contains("tokens of the text")), "{words:?}");
    assert!(counted.low.abs() < 1.0, "A's own formula differs little: {tpot:?}");
    assert!(tpot.remainder.low < 0.0 && tpot.remainder.high > 0.0, "{tpot:?}");
    let rate = figure(&explained, "throughput.output-tokens-per-s");
    let counted = part(rate, Kind::Definition);
    assert_eq!(counted.how, How::Recomputed);
    assert!(counted.value.unwrap().high < -70.0, "{rate:?}");
    assert!(rate.remainder.low.abs() < 10.0, "{rate:?}");
}

#[test]
fn the_json_is_as_its_schema_says() {
    let schema = serde_json::to_value(schemars::schema_for!(Explained)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for case in ["vllm", "warm-up", "guidellm", "inference-perf", "two-tools"] {
        let shown = serde_json::to_value(explained(case)).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&shown).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{case}");
        assert!(!validator.is_valid(&serde_json::json!({})));
    }
}

/// A claim of a tool about requests of `tokens` tokens, each with that TTFT and E2E.
fn stated(tool: Tool, requests: &[(f64, f64, u64)]) -> Claim {
    let mut claim = Claim::new(tool, Source::default());
    let count = requests.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64, u64)) -> f64| requests.iter().map(of).sum::<f64>() / count;
    claim.state("requests.successful", count, 0.0);
    claim.state("requests.failed", 0.0, 0.0);
    claim.state("ttft.mean", mean(&|one| one.0), 0.0);
    claim.state("e2e.mean", mean(&|one| one.1), 0.0);
    let tokens: u64 = requests.iter().map(|one| one.2).sum();
    claim.state("tokens.output", tokens as f64, 0.0);
    claim
}

/// Answered and failed requests together are the number of requests.
#[test]
fn answered_and_failed_requests_sum_to_all() {
    let [a, mut b] = [Tool::Vllm, Tool::Sglang].map(|tool| stated(tool, &[(10.0, 20.0, 4)]));
    b.asked.requests = Some(1);
    let of = |claim| Account::of_claim(claim, Vec::new());
    let explained = explain(&of(a), &of(b));
    let unknown = explained.unknown.iter().find(|unknown| unknown.starts_with("requests"));
    assert_eq!(unknown, None, "{:?}", explained.unknown);
}

/// For two claims, the identity gives the time per token by the other definition: exactly for one
/// length, and within bounds for several.
#[test]
fn stated_means_give_the_other_time_per_token() {
    let one = [(100.0, 1000.0, 10), (120.0, 1100.0, 10)];
    let several = [(100.0, 1000.0, 10), (120.0, 1100.0, 20)];
    for (requests, how) in [(&one, How::Recomputed), (&several, How::Bounded)] {
        let mean = |of: &dyn Fn(&(f64, f64, u64)) -> f64| {
            requests.iter().map(of).sum::<f64>() / requests.len() as f64
        };
        let after = mean(&|one| (one.1 - one.0) / (one.2 - 1) as f64);
        let all = requests.iter().map(|one| one.1).sum::<f64>()
            / requests.iter().map(|one| one.2 as f64).sum::<f64>();
        let mut a = stated(Tool::Vllm, requests.as_slice());
        a.state("tpot.mean", after, 0.0);
        let lengths = requests.iter().map(|one| one.2);
        a.output_lengths = Some(audit::claim::Lengths {
            least: lengths.clone().min().unwrap(),
            most: lengths.max().unwrap(),
        });
        let mut b = stated(Tool::Guidellm, requests.as_slice());
        b.state("tpot.mean", all, 0.0);
        for swapped in [false, true] {
            let [a, b] = [&a, &b].map(|claim| Account::of_claim(claim.clone(), Vec::new()));
            let explained = if swapped { explain(&b, &a) } else { explain(&a, &b) };
            let tpot = figure(&explained, "tpot.mean");
            let definition = part(tpot, Kind::Definition);
            assert_eq!(definition.how, how, "{tpot:?}");
            let value = definition.value.unwrap();
            assert!(
                value.low <= tpot.difference + 1e-9 && tpot.difference - 1e-9 <= value.high,
                "{tpot:?}"
            );
            assert!(tpot.remainder.low <= 1e-9 && tpot.remainder.high >= -1e-9, "{tpot:?}");
        }
    }
}

/// Nothing is derived from unknown values: without lengths or records, a definition has no value.
#[test]
fn a_definition_that_cannot_be_computed_has_no_value() {
    let requests = [(100.0, 1000.0, 10)];
    let mut a = stated(Tool::Vllm, &requests);
    a.state("tpot.mean", 100.0, 0.0);
    let mut b = stated(Tool::Guidellm, &requests);
    b.state("tpot.mean", 100.0, 0.0);
    let [a, b] = [a, b].map(|claim| Account::of_claim(claim, Vec::new()));
    let explained = explain(&a, &b);
    let tpot = figure(&explained, "tpot.mean");
    let definition: Vec<&Part> =
        (tpot.parts.iter()).filter(|part| part.kind == Kind::Definition).collect();
    assert_eq!(definition.len(), 1);
    assert_eq!(definition[0].how, How::NotSeparated);
    assert_eq!(definition[0].value, None);
    assert_eq!(tpot.remainder, Range::exact(0.0));
}

/// A run of ours with a request after another, each with its time to the first token.
fn run(ttfts: &[u64], tokens: u32) -> (Reported, RunFacts, Vec<Exchange>) {
    let exchanges: Vec<Exchange> = (0..)
        .zip(ttfts)
        .map(|(index, ttft)| {
            let sent = index * 1000;
            let mut events = Vec::new();
            for token in 0..u64::from(tokens) {
                events.push((sent + ttft + token * 10, Event::Text, None, 1));
            }
            events.push((sent + ttft + u64::from(tokens) * 10, Event::End, None, 0));
            let mut exchange = reply(index, sent, &events);
            exchange.usage = output_usage(tokens);
            exchange.sample.request_digest = format!("{index:016x}");
            exchange
        })
        .collect();
    let plan = crate::fixture::plan(&[]);
    let facts = folder::facts(&plan, Default::default(), false);
    let reported = Reported {
        folder: "run".to_owned(),
        summary: Summary::new(&facts, &exchanges),
        plan,
        environment: None,
        status: None,
    };
    (reported, facts, exchanges)
}

/// A run, and the result of vLLM's client about its only request: a chunk with the role, and one
/// without text, are chunks to it.
#[test]
fn chunks_without_text_are_of_the_definition_of_vllm() {
    let (mut reported, facts, _) = run(&[50], 5);
    let text = |at, bytes| (at, Event::Text, None, bytes);
    let events = [
        (20, Event::Role, None, 0),
        text(50, 1),
        text(60, 0),
        text(70, 1),
        text(80, 1),
        text(90, 1),
        (91, Event::End, None, 0),
    ];
    let mut exchange = reply(0, 0, &events);
    exchange.usage = output_usage(5);
    reported.summary = Summary::new(&facts, std::slice::from_ref(&exchange));
    let exchanges = std::iter::once(Ok::<_, Infallible>(exchange));
    let Ok(ours) = Account::of_run("run".to_owned(), &reported, &facts, exchanges);
    let result = br#"{"endpoint_type": "vllm", "backend": "vllm", "model_id": "m", "completed": 1, "failed": 0,
        "duration": 1.0, "total_output_tokens": 5, "queue_times": [0.0], "mean_ttft_ms": 20.0, "mean_itl_ms": 14.0}"#;
    let document = audit::claim::read("v.json", result).unwrap();
    let theirs = Account::of_claim(document.claims[0].clone(), Vec::new());
    let explained = explain(&ours, &theirs);
    for name in ["ttft.mean", "itl.mean"] {
        let row = figure(&explained, name);
        assert!(row.difference.abs() > 0.5, "{row:?}");
        assert_eq!(part(row, Kind::Definition).how, How::Recomputed);
        // No more than the rounding of the figure that the file states.
        assert!((row.remainder.low + row.remainder.high).abs() < 1e-6, "{row:?}");
    }
    assert!(explained.unknown[0].starts_with("sampling: not stated by B; A: "), "{explained:?}");
    let text = super::text(&explained);
    let (before, _) = text.split_once("\nDifferences:\n").unwrap();
    assert!(before.contains("In short:\n") && before.contains("ttft.mean (definition)"), "{text}");
    assert!(before.contains("requests answered: 1, tokens of answers: 5"), "{text}");
}

/// The engine of B keeps requests in its queue for longer: that is the place of the difference. A
/// part that one server does not report by itself is compared with the sum of the other's parts.
#[test]
fn finds_the_place_of_a_ttft_difference() {
    let account = |ttfts: &[u64], [first_token, queue, prefill]: [Option<u64>; 3]| {
        let (mut reported, facts, mut exchanges) = run(ttfts, 4);
        for exchange in &mut exchanges {
            exchange.timings = Some(ServerTimings {
                first_token: first_token.map(ms),
                queue: queue.map(ms),
                prefill: prefill.map(ms),
                decode: None,
            });
        }
        reported.summary = Summary::new(&facts, &exchanges);
        let exchanges = exchanges.into_iter().map(Ok::<_, Infallible>);
        let Ok(account) = Account::of_run("run".to_owned(), &reported, &facts, exchanges);
        account
    };
    let places = |a: &Account, b: &Account| -> Vec<(String, f64, f64)> {
        let explained = explain(a, b);
        let row = figure(&explained, "ttft.mean");
        let sum: f64 = row.places.iter().map(|place| place.difference).sum();
        assert!(row.places.is_empty() || (sum - row.difference).abs() < 1e-9);
        let places = row.places.iter();
        places.map(|place| (place.place.clone(), place.a, place.b)).collect()
    };
    let of = |place: &str, a: f64, b: f64| (place.to_owned(), a, b);
    let whole = [Some(90), Some(20), Some(60)];
    let a = account(&[100, 100], whole);
    let b = account(&[250, 350], [Some(285), Some(220), Some(60)]);
    let expected = [
        of("network", 10.0, 32.5),
        of("front end", 10.0, 5.0),
        of("queue", 20.0, 220.0),
        of("prefill", 60.0, 60.0),
        of("unexplained", 0.0, -17.5),
    ];
    assert_eq!(places(&a, &b), expected);
    let b = account(&[300, 300], [None, Some(220), Some(60)]);
    let expected = [
        of("network and front end", 20.0, 20.0),
        of("queue", 20.0, 220.0),
        of("prefill", 60.0, 60.0),
    ];
    assert_eq!(places(&a, &b), expected);
    let explanation = text(&explain(&a, &b));
    let queue = "    queue                   +200        20 ms in A, 220 ms in B\n";
    assert!(explanation.contains(queue), "{explanation}");
    let b = account(&[300, 300], [None; 3]);
    assert_eq!(places(&a, &b), []);
    assert!(!text(&explain(&a, &b)).contains("timings"));
}

/// A claim about the same requests, whose first was cold, beside a run that warmed up: the part is
/// between nothing and the cold request.
#[test]
fn an_unstated_warm_up_has_bounds() {
    let (mut reported, facts, exchanges) = run(&[100, 100, 100, 100], 4);
    reported.plan.load.warmup = 1;
    let exchanges = exchanges.into_iter().map(Ok::<_, Infallible>);
    let Ok(a) = Account::of_run("run".to_owned(), &reported, &facts, exchanges);
    let mut claim = Claim::new(Tool::Sglang, Source::default());
    let ttfts = [500.0, 100.0, 100.0, 100.0];
    claim.state("ttft.mean", 200.0, 0.0);
    claim.samples = (0..)
        .zip(ttfts)
        .map(|(index, ttft)| Sample {
            start_s: Some(f64::from(index)),
            ttft_ms: Some(ttft),
            ..Sample::default()
        })
        .collect();
    let b = Account::of_claim(claim, Vec::new());
    let explained = explain(&a, &b);
    let ttft = figure(&explained, "ttft.mean");
    assert_eq!(ttft.difference, 100.0);
    let cold = part(ttft, Kind::Schedule);
    assert_eq!(cold.how, How::Bounded);
    assert_eq!(cold.value, Range::between(0.0, 100.0));
    assert_eq!(ttft.remainder, Range { low: 0.0, high: 100.0 });
}

/// Two open loops that reached their rates differ by their requested rates.
#[test]
fn rates_that_were_reached_are_the_schedules_part() {
    let claim = |rate: f64| {
        let mut claim = Claim::new(Tool::Vllm, Source::default());
        claim.asked.request_rate = Some(rate);
        for (name, value) in [
            ("requests.successful", 100.0),
            ("throughput.duration-s", 100.0 / rate),
            ("throughput.requests-per-s", rate),
        ] {
            claim.state(name, value, 0.0);
        }
        Account::of_claim(claim, Vec::new())
    };
    let explained = explain(&claim(5.0), &claim(8.0));
    let rate = figure(&explained, "throughput.requests-per-s");
    let schedule = part(rate, Kind::Schedule);
    assert_eq!(schedule.how, How::Settings);
    assert_eq!(schedule.value, Some(Range::exact(3.0)));
    assert_eq!(rate.remainder, Range::exact(0.0));
}
