//! Requests to servers beside requests for answers: readiness, flushing their caches, and their
//! metrics.

use std::sync::Arc;
use std::time::Duration;

use model::clock::Clock;
use model::units::Nanos;
use result::finding::Id;
use result::summary::server::Figure;
use session::parts::RunError;
use session::preflight::{PreflightError, TargetAccess, wait_ready};

use super::{BASE, has_finding};
use crate::support::memory::Memory;
use crate::support::raw::{Act, Raw, whole};
use crate::support::trial::Trial;

const SETTINGS: &str = "load = { warmup = 2, flush-cache = true }\nreport.server-metrics = true\n";

/// vLLM's metrics after this many requests of 40 tokens each.
fn metrics(requests: u64, hits: u64) -> Vec<Act> {
    let tokens = requests * 40;
    whole(
        "200 OK",
        &format!(
            "vllm:request_success_total{{finished_reason=\"length\"}} {requests}.0\n\
             vllm:prompt_tokens_total {tokens}.0\n\
             vllm:prefix_cache_queries_total {tokens}.0\n\
             vllm:prefix_cache_hits_total {hits}.0\n\
             vllm:kv_cache_usage_perc 0.125\n"
        ),
    )
}

/// A server that counts this many requests between the two readings.
fn counting(before: u64, after: u64) -> Arc<Raw> {
    Raw::routing([
        ("GET /metrics", vec![metrics(before, 0), metrics(after, 30)]),
        ("POST /reset_prefix_cache", vec![whole("200 OK", "")]),
    ])
}

#[tokio::test(start_paused = true)]
async fn caches_are_flushed_and_counts_read_around_the_measurement() {
    let raw = counting(7, 12);
    let trial = Trial::new(BASE).with(SETTINGS).api_key("sesame");
    let ran = trial.against_raw(&raw).run().await;
    let requests = raw.requests();
    let lines: Vec<_> = requests
        .iter()
        .map(|request| request.lines().next().unwrap().trim_end_matches(" HTTP/1.1"))
        .collect();
    let (ask, flush, look) = ("POST /v1/completions", "POST /reset_prefix_cache", "GET /metrics");
    assert_eq!(lines, [ask, ask, flush, look, ask, ask, ask, ask, ask, look]);
    for request in &requests {
        assert!(request.to_lowercase().contains("authorization: bearer sesame"), "{request}");
    }

    let server = ran.summary.server.as_ref().unwrap();
    assert_eq!(server.targets.len(), 1);
    assert_eq!(server.targets[0].before[&Figure::FinishedRequests], 7.0);
    assert_eq!(server.counted(Figure::FinishedRequests), Some(5.0));
    assert_eq!(server.counted(Figure::InputTokens), Some(200.0));
    assert_eq!(server.counted(Figure::OutputTokens), None, "it does not say");
    for line in [
        "Server finished requests:                5\n",
        "Server input tokens:                     200\n",
        "Server prefix cache hits (%):            15.00\n",
        "Server KV cache, before, after (%):      12.5, 12.5\n",
    ] {
        assert!(ran.text.contains(line), "{line}{}", ran.text);
    }
    assert!(!has_finding(&ran, Id::ServerCountsDisagree), "{}", ran.text);
    let kept = std::fs::read_to_string(ran.folder().join("server.json")).unwrap();
    assert!(kept.contains("\"finished-requests\": 12.0"), "{kept}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_served_somebody_else_is_found_out() {
    let trial = Trial::new(BASE).with("report.server-metrics = true");
    let ran = trial.against_raw(&counting(0, 6)).run().await;
    let found = (ran.summary.findings.iter())
        .find(|finding| finding.id == Id::ServerCountsDisagree)
        .unwrap_or_else(|| panic!("{}", ran.text));
    assert_eq!(
        found.seen,
        "during the measurement, the server counted 6 requests instead of 5, 240 input tokens instead of 200"
    );
}

#[tokio::test(start_paused = true)]
async fn missing_replies_afterwards_cost_no_measurement() {
    let raw = Raw::routing([(
        "GET /metrics",
        vec![metrics(1, 0), whole("500 Internal Server Error", "gone")],
    )]);
    let trial = Trial::new(BASE).with("report.server-metrics = true");
    let ran = trial.against_raw(&raw).run().await;
    assert_eq!(ran.summary.requests.successful, 5);
    let server = ran.summary.server.as_ref().unwrap();
    assert_eq!(server.targets[0].after, None);
    assert_eq!(server.targets[0].lost.as_deref(), Some("HTTP 500: gone"));
    assert!(ran.text.contains("did not return its metrics after the run: HTTP 500: gone\n"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_its_cache_is_not_measured() {
    let flush = "POST /reset_prefix_cache";
    let busy = || whole("409 Conflict", "requests are running");
    // It may need a moment after the warm-up.
    let raw = Raw::routing([(flush, vec![busy(), busy(), whole("200 OK", "")])]);
    let trial = Trial::new(BASE).with("load.flush-cache = true");
    let ran = trial.clone().against_raw(&raw).run().await;
    assert_eq!(ran.summary.requests.successful, 5);

    let raw = Raw::routing([(flush, vec![busy()])]);
    let ran = trial.against_raw(&raw).run_to_any_end().await;
    let Err(error @ RunError::Flush { .. }) = &ran.ended else { panic!("{:?}", ran.ended) };
    let error = error.to_string();
    assert!(error.contains("HTTP 409: requests are running"), "{error}");
    assert!(error.contains("leave --flush-cache out"), "{error}");
    assert_eq!(ran.measured().count(), 0);
}

/// Waits for a server to be ready, up to a time limit; returns the output meanwhile.
async fn waited(
    raw: &Arc<Raw>,
    limit: u64,
) -> (Result<(), PreflightError>, Vec<(Duration, String)>) {
    let resolved = Trial::new(BASE).resolve();
    let mut dialect = resolved.parts.backend.open().unwrap();
    let mut shown = Vec::new();
    let memory = Memory::to_raw(raw);
    let access = TargetAccess {
        connect: &memory,
        clock: Clock::start(),
        timeouts: &resolved.plan.timeouts,
        number: 0,
        target: &resolved.parts.targets[0],
        secrets: &resolved.parts.secrets,
    };
    let ended = wait_ready(&access, &mut dialect, Nanos(limit * 1_000_000), |waited, seen| {
        shown.push((waited, seen.to_owned()))
    });
    (ended.await, shown)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_loads_its_model_is_waited_for() {
    let loading = || whole("503 Service Unavailable", "loading");
    let raw = Raw::routing([("GET /health", vec![loading(), loading(), whole("200 OK", "")])]);
    let (ended, shown) = waited(&raw, 60_000).await;
    ended.unwrap();
    let seen = "HTTP 503: loading".to_owned();
    let second = Duration::from_secs(1);
    assert_eq!(shown, [(Duration::ZERO, seen.clone()), (second, seen)]);

    let raw = Raw::routing([("GET /health", vec![loading()])]);
    let (ended, shown) = waited(&raw, 2_500).await;
    assert_eq!(shown.len(), 3);
    let error = ended.unwrap_err().to_string();
    assert!(
        error.contains("is not ready after 2.5s; its last response: HTTP 503: loading"),
        "{error}"
    );
    // A server that refuses the key is ready; another question reports the key's fault.
    let raw = Raw::routing([("GET /health", vec![whole("401 Unauthorized", "")])]);
    waited(&raw, 1_000).await.0.unwrap();
}
