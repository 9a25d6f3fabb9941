//! Spans and metrics, as a collector that is not ours reads them: its messages are made of OpenTelemetry's
//! own definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;

use mock::Truth;
use model::client::Spans;
use model::exchange::{Exchange, Outcome};
use result::finding::{Id, Severity};
use result::summary::Summary;

use crate::endings::{exchanges, report_with};
use crate::support::lacking::leave_out;
use crate::support::process::{Ended, Mock, Process, run, runner, words};
use crate::support::pypi::{self, PYPI};

const COLLECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/collector.py");
/// OpenTelemetry's definitions.
const PACKAGES: &str = "opentelemetry-proto==1.45.2\n";

static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/collector");
    pypi::python(Path::new(folder), PACKAGES)
});

/// A line of the collector's log.
#[derive(Deserialize)]
struct Taken {
    path: String,
    headers: BTreeMap<String, String>,
    unknown: bool,
    message: Value,
}

/// The remains of a run with a collector.
struct Ran {
    ended: Ended,
    exchanges: Vec<Exchange>,
    summary: Summary,
    taken: Vec<Taken>,
    /// The engine's record of each request.
    served: Vec<Truth>,
    _folder: TempDir,
}

/// A run with these flags and a collector that behaves like this.
fn run_with_collector(mode: &str, engine: &[&str], flags: &[&str]) -> Option<Ran> {
    let python = match &*PYTHON {
        Ok(python) => python,
        Err(why) => {
            eprintln!("{why}");
            leave_out(&PYPI);
            return None;
        }
    };
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("collector.jsonl");
    let mut command = Command::new(python);
    command.arg(COLLECTOR).arg(&log).arg(mode);
    let mut collector = Process::start(command.stdin(Stdio::piped()));
    collector.until("its port", |collector| collector.stdout().ends_with('\n'));
    let url = format!("http://127.0.0.1:{}", collector.stdout().trim());
    let mock = Mock::logging(engine);
    let mut command = runner();
    command
        .args(words("--backend openai-chat --model mock"))
        .args(flags)
        .args(["--base-url", &mock.url, "--otlp", &url])
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=the%20key-of-the-collector")
        .current_dir(folder.path());
    let ended = run(&mut command).with_code(0);
    let text = std::fs::read_to_string(&log).unwrap();
    let taken = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let taken = taken.collect();
    drop(collector);
    let shown = report_with(folder.path(), &["--format", "json"]).stdout;
    assert!(!shown.contains("key-of-the-collector"));
    Some(Ran {
        ended,
        exchanges: exchanges(folder.path()),
        summary: serde_json::from_str(&shown).unwrap(),
        taken,
        served: mock.end(),
        _folder: folder,
    })
}

impl Ran {
    /// Every span that the collector has.
    fn spans(&self) -> Vec<&Value> {
        let traces = self.taken.iter().filter(|taken| taken.path == "/v1/traces");
        let spans = traces.flat_map(|taken| {
            let spans = &taken.message["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.as_array().unwrap()
        });
        spans.collect()
    }

    fn counts(&self) -> &Spans {
        let client = self.summary.client.as_ref().unwrap();
        client.spans.as_ref().unwrap()
    }

    /// The note on spans, if there is one.
    fn note(&self) -> Option<&str> {
        let mut findings = self.summary.findings.iter();
        let note = findings.find(|finding| finding.id == Id::SpansLost)?;
        assert_eq!(note.severity, Severity::Note);
        Some(&note.seen)
    }
}

/// The attribute of this name.
fn attribute<'s>(span: &'s Value, name: &str) -> Option<&'s Value> {
    let mut attributes = span["attributes"].as_array().unwrap().iter();
    let found = attributes.find(|attribute| attribute["key"] == name)?;
    found["value"].as_object().unwrap().values().next()
}

/// Every hundredth reply breaks off.
const FAULT: &str = "kind = \"cut\", after-tokens = 2, every = 100";
const RANDOM: &str = "--dataset-name random --random-input-len 8 --random-output-len 4";

#[test]
fn ten_thousand_spans_arrive_whole_and_join_records_and_the_servers_log() {
    let line = format!("{RANDOM} --num-prompts 10000 --concurrency 64 --traceparent");
    let flags: Vec<&str> = words(&line).collect();
    let engine = ["--ttft", "1ms", "--itl", "0ms", "--fault", FAULT];
    let Some(ran) = run_with_collector("take", &engine, &flags) else {
        return;
    };
    let spans = ran.spans();
    // The warm-up's request has one too.
    assert_eq!(spans.len(), 10_001);
    assert_eq!(ran.counts(), &Spans { sent: 10_001, lost: 0, error: None });
    assert_eq!(ran.note(), None);
    assert!(ran.taken.iter().all(|taken| !taken.unknown));
    let keys = ran.taken.iter().map(|taken| &*taken.headers["x-key"]);
    assert_eq!(keys.collect::<BTreeSet<_>>(), BTreeSet::from(["the key-of-the-collector"]));
    let by_id: BTreeMap<&str, &Value> =
        spans.iter().map(|span| (span["spanId"].as_str().unwrap(), *span)).collect();
    assert_eq!(by_id.len(), 10_001);
    let mut failed = 0;
    for exchange in &ran.exchanges {
        let ids = exchange.ids.as_deref().unwrap();
        let span = by_id[&*ids.span.unwrap().to_string()];
        assert_eq!(span["traceId"], ids.trace.unwrap().to_string());
        assert_eq!(attribute(span, "runner.request.id").unwrap(), ids.request.as_deref().unwrap());
        let times = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        let length = times("endTimeUnixNano") - times("startTimeUnixNano");
        assert_eq!(length, exchange.ended.unwrap().since(exchange.due).0);
        match &exchange.outcome {
            Outcome::Ok => assert!(span.get("status").is_none(), "{span}"),
            Outcome::Incomplete { class, message, .. } => {
                assert_eq!(span["status"]["code"], "STATUS_CODE_ERROR");
                assert_eq!(span["status"]["message"], **message);
                assert_eq!(attribute(span, "error.type").unwrap(), class.name());
                failed += 1;
            }
        }
    }
    assert!(failed > 20, "{failed}");
    // The server's own spans would have ours as their parents.
    let exchanges = ran.exchanges.len();
    assert_eq!(ran.served.len(), exchanges);
    for truth in &ran.served {
        let context: Vec<&str> = truth.ids["traceparent"].split('-').collect();
        assert_eq!(by_id[context[2]]["traceId"], context[1]);
    }
    // The last report of metrics counts every measured request once.
    let metrics = ran.taken.iter().rfind(|taken| taken.path == "/v1/metrics").unwrap();
    let metrics = metrics.message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array();
    let counted = |name: &str| -> u64 {
        let metric = metrics.unwrap().iter().find(|metric| metric["name"] == name).unwrap();
        let points = metric["histogram"]["dataPoints"].as_array().unwrap().iter();
        points.map(|point| point["count"].as_str().unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(counted("gen_ai.client.operation.duration"), 10_000);
    assert_eq!(counted("gen_ai.client.operation.time_to_first_chunk"), 10_000 - failed);
}

#[test]
fn a_session_is_the_parent_of_its_requests() {
    let agents = "dataset.config={ sub-agents = { count = 2, tool-calls = 1 }, tool-calls = 3 }";
    let line = "--dataset-name agent --sessions 5 --concurrency 2 --warmup-requests 0";
    let flags: Vec<&str> = words(line).chain(["--set", agents]).collect();
    let Some(ran) = run_with_collector("take", &["--ttft", "1ms", "--itl", "0ms"], &flags) else {
        return;
    };
    let spans = ran.spans();
    let (sessions, requests): (Vec<&Value>, Vec<&Value>) =
        spans.into_iter().partition(|span| span["name"] == "session");
    assert_eq!((sessions.len(), requests.len()), (5, ran.exchanges.len()));
    for request in requests {
        let mut of = sessions.iter().filter(|session| session["traceId"] == request["traceId"]);
        let session = of.next().unwrap();
        assert_eq!((&request["parentSpanId"], of.next()), (&session["spanId"], None));
        let time = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time(session, "startTimeUnixNano") <= time(request, "startTimeUnixNano"));
        assert!(time(session, "endTimeUnixNano") >= time(request, "endTimeUnixNano"));
    }
}

#[test]
fn a_collector_that_fails_is_a_note() {
    for (mode, said) in [
        ("refuse", "HTTP 503 busy"),
        ("forbid", "HTTP 403 no right with "),
        ("reject", "too many"),
        ("hang", "no answer within"),
    ] {
        let line = format!("{RANDOM} --num-prompts 50 --concurrency 8 --warmup-requests 0");
        let flags: Vec<&str> = words(&line).collect();
        let Some(ran) = run_with_collector(mode, &["--ttft", "1ms"], &flags) else {
            return;
        };
        assert!(ran.exchanges.iter().all(Exchange::is_ok), "{mode}");
        let counts = ran.counts();
        let sent = u64::from(mode == "reject");
        assert_eq!((counts.sent, counts.lost), (sent, 50 - sent), "{mode}");
        let note = ran.note().unwrap();
        assert!(note.contains(said), "{mode}: {note}");
        assert!(ran.ended.stdout.contains("spans-lost"), "{mode}: {:?}", ran.ended);
    }
}

#[test]
fn a_collector_that_is_not_there_is_a_note() {
    let mock = Mock::start(&["--ttft", "1ms"]);
    let folder = TempDir::new().unwrap();
    let mut command = runner();
    command
        .args(words("--backend openai-chat --model mock --num-prompts 20 --warmup-requests 0"))
        .args(words(RANDOM))
        // A port that nobody listens on.
        .args(["--base-url", &mock.url, "--otlp", "http://127.0.0.1:1"])
        .current_dir(folder.path());
    let ended = run(&mut command).with_code(0);
    assert!(ended.stdout.contains("did not take 20 of 20 spans"), "{ended:?}");
    for (url, told) in
        [("ftp://host", "`report.otlp`"), ("http://me:secret@host", "a user name or password")]
    {
        let mut command = runner();
        command.args(words(RANDOM)).args(["--backend", "vllm", "--otlp", url]);
        let refused = run(&mut command).with_code(3);
        assert!(refused.stderr.contains(told), "{refused:?}");
        assert!(!refused.stderr.contains("secret"), "{refused:?}");
    }
}
