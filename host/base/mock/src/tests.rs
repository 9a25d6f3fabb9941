//! The mock engine over an in-memory pipe on a paused clock: every instant is exact.

mod batching;
mod control;
mod faults;
mod formats;
mod routes;
mod timing;
mod transcripts;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Engine, Script, serve_connection};
use crate::truth::End;
use crate::{Mounts, Page, listen, serve, serve_mounts};
use model::units::Nanos;

struct ClientReply {
    status: StatusCode,
    headers: HeaderMap,
    headers_at: Nanos,
    /// The body's pieces, with the instants at which they were read.
    pieces: Vec<(Nanos, Bytes)>,
    /// The time when the body ended; an error if HTTP's end was missing.
    ended: Result<Nanos, Nanos>,
}

impl ClientReply {
    fn body(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    fn bytes(&self) -> Vec<u8> {
        let pieces = self.pieces.iter();
        pieces.flat_map(|(_, bytes)| bytes.to_vec()).collect()
    }

    fn content_type(&self) -> &str {
        self.headers[CONTENT_TYPE].to_str().unwrap()
    }

    fn data(&self) -> Vec<String> {
        let body = self.body();
        body.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
    }

    fn at_ms(&self) -> Vec<f64> {
        self.pieces.iter().map(|(at, _)| at.as_millis_f64()).collect()
    }

    fn text(&self) -> String {
        let values = self.data().into_iter().filter(|data| data != "[DONE]");
        let choice = |data: String| {
            let value: serde_json::Value = serde_json::from_str(&data).unwrap();
            let choice = &value["choices"][0];
            let text = choice["text"].as_str().or(choice["delta"]["content"].as_str());
            text.unwrap_or_default().to_owned()
        };
        values.map(choice).collect()
    }
}

fn script(toml: &str) -> Script {
    let text = format!("ttft = '120ms'\nitl = '20ms'\n{toml}");
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn engine(toml: &str) -> Arc<Engine> {
    Engine::with_truth(script(toml)).unwrap()
}

/// One end of a pipe whose other end the engine serves.
fn connect(engine: &Arc<Engine>) -> DuplexStream {
    let (client, server) = tokio::io::duplex(64 << 10);
    tokio::spawn(serve_connection(server, Arc::clone(engine)));
    client
}

fn now(engine: &Engine) -> Nanos {
    engine.since(Instant::now())
}

/// Sends one request on a connection of its own; `Err` if there was no reply.
async fn send(engine: &Arc<Engine>, request: Request<Full<Bytes>>) -> hyper::Result<ClientReply> {
    let io = TokioIo::new(connect(engine));
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let headers_at = now(engine);
    let (parts, mut body) = response.into_parts();
    let mut pieces = Vec::new();
    let ended = loop {
        match body.frame().await {
            None => break Ok(now(engine)),
            Some(Err(_)) => break Err(now(engine)),
            Some(Ok(frame)) => pieces.push((now(engine), frame.into_data().unwrap())),
        }
    };
    Ok(ClientReply { status: parts.status, headers: parts.headers, headers_at, pieces, ended })
}

/// The bytes of a request that is the last of its connection.
fn raw(method: &str, path: &str, body: &str) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: mock\r\nconnection: close");
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

async fn post(engine: &Arc<Engine>, path: &str, body: &str) -> ClientReply {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    let request = Request::builder().method(Method::POST).uri(path).body(body).unwrap();
    send(engine, request).await.unwrap()
}

async fn complete(engine: &Arc<Engine>, tokens: u32) -> ClientReply {
    let body = format!(r#"{{"prompt":"hello","max_tokens":{tokens},"stream":true}}"#);
    post(engine, "/v1/completions", &body).await
}

fn spawn_complete(engine: &Arc<Engine>, tokens: u32) -> JoinHandle<ClientReply> {
    let engine = Arc::clone(engine);
    tokio::spawn(async move { complete(&engine, tokens).await })
}

async fn get(engine: &Arc<Engine>, path: &str) -> ClientReply {
    let request = Request::builder().uri(path).body(Full::default()).unwrap();
    send(engine, request).await.unwrap()
}

// Over real sockets. No instants are compared here: real time is not exact.

async fn exchange(script: &str, requests: usize) -> Vec<(String, std::io::Result<()>)> {
    let script = format!("ttft = '1ms'\nitl = '1ms'\n{script}").parse().unwrap();
    let engine = Engine::new(script).unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(listener, engine, async move {
        let _ = stopped.await;
    }));
    let clients: Vec<_> = (0..requests)
        .map(|_| {
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let body = r#"{"prompt":"x","max_tokens":3,"stream":true}"#;
                stream.write_all(&raw("POST", "/v1/completions", body)).await.unwrap();
                let mut reply = Vec::new();
                let end = stream.read_to_end(&mut reply).await.map(|_| ());
                (String::from_utf8(reply).unwrap(), end)
            })
        })
        .collect();
    let mut replies = Vec::new();
    for client in clients {
        replies.push(client.await.unwrap());
    }
    stop.send(()).unwrap();
    server.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "still listening");
    replies
}

#[tokio::test]
async fn many_clients_connect_at_once() {
    for (reply, end) in exchange("", 300).await {
        assert!(end.is_ok(), "{end:?}");
        assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        // Each event in an HTTP chunk of its own, then the last chunk.
        assert_eq!(reply.matches("\r\ndata: ").count(), 4);
        assert!(reply.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{reply}");
    }
}

#[tokio::test]
async fn a_cut_closes_or_resets() {
    let cut = "[[fault]]\nkind = 'cut'\nafter-tokens = 1";
    let (reply, end) = exchange(cut, 1).await.remove(0);
    assert!(end.is_ok() && !reply.ends_with("0\r\n\r\n"), "{reply}");
    let (_, end) = exchange(&format!("{cut}\nreset = true"), 1).await.remove(0);
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

// Engines below base paths of one address, over real sockets.

async fn reply_to(address: std::net::SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&raw(method, path, body)).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    reply
}

fn mounted(names: &[&str]) -> (std::net::SocketAddr, Arc<Mounts>) {
    let scripts = names.iter().map(|name| {
        let script = format!("ttft = '1ms'\nitl = '1ms'\nmodels = '{name}'");
        ((*name).to_owned(), script.parse().unwrap())
    });
    let pages = Box::new(|engine: Option<(&str, &Engine)>, page: &str| {
        let name = match engine {
            None if page.is_empty() => "all",
            Some((name, _)) if page == "expected" => name,
            _ => return None,
        };
        Some(Page { content_type: "text/plain", text: format!("page of {name}") })
    });
    let mounts = Mounts::new(scripts, pages).unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let served = serve_mounts(listener, Arc::clone(&mounts), std::future::pending());
    tokio::spawn(served);
    (address, mounts)
}

#[tokio::test]
async fn each_engine_has_a_base_path_and_a_log() {
    let (address, mounts) = mounted(&["a", "b"]);
    let models = reply_to(address, "GET", "/b/v1/models", "").await;
    assert!(models.contains(r#""id":"b""#), "{models}");
    let body = r#"{"model":"a","prompt":"x","max_tokens":2,"stream":true}"#;
    let reply = reply_to(address, "POST", "/a/v1/completions?x=1", body).await;
    assert!(reply.contains("[DONE]"), "{reply}");
    assert_eq!(mounts.engine("a").unwrap().truths().len(), 1);
    let log = reply_to(address, "GET", "/a/truth", "").await;
    assert!(log.contains(r#""asked":"{\"model\":\"a\""#) && log.contains("[DONE]"), "{log}");
    assert!(reply_to(address, "GET", "/b/truth", "").await.ends_with("\r\n\r\n"));
    let page = reply_to(address, "GET", "/a/expected", "").await;
    assert!(page.ends_with("page of a"), "{page}");
    assert!(reply_to(address, "GET", "/", "").await.ends_with("page of all"));
    reply_to(address, "POST", "/a/reset", "").await;
    assert!(reply_to(address, "GET", "/a/truth", "").await.ends_with("\r\n\r\n"));
    let none = reply_to(address, "GET", "/v1/models", "").await;
    assert!(none.starts_with("HTTP/1.1 404") && none.contains("there are a, b"), "{none}");
}

#[tokio::test]
async fn a_single_engine_needs_no_base_path() {
    let (address, _) = mounted(&["a"]);
    for path in ["/v1/models", "/a/v1/models"] {
        let models = reply_to(address, "GET", path, "").await;
        assert!(models.contains(r#""id":"a""#), "{models}");
    }
}

/// Half a second of a WAV file at 4 bytes a second, and further fields.
async fn transcribe(engine: &Arc<Engine>, fields: &[(&str, &str)]) -> ClientReply {
    let mut body =
        b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n"
            .to_vec();
    body.extend(b"RIFF....WAVEfmt ....\x01\0\x01\0....\x04\0\0\0\x02\0\x10\0data\x02\0\0\0..\r\n");
    for (name, value) in fields {
        let part =
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend(part.bytes());
    }
    body.extend(b"--b--\r\n");
    let request = Request::builder()
        .method(Method::POST)
        .uri("/v1/audio/transcriptions")
        .header(CONTENT_TYPE, "multipart/form-data; boundary=b")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    send(engine, request).await.unwrap()
}

fn values(got: &ClientReply) -> Vec<Value> {
    let data = got.data().into_iter().filter(|data| data != "[DONE]");
    data.map(|data| serde_json::from_str(&data).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn chunks_are_like_vllms() {
    let engine = engine("answer = { text = 'Hi é' }\ntokens-per-chunk = 2");
    let fields = [("model", "m"), ("stream", "true"), ("stream_include_usage", "true")];
    let got = transcribe(&engine, &fields).await;
    assert_eq!(got.content_type(), "text/event-stream; charset=utf-8");
    assert!(got.body().ends_with("data: [DONE]\n\n"));
    assert_eq!(got.text(), "Hi é");
    let values = values(&got);
    let choices: Vec<_> = values.iter().map(|value| value["choices"].clone()).collect();
    assert_eq!(
        choices,
        [
            json!([{"delta": {"content": "H"}}]),
            json!([{"delta": {"content": "i "}}]),
            json!([{"delta": {"content": "é"}, "finish_reason": "stop", "stop_reason": null}]),
            json!([]),
        ]
    );
    assert_eq!(values[0]["object"], "transcription.chunk");
    let expected = json!({"prompt_tokens": 25, "total_tokens": 30, "completion_tokens": 5});
    assert_eq!(values[3]["usage"], expected);
    let whole = transcribe(&engine, &[("response_format", "text")]).await;
    assert_eq!(whole.body(), r#"{"text":"Hi é","usage":{"type":"duration","seconds":1}}"#);
}

#[tokio::test(start_paused = true)]
async fn events_are_like_openais() {
    let engine = engine("answer = 'echo'\ntranscriptions = 'openai'\ntokens-per-chunk = 4");
    let got = transcribe(&engine, &[("prompt", "Hello"), ("stream", "true")]).await;
    let usage = json!({
        "type": "tokens",
        "input_tokens": 30,
        "input_token_details": {"text_tokens": 5, "audio_tokens": 25},
        "output_tokens": 5,
        "total_tokens": 35,
    });
    assert_eq!(
        values(&got),
        [
            json!({"type": "transcript.text.delta", "delta": "H"}),
            json!({"type": "transcript.text.delta", "delta": "ello"}),
            json!({"type": "transcript.text.done", "text": "Hello", "usage": usage}),
        ]
    );
    assert!(!got.body().contains("[DONE]"));
    let whole = transcribe(&engine, &[("prompt", "Hello")]).await;
    assert_eq!(whole.body(), json!({"text": "Hello", "usage": usage}).to_string());
    let text = transcribe(&engine, &[("prompt", "Hello"), ("response_format", "text")]).await;
    assert_eq!(text.body(), "Hello\n");
    assert_eq!(text.content_type(), "text/plain; charset=utf-8");
    let verbose =
        transcribe(&engine, &[("prompt", "Hello"), ("response_format", "verbose_json")]).await;
    let verbose: Value = serde_json::from_str(&verbose.body()).unwrap();
    assert_eq!((&verbose["text"], &verbose["duration"]), (&json!("Hello"), &json!(0.5)));
    assert_eq!(verbose["segments"][0]["text"], "Hello");
}

#[tokio::test(start_paused = true)]
async fn mistakes_are_refused_and_faults_happen() {
    let got = transcribe(&engine(""), &[("stream", "perhaps")]).await;
    assert_eq!(got.status, 400);
    assert!(got.body().contains("expected a boolean, got `perhaps`"), "{}", got.body());
    let json = post(&engine(""), "/v1/audio/transcriptions", "{}").await;
    assert!(json.status == 400 && json.body().contains("expected multipart/form-data"));
    let broken = engine("[[fault]]\nkind = 'in-band-error'\nafter-tokens = 2");
    let got = transcribe(&broken, &[("stream", "true")]).await;
    assert!(got.body().contains(r#"data: {"error": {"message": "#), "{}", got.body());
}

// Replicate's predictions: created by one request, streamed or looked at by others.

const CREATE: &str = "/v1/models/meta/llama/predictions";

fn value(got: &ClientReply) -> Value {
    serde_json::from_str(&got.body()).unwrap()
}

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
    assert!(failed.contains("event: output\n"), "{failed}");
    assert!(failed.contains("event: error\ndata: {"), "{failed}");
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
