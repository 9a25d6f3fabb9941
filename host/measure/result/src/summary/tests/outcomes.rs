//! Requests and answers that are not complete: their counts, and the figures that differ.

use super::*;
use crate::finding::Id;
use crate::summary::failing::Amount;

#[test]
fn keeps_the_first_message_of_each_kind_in_any_order() {
    let fail = |index: u64| {
        let letter = |place: u64| char::from(b'a' + (place % 26) as u8);
        let kind = index / 2 % 40;
        let message = format!("{}{} of {index}", letter(kind / 26), letter(kind));
        failed(reply(index, 1000, &[]), Class::Refused, &message)
    };
    let mut run: Vec<Exchange> = (7..200).map(fail).collect();
    for _ in 0..3 {
        let failures = &Summary::new(&facts(), &run).requests.failures[&Class::Refused];
        let messages = failures.messages.iter();
        let messages: Vec<_> = messages.map(|kind| (&*kind.text, kind.count)).collect();
        let first = [("ad of 7", 5), ("ae of 8", 6), ("af of 10", 6)];
        assert_eq!((messages.len(), &messages[..3]), (8, &first[..]));
        let reported: u64 = messages.iter().map(|(_, count)| *count).sum();
        assert_eq!(failures.other_messages, 193 - reported);
        assert_eq!((failures.count, failures.first), (193, 7));
        run.sort_by_key(|exchange| exchange.index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
}

/// Ten requests sent at 1 s: TTFT and E2E of the complete ones are 100, 200, ... ms.
fn ten(outcomes: [Option<Class>; 10]) -> Vec<Exchange> {
    let one = |(index, class): (usize, Option<Class>)| {
        let first = 1100 + 100 * index as u64;
        let events = [(first, Text, None, 3), (first, End, None, 0)];
        let mut exchange = reply(index as u64, 1000, &events);
        exchange.usage = output_usage(4);
        match class {
            Some(class) => failed(exchange, class, "not in full"),
            None => exchange,
        }
    };
    outcomes.into_iter().enumerate().map(one).collect()
}

#[test]
fn short_answers_fail_and_cancelled_ones_do_not() {
    let mut run = ten([
        None,
        Some(Class::Short),
        None,
        Some(Class::Cancelled),
        None,
        Some(Class::Truncated),
        Some(Class::Cancelled),
        None,
        None,
        None,
    ]);
    // The follower of a request that was cancelled.
    (run[6].sent, run[6].usage) = (None, None);
    run[6].events = Default::default();
    // A reply that broke off before its usage came.
    run[5].usage = None;
    let mut facts = facts();
    facts.run.ignore_eos = true;
    let summary = Summary::new(&facts, &run);
    let requests = &summary.requests;
    assert_eq!((requests.total, requests.successful, requests.failed), (10, 6, 2));
    assert_eq!((requests.cancelled, requests.cancelled_unsent), (2, 1));
    assert_eq!(requests.success_share, Some(0.75));
    let classes: Vec<_> = requests.failures.keys().collect();
    assert_eq!(classes, [&Class::Short, &Class::Truncated]);
    assert_eq!(summary.tokens.output.total, Some(24));
    let left_out = LeftOut { answers: 3, output: 8, unknown: 1 };
    assert_eq!(summary.tokens.left_out, Some(left_out));
    let ttft = summary.metric("ttft").unwrap();
    assert_eq!((ttft.count, ttft.failure_share), (6, Some(0.25)));
    assert_eq!(ttft.with_failures.as_ref().unwrap().requests, 2);
    // All requests that should have been sent were sent.
    assert_eq!(summary.metric("send-lag").unwrap().failure_share, None);
    let short = summary.findings.iter().find(|f| f.id == Id::ShortAnswers).unwrap();
    let expected =
        "1 of 1 answers ended early although their length was forced, and do not count as complete";
    assert_eq!(short.seen, expected);
    let failures = summary.findings.iter().find(|f| f.id == Id::Failures);
    assert!(failures.unwrap().seen.starts_with("1 of 10 requests failed"));
}

#[test]
fn with_failures_percentiles_are_infinite_and_means_absent() {
    let mut outcomes = [None; 10];
    outcomes[3] = Some(Class::Truncated);
    let run = ten(outcomes);
    let mut facts = facts();
    facts.run.failures_as_infinite = true;
    let summary = Summary::new(&facts, &run);
    let ttft = summary.metric("ttft").unwrap();
    // Nine of ten are measured: P90 lies between the ninth and the tenth, which is infinite.
    assert_eq!((ttft.count, ttft.failure_share), (9, Some(0.1)));
    assert_eq!(ttft.median, 650.0);
    assert_eq!(ttft.percentile(90.0), Some(f64::INFINITY));
    assert_eq!((ttft.min, ttft.max), (100.0, f64::INFINITY));
    assert_eq!(ttft.confidence, None);
    let json = serde_json::to_value(&summary).unwrap();
    let ttft = &json["metrics"]["ttft"];
    assert_eq!(ttft["percentiles"]["p90"], "infinite");
    assert_eq!((&ttft["max"], &ttft["median"]), (&"infinite".into(), &650.0.into()));
    assert!(ttft.get("mean").is_none() && ttft.get("std").is_none());
    assert_eq!(ttft["with-failures"]["mean"], "infinite");
    // Tokens have no worst value, and a speed of zero is a number.
    let tokens = &json["metrics"]["output-tokens"];
    assert_eq!((&tokens["mean"], &tokens["max"]), (&4.0.into(), &4.0.into()));
    let read: Summary = serde_json::from_value(json).unwrap();
    assert_eq!(read, summary);
    let without = Summary::new(&super::facts(), &run);
    let ttft = without.metric("ttft").unwrap();
    assert_eq!((ttft.median, ttft.max, ttft.failure_share), (600.0, 1000.0, Some(0.1)));
    assert_eq!(ttft.with_failures.as_ref().unwrap().median, Amount(650.0));
    assert_eq!(ttft.mean, (5500.0 - 400.0) / 9.0);
}

#[test]
fn errors_that_a_backend_accepts_are_counted_and_found() {
    use crate::finding::{Id, Severity};
    use model::exchange::{Outcome, Step};
    let with_statuses = |index: u64, statuses: &[u16], outcome: Outcome| {
        let mut exchange = reply(index, 1000, &[(1050, Text, None, 2), (1090, End, None, 0)]);
        exchange.outcome = outcome;
        let step = |status: &u16| Step { status: Some(*status), ..Step::default() };
        exchange.steps = statuses.iter().map(step).collect();
        exchange
    };
    let found = |exchanges: &[Exchange]| {
        let summary = Summary::new(&facts(), exchanges);
        let found = summary.findings.iter().find(|finding| finding.id == Id::ErrorsAccepted);
        found.map(|finding| (finding.severity, finding.seen.clone()))
    };
    let refused = Outcome::Incomplete {
        class: Class::HttpStatus,
        reason: None,
        message: "HTTP 429: later".into(),
    };
    let polled = with_statuses(0, &[201, 404, 404, 200], Outcome::Ok);
    assert_eq!(found(&[polled.clone(), with_statuses(1, &[201, 404], refused.clone())]), None);
    let again = with_statuses(1, &[429, 429, 200], Outcome::Ok);
    let (severity, seen) = found(&[
        polled,
        again,
        with_statuses(2, &[401], Outcome::Ok),
        with_statuses(3, &[429, 429], refused),
    ])
    .unwrap();
    assert_eq!(severity, Severity::Suspect);
    assert!(seen.ends_with(
        "1 with the status 401, 3 with the status 429, and beside these 2 with 404 before a further request"
    ), "{seen}");
}
