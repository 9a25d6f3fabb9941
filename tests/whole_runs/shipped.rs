//! Every built-in scenario, run as a whole, with its own numbers of requests and tokens. Answers
//! come 500 tokens an event, so that millions of tokens take seconds here.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use tempfile::NamedTempFile;

use crate::support::sharegpt;
use crate::support::trial::{RunResult, Trial};

/// Conversations of the file: the most that any scenario measures, and some for warming up.
const CONVERSATIONS: u32 = 10_050;

fn conversations() -> &'static NamedTempFile {
    static FILE: OnceLock<NamedTempFile> = OnceLock::new();
    FILE.get_or_init(|| sharegpt::file(CONVERSATIONS))
}

/// The scenarios that are run below, and by `command_line::judge`. A test checks that none is
/// missing.
const RUN: [&str; 11] = [
    "scenarios/gpustack/generation-heavy.toml",
    "scenarios/gpustack/long-context.toml",
    "scenarios/gpustack/sharegpt.toml",
    "scenarios/gpustack/throughput.toml",
    "scenarios/judge/grade.toml",
    "scenarios/judge/pair.toml",
    "scenarios/lmdeploy/long-input.toml",
    "scenarios/lmdeploy/long-thinking.toml",
    "scenarios/lmdeploy/random-1k-1k.toml",
    "scenarios/lmdeploy/sharegpt.toml",
    "scenarios/quickstart.toml",
];

#[test]
fn every_scenario_that_ships_is_run() {
    let shipped: BTreeSet<&str> = shipped::scenarios().collect();
    assert_eq!(shipped, BTreeSet::from(RUN));
}

/// Runs a whole scenario and checks the common promises. Every request is answered, on time, at the
/// server's pace, with the requested number of tokens, by both sides' count.
async fn run(name: &str, requests: u64) -> RunResult {
    assert!(RUN.contains(&name));
    let text = shipped::scenario(name).unwrap();
    let mut trial = Trial::new(text).against("tokens-per-chunk = 500");
    if text.contains("sharegpt.wasm") || text.contains("like = \"lmdeploy\"") {
        trial = trial.dataset_file(conversations().path());
    }
    if name.contains("/lmdeploy/") {
        trial = trial.against("generate = 'lmdeploy'");
    }
    let ran = trial.run().await;
    assert_eq!(ran.plan.requests(), Some(requests));
    let summary = &ran.summary;
    assert_eq!(summary.requests.total, requests, "{}", ran.text);
    assert_eq!(summary.requests.successful, requests, "{}", ran.text);
    assert_eq!(ran.everywhere("ttft"), (120.0, requests));
    let (mut input, mut output, mut last) = (0, 0, 0);
    for exchange in ran.measured() {
        let tokens = u64::from(exchange.sample.output_tokens.unwrap());
        let sent = exchange.sent.unwrap();
        let took = 120_000_000 + (tokens - 1) * 20_000_000;
        assert_eq!(exchange.events.at.last().unwrap().since(sent).0, took);
        assert_eq!(exchange.output.len() as u64, tokens);
        input += u64::from(exchange.sample.input_tokens.unwrap());
        output += tokens;
        last = last.max(sent.since(ran.start()).0 + took);
    }
    assert_eq!(summary.tokens.input.total, Some(input));
    assert_eq!(summary.tokens.output.total, Some(output));
    assert_eq!(summary.tokens.output_requested, Some(output));
    assert_eq!(summary.tokens.output_retokenized, Some(output));
    assert_eq!(summary.throughput.duration_s, Some(last as f64 / 1e9));
    assert_eq!(summary.throughput.output_tokens_per_s, Some(output as f64 / (last as f64 / 1e9)));
    let tpot = ran.metric("tpot");
    assert_eq!((tpot.min, tpot.max), (20.0, 20.0));
    let warmup = ran.plan.load.warmup as usize;
    assert_eq!(ran.warmup().count(), warmup);
    assert_eq!(ran.truths.len(), requests as usize + warmup);
    let measured_there = |count: fn(&mock::Truth) -> Option<u32>| -> u64 {
        ran.truths[warmup..].iter().map(|t| u64::from(count(t).unwrap())).sum()
    };
    assert_eq!(measured_there(|truth| truth.prompt_tokens), input);
    assert_eq!(measured_there(|truth| truth.output_tokens), output);
    let digests: BTreeSet<&str> =
        ran.exchanges.iter().map(|exchange| exchange.sample.request_digest.as_str()).collect();
    assert_eq!(digests.len(), ran.exchanges.len(), "no prompt is sent twice");
    ran
}

/// All at once: everything is sent at the start, and all is in flight together.
async fn run_at_once(name: &str, requests: u64) -> RunResult {
    let ran = run(name, requests).await;
    let start = ran.start();
    assert!(ran.measured().all(|e| e.due == start && e.sent == Some(start)));
    assert_eq!(ran.summary.concurrency.peak, Some(requests));
    assert_eq!(ran.warmup().count(), 1);
    ran
}

fn check_lengths(ran: &RunResult, input: u64, output: u64) {
    let requests = ran.summary.requests.total;
    assert_eq!(ran.everywhere("input-tokens"), (input as f64, requests));
    assert_eq!(ran.everywhere("output-tokens"), (output as f64, requests));
    assert_eq!(ran.summary.tokens.input.total, Some(requests * input));
    assert_eq!(ran.summary.tokens.output.total, Some(requests * output));
}

#[tokio::test(start_paused = true)]
async fn lmdeploy_sharegpt() {
    let ran = run_at_once("scenarios/lmdeploy/sharegpt.toml", 10_000).await;
    let known: BTreeSet<(u32, u32)> = (0..CONVERSATIONS)
        .map(|number| (sharegpt::prompt_bytes(number), sharegpt::answer_bytes(number)))
        .collect();
    for exchange in ran.measured() {
        let sample = &exchange.sample;
        let lengths = (sample.input_tokens.unwrap(), sample.output_tokens.unwrap());
        assert!(known.contains(&lengths), "{lengths:?}");
    }
    // The file's totals, but for the 50 conversations that were left.
    let all = |count: fn(u32) -> u32| (0..CONVERSATIONS).map(|n| u64::from(count(n))).sum::<u64>();
    let left = 50 * 10..=50 * 1000;
    let input = ran.summary.tokens.input.total.unwrap();
    let output = ran.summary.tokens.output.total.unwrap();
    assert!(left.contains(&(all(sharegpt::prompt_bytes) - input)));
    assert!(left.contains(&(all(sharegpt::answer_bytes) - output)));
}

#[tokio::test(start_paused = true)]
async fn lmdeploy_random() {
    for (name, requests, input, output) in [
        ("scenarios/lmdeploy/random-1k-1k.toml", 2000, 1024, 1024),
        ("scenarios/lmdeploy/long-thinking.toml", 500, 2000, 6000),
        ("scenarios/lmdeploy/long-input.toml", 500, 6000, 2000),
    ] {
        check_lengths(&run_at_once(name, requests).await, input, output);
    }
}

/// The first thousand conversations in the order of the file, as fast as 512 at a time go.
#[tokio::test(start_paused = true)]
async fn gpustack_sharegpt() {
    let ran = run("scenarios/gpustack/sharegpt.toml", 1000).await;
    for (number, exchange) in (0..).zip(ran.measured()) {
        let sample = &exchange.sample;
        assert_eq!(sample.input_tokens, Some(sharegpt::prompt_bytes(number)));
        assert_eq!(sample.output_tokens, Some(sharegpt::answer_bytes(number)));
        let due = exchange.due.since(ran.start());
        assert_eq!(due.0, u64::from(number) * 1_000_000);
        assert_eq!(exchange.sent, exchange.granted);
    }
    assert_eq!(ran.summary.concurrency.peak, Some(512));
}

#[tokio::test(start_paused = true)]
async fn gpustack_throughput() {
    let ran = run("scenarios/gpustack/throughput.toml", 1000).await;
    check_lengths(&ran, 1024, 128);
    // The 513th finds its place when the first answer is over, after 120 + 127 × 20 ms.
    let waited = ran.since_start(|exchange| exchange.granted);
    assert_eq!((waited[511], waited[512]), (511.0, 2660.0));
    assert_eq!(ran.summary.requests.held_back, Some(488));
}

/// One a second, each answered in 120 + 99 × 20 = 2100 ms: three overlap for a tenth of a second.
#[tokio::test(start_paused = true)]
async fn gpustack_long_context() {
    let ran = run("scenarios/gpustack/long-context.toml", 100).await;
    check_lengths(&ran, 32_000, 100);
    assert_eq!(ran.summary.throughput.duration_s, Some(99.0 + 2.1));
    assert_eq!(ran.summary.concurrency.peak, Some(3));
    assert_eq!(ran.summary.requests.held_back, Some(0));
}

/// One a second, each answered in 120 + 1999 × 20 = 40 100 ms: 41 in flight.
#[tokio::test(start_paused = true)]
async fn gpustack_generation_heavy() {
    let ran = run("scenarios/gpustack/generation-heavy.toml", 200).await;
    check_lengths(&ran, 1000, 2000);
    assert_eq!(ran.summary.throughput.duration_s, Some(199.0 + 40.1));
    assert_eq!(ran.summary.concurrency.peak, Some(41));
}

#[tokio::test(start_paused = true)]
async fn quickstart() {
    let ran = run("scenarios/quickstart.toml", 60).await;
    for exchange in ran.measured() {
        assert!((48..=80).contains(&exchange.sample.input_tokens.unwrap()));
        assert!((24..=40).contains(&exchange.sample.output_tokens.unwrap()));
    }
    let scores = &ran.summary.scores;
    assert_eq!(scores["output-length"].mean, 1.0, "{scores:?}");
    assert!(scores.values().all(|score| score.count == 60), "{scores:?}");
}
