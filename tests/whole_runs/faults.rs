//! Everything that can go wrong with a reply: it is a failure of its class, and the only one.

use model::exchange::Class;
use result::finding::Id;

use super::{base, has_finding, with_backend};
use crate::faults::check::failure;
use crate::support::trial::{RunResult, Trial};

/// A trial whose second request (number 1) meets this fault, with short timeouts.
fn faulty(fault: &str) -> Trial {
    base()
        .with("timeouts = { first-token = '1s', token-gap = '1s' }")
        .against(&format!("[[fault]]\n{fault}\nrequests = [1]"))
}

/// The other requests are answered normally.
fn check(ran: &RunResult, class: Class, fault: &str) {
    assert_eq!(ran.failures(), [(1, class)], "{fault}\n{}", ran.text);
    let requests = &ran.summary.requests;
    assert_eq!((requests.total, requests.successful, requests.failed), (5, 4, 1));
    assert_eq!(requests.success_share, Some(0.8));
    assert_eq!(requests.failures[&class].count, 1);
    for (name, value, count) in [
        ("ttft", 120.0, 4),
        ("tpot", 20.0, 4),
        ("itl", 20.0, 40),
        ("e2e", 320.0, 4),
        ("output-tokens", 11.0, 4),
    ] {
        assert_eq!(ran.everywhere(name), (value, count), "{fault}: {name}");
    }
    assert_eq!(ran.summary.tokens.output.total, Some(44), "{fault}");
    assert!(has_finding(ran, Id::Failures), "{fault}\n{}", ran.text);
    assert!(ran.text.contains(class.name()), "{fault}\n{}", ran.text);
}

/// Faults, the failure that each causes, and a part of its message: over HTTP/1.1 and over HTTP/2.
#[rustfmt::skip]
const FAULTS: [(&str, Class, [&str; 2]); 23] = [
    ("kind = 'http-error'", Class::HttpStatus, ["HTTP 500: EngineCore encountered an issue."; 2]),
    ("kind = 'http-error'\nstatus = 429\nretry-after = '3s'", Class::HttpStatus, ["(retry-after: 3)"; 2]),
    ("kind = 'html'\nstatus = 502", Class::HttpStatus, ["HTTP 502: It works!"; 2]),
    ("kind = 'html'", Class::Protocol, ["a web page (text/html); are the port and the path the engine's?"; 2]),
    ("kind = 'hang-up'", Class::Reset, ["closed before a reply arrived", "stream error received"]),
    ("kind = 'in-band-error'\nafter-tokens = 0", Class::InBandError, ["EngineCore encountered an issue."; 2]),
    ("kind = 'in-band-error'\nafter-tokens = 3", Class::InBandError, ["EngineCore encountered an issue."; 2]),
    ("kind = 'cut'\nafter-tokens = 0", Class::Truncated, ["before the reply's last chunk", "stream error received"]),
    ("kind = 'cut'\nafter-tokens = 3", Class::Truncated, ["before the reply's last chunk", "stream error received"]),
    ("kind = 'cut'\nafter-tokens = 11", Class::Truncated, ["before the reply's last chunk", "stream error received"]),
    ("kind = 'no-done'\nafter-tokens = 0", Class::Truncated, ["without its end marker"; 2]),
    ("kind = 'no-done'\nafter-tokens = 3", Class::Truncated, ["without its end marker"; 2]),
    ("kind = 'no-done'\nafter-tokens = 11", Class::Truncated, ["without its end marker"; 2]),
    ("kind = 'stall'\nafter-tokens = 0", Class::FirstTokenTimeout, ["nothing of the answer arrived within 1s"; 2]),
    ("kind = 'slow-headers'\nfor = '2s'", Class::FirstTokenTimeout, ["nothing of the answer arrived within 1s"; 2]),
    ("kind = 'stall'\nafter-tokens = 1", Class::TokenGapTimeout, ["no more of the answer arrived for 1s"; 2]),
    ("kind = 'stall'\nafter-tokens = 3", Class::TokenGapTimeout, ["no more of the answer arrived for 1s"; 2]),
    ("kind = 'stall'\nafter-tokens = 3\nfor = '2s'", Class::TokenGapTimeout, ["no more of the answer arrived for 1s"; 2]),
    ("kind = 'stop-early'\nafter-tokens = 0", Class::Empty, ["holds no answer"; 2]),
    ("kind = 'split'\nbytes = 1\nrequests = [1]\n[[fault]]\nkind = 'cut'\nafter-tokens = 3", Class::Truncated, ["before the reply's last chunk", "stream error received"]),
    ("kind = 'merge'\nevents = 2\nrequests = [1]\n[[fault]]\nkind = 'in-band-error'\nafter-tokens = 3", Class::InBandError, ["EngineCore encountered an issue."; 2]),
    ("kind = 'ping'\nrequests = [1]\n[[fault]]\nkind = 'stall'\nafter-tokens = 0", Class::FirstTokenTimeout, ["nothing of the answer arrived within 1s"; 2]),
    ("kind = 'crlf'\nrequests = [1]\n[[fault]]\nkind = 'no-done'\nafter-tokens = 3", Class::Truncated, ["without its end marker"; 2]),
];

#[tokio::test(start_paused = true)]
async fn each_fault_is_a_failure_of_its_class() {
    for (version, http) in ["1.1", "2"].into_iter().enumerate() {
        for (fault, class, expected) in FAULTS {
            let about = format!("HTTP/{http}: {fault}");
            let ran = faulty(fault).with(&format!("connection.http = '{http}'")).run().await;
            check(&ran, class, &about);
            let (_, message) = failure(&ran.exchanges[1]).expect("it is a failure");
            assert!(message.contains(expected[version]), "{about}: {message}");
        }
    }
}

/// The same on every route that streams differently.
#[tokio::test(start_paused = true)]
async fn each_dialect_knows_a_broken_reply() {
    for (backend, config, script) in [
        ("openai", "", ""),
        ("sglang", "", ""),
        ("sglang", "", "incremental = true\n"),
        ("lmdeploy", "", ""),
        ("lmdeploy", "backend.config.route = 'generate'", "generate = 'lmdeploy'\n"),
    ] {
        for (fault, class) in [
            ("kind = 'in-band-error'\nafter-tokens = 3", Class::InBandError),
            ("kind = 'cut'\nafter-tokens = 3", Class::Truncated),
            ("kind = 'no-done'\nafter-tokens = 3", Class::Truncated),
            ("kind = 'html'", Class::Protocol),
        ] {
            let trial = with_backend(backend).with(config).against(script);
            let trial = trial.against(&format!("[[fault]]\n{fault}\nrequests = [1]"));
            let about = format!("{backend} {config} {fault}");
            check(&trial.run().await, class, &about);
        }
    }
}

/// The part of a reply before it broke is on record.
#[tokio::test(start_paused = true)]
async fn earlier_events_stay() {
    let ran = faulty("kind = 'cut'\nafter-tokens = 3").run().await;
    let cut = &ran.exchanges[1];
    let sent = cut.sent.unwrap();
    let seen: Vec<f64> = cut.events.at.iter().map(|at| at.since(sent).as_millis_f64()).collect();
    assert_eq!(seen, [120.0, 140.0, 160.0]);
    assert_eq!(cut.output.len(), 3);
    assert_eq!(cut.ended.unwrap().since(sent).as_millis_f64(), 180.0);
}

/// A second without data, counted from the last byte.
#[tokio::test(start_paused = true)]
async fn a_stall_ends_after_the_time_allowed_between_tokens() {
    let ran = faulty("kind = 'stall'\nafter-tokens = 3").run().await;
    let stalled = &ran.exchanges[1];
    let sent = stalled.sent.unwrap();
    assert_eq!(stalled.ended.unwrap().since(sent).as_millis_f64(), 1160.0);
    let ran = base().with("timeouts.request = '200ms'").run().await;
    assert_eq!(ran.summary.requests.failures[&Class::RequestTimeout].count, 5);
    for exchange in ran.measured() {
        let span = exchange.ended.unwrap().since(exchange.sent.unwrap());
        assert_eq!(span.as_millis_f64(), 200.0);
    }
}

/// Stalls and late headers within the timeouts are slowness, not failures.
#[tokio::test(start_paused = true)]
async fn slowness_is_no_failure() {
    let ran = faulty("kind = 'stall'\nafter-tokens = 3\nfor = '500ms'").run().await;
    assert_eq!(ran.failures(), []);
    let (itl, e2e) = (ran.metric("itl"), ran.metric("e2e"));
    assert_eq!((itl.min, itl.max), (20.0, 520.0));
    assert_eq!((e2e.min, e2e.max), (320.0, 820.0));
    assert_eq!(ran.everywhere("ttft").0, 120.0);
    let ran = faulty("kind = 'slow-headers'\nfor = '200ms'").run().await;
    assert_eq!(ran.failures(), []);
    let (ttft, e2e) = (ran.metric("ttft"), ran.metric("e2e"));
    assert_eq!((ttft.min, ttft.max), (120.0, 200.0));
    assert_eq!((e2e.min, e2e.max), (320.0, 320.0));
}

/// An answer that ends early where the API cannot force its length is complete; that it should have
/// been longer is a finding.
#[tokio::test(start_paused = true)]
async fn short_answers_are_found() {
    let early = "[[fault]]\nkind = 'stop-early'\nafter-tokens = 5";
    let ran = with_backend("openai").against(early).run().await;
    assert_eq!(ran.failures(), []);
    assert_eq!(ran.everywhere("output-tokens"), (5.0, 5));
    assert_eq!(ran.summary.tokens.output.total, Some(25));
    assert_eq!(ran.summary.tokens.output_requested, Some(55));
    assert_eq!(ran.everywhere("e2e").0, 200.0);
    assert!(has_finding(&ran, Id::ShortAnswers), "{}", ran.text);
}

/// However the bytes of a stream are cut, its figures are the same.
#[tokio::test(start_paused = true)]
async fn cuts_between_bytes_change_nothing() {
    for backend in ["openai", "vllm", "sglang", "lmdeploy"] {
        let plain = with_backend(backend).run().await;
        for fault in [
            "kind = 'split'\nbytes = 1",
            "kind = 'split'\nbytes = 7",
            "kind = 'crlf'",
            "kind = 'ping'",
            "kind = 'crlf'\n[[fault]]\nkind = 'ping'\n[[fault]]\nkind = 'split'\nbytes = 1",
        ] {
            let ran = with_backend(backend).against(&format!("[[fault]]\n{fault}")).run().await;
            assert_eq!(ran.exchanges, plain.exchanges, "{backend}: {fault}");
            assert_eq!(ran.summary, plain.summary, "{backend}: {fault}");
            assert_eq!(ran.text, plain.text, "{backend}: {fault}");
        }
    }
}

/// Events that a proxy holds back and sends three at a time come when the last of them does.
#[tokio::test(start_paused = true)]
async fn merged_events_come_late() {
    let ran = base().against("[[fault]]\nkind = 'merge'\nevents = 3").run().await;
    assert_eq!(ran.failures(), []);
    // Tokens 1 to 3 at 160 ms, then 220, 280, and the last two with the end at 320 ms.
    assert_eq!(ran.everywhere("ttft"), (160.0, 5));
    assert_eq!(ran.everywhere("e2e"), (320.0, 5));
    let itl = ran.metric("itl");
    assert_eq!((itl.count, itl.min, itl.max), (50, 0.0, 60.0));
}

/// A run in which everything fails measures nothing, and makes nothing up.
#[tokio::test(start_paused = true)]
async fn when_everything_fails() {
    let ran = base().against("[[fault]]\nkind = 'http-error'").run().await;
    assert_eq!(ran.summary.requests.failures[&Class::HttpStatus].count, 5);
    for metric in ["ttft", "tpot", "itl", "e2e", "output-tokens", "input-tokens"] {
        assert!(ran.summary.metric(metric).is_none(), "{metric}");
    }
    assert_eq!(ran.summary.tokens.output.total, None);
    assert_eq!(ran.summary.tokens.input.total, None);
    assert!(has_finding(&ran, Id::NothingAnswered));
}
