//! Requests that are not answered in full: short answers, requests that are cancelled on purpose,
//! tokens that throughput leaves out, and percentiles that count failures.

use mock::End;
use model::exchange::{Class, Exchange};
use result::finding::Id;
use result::summary::LeftOut;
use serde_json::Value;

use super::sessions::{answer, file, trial};
use super::{assert_close, base, with_backend};
use crate::faults::check::failure;
use crate::support::raw::Raw;
use crate::support::trial::{RunResult, Trial};

/// The engine ends the answers to these requests after five tokens of eleven, although they force
/// the length.
const EARLY: &str = "[[fault]]\nkind = 'stop-early'\nafter-tokens = 5\nrequests = [1, 3]";

fn seen(ran: &RunResult, id: Id) -> Option<&str> {
    ran.summary.findings.iter().find(|found| found.id == id).map(|found| found.seen.as_str())
}

fn line(ran: &RunResult, label: &str) -> Option<String> {
    let value = ran.text.lines().find_map(|line| line.strip_prefix(label))?;
    Some(value.trim().to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_short_answer_is_not_complete_and_throughput_leaves_it_out() {
    let ran = base().against(EARLY).run().await;
    assert_eq!(ran.failures(), [(1, Class::Short), (3, Class::Short)]);
    let (_, message) = failure(&ran.exchanges[1]).expect("it is short");
    assert_eq!(message, "the answer ended after 5 of 11 tokens, although its length was forced");
    let requests = &ran.summary.requests;
    assert_eq!((requests.successful, requests.failed), (3, 2));
    assert_eq!(requests.success_share, Some(0.6));
    for (name, value) in [("ttft", 120.0), ("e2e", 320.0), ("output-tokens", 11.0)] {
        assert_eq!(ran.everywhere(name), (value, 3), "{name}");
        assert_eq!(ran.metric(name).failure_share, Some(0.4), "{name}");
    }
    let tokens = &ran.summary.tokens;
    assert_eq!(tokens.output.total, Some(33));
    let left_out = LeftOut { answers: 2, output: 10, unknown: 0 };
    assert_eq!(tokens.left_out, Some(left_out));
    // From the first request, at 0, to the end of the last answer, at 400 + 320 ms.
    assert_close(ran.summary.throughput.output_tokens_per_s, 33.0 / 0.72);
    assert_eq!(
        seen(&ran, Id::ShortAnswers),
        Some(
            "2 of 5 answers ended early although their length was forced, and do not count as complete"
        )
    );
    assert_eq!(seen(&ran, Id::Failures), None, "{}", ran.text);
    assert_eq!(line(&ran, "Left out, of incomplete answers (tok):").unwrap(), "10");
    assert_eq!(line(&ran, "Failed, not in these figures (%):").unwrap(), "40.00");
    assert!(
        ran.text.contains("short: the answer ended after 5 of 11 tokens, although its length was forced (2 like this)"),
        "{}",
        ran.text
    );
}

/// An answer may end early where nothing forces its length, and where the server does not count its
/// tokens.
#[tokio::test(start_paused = true)]
async fn an_answer_that_may_end_or_is_not_counted_is_complete() {
    for (trial, about) in [
        (base().with("request.ignore-eos = false"), "not forced"),
        (base().with("request.stop = ['never']"), "a text ends answers"),
        (with_backend("openai"), "the API cannot force"),
        (base().against("usage = 'none'"), "not counted"),
    ] {
        let ran = trial.against(EARLY).run().await;
        assert_eq!(ran.failures(), [], "{about}");
        assert_eq!(ran.summary.requests.successful, 5, "{about}");
        assert_eq!(ran.summary.tokens.left_out, None, "{about}");
        // The plan states if requests ignore the end of text.
        assert_eq!(
            ran.plan.request.ignore_eos,
            about == "a text ends answers" || about == "not counted",
            "{about}"
        );
    }
    let forced = with_backend("openai")
        .with("backend.config.ignore-eos-field = 'ignore_eos'")
        .against(EARLY);
    let forced = forced.run().await;
    assert_eq!(forced.failures(), [(1, Class::Short), (3, Class::Short)]);
    assert!(forced.plan.request.ignore_eos);
}

/// Twenty requests; each is left with a probability of 0.4 after 210 ms: then five tokens have
/// come, and the next comes 10 ms later.
fn leaving() -> Trial {
    base()
        .with("load.requests = 20")
        .with("request.cancel-share = 0.4\nrequest.cancel-after = '210ms'")
}

fn cancelled(ran: &RunResult) -> Vec<&Exchange> {
    ran.measured().filter(|exchange| exchange.outcome.class() == Class::Cancelled).collect()
}

#[tokio::test(start_paused = true)]
async fn the_engine_sees_requests_cancelled_on_purpose() {
    for http in ["1.1", "2"] {
        let ran = leaving().with(&format!("connection.http = '{http}'")).run().await;
        let gone = cancelled(&ran);
        let count = gone.len() as u64;
        assert_eq!(count, 13, "HTTP/{http}");
        for exchange in &gone {
            let span = exchange.ended.unwrap().since(exchange.sent.unwrap());
            assert_eq!(span.as_millis_f64(), 210.0);
            assert_eq!(exchange.output.len(), 5);
            let (_, message) = failure(exchange).expect("it was cancelled");
            assert_eq!(message, "this client hung up on purpose, 210ms after the request was sent");
        }
        let left = ran.truths.iter().filter(|truth| truth.end == End::Abandoned);
        let left: Vec<u32> =
            left.map(|truth| truth.chunks.iter().map(|chunk| chunk.tokens).sum()).collect();
        assert_eq!(left, vec![5; gone.len()], "HTTP/{http}");

        let requests = &ran.summary.requests;
        assert_eq!((requests.total, requests.cancelled), (20, count));
        assert_eq!((requests.successful, requests.failed), (20 - count, 0));
        assert_eq!(requests.success_share, Some(1.0));
        assert_eq!(requests.failures.len(), 0);
        for (name, value) in [("ttft", 120.0), ("tpot", 20.0), ("e2e", 320.0)] {
            assert_eq!(ran.everywhere(name), (value, 20 - count), "HTTP/{http}: {name}");
            assert_eq!(ran.metric(name).failure_share, None);
            assert_eq!(ran.metric(name).with_failures, None);
        }
        assert_eq!(ran.summary.tokens.output.total, Some(11 * (20 - count)));
        // Usage would have come at the end.
        let left_out = LeftOut { answers: count, output: 0, unknown: count };
        assert_eq!(ran.summary.tokens.left_out, Some(left_out));
        assert_eq!(seen(&ran, Id::Failures), None, "{}", ran.text);
        assert_eq!(line(&ran, "Cancelled requests (on purpose):").unwrap(), count.to_string());
        let live = ran.live.snapshot();
        assert_eq!(
            (live.counts.cancelled, live.counts.failures(), live.counts.over()),
            (count, 0, 20)
        );
    }
}

/// The number of tokens that were left out is known where the server counts tokens as they come.
#[tokio::test(start_paused = true)]
async fn cancelled_answers_have_tokens_if_each_event_states_them() {
    let ran = leaving().with("backend.config.continuous-usage = true").run().await;
    let left_out = LeftOut { answers: 13, output: 65, unknown: 0 };
    assert_eq!(ran.summary.tokens.left_out, Some(left_out));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ended_before_is_complete() {
    let ran = base().with("request.cancel-share = 1.0\nrequest.cancel-after = '330ms'").run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.summary.requests.cancelled, 0);
    assert_eq!(ran.everywhere("e2e"), (320.0, 5));
}

/// The warm-up is never cancelled, and a run whose requests are all cancelled measured nothing.
#[tokio::test(start_paused = true)]
async fn all_may_be_cancelled_but_the_warm_up() {
    let ran = base()
        .with("load.warmup = 2")
        .with("request.cancel-share = 1.0\nrequest.cancel-after = '50ms'")
        .run()
        .await;
    assert_eq!(ran.warmup().filter(|exchange| exchange.is_ok()).count(), 2);
    let requests = &ran.summary.requests;
    assert_eq!((requests.total, requests.cancelled, requests.failed), (5, 5, 0));
    assert_eq!(requests.success_share, None);
    assert!(seen(&ran, Id::NothingAnswered).is_some(), "{}", ran.text);
}

#[tokio::test(start_paused = true)]
async fn slices_cancel_the_requests_of_the_whole() {
    let indexes = |ran: &RunResult| -> Vec<u64> {
        cancelled(ran).into_iter().map(|exchange| exchange.index).collect()
    };
    let whole = indexes(&leaving().run().await);
    let mut of_slices = Vec::new();
    for index in 0..3 {
        of_slices.extend(indexes(&leaving().slice(index, 3).run().await));
    }
    of_slices.sort_unstable();
    assert_eq!(of_slices, whole);
    let other = indexes(&leaving().with("load.seed = 2").run().await);
    assert_ne!(other, whole);
}

/// A user who leaves asks nothing more: the rest of the conversation is cancelled too, and nothing
/// of it failed.
#[tokio::test(start_paused = true)]
async fn a_user_who_leaves_asks_nothing_more() {
    let file = file(2);
    let raw = Raw::engine(answer);
    let ran = trial(&file, "arrival = 'closed'\nconcurrency = 1\nsessions = 2")
        .with("request.cancel-share = 1.0\nrequest.cancel-after = '150ms'")
        .against_raw(&raw)
        .run()
        .await;
    let requests = &ran.summary.requests;
    assert_eq!((requests.total, requests.failed), (6, 0), "{}", ran.text);
    assert_eq!((requests.cancelled, requests.cancelled_unsent), (6, 4));
    let sessions = ran.summary.sessions.unwrap();
    assert_eq!((sessions.total, sessions.cancelled, sessions.failed), (2, 2, 0));
    assert_eq!((sessions.cut_short, sessions.complete), (0, 0));
    assert_eq!(raw.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn failures_count_as_infinitely_late_on_request() {
    let plain = base().against("[[fault]]\nkind = 'cut'\nafter-tokens = 3\nrequests = [1]");
    let ran = plain.clone().with("report.failures-as-infinite = true").run().await;
    let e2e = ran.metric("e2e");
    assert_eq!((e2e.count, e2e.failure_share), (4, Some(0.2)));
    assert_eq!((e2e.median, e2e.percentile(90.0)), (320.0, Some(f64::INFINITY)));
    for (label, value) in [
        ("Failed, as infinitely late (%):", Some("20.00")),
        ("Mean E2E Latency (ms):", None),
        ("Median E2E Latency (ms):", Some("320.00")),
        ("P99 E2E Latency (ms):", Some("inf")),
        ("P99 TTFT (ms):", Some("inf")),
    ] {
        assert_eq!(line(&ran, label).as_deref(), value, "{}", ran.text);
    }
    let json = serde_json::to_value(&ran.summary).unwrap();
    let e2e = &json["metrics"]["e2e"];
    assert_eq!(e2e["percentiles"]["p99"], "infinite");
    assert_eq!(e2e["median"], 320.0);
    assert_eq!(e2e.get("mean"), None);
    assert_eq!(json["run"]["failures-as-infinite"], Value::Bool(true));

    let without = plain.run().await;
    assert_eq!(without.everywhere("e2e"), (320.0, 4));
    assert_eq!(line(&without, "P99 E2E Latency (ms):").unwrap(), "320.00");
    assert_eq!(line(&without, "Failed, not in these figures (%):").unwrap(), "20.00");
}

#[tokio::test(start_paused = true)]
async fn refusals_are_counted_by_status_and_by_message() {
    let fault = |status: u16, requests: &str| {
        format!("[[fault]]\nkind = 'http-error'\nstatus = {status}\nrequests = {requests}\n")
    };
    let ran = base()
        .with("load.requests = 8")
        .against(&(fault(503, "[1, 2, 5]") + &fault(429, "[3]")))
        .run()
        .await;
    let failures = &ran.summary.requests.failures[&Class::HttpStatus];
    assert_eq!((failures.count, failures.first), (4, 1));
    let statuses: Vec<(u16, u64)> =
        (failures.statuses.iter()).map(|(status, count)| (*status, *count)).collect();
    assert_eq!(statuses, [(429, 1), (503, 3)]);
    let counts: Vec<_> = failures.messages.iter().map(|kind| kind.count).collect();
    assert_eq!(counts, [3, 1]);
    assert!(failures.messages[0].text.starts_with("HTTP 503: "));
    assert!(failures.messages[1].text.starts_with("HTTP 429: "));
    assert_eq!(line(&ran, "  HTTP 503:").unwrap(), "3");
    assert_eq!(line(&ran, "  HTTP 429:").unwrap(), "1");
    assert!(ran.text.contains("(3 like this)"), "{}", ran.text);
}
