//! Spans and metrics of saved runs, joined with the records and the server's log, and read by
//! OpenTelemetry's own definitions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

use mock::Truth;
use model::exchange::{Exchange, Outcome};

use crate::endings::exchanges;
use crate::support::process::{Mock, only_run, run, runner, words};
use crate::support::pypi;
use crate::support::results::json_lines;

const DEFINITIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sockets/definitions.py");
const PACKAGES: &str = "opentelemetry-proto==1.45.2\n";

static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/opentelemetry");
    pypi::python(Path::new(folder), PACKAGES)
});

struct Export {
    exchanges: Vec<Exchange>,
    /// A document of spans from each line.
    traces: Vec<Value>,
    /// The engine's record of each request.
    served: Vec<Truth>,
    folder: TempDir,
}

/// Runs with these flags, and exports the spans to `spans.jsonl`.
fn exported(engine: &[&str], flags: &[&str]) -> Export {
    let folder = TempDir::new().unwrap();
    let mock = Mock::logging(engine);
    let mut command = runner();
    command.args(words("--backend openai-chat --model mock")).args(flags);
    command.args(["--base-url", &mock.url]).current_dir(folder.path());
    run(&mut command).with_code(0);
    let traces = export(folder.path(), "requests", "spans.jsonl");
    Export { exchanges: exchanges(folder.path()), traces, served: mock.end(), folder }
}

/// Exports the only run of a folder, and returns the document of each line.
fn export(folder: &Path, table: &str, file: &str) -> Vec<Value> {
    let line = ["export", "runs", "--format", "otlp", "--table", table, "--output", file];
    let ended = run(runner().args(line).current_dir(folder)).with_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    json_lines(folder.join(file))
}

impl Export {
    fn spans(&self) -> Vec<&Value> {
        let spans = self.traces.iter().flat_map(|document| {
            let spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
            assert!(spans.len() <= 512);
            spans
        });
        spans.collect()
    }
}

fn attribute<'s>(span: &'s Value, name: &str) -> Option<&'s Value> {
    let mut attributes = span["attributes"].as_array().unwrap().iter();
    let found = attributes.find(|attribute| attribute["key"] == name)?;
    found["value"].as_object().unwrap().values().next()
}

/// Every hundredth reply breaks off.
const FAULT: &str = "kind = \"cut\", after-tokens = 2, every = 100";
const RANDOM: &str = "--dataset-name random --random-input-len 8 --random-output-len 4";

#[test]
fn ten_thousand_spans_join_the_records_and_the_servers_log() {
    let line = format!("{RANDOM} --num-prompts 10000 --concurrency 64 --traceparent");
    let flags: Vec<&str> = words(&line).collect();
    let engine = ["--ttft", "1ms", "--itl", "0ms", "--fault", FAULT];
    let ran = exported(&engine, &flags);
    let spans = ran.spans();
    // The warm-up's request has one too.
    assert_eq!((ran.traces.len(), spans.len()), (20, 10_001));
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
                assert_eq!(span["status"]["code"], 2);
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
    // Metrics count every measured request once.
    let documents = export(ran.folder.path(), "summary", "metrics.jsonl");
    let [document] = &documents[..] else { panic!("{documents:?}") };
    let metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array();
    let counted = |name: &str| -> u64 {
        let metric = metrics.unwrap().iter().find(|metric| metric["name"] == name).unwrap();
        let points = metric["histogram"]["dataPoints"].as_array().unwrap().iter();
        points.map(|point| point["count"].as_str().unwrap().parse::<u64>().unwrap()).sum()
    };
    assert_eq!(counted("gen_ai.client.operation.duration"), 10_000);
    assert_eq!(counted("gen_ai.client.operation.time_to_first_chunk"), 10_000 - failed);
    let Some(python) = pypi::present(&PYTHON) else { return };
    for (signal, file, count) in
        [("traces", "spans.jsonl", 10_001), ("metrics", "metrics.jsonl", 6)]
    {
        let mut command = Command::new(python);
        command.args([DEFINITIONS, signal, file]).current_dir(ran.folder.path());
        assert_eq!(run(&mut command).with_code(0).stdout.trim(), count.to_string(), "{signal}");
    }
}

#[test]
fn a_session_is_the_parent_of_its_requests() {
    let agents = "dataset.config={ sub-agents = { count = 2, tool-calls = 1 }, tool-calls = 3 }";
    let line = "--dataset-name agent --sessions 5 --concurrency 2 --warmup-requests 0";
    let flags: Vec<&str> = words(line).chain(["--set", agents]).collect();
    let ran = exported(&["--ttft", "1ms", "--itl", "0ms"], &flags);
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

/// A killed run has no status: its folder's name has the date.
#[test]
fn spans_of_a_killed_run_have_the_date_of_its_folder() {
    let line = format!("{RANDOM} --num-prompts 5 --warmup-requests 0");
    let ran = exported(&["--ttft", "1ms"], &words(&line).collect::<Vec<_>>());
    let start = |document: &Value| {
        let span = &document["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        span["startTimeUnixNano"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let exact = start(&ran.traces[0]);
    let own = only_run(&ran.folder.path().join("runs")).unwrap();
    std::fs::remove_file(own.join("status.json")).unwrap();
    let text = run(runner().arg("export").arg(&own).args(["--format", "otlp"])).with_code(0).stdout;
    let rough = start(&serde_json::from_str(text.lines().next().unwrap()).unwrap());
    let second = 1_000_000_000;
    assert!(exact.abs_diff(rough) < 60 * second, "{exact} {rough}");
    // Without a date there, a span has no place in time.
    let undated = ran.folder.path().join("undated");
    std::fs::rename(own, &undated).unwrap();
    run(runner().arg("export").arg(&undated).args(["--format", "otlp"]))
        .with_stderr(3, "20260102-030405-undated");
}
