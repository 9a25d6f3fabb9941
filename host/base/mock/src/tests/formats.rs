//! Formats of replies: compared with captured replies of vLLM 0.32, and with the published schemas
//! of SGLang's and LMDeploy's `/generate`.

use serde_json::{Value, json};

use super::*;

macro_rules! capture {
    ($name:literal) => {
        include_str!(concat!("../captures/", $name, ".txt"))
    };
}

/// A JSON value with ids, times, texts and versions replaced, which differ from reply to reply.
fn leveled(mut value: Value) -> String {
    fn level(value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(level),
            Value::Object(fields) => {
                for (key, value) in fields {
                    *value = match (key.as_str(), &*value) {
                        ("id", Value::String(id)) => {
                            id.split('-').next().unwrap_or_default().into()
                        }
                        ("created", Value::Number(_)) => 0.into(),
                        ("text" | "content", Value::String(text)) if !text.is_empty() => {
                            "TEXT".into()
                        }
                        ("system_fingerprint", Value::String(_)) => "VERSION".into(),
                        _ => {
                            level(value);
                            continue;
                        }
                    };
                }
            }
            _ => {}
        }
    }
    level(&mut value);
    value.to_string()
}

/// Every payload of a reply, leveled; each must be written without blanks.
fn payloads(body: &str) -> Vec<String> {
    let events = body.lines().filter(|line| !line.is_empty());
    let payload = |line: &str| {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        let Ok(value) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
        assert_eq!(value.to_string(), line, "written in another way than it is read");
        leveled(value)
    };
    events.map(payload).collect()
}

/// Compares a reply with a captured one: status, headers and every payload.
#[track_caller]
fn assert_like(got: &ClientReply, capture: &str) {
    let (head, body) = capture.split_once("\n\n").unwrap();
    let mut lines = head.lines();
    let status = format!("HTTP/1.1 {}", got.status);
    assert_eq!(status, lines.next().unwrap());
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        let ours = got.headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(ours, Some(value), "{name}");
    }
    assert_eq!(payloads(&got.body()), payloads(body));
}

const COMPLETION: &str = r#""model":"tiny","prompt":[1,2,3,4,5],"max_tokens":8,"ignore_eos":true"#;
const CHAT: &str = r#""model":"tiny","messages":[{"role":"user","content":"thirteen chars"}],"max_tokens":8,"ignore_eos":true"#;
const USAGE: &str = r#","stream":true,"stream_options":{"include_usage":true}"#;
const CONTINUOUS: &str =
    r#","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}"#;

async fn completion(engine: &Arc<Engine>, more: &str) -> ClientReply {
    post(engine, "/v1/completions", &format!("{{{COMPLETION}{more}}}")).await
}

async fn chat(engine: &Arc<Engine>, more: &str) -> ClientReply {
    let body = format!("{{{CHAT}{more}}}").replace("thirteen chars", "13 characters");
    post(engine, "/v1/chat/completions", &body).await
}

#[tokio::test(start_paused = true)]
async fn completions_are_vllms() {
    let engine = engine("models = ['tiny']");
    assert_like(&completion(&engine, "").await, capture!("completions-nostream"));
    assert_like(&completion(&engine, r#","stream":true"#).await, capture!("completions-stream"));
    assert_like(&completion(&engine, USAGE).await, capture!("completions-stream-usage"));
    assert_like(
        &completion(&engine, CONTINUOUS).await,
        capture!("completions-stream-usage-continuous"),
    );
}

#[tokio::test(start_paused = true)]
async fn chats_are_vllms() {
    let engine = engine("models = ['tiny']");
    assert_like(&chat(&engine, "").await, capture!("chat-nostream"));
    assert_like(&chat(&engine, r#","stream":true"#).await, capture!("chat-stream"));
    assert_like(&chat(&engine, USAGE).await, capture!("chat-stream-usage"));
    assert_like(&chat(&engine, CONTINUOUS).await, capture!("chat-stream-usage-continuous"));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_vllms() {
    let engine = engine("models = ['tiny']\ncontext-limit = 2048");
    let unknown =
        post(&engine, "/v1/completions", r#"{"model":"nope","prompt":"hi","stream":true}"#).await;
    assert_like(&unknown, capture!("error-unknown-model"));
    let empty =
        post(&engine, "/v1/completions", r#"{"model":"tiny","prompt":"","stream":true}"#).await;
    assert_like(&empty, capture!("error-empty-prompt"));
    let long = format!(r#"{{"model":"tiny","prompt":"{}"}}"#, "x".repeat(2049));
    assert_like(&post(&engine, "/v1/completions", &long).await, capture!("error-too-long-stream"));
    let much = post(&engine, "/v1/completions", r#"{"prompt":"hi","max_tokens":100000}"#).await;
    assert_like(&much, capture!("error-max-tokens-too-big"));
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_stream_is_vllms_to_the_byte() {
    let engine = engine("[[fault]]\nkind = 'in-band-error'\nafter-tokens = 0");
    let got = chat(&engine, r#","stream":true"#).await;
    let (_, body) = capture!("error-in-band").split_once("\n\n").unwrap();
    assert_eq!(got.body().trim_end(), body.trim_end());
    assert_eq!(got.at_ms(), [120.0, 120.0]);
}

#[tokio::test(start_paused = true)]
async fn requests_need_the_key() {
    let engine = engine("api-key = 'k'");
    let got = completion(&engine, "").await;
    assert_eq!((got.status.as_u16(), got.body().as_str()), (401, r#"{"error":"Unauthorized"}"#));
    assert_eq!(get(&engine, "/v1/models").await.status, 401);
    assert_eq!(get(&engine, "/health").await.status, 200);
    let body = Full::new(Bytes::from(r#"{"prompt":"x"}"#));
    let request = Request::post("/v1/completions").header("authorization", "Bearer k").body(body);
    assert_eq!(send(&engine, request.unwrap()).await.unwrap().status, 200);
}

/// Usage of every event, in order; events without are left out.
fn usages(got: &ClientReply) -> Vec<Value> {
    let values =
        got.data().into_iter().filter_map(|data| serde_json::from_str::<Value>(&data).ok());
    values.filter_map(|value| value.get("usage").cloned()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_script_decides_the_place_of_usage() {
    for (mode, plain, requested) in [
        ("none", 0, 0),
        ("final", 0, 1),
        ("always", 1, 1),
        ("last-chunk", 1, 1),
        ("continuous", 9, 9),
    ] {
        let engine = engine(&format!("usage = '{mode}'"));
        let not_asked = completion(&engine, r#","stream":true"#).await;
        assert_eq!(usages(&not_asked).len(), plain, "{mode}");
        let got = completion(&engine, USAGE).await;
        assert_eq!(usages(&got).len(), requested, "{mode}");
        let expected = matches!(mode, "final" | "always" | "continuous");
        assert_eq!(got.body().contains(r#""choices":[]"#), expected);
        if let Some(last) = usages(&got).last() {
            assert_eq!(last["completion_tokens"], 8, "{mode}");
            assert_eq!(last["prompt_tokens"], 5, "{mode}");
        }
        assert_eq!(completion(&engine, "").await.body().contains("usage"), mode != "none");
    }
}

#[tokio::test(start_paused = true)]
async fn reasoning_has_its_own_field() {
    for field in ["reasoning", "reasoning_content"] {
        let engine = engine(&format!(
            "reasoning-tokens = 3\nreasoning-field = '{field}'\ntokens-per-chunk = 5"
        ));
        let got = chat(&engine, USAGE).await;
        let deltas: Vec<String> = got
            .data()
            .iter()
            .filter_map(|data| serde_json::from_str::<Value>(data).ok())
            .filter_map(|value| value["choices"].get(0).map(|choice| choice["delta"].clone()))
            .map(|delta| {
                let (key, text) = delta.as_object().unwrap().iter().next_back().unwrap();
                format!("{key} {}", text.as_str().unwrap().len())
            })
            .collect();
        let (one, two) = (format!("{field} 1"), format!("{field} 2"));
        assert_eq!(deltas, ["content 0", &one, &two, "content 5"]);
        assert_eq!(usages(&got)[0]["completion_tokens_details"]["reasoning_tokens"], 3);
        let whole: Value = serde_json::from_str(&chat(&engine, "").await.body()).unwrap();
        let message = &whole["choices"][0]["message"];
        assert_eq!(message[field].as_str().unwrap().len(), 3);
        assert_eq!(message["content"].as_str().unwrap().len(), 5);
    }
}

const COUNTS: &str = "[counts]\ndraft-tokens = 8\naccepted-draft-tokens = 6\ninput-image-tokens = 576\n\
    input-video-tokens = 48\ninput-audio-tokens = 0\noutput-audio-tokens = 2\n";

#[tokio::test(start_paused = true)]
async fn further_counts_describe_the_whole_answer() {
    let of_prompt = json!({"image_tokens": 576, "video_tokens": 48, "audio_tokens": 0});
    let of_answer = json!({
        "accepted_prediction_tokens": 6, "rejected_prediction_tokens": 2, "audio_tokens": 2,
    });
    for mode in ["final", "always", "continuous", "last-chunk"] {
        let engine = engine(&format!("usage = '{mode}'\n{COUNTS}"));
        for got in [chat(&engine, USAGE).await, completion(&engine, USAGE).await] {
            let usages = usages(&got);
            let (last, before) = usages.split_last().unwrap();
            assert_eq!(last["prompt_tokens_details"], of_prompt, "{mode}");
            assert_eq!(last["completion_tokens_details"], of_answer, "{mode}");
            let in_the_last_chunk = usize::from(mode == "continuous");
            for usage in &before[..before.len() - in_the_last_chunk] {
                assert!(usage["prompt_tokens_details"].is_null(), "{mode}");
            }
        }
        let whole: Value = serde_json::from_str(&chat(&engine, "").await.body()).unwrap();
        let usage = &whole["usage"];
        assert_eq!(usage["prompt_tokens_details"], of_prompt, "{mode}");
        assert_eq!(usage["completion_tokens_details"], of_answer, "{mode}");
    }
    let got = post(&engine(COUNTS), "/generate", SGLANG).await;
    let events: Vec<Value> =
        got.data().iter().filter_map(|data| serde_json::from_str(data).ok()).collect();
    let counts = |event: &Value| {
        let meta = &event["meta_info"];
        [
            "spec_num_proposed_drafts",
            "spec_num_correct_drafts",
            "image_tokens",
            "video_tokens",
            "audio_tokens",
        ]
        .map(|name| meta.get(name).and_then(Value::as_u64))
    };
    assert_eq!(counts(&events[0]), [None; 5]);
    assert_eq!(counts(events.last().unwrap()), [8, 6, 576, 48, 0].map(Some));
}

#[test]
fn more_drafts_than_there_are_cannot_be_accepted() {
    let text = COUNTS.replace("= 6", "= 9");
    let error = text.parse::<Script>().unwrap_err().to_string();
    assert!(
        error.contains("`counts.accepted-draft-tokens`: 9 of 8 draft tokens cannot be accepted"),
        "{error}"
    );
}

const SGLANG: &str = r#"{"text":"hey","sampling_params":{"max_new_tokens":3},"stream":true}"#;

#[tokio::test(start_paused = true)]
async fn sglang_repeats_all_text_unless_it_is_incremental() {
    let event = |text: &str, ids: &str, completion: u32, finish: &str, end: &str| {
        format!(
            r#"{{"text":"{text}","output_ids":[{ids}],"meta_info":{{"id":"ID","finish_reason":{finish},"prompt_tokens":3,"completion_tokens":{completion},"cached_tokens":0,"reasoning_tokens":0,"num_retractions":0,"weight_version":"default"{end}}}}}"#
        )
    };
    let length = r#"{"type":"length","length":3}"#;
    let end = r#","e2e_latency":0.16"#;
    let data = |got: ClientReply, number| {
        let id = format!("{:016x}", model::random::mix(number));
        got.data().into_iter().map(move |data| data.replace(&id, "ID")).collect::<Vec<_>>()
    };
    let cumulative = engine("answer = { text = 'abcd' }");
    let got = post(&cumulative, "/generate", SGLANG).await;
    assert_eq!(got.content_type(), "text/event-stream; charset=utf-8");
    let expected = [
        event("a", "97", 1, "null", ""),
        event("ab", "97,98", 2, "null", ""),
        event("abc", "97,98,99", 3, length, end),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(got, 0), expected);
    let whole = post(&cumulative, "/generate", &SGLANG.replace("true", "false")).await.body();
    let id = format!("{:016x}", model::random::mix(1));
    assert_eq!(whole.replace(&id, "ID"), expected[2]);

    let incremental = engine("answer = { text = 'abcd' }\nincremental = true");
    let got = post(&incremental, "/generate", SGLANG).await;
    let expected = [
        event("a", "97", 1, "null", ""),
        event("b", "98", 2, "null", ""),
        event("c", "99", 3, length, end),
        "[DONE]".to_owned(),
    ];
    assert_eq!(data(got, 0), expected);
    let stopped = SGLANG.replace('3', "9");
    let stopped = post(&incremental, "/generate", &stopped).await.body();
    assert!(stopped.contains(r#""finish_reason":{"type":"stop","matched":2}"#), "{stopped}");
}

#[tokio::test(start_paused = true)]
async fn lmdeploy_has_a_schema_of_its_own() {
    let engine = engine("generate = 'lmdeploy'\nanswer = { text = 'ab' }");
    let event = |text: &str, id: u32, completion: u32, finish: &str| {
        format!(
            r#"{{"text":"{text}","output_ids":[{id}],"meta_info":{{"finish_reason":{finish},"prompt_tokens":3,"completion_tokens":{completion},"output_token_logprobs":null}}}}"#
        )
    };
    let got = post(&engine, "/generate", r#"{"prompt":"hey","max_tokens":2,"stream":true}"#).await;
    let expected =
        [event("a", 97, 1, "null"), event("b", 98, 2, r#"{"type":"length"}"#), "[DONE]".to_owned()];
    assert_eq!(got.data(), expected);
    let refused = post(&engine, "/generate", r#"{"text":"hey"}"#).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body().ends_with(r#""object":"error"}"#), "{}", refused.body());
}

#[tokio::test(start_paused = true)]
async fn a_list_of_one_prompt_is_that_prompt() {
    let engine = engine("");
    let tokens = async |prompt: &str| {
        let body = format!(r#"{{"prompt":{prompt},"max_tokens":2}}"#);
        let got = post(&engine, "/v1/completions", &body).await;
        let body: Value = serde_json::from_str(&got.body()).unwrap();
        body["usage"]["prompt_tokens"].as_u64()
    };
    assert_eq!(tokens(r#""hello""#).await, Some(5));
    assert_eq!(tokens(r#"["hello"]"#).await, Some(5));
    assert_eq!(tokens("[[1, 2, 3]]").await, Some(3));
    assert_eq!(tokens(r#"["hello", "you"]"#).await, None);
    assert_eq!(tokens("[[]]").await, None);
}
