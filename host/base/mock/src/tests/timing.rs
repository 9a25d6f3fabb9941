//! Timing of replies.

use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::*;
use crate::{End, SentPiece, Truth};

fn ms(values: &[u64]) -> Vec<f64> {
    values.iter().map(|ms| *ms as f64).collect()
}

#[tokio::test(start_paused = true)]
async fn every_token_comes_when_it_is_due() {
    let engine = engine("");
    let got = complete(&engine, 5).await;
    assert_eq!(got.headers_at, Nanos(0));
    // The last two are the fifth token and the end marker.
    assert_eq!(got.at_ms(), ms(&[120, 140, 160, 180, 200, 200]));
    assert_eq!(got.ended, Ok(Nanos(200_000_000)));
    assert_eq!(got.text().len(), 5);

    let truths = engine.truths();
    let [truth] = truths.as_slice() else { panic!("{truths:?}") };
    let sent: Vec<SentPiece> = got
        .pieces
        .iter()
        .map(|(at, bytes)| SentPiece {
            at: *at,
            tokens: u32::from(!bytes.ends_with(b"[DONE]\n\n")),
            bytes: bytes.len(),
        })
        .collect();
    assert_eq!(
        *truth,
        Truth {
            path: "/v1/completions".into(),
            status: Some(200),
            prompt_tokens: Some(5),
            output_tokens: Some(5),
            started: Some(Nanos(0)),
            chunks: sent,
            ended: Some(Nanos(200_000_000)),
            end: End::Whole,
            ..Truth::default()
        }
    );
    assert_eq!(truth.tokens_sent(), 5);
    assert_eq!(truth.first_token(), Some(Nanos(120_000_000)));
}

#[tokio::test(start_paused = true)]
async fn delays_do_not_add_up() {
    let script = Script { itl: "1ms".parse().unwrap(), ..script("") };
    let engine = Engine::with_truth(script).unwrap();
    let got = complete(&engine, 3000).await;
    assert_eq!(got.pieces.len(), 3001);
    assert_eq!(got.ended, Ok(Nanos(3_119_000_000)));
}

#[tokio::test(start_paused = true)]
async fn larger_chunks_come_when_their_last_token_is_due() {
    let engine = engine("tokens-per-chunk = 4");
    let got = complete(&engine, 10).await;
    assert_eq!(got.at_ms(), ms(&[120, 200, 280, 300, 300]));
    let tokens: Vec<u32> = engine.truths()[0].chunks.iter().map(|chunk| chunk.tokens).collect();
    assert_eq!(tokens, [1, 4, 4, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn events_that_are_due_together_are_written_apart() {
    let instant = Script { itl: "0".parse().unwrap(), ..script("") };
    let engine = Engine::with_truth(instant).unwrap();
    let (mut client, server) = tokio::io::duplex(64 << 10);
    let writes = Arc::default();
    let server = Tap { io: server, writes: Arc::clone(&writes) };
    tokio::spawn(serve_connection(server, engine));
    let body = r#"{"prompt":"hello","max_tokens":50,"stream":true}"#;
    client.write_all(&raw("POST", "/v1/completions", body)).await.unwrap();
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).await.unwrap();

    let writes = writes.lock().unwrap();
    let writes: Vec<&str> =
        writes.iter().map(|bytes| std::str::from_utf8(bytes).unwrap()).collect();
    assert_eq!(writes.concat().as_bytes(), reply);
    let [head, events @ .., end] = writes.as_slice() else { panic!("{writes:?}") };
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(events.len(), 51);
    assert!(events.iter().all(|event| event.matches("data: ").count() == 1), "{events:?}");
    assert_eq!(*end, "0\r\n\r\n");
}

struct Tap {
    io: DuplexStream,
    writes: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl AsyncRead for Tap {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        if let Poll::Ready(Ok(length)) = written {
            self.writes.lock().unwrap().push(bytes[..length].to_vec());
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn whole_replies_come_with_their_last_token() {
    let engine = engine("");
    let got = post(&engine, "/v1/completions", r#"{"prompt":"hello","max_tokens":5}"#).await;
    assert_eq!((got.headers_at, got.at_ms()), (Nanos(200_000_000), vec![200.0]));
    assert_eq!(got.headers["content-length"], got.body().len().to_string());
    let truth = &engine.truths()[0];
    assert_eq!((truth.tokens_sent(), truth.end), (5, End::Whole));
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_wait_in_order() {
    let engine = engine("max-concurrency = 2");
    let replies: Vec<_> = (0..5).map(|_| spawn_complete(&engine, 3)).collect();
    let mut first_tokens = Vec::new();
    for reply in replies {
        let got = reply.await.unwrap();
        assert_eq!(got.headers_at, Nanos(0));
        first_tokens.push(got.at_ms()[0]);
    }
    assert_eq!(first_tokens, [120.0, 120.0, 280.0, 280.0, 440.0]);
    let started: Vec<_> = engine.truths().iter().map(|truth| truth.started.unwrap()).collect();
    let expected = [0, 0, 160, 160, 320].map(|ms: u64| Nanos(ms * 1_000_000));
    assert_eq!(started, expected);
}

#[tokio::test(start_paused = true)]
async fn whole_replies_wait_for_a_slot_too() {
    let engine = engine("max-concurrency = 1");
    let body = r#"{"prompt":"hello","max_tokens":1}"#;
    let (first, second) = tokio::join!(
        post(&engine, "/v1/completions", body),
        post(&engine, "/v1/completions", body)
    );
    assert_eq!((first.at_ms(), second.at_ms()), (vec![120.0], vec![240.0]));
}

#[tokio::test(start_paused = true)]
async fn the_script_decides_the_time_of_role_and_headers() {
    let chat = r#"{"messages":[{"role":"user","content":"hi"}],"max_tokens":1,"stream":true}"#;
    let early = post(&engine("role-chunk = 'at-once'"), "/v1/chat/completions", chat).await;
    assert_eq!(early.at_ms(), ms(&[0, 120, 120]));
    assert!(early.data()[0].contains(r#""delta":{"role":"assistant","content":""}"#));
    let usual = post(&engine(""), "/v1/chat/completions", chat).await;
    assert_eq!(usual.at_ms(), ms(&[120, 120, 120]));
    let none = post(&engine("role-chunk = 'none'"), "/v1/chat/completions", chat).await;
    assert_eq!(none.at_ms(), ms(&[120, 120]));
    assert!(!none.body().contains("role"));
    let late = post(&engine("headers = 'first-token'"), "/v1/chat/completions", chat).await;
    assert_eq!((late.headers_at, late.at_ms()), (Nanos(120_000_000), ms(&[120, 120, 120])));
}

#[tokio::test(start_paused = true)]
async fn one_connection_serves_request_after_request() {
    let engine = engine("");
    let io = TokioIo::new(connect(&engine));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    for round in 1..=3 {
        let body = Full::new(Bytes::from(r#"{"prompt":"x","max_tokens":2,"stream":true}"#));
        let request = Request::post("/v1/completions").body(body).unwrap();
        let reply = sender.send_request(request).await.unwrap();
        reply.into_body().collect().await.unwrap();
        assert_eq!(now(&engine), Nanos(140_000_000 * round));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_frees_its_slot() {
    let engine = engine("max-concurrency = 1");
    let leaving = spawn_complete(&engine, 1000);
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    leaving.abort();
    let got = complete(&engine, 1).await;
    assert_eq!(got.at_ms()[0], 270.0);
    let truths = engine.truths();
    assert_eq!(truths[0].end, End::Abandoned);
    assert_eq!((truths[0].tokens_sent(), truths[0].output_tokens), (2, Some(1000)));
    let metrics = get(&engine, "/metrics").await.body();
    assert!(metrics.contains(r#"finished_reason="abort",model_name="mock"} 1.0"#), "{metrics}");
    assert!(metrics.contains(r#"vllm:num_requests_running{engine="0",model_name="mock"} 0.0"#));
}

#[tokio::test(start_paused = true)]
async fn many_streams_keep_their_time() {
    let engine = engine("");
    let streams: Vec<_> = (0..500_u64)
        .map(|i| {
            let engine = Arc::clone(&engine);
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(i)).await;
                let got = complete(&engine, 20).await;
                let due = (0..20).map(|k| 120.0 + 20.0 * f64::from(k) + i as f64);
                assert!(got.at_ms().into_iter().take(20).eq(due), "stream {i}");
            })
        })
        .collect();
    for stream in streams {
        stream.await.unwrap();
    }
    assert_eq!(engine.truths().iter().map(Truth::tokens_sent).sum::<u32>(), 500 * 20);
}
