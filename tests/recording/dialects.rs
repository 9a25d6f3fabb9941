//! The cases of the shipped backends, sent by a client: each request has a row, and the row has the
//! counts of the case's reply.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Recorder;
use super::traffic::post;
use crate::support::process::{run, runner, words};
use crate::support::results::json_lines;
use crate::support::server::{EVENTS, JSON, field, read_request, reply, serve};

/// The texts of a case by their names.
type Case = BTreeMap<String, String>;

/// The cases of a backend that have a request for text, as JSON over HTTP, below the usual prefix.
fn cases(backend: &str) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../plugins/backends")
        .join(backend)
        .join("cases");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "case"));
    let cases = files.filter_map(|path| {
        let case: Case =
            model::txtar::read(&std::fs::read_to_string(path).unwrap()).1.into_iter().collect();
        let config = case.get("config.toml").map_or("", String::as_str);
        let is_usual =
            ["prefix", "form", "generate-path", "version"].iter().all(|key| !config.contains(key));
        let request = case.get("request.http")?;
        let is_text =
            ["/embed", "/api/embed", "/rerank", "/score", "/audio/", "/v1/rerank", "GET "];
        let is_text =
            request.contains("\n\n{") && is_text.iter().all(|route| !request.contains(route));
        (is_usual && is_text && case.contains_key("sample.json")).then_some(case)
    });
    cases.collect()
}

/// The files of replies that are text, and their types.
const REPLIES: [(&str, &str); 3] =
    [("reply.sse", EVENTS), ("reply.json", JSON), ("reply.lines", "application/x-ndjson")];

/// A case's reply and its type.
fn answer(case: &Case) -> Option<(&str, &'static str)> {
    REPLIES.iter().find_map(|(name, kind)| Some((case.get(*name)?.as_str(), *kind)))
}

/// The last counts of a case's events; absent if the case ends in an error.
fn counts(case: &Case) -> Option<Value> {
    answer(case)?;
    let events: Value = serde_json::from_str(case.get("events.json")?).unwrap();
    // Of a failed request the recording has the limit that the client set.
    let has = |kind: &str| events.as_array().unwrap().iter().any(|event| event["kind"] == kind);
    if has("failure") || !(has("end") || has("finish")) {
        return None;
    }
    let usage = events.as_array()?.iter().rfind(|event| event["kind"] == "usage")?.clone();
    (!case.contains_key("error.txt")
        && !case.contains_key("head.json")
        && usage.get("output-tokens").is_some())
    .then_some(usage)
}

/// The path and the body of a case's request.
fn request(case: &Case) -> (&str, &str) {
    let (head, body) = case["request.http"].split_once("\n\n").unwrap();
    (head.lines().next().unwrap().split(' ').nth(1).unwrap(), body.trim_end())
}

/// Checks that a log of the same exchanges has the same rows, but for their times and keyed ids.
#[track_caller]
fn check_log(backend: &str, cases: &[Case], rows: &[Value]) {
    let folder = tempfile::TempDir::new().unwrap();
    let mut log = String::new();
    for (number, case) in cases.iter().enumerate() {
        let (path, body) = request(case);
        let line = serde_json::json!({"time": format!("2026-01-02T03:04:{:02}.{:03}Z", number / 10, number % 10 * 100),
            "duration_ms": 50, "method": "POST", "url": format!("https://h.example{path}"), "status": 200,
            "request_body": body, "response_body": answer(case).map_or("{}", |(body, _)| body)});
        log += &format!("{line}\n");
    }
    log += "not JSON\n";
    std::fs::write(folder.path().join("log.jsonl"), log).unwrap();
    let mut command = runner();
    command.args(words("record rows.jsonl --from-log log.jsonl --backend")).arg(backend);
    let ended = run(command.current_dir(folder.path())).with_code(0);
    let logged: Vec<Value> = json_lines(folder.path().join("rows.jsonl"));
    let known = |row: &Value| {
        let blocks = row["hash_ids"].as_array().unwrap().len();
        let facts = [
            "input_length",
            "output_length",
            "cached",
            "stream",
            "status",
            "broken",
            "extra",
            "media",
        ];
        (facts.map(|fact| row.get(fact).cloned()), blocks)
    };
    assert!(
        logged.iter().map(known).eq(rows.iter().map(known)),
        "{backend}: {logged:#?} {rows:#?}"
    );
    assert!(ended.stderr.contains("1 lines of the log without a time"), "{}", ended.stderr);
}

/// Two spans of a conversation, as an OpenTelemetry collector writes them, and one of another kind.
#[test]
fn spans_of_genai_are_rows() {
    let span = |start: u64, messages: &str, input: u64, error: bool| {
        let text = |key: &str, value: &str| serde_json::json!({"key": key, "value": {"stringValue": value}});
        let number = |key: &str, value: u64| serde_json::json!({"key": key, "value": {"intValue": value.to_string()}});
        serde_json::json!({"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "chat m",
            "startTimeUnixNano": start.to_string(), "endTimeUnixNano": (start + 1_500_000_000).to_string(),
            "status": {"code": if error { 2 } else { 0 }}, "attributes": [
            text("gen_ai.operation.name", "chat"), text("gen_ai.request.model", "secret-model"),
            text("gen_ai.conversation.id", "secret-conversation"), text("gen_ai.input.messages", messages),
            number("gen_ai.usage.input_tokens", input), number("gen_ai.usage.output_tokens", 20),
            number("gen_ai.request.max_tokens", 99)]})
    };
    let first = r#"{"role":"user","parts":[{"type":"text","content":"secret words"}]}"#;
    let second = format!("[{first},{}]", first.replace("user", "assistant"));
    let at = 1_767_323_045_000_000_000;
    let spans = [
        span(at + 2_000_000_000, &second, 130, false),
        span(at, &format!("[{first}]"), 70, false),
        span(at + 9_000_000_000, &second, 130, true),
        serde_json::json!({"name": "GET", "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": []}),
    ];
    let line = serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("spans.jsonl"), line.to_string()).unwrap();
    let line = "record rows.jsonl --from-log spans.jsonl --sessions sessions.jsonl";
    run(runner().args(words(line)).current_dir(folder.path())).with_code(0);
    let rows: Vec<Value> = json_lines(folder.path().join("rows.jsonl"));
    let facts = |row: &Value| {
        ["timestamp", "session_id", "input_length", "output_length", "api_time", "broken"]
            .map(|key| row[key].clone())
    };
    let expected = serde_json::json!([
        [0.0, "0", 70, 20, 1.5, null],
        [2000.0, "0", 130, 20, 1.5, null],
        [9000.0, "0", 130, 99, 1.5, true]
    ]);
    assert_eq!(serde_json::json!(rows.iter().map(facts).collect::<Vec<_>>()), expected);
    assert_eq!(rows[1]["delay"], 500.0);
    let all = std::fs::read_to_string(folder.path().join("rows.jsonl")).unwrap();
    assert!(!all.contains("secret"), "{all}");
}

#[test]
fn requests_and_replies_of_every_backend_are_read() {
    let mut compared = 0;
    for (backend, least) in [
        ("anthropic", 20),
        ("bedrock", 20),
        ("cohere", 15),
        ("gemini", 20),
        ("llamacpp", 35),
        ("lmdeploy", 20),
        ("ollama", 25),
        ("openai", 25),
        ("sglang", 35),
        ("tensorrt-llm", 25),
        ("tgi", 25),
        ("vllm", 35),
    ] {
        let cases = cases(backend);
        assert!(cases.len() >= least, "{backend}: {}", cases.len());
        let known = cases.clone();
        let url = serve(move |stream| {
            let request = read_request(stream)?;
            let case = &known[field(&request, "x-case")?.parse::<usize>().ok()?];
            let (body, kind) = answer(case).unwrap_or(("{}", JSON));
            reply(stream, "200 OK", "", kind, body)
        });
        let mut recorder = Recorder::start(&url, &format!("--backend {backend}"));
        for (number, case) in cases.iter().enumerate() {
            let (path, body) = request(case);
            post(
                recorder.address(),
                path,
                &format!("x-case: {number}\r\n"),
                body.trim_end().as_bytes(),
            );
            recorder.until_rows(number + 1);
        }
        let recorded = recorder.end();
        check_log(backend, &cases, &recorded.rows);
        assert_eq!(recorded.rows.len(), cases.len(), "{backend}: {}", recorded.exit.stderr);
        for (row, case) in recorded.rows.iter().zip(&cases) {
            let Some(counts) = counts(case) else { continue };
            compared += 1;
            assert_eq!(row["output_length"], counts["output-tokens"], "{backend}: {case:#?}");
            if let Some(input) = counts.get("input-tokens") {
                assert_eq!(row["input_length"], *input, "{backend}: {case:#?}");
            }
            assert_eq!(
                row.get("cached"),
                counts.get("cached-input-tokens"),
                "{backend}: {case:#?}"
            );
        }
    }
    assert!(compared > 120, "{compared} replies with counts");
}
