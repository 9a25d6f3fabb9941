//! Replicate's predictions: created by one request, streamed or looked at by others.

use serde_json::{Value, json};
use std::time::Duration;

use super::*;
use crate::truth::End;

const CREATE: &str = "/v1/models/meta/llama/predictions";

fn value(got: &ClientReply) -> Value {
    serde_json::from_str(&got.body()).unwrap()
}

/// The path of a URL that a reply names.
fn path(prediction: &Value, which: &str) -> String {
    let url = prediction["urls"][which].as_str().unwrap();
    url.strip_prefix("http://localhost").unwrap().to_owned()
}

async fn create(engine: &Arc<Engine>, streams: bool) -> ClientReply {
    let body = json!({ "input": { "prompt": "hello", "max_tokens": 3 }, "stream": streams });
    post(engine, CREATE, &body.to_string()).await
}

#[tokio::test(start_paused = true)]
async fn the_output_streams_at_times_that_count_from_the_creation() {
    let engine = engine(r#"answer = { text = "a\nb" }"#);
    let created = create(&engine, true).await;
    assert_eq!(created.status, 201);
    let prediction = value(&created);
    assert_eq!(prediction["status"], "starting");
    assert_eq!(prediction["output"], Value::Null);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let streamed = get(&engine, &path(&prediction, "stream")).await;
    assert_eq!(streamed.content_type(), "text/event-stream; charset=utf-8");
    assert_eq!(streamed.at_ms(), [120.0, 140.0, 160.0, 160.0]);
    assert_eq!(
        streamed.body(),
        "event: output\nid: 1:0\ndata: a\n\nevent: output\nid: 2:0\ndata: \ndata: \n\n\
         event: output\nid: 3:0\ndata: b\n\nevent: done\nid: 3:0\ndata: {}\n\n"
    );
    let truths = engine.truths();
    let endings: Vec<_> = truths.iter().map(|truth| (truth.status, truth.end)).collect();
    assert_eq!(endings, [(Some(201), End::Whole), (Some(200), End::Whole)]);
    assert_eq!(truths[0].path, "/v1/predictions");
    assert!(truths[1].path.starts_with("/v1/streams/"), "{}", truths[1].path);
    assert_eq!((truths[0].tokens_sent(), truths[1].tokens_sent()), (0, 3));
    assert_eq!(truths[1].prompt_tokens, Some(5));
}

#[tokio::test(start_paused = true)]
async fn a_prediction_is_looked_at_until_it_has_ended() {
    let engine = engine("server-timings = 0.25");
    let prediction = value(&create(&engine, false).await);
    assert_eq!(prediction["urls"]["stream"], Value::Null);
    let look = path(&prediction, "get");
    let mut seen = Vec::new();
    for _ in 0..5 {
        let looked = value(&get(&engine, &look).await);
        seen.push(looked["status"].as_str().unwrap().to_owned());
        if looked["status"] == "succeeded" {
            let metrics = &looked["metrics"];
            assert_eq!(looked["output"].as_array().unwrap().len(), 3);
            assert_eq!(metrics["input_token_count"], 5);
            assert_eq!(metrics["output_token_count"], 3);
            assert_eq!(metrics["predict_time"], 0.16);
            assert_eq!(metrics["time_to_first_token"], 0.12);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(seen, ["starting", "starting", "starting", "processing", "succeeded"]);
    let missing = get(&engine, "/v1/predictions/none").await;
    assert_eq!((missing.status, &value(&missing)["status"]), (StatusCode::NOT_FOUND, &json!(404)));
}

#[tokio::test(start_paused = true)]
async fn faults_hit_each_of_the_requests() {
    let faults = "kind = 'http-error', status = 429, requests = [0]
        kind = 'in-band-error', after-tokens = 0, requests = [1]
        kind = 'in-band-error', after-tokens = 1, requests = [3]
        kind = 'cut', after-tokens = 1, requests = [5]
        kind = 'http-error', status = 404, requests = [7]
        kind = 'in-band-error', after-tokens = 0, requests = [9]
        kind = 'cut', after-tokens = 0, requests = [11]";
    let faults: Vec<String> = faults.lines().map(|fault| format!("{{ {fault} }}")).collect();
    let engine = engine(&format!("fault = [{}]", faults.join(",")));
    let refused = create(&engine, true).await;
    assert_eq!((refused.status.as_u16(), &value(&refused)["status"]), (429, &json!(429)));
    assert_eq!(value(&create(&engine, true).await)["status"], "failed");
    let streamed = async || {
        let prediction = value(&create(&engine, true).await);
        get(&engine, &path(&prediction, "stream")).await
    };
    let failed = streamed().await.body();
    assert!(
        failed.contains("event: output\n") && failed.contains("event: error\ndata: {"),
        "{failed}"
    );
    assert!(streamed().await.ended.is_err());
    assert_eq!(streamed().await.status, 404);
    let polled = async || {
        let prediction = value(&create(&engine, false).await);
        tokio::time::sleep(Duration::from_secs(1)).await;
        get(&engine, &path(&prediction, "get")).await
    };
    let failed = value(&polled().await);
    assert_eq!(failed["status"], "failed");
    assert!(failed["error"].as_str().is_some());
    assert!(polled().await.ended.is_err());
    let ends: Vec<End> = engine.truths().iter().map(|truth| truth.end).collect();
    let broken = ends.iter().filter(|end| **end == End::Broken).count();
    let whole = ends.iter().filter(|end| **end == End::Whole).count();
    assert_eq!((ends.len(), whole, broken), (12, 5, 5), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_except_streams_need_the_key() {
    let engine = engine("api-key = 'k'");
    let body = r#"{"input":{"prompt":"hello"},"stream":true}"#;
    assert_eq!(post(&engine, CREATE, body).await.status, 401);
    let request = Request::builder()
        .method(Method::POST)
        .uri("/v1/predictions")
        .header("authorization", "Bearer k")
        .body(Full::new(Bytes::from_static(body.as_bytes())))
        .unwrap();
    let prediction = value(&send(&engine, request).await.unwrap());
    assert_eq!(get(&engine, &path(&prediction, "get")).await.status, 401);
    assert_eq!(get(&engine, &path(&prediction, "stream")).await.status, 200);
}
