//! Routes of a mock engine beside answers: models, health, metrics, and clearing the cache.

use serde_json::Value;

use super::*;

async fn completion(engine: &Arc<Engine>, more: &str) -> ClientReply {
    let body = format!(
        r#"{{"model":"tiny","prompt":[1,2,3,4,5],"max_tokens":8,"ignore_eos":true{more}}}"#
    );
    post(engine, "/v1/completions", &body).await
}

/// A page's value of a series, by its name and labels.
fn value(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

#[tokio::test(start_paused = true)]
async fn counts_are_published_as_vllm_does() {
    let engine = engine("models = ['tiny', 'other']\nstop-after = 6");
    completion(&engine, r#","stream":true"#).await;
    completion(&engine, "").await;
    post(&engine, "/v1/completions", r#"{"prompt":"hello","max_tokens":8}"#).await;
    post(&engine, "/v1/completions", "{").await;
    let got = get(&engine, "/metrics").await;
    assert_eq!(got.content_type(), "text/plain; version=1.0.0; charset=utf-8");
    let page = got.body();
    for line in [
        r#"vllm:prompt_tokens_total{engine="0",model_name="tiny"} 15.0"#,
        r#"vllm:generation_tokens_total{engine="0",model_name="tiny"} 22.0"#,
        r#"vllm:num_requests_running{engine="0",model_name="tiny"} 0.0"#,
        r#"vllm:num_requests_waiting{engine="0",model_name="tiny"} 0.0"#,
        r#"vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"} 1.0"#,
        r#"vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"} 2.0"#,
        r#"http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 3.0"#,
        r#"http_requests_total{handler="/v1/completions",method="POST",status="4xx"} 1.0"#,
    ] {
        assert!(page.lines().any(|ours| ours == line), "{line} is not in\n{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn other_routes_answer_as_engines_do() {
    let engine = engine("models = ['tiny', 'other']");
    let models: Value = serde_json::from_str(&get(&engine, "/v1/models").await.body()).unwrap();
    assert_eq!((&models["object"], &models["data"][1]["id"]), (&"list".into(), &"other".into()));
    let health = get(&engine, "/health").await;
    assert_eq!((health.status.as_u16(), health.body().as_str()), (200, ""));
    assert_eq!(get(&engine, "/nowhere").await.body(), r#"{"detail":"Not Found"}"#);
    assert_eq!(get(&engine, "/v1/completions").await.status, 405);
    assert_eq!(post(&engine, "/health", "").await.status, 405);
}

async fn ask(engine: &Arc<Engine>, length: usize) -> ClientReply {
    let body = format!(r#"{{"prompt":"{}","max_tokens":2}}"#, "p".repeat(length));
    post(engine, "/v1/completions", &body).await
}

#[tokio::test(start_paused = true)]
async fn prefixes_are_remembered_until_they_are_flushed() {
    let engine = engine("prefix-cache = true");
    let cached = |got: &ClientReply| {
        let value: Value = serde_json::from_str(&got.body()).unwrap();
        value["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap()
    };
    assert_eq!(cached(&ask(&engine, 40).await), 0);
    // Whole blocks of 16, and never the last token.
    assert_eq!(cached(&ask(&engine, 40).await), 32);
    assert_eq!(cached(&ask(&engine, 32).await), 16);
    assert_eq!(cached(&ask(&engine, 100).await), 32);
    let vllm = r#"{engine="0",model_name="mock"}"#;
    let page = get(&engine, "/metrics").await.body();
    let queries = value(&page, &format!("vllm:prefix_cache_queries_total{vllm}"));
    let hits = value(&page, &format!("vllm:prefix_cache_hits_total{vllm}"));
    assert_eq!((queries, hits), (Some(212.0), Some(80.0)));
    let hits =
        value(&page, r#"sglang:cached_tokens_total{cache_source="device",model_name="mock"}"#);
    assert_eq!(hits, Some(80.0));

    let reset = post(&engine, "/reset_prefix_cache", "").await;
    assert_eq!((reset.status.as_u16(), reset.body().as_str()), (200, ""));
    assert_eq!(cached(&ask(&engine, 40).await), 0);
    assert_eq!(cached(&ask(&engine, 40).await), 32);
    assert_eq!(get(&engine, "/flush_cache").await.status, 200);
    assert_eq!(cached(&ask(&engine, 40).await), 0);
}

#[tokio::test(start_paused = true)]
async fn sglang_does_not_flush_while_it_works() {
    let engine = engine("prefix-cache = true");
    let busy = spawn_complete(&engine, 50);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let refused = post(&engine, "/flush_cache", "").await;
    assert_eq!(refused.status, 400);
    busy.await.unwrap();
    assert_eq!(post(&engine, "/flush_cache", "").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn gauges_show_running_and_waiting_requests() {
    let engine = engine("max-concurrency = 2");
    for _ in 0..3 {
        spawn_complete(&engine, 50);
    }
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let page = get(&engine, "/metrics").await.body();
    let vllm = r#"{engine="0",model_name="mock"}"#;
    let sglang = r#"{engine_type="unified",model_name="mock",pp_rank="0",tp_rank="0"}"#;
    for (series, expected) in [
        (format!("vllm:num_requests_running{vllm}"), 2.0),
        (format!("vllm:num_requests_waiting{vllm}"), 1.0),
        (format!("vllm:kv_cache_usage_perc{vllm}"), 1.0),
        (format!("vllm:num_preemptions_total{vllm}"), 0.0),
        (format!("sglang:num_running_reqs{sglang}"), 2.0),
        (format!("sglang:num_queue_reqs{sglang}"), 1.0),
        (format!("sglang:token_usage{sglang}"), 1.0),
        (format!("sglang:num_retracted_requests_total{sglang}"), 0.0),
    ] {
        assert_eq!(value(&page, &series), Some(expected), "{series}\n{page}");
    }
    // Without slots there is no share, and nothing was looked up.
    let page = get(&super::engine(""), "/metrics").await.body();
    for absent in ["kv_cache_usage", "token_usage", "cache_hit_rate"] {
        assert!(!page.contains(absent), "{page}");
    }
}
