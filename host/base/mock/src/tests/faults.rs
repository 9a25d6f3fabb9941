//! Faults of replies.

use super::*;
use crate::End;

fn faulty(fault: &str) -> Arc<Engine> {
    engine(&format!("[[fault]]\n{}", fault.replace(", ", "\n")))
}

#[tokio::test(start_paused = true)]
async fn an_http_error_comes_instead_of_a_reply() {
    let engine = faulty("kind = 'http-error', requests = [1]");
    assert_eq!(complete(&engine, 2).await.status, 200);
    let got = complete(&engine, 2).await;
    assert_eq!((got.status.as_u16(), got.content_type()), (500, "application/json"));
    let error: serde_json::Value = serde_json::from_str(&got.body()).unwrap();
    assert_eq!(error["error"]["code"], 500);
    assert_eq!(error["error"]["type"], "InternalServerError");
    assert_eq!(complete(&engine, 2).await.status, 200);
    assert_eq!(engine.truths()[1].end, End::Refused);
    let engine = faulty("kind = 'http-error', status = 429, retry-after = '3s'");
    let got = complete(&engine, 2).await;
    assert_eq!((got.status.as_u16(), got.headers["retry-after"].to_str().unwrap()), (429, "3"));
}

#[tokio::test(start_paused = true)]
async fn a_web_page_comes_instead_of_a_reply() {
    let engine = faulty("kind = 'html', requests = [0]");
    let got = complete(&engine, 2).await;
    assert_eq!((got.status.as_u16(), got.content_type()), (200, "text/html; charset=utf-8"));
    assert!(got.body().starts_with("<!DOCTYPE html>"));
    assert_eq!(get(&engine, "/v1/models").await.content_type(), "application/json");
    let engine = faulty("kind = 'html', status = 502");
    let got = complete(&engine, 2).await;
    assert_eq!((got.status.as_u16(), got.content_type()), (502, "text/html; charset=utf-8"));
    let everywhere = faulty("kind = 'html'");
    assert_eq!(get(&everywhere, "/v1/models").await.content_type(), "text/html; charset=utf-8");
}

#[tokio::test(start_paused = true)]
async fn the_engine_says_goodbye() {
    let goodbye = faulty("kind = 'goodbye', requests = [1]");
    let says = |got: ClientReply| {
        got.headers.get("connection").map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(says(complete(&goodbye, 2).await), None);
    let got = complete(&goodbye, 2).await;
    assert!(got.ended.is_ok() && got.body().ends_with("[DONE]\n\n"));
    assert_eq!(says(got).as_deref(), Some("close"));
}

#[tokio::test(start_paused = true)]
async fn the_engine_hangs_up_without_a_reply() {
    let engine = faulty("kind = 'hang-up'");
    let request = Request::post("/v1/completions").body(Full::from(r#"{"prompt":"x"}"#)).unwrap();
    let error = send(&engine, request).await.err().unwrap();
    assert!(error.is_incomplete_message(), "{error:?}");
    let truth = &engine.truths()[0];
    assert_eq!((truth.end, truth.status), (End::Refused, None));
}

#[tokio::test(start_paused = true)]
async fn headers_come_late() {
    let engine = faulty("kind = 'slow-headers', for = '130ms'");
    let got = complete(&engine, 3).await;
    assert_eq!(got.headers_at, Nanos(130_000_000));
    assert_eq!(got.at_ms(), [130.0, 140.0, 160.0, 160.0]);
}

#[tokio::test(start_paused = true)]
async fn an_error_comes_in_band() {
    let engine = faulty("kind = 'in-band-error', after-tokens = 2");
    let got = complete(&engine, 5).await;
    assert_eq!(got.status, 200);
    assert_eq!(got.at_ms(), [120.0, 140.0, 160.0, 160.0]);
    assert!(got.data()[2].starts_with(r#"{"error": {"message": "EngineCore"#));
    assert_eq!(got.data()[3], "[DONE]");
    assert!(got.ended.is_ok());
    let truth = &engine.truths()[0];
    assert_eq!((truth.end, truth.tokens_sent()), (End::Broken, 2));
    let page = get(&engine, "/metrics").await.body();
    assert!(page.contains(r#"finished_reason="error",model_name="mock"} 1.0"#), "{page}");

    let whole = post(&engine, "/v1/completions", r#"{"prompt":"x"}"#).await;
    assert_eq!(whole.status, 200);
    assert!(whole.body().starts_with(r#"{"error":"#));
    let sglang = post(&engine, "/generate", r#"{"text":"x","stream":true}"#).await;
    assert!(sglang.data()[2].contains(r#""retryable":false"#));
}

#[tokio::test(start_paused = true)]
async fn the_connection_is_cut() {
    let engine = faulty("kind = 'cut', after-tokens = 2");
    let got = complete(&engine, 5).await;
    assert_eq!(got.at_ms(), [120.0, 140.0]);
    assert_eq!(got.ended, Err(Nanos(160_000_000)));
    assert_eq!(engine.truths()[0].end, End::Broken);
    let whole = post(&engine, "/v1/completions", r#"{"prompt":"x","max_tokens":5}"#).await;
    assert_eq!(whole.ended, Err(Nanos(360_000_000)));
    assert!(!whole.body().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cut_falls_at_its_token_with_any_chunks() {
    let engine = engine("tokens-per-chunk = 8\n[[fault]]\nkind = 'cut'\nafter-tokens = 3");
    let got = complete(&engine, 20).await;
    assert_eq!((got.at_ms(), got.text().len()), (vec![120.0, 160.0], 3));
    assert_eq!(got.ended, Err(Nanos(180_000_000)));
}

#[tokio::test(start_paused = true)]
async fn the_end_marker_is_missing() {
    let engine = faulty("kind = 'no-done', after-tokens = 2");
    let got = complete(&engine, 5).await;
    assert_eq!((got.text().len(), got.ended), (2, Ok(Nanos(160_000_000))));
    assert!(!got.body().contains("DONE") && !got.body().contains("finish_reason\":\""));
    // After the last token only the end marker is left to be missing.
    let at_the_end = complete(&faulty("kind = 'no-done', after-tokens = 9"), 5).await;
    assert_eq!(at_the_end.text().len(), 5);
    assert!(at_the_end.body().contains("\"length\"") && !at_the_end.body().contains("DONE"));
}

#[tokio::test(start_paused = true)]
async fn a_stall_puts_off_the_rest() {
    let engine = faulty("kind = 'stall', after-tokens = 2, for = '1s'");
    let got = complete(&engine, 4).await;
    assert_eq!(got.at_ms(), [120.0, 140.0, 1160.0, 1180.0, 1180.0]);
    let whole = post(&engine, "/v1/completions", r#"{"prompt":"x","max_tokens":4}"#).await;
    assert_eq!(whole.at_ms(), [2360.0]);
}

#[tokio::test(start_paused = true)]
async fn a_stall_can_last_for_ever() {
    let engine = faulty("kind = 'stall', after-tokens = 1");
    let patience = std::time::Duration::from_secs(3600);
    assert!(tokio::time::timeout(patience, complete(&engine, 4)).await.is_err());
    tokio::task::yield_now().await;
    let truth = &engine.truths()[0];
    assert_eq!((truth.end, truth.tokens_sent()), (End::Abandoned, 1));
    let whole = post(&engine, "/v1/completions", r#"{"prompt":"x"}"#);
    assert!(tokio::time::timeout(patience, whole).await.is_err());
    tokio::task::yield_now().await;
    assert_eq!((engine.truths()[1].end, engine.truths()[1].status), (End::Abandoned, None));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_short_in_spite_of_ignore_eos() {
    let engine = faulty("kind = 'stop-early', after-tokens = 3");
    let body = r#"{"prompt":"x","max_tokens":9,"ignore_eos":true,"stream":true}"#;
    let got = post(&engine, "/v1/completions", body).await;
    assert_eq!(got.text().len(), 3);
    assert!(got.body().contains(r#""finish_reason":"stop""#) && got.body().contains("[DONE]"));
    let empty = complete(&faulty("kind = 'stop-early', after-tokens = 0"), 9).await;
    assert_eq!((empty.text().as_str(), empty.at_ms()), ("", vec![120.0, 120.0]));
    assert!(empty.body().contains(r#""finish_reason":"stop""#));
}

#[tokio::test(start_paused = true)]
async fn writes_are_cut_anywhere() {
    let plain = engine("answer = { text = 'naïve ✓' }");
    let body = r#"{"prompt":"x","stream":true}"#;
    let expected = post(&plain, "/v1/completions", body).await;
    for bytes in [1, 7] {
        let engine = engine(&format!(
            "answer = {{ text = 'naïve ✓' }}\n[[fault]]\nkind = 'split'\nbytes = {bytes}"
        ));
        let got = post(&engine, "/v1/completions", body).await;
        assert_eq!(got.body().len(), expected.body().len());
        assert_eq!(got.text(), "naïve ✓");
        let sizes: Vec<usize> = got.pieces.iter().map(|(_, piece)| piece.len()).collect();
        assert!(sizes.iter().all(|size| (1..=bytes).contains(size)), "{sizes:?}");
        assert_eq!(got.ended, expected.ended);
        assert_eq!(engine.truths()[0].chunks, plain.truths()[0].chunks);
        let broken = |(_, piece): &(_, Bytes)| std::str::from_utf8(piece).is_err();
        assert!(bytes > 1 || got.pieces.iter().any(broken));
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_written_together() {
    let engine = faulty("kind = 'merge', events = 3");
    let got = complete(&engine, 5).await;
    assert_eq!(got.at_ms(), [160.0, 200.0]);
    assert_eq!(got.text().len(), 5);
    let tokens: Vec<u32> = engine.truths()[0].chunks.iter().map(|chunk| chunk.tokens).collect();
    assert_eq!(tokens, [3, 2]);
    let cut = engine_with_two("kind = 'merge'\nevents = 3", "kind = 'cut'\nafter-tokens = 4");
    let got = complete(&cut, 9).await;
    assert_eq!((got.at_ms(), got.ended), (vec![160.0, 180.0], Err(Nanos(200_000_000))));
}

fn engine_with_two(one: &str, two: &str) -> Arc<Engine> {
    engine(&format!("[[fault]]\n{one}\n[[fault]]\n{two}"))
}

#[tokio::test(start_paused = true)]
async fn lines_end_in_crlf() {
    let plain = complete(&engine(""), 3).await.body();
    let got = complete(&faulty("kind = 'crlf'"), 3).await.body();
    assert!(got.ends_with("data: [DONE]\r\n\r\n"));
    assert_eq!(got.replace("\r\n", "\n").len(), plain.len());
    assert_eq!(got.matches('\r').count(), got.matches('\n').count());
}

#[tokio::test(start_paused = true)]
async fn comments_come_between() {
    let got = complete(&faulty("kind = 'ping'"), 2).await;
    assert_eq!(got.at_ms(), [0.0, 120.0, 140.0, 140.0]);
    assert_eq!(got.body().matches(": ping\n\n").count(), 4);
    assert_eq!(got.pieces[0].1, ": ping\n\n");
    assert_eq!(got.text().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn faults_add_up() {
    let engine = engine_with_two(
        "kind = 'stall'\nafter-tokens = 1\nfor = '1s'",
        "kind = 'cut'\nafter-tokens = 1",
    );
    let got = complete(&engine, 3).await;
    assert_eq!((got.at_ms(), got.ended), (vec![120.0], Err(Nanos(1_140_000_000))));
}
