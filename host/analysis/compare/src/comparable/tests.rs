use serde_json::{Value, json};

use super::super::fixture::{USUAL, exchanges, measured, plan};
use super::*;
use crate::Stated;
use crate::exchanges::failed;
use ::runs::environment::Environment;
use audit::claim::{Claim, Source, Tool};
use model::exchange::{Class, Exchange};

/// Two sides; none of the settings that people compare on purpose must agree.
fn compatibility(baseline: &Side, side: &Side, names: [&str; 2]) -> Compatibility {
    super::compatibility(baseline, side, names, &[])
}

/// A run of 20 requests of a plan with these keys.
fn run(over: &[(&str, Value)], exchanges: &[Exchange]) -> Side {
    Side::Runs(vec![measured("run", plan(over), exchanges)])
}

fn usual() -> Vec<Exchange> {
    exchanges(USUAL, 20, 10.0)
}

fn kinds(found: &Compatibility) -> Vec<Kind> {
    found.obstacles.iter().map(|obstacle| obstacle.kind).collect()
}

/// The obstacles between the usual run and another one, with their texts.
fn obstacles(over: &[(&str, Value)], exchanges: &[Exchange]) -> Vec<(Kind, String)> {
    let found = compatibility(&run(&[], &usual()), &run(over, exchanges), ["A", "B"]);
    let obstacles = found.obstacles.iter().map(|Obstacle { kind, difference }| {
        (*kind, format!("{}: {}", difference.what, difference.values("A")))
    });
    obstacles.collect()
}

#[test]
fn obstacles_show_both_values() {
    assert_eq!(obstacles(&[], &usual()), []);
    // A key of the plan with another value, and the end of the text that begins with the key.
    for (key, value, kind, end) in [
        ("load.seed", json!(2), Kind::Prompts, ": 1 in A, 2 in B"),
        ("dataset.digest", json!("d1"), Kind::Prompts, ": d0 in A, d1 in B"),
        ("dataset.config.input-len", json!(80), Kind::Lengths, ": 40 in A, 80 in B"),
        ("dataset.config.like", json!("vllm"), Kind::Prompts, ": not given in A, vllm in B"),
        (
            "dataset.files",
            json!({"data": {"path": "x", "bytes": 1, "digest": "f1"}}),
            Kind::Prompts,
            ".data.digest: not given in A, f1 in B",
        ),
        ("load.amount", json!({"requests": 400}), Kind::Count, ".requests: 300 in A, 400 in B"),
        (
            "load.arrival",
            json!({"model": "constant", "rate": 5.0}),
            Kind::Load,
            ".rate: 10.0 in A, 5.0 in B",
        ),
        ("load.max-in-flight", json!(64), Kind::Load, ": not given in A, 64 in B"),
        ("request.stream", json!(false), Kind::Request, ": true in A, false in B"),
        ("target.model", json!("llama"), Kind::Model, ": qwen in A, llama in B"),
        ("tokenizer.name", json!("qwen.json"), Kind::Tokenizer, ": bytes in A, qwen.json in B"),
        ("connection.timestamps", json!("user"), Kind::Client, ": kernel in A, user in B"),
        ("timeouts.connect", json!(2_000_000_000), Kind::Client, ": 1s in A, 2s in B"),
        (
            "goodput",
            json!([{"metric": "ttft", "at-most-ms": 200.0}]),
            Kind::Definition,
            ": not given in A, [{\"metric\":\"ttft\",\"at-most-ms\":200.0}] in B",
        ),
    ] {
        let found = obstacles(&[(key, value)], &usual());
        assert_eq!(found, [(kind, format!("{key}{end}"))]);
    }
    let two = [("request.ignore-eos", json!(false)), ("request.output-tokens", json!(9))];
    let wanted = [
        (Kind::Request, "request.ignore-eos: true in A, false in B"),
        (Kind::Lengths, "request.output-tokens: not given in A, 9 in B"),
    ];
    assert_eq!(obstacles(&two, &usual()), wanted.map(|(kind, text)| (kind, text.to_owned())));
    let others = usual().into_iter().map(|mut exchange| {
        exchange.sample.request_digest = format!("{:016x}", exchange.index + 1);
        exchange
    });
    let others: Vec<Exchange> = others.collect();
    let text =
        "requests (20 of 20 differ, the first is number 0): 20 requests in A, 20 requests in B";
    assert_eq!(obstacles(&[], &others), [(Kind::Prompts, text.to_owned())]);
    // Another dialect makes other bytes of the same samples.
    assert_eq!(obstacles(&[("backend.digest", json!("b1"))], &others), []);
}

#[test]
fn other_samples_behind_another_dialect_are_seen() {
    let longer = usual().into_iter().map(|mut exchange| {
        exchange.sample.request_digest = "ff".into();
        exchange.sample.output_tokens = Some(500 + exchange.index as u32 % 2);
        exchange
    });
    let longer: Vec<Exchange> = longer.collect();
    let b = run(&[("backend.digest", json!("b1"))], &longer);
    let found = compatibility(&run(&[], &usual()), &b, ["A", "B"]);
    assert_eq!(kinds(&found), [Kind::Prompts]);
}

#[test]
fn lists_intended_differences_without_refusal() {
    let over = [
        ("about", json!({"engine": "sglang", "notes": {"commit": "abc"}})),
        ("backend.digest", json!("b1")),
        ("target.base-urls", json!(["http://b:9000"])),
        ("name", json!("chat 2")),
        ("runner", json!("0.2.0")),
        ("target.headers", json!(["x-trace"])),
        ("percentiles", json!([50.0])),
        ("dataset.plugin", json!("elsewhere/random.wasm")),
    ];
    let found = compatibility(&run(&[], &usual()), &run(&over, &usual()), ["A", "C"]);
    assert_eq!(kinds(&found), []);
    let texts: Vec<String> = (found.differences.iter())
        .map(|difference| format!("{}: {}", difference.what, difference.values("A")))
        .collect();
    assert_eq!(
        texts,
        [
            "engine: not given in A, sglang in C",
            "commit: not given in A, abc in C",
            "backend.digest: b0 in A, b1 in C",
            "name: chat in A, chat 2 in C",
            "runner: 0.1.0 in A, 0.2.0 in C",
            "target.base-urls: [\"http://a:8000\"] in A, [\"http://b:9000\"] in C",
        ]
    );
}

#[test]
fn invalid_runs_are_not_compared() {
    let none: Vec<Exchange> =
        usual().into_iter().map(|exchange| failed(exchange, Class::Refused, "refused")).collect();
    let found = compatibility(&run(&[], &usual()), &run(&[], &none), ["A", "B"]);
    assert_eq!(kinds(&found), [Kind::Verdict]);
    let text = found.obstacles[0].difference.values("A");
    assert!(text.contains("invalid (") && text.contains("nothing-answered"), "{text}");
}

#[test]
fn finds_a_different_repeat() {
    let runs = [plan(&[]), plan(&[("load.seed", json!(3))])];
    let a = Side::Runs(runs.map(|plan| measured("run", plan, &usual())).into());
    let found = compatibility(&a, &run(&[], &usual()), ["A", "B"]);
    assert_eq!(kinds(&found), [Kind::Prompts]);
    let values = found.obstacles[0].difference.values("A");
    assert_eq!(values, "1 in A, 3 in another run of A");
}

fn claim(tool: Tool) -> Claim {
    let mut claim = Claim::new(tool, Source::default());
    claim.model = Some("org/Qwen".into());
    claim.asked.request_rate = Some(10.0);
    claim.state("requests.successful", 20.0, 0.0);
    claim.state("ttft.mean", 100.0, 0.005);
    claim
}

fn stated(claim: Claim) -> Side {
    Side::Claim(Box::new(Stated::new(claim, Vec::new(), None)))
}

#[test]
fn stated_settings_of_a_claim_must_agree() {
    let ours = run(&[], &usual());
    let found = compatibility(&ours, &stated(claim(Tool::Lmdeploy)), ["A", "B"]);
    assert_eq!(kinds(&found), []);
    assert!(found.unknown.iter().any(|unknown| unknown.starts_with("output tokens")));
    let differs = |found: &Compatibility, what: &str| {
        found.differences.iter().any(|difference| difference.what == what)
    };
    // For our own run, the plan states it.
    let mut from = claim(Tool::Lmdeploy);
    for (backend, is_other) in [("vllm", false), ("sglang", true)] {
        from.about.notes.insert("backend".into(), backend.into());
        let found = compatibility(&ours, &stated(from.clone()), ["A", "B"]);
        assert_eq!(differs(&found, "backend"), is_other, "{backend}");
    }
    let share = "requests.success-share".parse().unwrap();
    assert_eq!(stated(from.clone()).value(&share), None);
    from.state("requests.failed", 5.0, 0.0);
    assert_eq!(stated(from).value(&share), Some(0.8));
    let mut other = claim(Tool::Lmdeploy);
    other.model = Some("Llama-3".into());
    other.asked.request_rate = Some(f64::INFINITY);
    other.state("requests.successful", 500.0, 0.0);
    other.state("tokens.output", 1e6, 0.0);
    // The order does not matter.
    for (sides, values) in [
        ([&ours, &stated(other.clone())], "10/s in A, all at once in B"),
        ([&stated(other.clone()), &ours], "all at once in A, 10/s in B"),
    ] {
        let found = compatibility(sides[0], sides[1], ["A", "B"]);
        assert_eq!(kinds(&found), [Kind::Model, Kind::Count, Kind::Load, Kind::Lengths]);
        assert_eq!(found.obstacles[2].difference.values("A"), values);
    }
}

#[test]
fn refuses_claims_with_another_definition() {
    let found =
        compatibility(&stated(claim(Tool::Lmdeploy)), &stated(claim(Tool::Vllm)), ["A", "B"]);
    assert_eq!(kinds(&found), [Kind::Definition]);
    assert_eq!(found.obstacles[0].difference.what, "ttft");
    let found =
        compatibility(&stated(claim(Tool::Lmdeploy)), &stated(claim(Tool::Sglang)), ["A", "B"]);
    assert_eq!(kinds(&found), []);
}

#[test]
fn intended_differences_must_agree_on_demand() {
    let about = |version: &str, hardware: &str| {
        let about = json!({"engine": "vllm", "engine-version": version, "hardware": hardware});
        [("about", about)]
    };
    let on = |over: &[(&str, Value)], cpu: &str| {
        let mut run = measured("run", plan(over), &usual());
        run.reported.environment =
            Some(Environment { cpu: Some(cpu.to_owned()), ..Environment::look([], None, "0.2.0") });
        Side::Runs(vec![run])
    };
    let a = on(&about("0.10", "8x H800"), "one");
    let b = on(&about("0.11", "8x H200"), "other");
    let compare = |must_agree: &[Kind]| {
        let found = super::compatibility(&a, &b, ["A", "B"], must_agree);
        let differ = found.differences.iter().map(|differs| differs.what.clone());
        (kinds(&found), differ.collect::<Vec<_>>())
    };
    let all = ["engine version", "hardware", "client's processor"].map(str::to_owned);
    assert_eq!(compare(&[]), (vec![], all.to_vec()));
    for (kind, at) in [(Kind::Engine, 0), (Kind::Hardware, 1), (Kind::Machine, 2)] {
        let mut left = all.to_vec();
        left.remove(at);
        assert_eq!(compare(&[kind]), (vec![kind], left));
        let same = super::compatibility(&a, &a, ["A", "B"], &[kind]);
        assert_eq!(same.obstacles, []);
    }
}
