//! The mock engine over an in-memory pipe on a clock that moves only when nothing else can:
//! every instant is exact.

mod batching;
mod control;
mod faults;
mod formats;
mod mounts;
mod predictions;
mod routes;
mod tcp;
mod timing;
mod transcriptions;
mod transcripts;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Engine, Script, serve_connection};
use model::units::Nanos;

/// A reply as a client saw it.
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

    /// The time when pieces were read, in milliseconds.
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

/// A streamed completion of this number of tokens.
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
