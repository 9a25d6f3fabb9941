//! Transcripts of replies, and pauses of the whole server.

use super::*;
use crate::{End, WrittenBytes};

const TRANSCRIPT: &str = r#"
[[transcript]]
at = "50ms"
delta = { role = "assistant", content = "" }
[[transcript]]
at = "150ms"
delta = { content = "né" }
tokens = 2
rest-at = "250ms"
cut-in = "é"
[[transcript]]
at = "300ms"
delta = {}
finish = "stop"
usage = 2
"#;

#[tokio::test(start_paused = true)]
async fn events_go_out_when_they_are_due() {
    let done = "[[transcript]]\nat = '300ms'\ndone = true";
    let engine = Engine::with_bytes(script(&format!("{TRANSCRIPT}{done}"))).unwrap();
    let body = r#"{"messages":[{"content":"x"}],"stream":true}"#;
    let got = post(&engine, "/v1/chat/completions", body).await;
    assert_eq!(got.at_ms(), [50.0, 150.0, 250.0, 300.0, 300.0]);
    assert_eq!(got.text(), "né");
    let truth = &engine.truths()[0];
    assert_eq!((truth.end, truth.output_tokens), (End::Whole, Some(2)));
    assert_eq!(truth.asked.as_deref(), Some(body));
    let tokens: Vec<u32> = truth.chunks.iter().map(|chunk| chunk.tokens).collect();
    assert_eq!(tokens, [0, 0, 2, 0, 0]);
    assert!(matches!(&truth.written[1], WrittenBytes::Hex(hex) if hex.ends_with("6ec3")));
    assert_eq!(truth.written[4], WrittenBytes::Text("data: [DONE]\n\n".into()));
}

#[tokio::test(start_paused = true)]
async fn a_transcript_without_its_end_is_broken() {
    let engine = engine(TRANSCRIPT);
    let body = r#"{"messages":[{"content":"x"}],"stream":true}"#;
    let got = post(&engine, "/v1/chat/completions", body).await;
    assert_eq!(got.ended, Ok(Nanos(300_000_000)));
    assert_eq!(engine.truths()[0].end, End::Broken);
}

#[tokio::test(start_paused = true)]
async fn faults_change_how_a_transcript_is_written() {
    let crlf = "[[fault]]\nkind = 'crlf'\n[[fault]]\nkind = 'ping'";
    let engine = engine(&format!("{TRANSCRIPT}{crlf}"));
    let body = r#"{"messages":[{"content":"x"}],"stream":true}"#;
    let got = post(&engine, "/v1/chat/completions", body).await;
    let body = got.body();
    assert_eq!(body.matches("\r\n\r\n").count(), body.matches("\n").count() / 2, "{body}");
    assert_eq!(body.matches("\r\n: ").count() + 1, 3, "a comment before each event: {body}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everything_up() {
    let engine = engine("pause = { after = '150ms', for = '1s' }");
    let first = complete(&engine, 5);
    let second = async {
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        complete(&engine, 2).await
    };
    let third = async {
        tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
        complete(&engine, 2).await
    };
    let (first, second, third) = tokio::join!(first, second, third);
    // Due after 120, 140, 160, 180 and 200 ms.
    let at = first.at_ms();
    assert_eq!(at[..5], [120.0, 140.0, 1150.0, 1150.0, 1150.0]);
    assert_eq!(second.at_ms()[..2], [1270.0, 1290.0], "begun after the pause");
    assert_eq!(third.at_ms()[..2], [1320.0, 1340.0], "after the pause");
}
