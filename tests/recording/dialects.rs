//! The cases of the shipped backends, sent by a client: each request has a row, and the row has the
//! counts of the case's reply.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::Recorder;
use super::traffic::post;
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
            let (head, body) = case["request.http"].split_once("\n\n").unwrap();
            let path = head.lines().next().unwrap().split(' ').nth(1).unwrap();
            post(
                recorder.address(),
                path,
                &format!("x-case: {number}\r\n"),
                body.trim_end().as_bytes(),
            );
            recorder.until_rows(number + 1);
        }
        let recorded = recorder.end();
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
