//! Findings on the server's own series.

use super::*;
use ::series::{Encoder, Head, Recording};

/// The findings of the sound run, which takes from 1 s to 15.92 s, with a server whose page is this
/// at each second.
fn served(page: impl Fn(u64) -> Option<String>) -> Vec<Finding> {
    let mut encoder =
        Encoder::new(Head { targets: vec!["http://a".into()], every_ns: Nanos(1_000_000_000) });
    let mut recording = Recording::default();
    recording.enter(encoder.head());
    let mut count = 0;
    for second in 0..=17 {
        let at = Nanos(second * 1_000_000_000);
        let entries = match page(second) {
            Some(page) => encoder.page(0, (at, at), &page),
            None => {
                count += 1;
                let error = "connection refused".into();
                vec![::series::Entry::Failed(::series::Failed { target: 0, count, error })]
            }
        };
        entries.into_iter().for_each(|it| recording.enter(it));
    }
    let (mut facts, run) = sound();
    facts.series = Some(recording);
    let mut findings = Summary::new(&facts, &run).findings;
    findings.retain(|finding| finding.id != Id::FewSamples);
    findings
}

/// A page as vLLM writes it.
fn page(running: u64, waiting: u64, usage: f64, preempted: u64) -> String {
    format!(
        "# TYPE vllm:num_requests_running gauge\n\
         vllm:num_requests_running{{engine=\"0\"}} {running}.0\n\
         vllm:num_requests_waiting{{engine=\"0\"}} {waiting}.0\n\
         vllm:kv_cache_usage_perc{{engine=\"0\"}} {usage}\n\
         # TYPE vllm:num_preemptions_total counter\n\
         vllm:num_preemptions_total{{engine=\"0\"}} {preempted}.0\n"
    )
}

fn ids(findings: &[Finding]) -> Vec<(Id, Severity)> {
    findings.iter().map(|it| (it.id, it.severity)).collect()
}

#[test]
fn a_server_without_a_queue_raises_no_doubt() {
    assert_eq!(served(|_| Some(page(3, 0, 0.2, 0))), []);
    // One page in fifteen, as chance has it.
    let rare = served(|second| Some(page(3, u64::from(second == 7), 0.2, 0)));
    assert_eq!(rare, []);
}

#[test]
fn tells_a_limit_on_running_requests_from_queues() {
    let limited = served(|_| Some(page(64, 30, 0.2, 0)));
    assert_eq!(ids(&limited), [(Id::AdmissionThrottled, Severity::Note)]);
    assert!(limited[0].seen.contains("at most 64 ran at once"), "{limited:?}");
    assert!(limited[0].advice.contains("--max-num-seqs"));
    // A prompt of 8,192 tokens fills a step: the budget of tokens is the limit, and no setting.
    let few = served(|_| Some(page(3, 30, 0.2, 0)));
    assert_eq!(ids(&few), [(Id::ServerQueue, Severity::Note)]);
    let budget = served(|second| {
        let steps = 7 * second;
        let tokens = 8190 * steps;
        Some(
            page(11, 30, 0.2, 0)
                + &format!(
                    "# TYPE vllm:iteration_tokens_total histogram\n\
             vllm:iteration_tokens_total_bucket{{le=\"4096\"}} 0\n\
             vllm:iteration_tokens_total_bucket{{le=\"8192\"}} {steps}\n\
             vllm:iteration_tokens_total_bucket{{le=\"+Inf\"}} {steps}\n\
             vllm:iteration_tokens_total_sum {tokens}\n\
             vllm:iteration_tokens_total_count {steps}\n"
                ),
        )
    });
    assert_eq!(ids(&budget), [(Id::ServerQueue, Severity::Note)]);
    // The cache is full: no setting is the limit.
    let full = served(|_| Some(page(64, 30, 0.97, 0)));
    assert_eq!(ids(&full), [(Id::ServerQueue, Severity::Note)]);
    assert!(full[0].seen.contains("97 % of its KV cache"), "{full:?}");
    // The number of running requests rises and falls, as where prompts wait for a step.
    let loose = served(|second| Some(page(20 + 10 * (second % 4), 3, 0.4, 0)));
    assert_eq!(ids(&loose), [(Id::ServerQueue, Severity::Note)]);
}

#[test]
fn reports_preemptions_with_their_time() {
    let found = served(|second| Some(page(3, 0, 0.99, second.clamp(5, 8) - 5)));
    assert_eq!(ids(&found), [(Id::Preempted, Severity::Note)]);
    let seen = &found[0].seen;
    assert!(seen.contains("preempted requests 3 times"), "{seen}");
    assert!(seen.contains("between 4 s and 7 s"), "{seen}");
}

#[test]
fn reports_missing_pages() {
    let found = served(|_| None);
    assert_eq!(ids(&found), [(Id::ServerGaps, Severity::Note)]);
    assert!(found[0].seen.contains("connection refused"), "{found:?}");
    // A single one that failed is no gap.
    let found = served(|second| (second != 3).then(|| page(3, 0, 0.2, 0)));
    assert_eq!(found, []);
    let found = served(|second| (second % 2 == 0).then(|| page(3, 0, 0.2, 0)));
    assert_eq!(ids(&found), [(Id::ServerGaps, Severity::Note)], "pages come until the end");
}

#[test]
fn a_warm_cache_shows_in_the_series_alone() {
    let found = served(|second| {
        let (queries, hits) = (1_000 * second, 300 * second);
        Some(format!(
            "vllm:prefix_cache_queries_total {queries}\nvllm:prefix_cache_hits_total {hits}\n"
        ))
    });
    assert_eq!(ids(&found), [(Id::WarmCache, Severity::Suspect)]);
    assert!(found[0].seen.contains("30.0 %"), "{found:?}");
}
