//! Routes of a mock engine beside answers: health, models, counters, and clearing the cache.

use std::borrow::Cow;
use std::sync::atomic::Ordering::Relaxed;

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response};

use super::dialect::{Content, ScriptedRoute};
use super::engine::Engine;
use super::fault::web_page_everywhere;
use super::response::{JSON, authorized, failed_call, page, ready, response, unauthorized};
use super::stream::ReplyBody;
use super::triton::{self, Readiness};
use super::{grpc, metrics};

/// The control routes, with the methods that each takes.
const ROUTES: [(&str, &[Method]); 6] = [
    ("/health", &[Method::GET]),
    ("/metrics", &[Method::GET]),
    ("/v1/models", &[Method::GET]),
    ("/version", &[Method::GET]),
    // vLLM's.
    ("/reset_prefix_cache", &[Method::POST]),
    // SGLang's, which takes both.
    ("/flush_cache", &[Method::GET, Method::POST]),
];

const GENERATING: [&str; 5] = [
    "/v1/completions",
    "/v1/chat/completions",
    "/v1/audio/transcriptions",
    "/generate",
    "/v1/predictions",
];

/// Answers a request that does not ask for text.
pub(super) fn inform<B>(engine: &Engine, request: &Request<B>) -> Response<ReplyBody> {
    let path = request.uri().path();
    let (handler, reply) = reply(engine, request, path);
    let method = match *request.method() {
        Method::GET => "GET",
        Method::POST => "POST",
        _ => "other",
    };
    let status = reply.status().as_u16();
    engine.counters.count_http(handler, method, status);
    reply
}

fn reply<B>(
    engine: &Engine,
    request: &Request<B>,
    path: &str,
) -> (Cow<'static, str>, Response<ReplyBody>) {
    let script = &engine.script;
    let of_script: Vec<_> = script.routes.iter().filter(|route| route.path == path).collect();
    let own = ROUTES.into_iter().find(|(own, _)| *own == path);
    let generating = GENERATING.into_iter().find(|own| *own == path);
    let handler: Cow<'static, str> = match (own, generating) {
        _ if !of_script.is_empty() => Cow::Owned(path.to_owned()),
        (Some((own, _)), _) | (None, Some(own)) => own.into(),
        (None, None) => "none".into(),
    };
    let is_asked = |route: &&&ScriptedRoute| route.method == *request.method();
    let reply = if let Some(status) = web_page_everywhere(&script.faults) {
        page(status)
    } else if let Some(route) = of_script.iter().find(is_asked) {
        match &route.content {
            _ if route.asks_for_key && !authorized(engine, request.headers()) => unauthorized(),
            Content::Fixed(fixed) => {
                let body = ReplyBody::Ready(Some(fixed.body.clone()));
                response(fixed.status, fixed.content_type.clone(), body)
            }
            Content::Answers(_) => not_found(),
        }
    } else {
        match own {
            Some((own, methods)) if methods.contains(request.method()) => {
                own_reply(engine, request, own)
            }
            None if of_script.is_empty() && generating.is_none() => not_found(),
            _ => ready(405, JSON, r#"{"detail":"Method Not Allowed"}"#),
        }
    };
    (handler, reply)
}

fn not_found() -> Response<ReplyBody> {
    ready(404, JSON, r#"{"detail":"Not Found"}"#)
}

fn own_reply<B>(engine: &Engine, request: &Request<B>, path: &str) -> Response<ReplyBody> {
    let empty = || {
        let mut reply = ready(200, JSON, "");
        reply.headers_mut().remove(CONTENT_TYPE);
        reply
    };
    match path {
        "/health" => empty(),
        "/metrics" => ready(200, "text/plain; version=1.0.0; charset=utf-8", metrics::page(engine)),
        "/version" => {
            ready(200, JSON, concat!(r#"{"version":""#, env!("CARGO_PKG_VERSION"), r#""}"#))
        }
        "/reset_prefix_cache" => {
            engine.prefixes.flush();
            empty()
        }
        "/flush_cache" => flush(engine),
        _ if !authorized(engine, request.headers()) => unauthorized(),
        _ => ready(200, JSON, models(engine)),
    }
}

/// SGLang only flushes its cache while no request is being processed.
fn flush(engine: &Engine) -> Response<ReplyBody> {
    let counters = &engine.counters;
    let idle = counters.running.load(Relaxed) + counters.waiting.load(Relaxed) == 0;
    if idle {
        engine.prefixes.flush();
    }
    let words = "Cache flushed.\nPlease check backend logs for more details. \
                 (When there are running or waiting requests, the operation will not be performed.)\n";
    ready(if idle { 200 } else { 400 }, "text/html; charset=utf-8", words)
}

fn models(engine: &Engine) -> String {
    let script = &engine.script;
    let (created, room) = (engine.created, script.context_limit);
    let one = |model: &str| {
        serde_json::json!({
            "id": model, "object": "model", "created": created, "owned_by": "runner-mock",
            "root": model, "parent": null, "max_model_len": room,
        })
    };
    let data: Vec<_> = script.listed_models().into_iter().map(one).collect();
    serde_json::json!({ "object": "list", "data": data }).to_string()
}

/// Answers a call of Triton's service that does not ask for text.
pub(super) fn inform_call(path: &str) -> Response<ReplyBody> {
    match path.strip_prefix(triton::SERVICE) {
        Some("ServerLive" | "ServerReady" | "ModelReady") => {
            let mut message = Vec::new();
            grpc::put(&Readiness { ready: true }, &mut message);
            let body = ReplyBody::Called(Some(message.into()), Some(grpc::status(grpc::OK, "")));
            response(200, Some(HeaderValue::from_static(grpc::CONTENT_TYPE)), body)
        }
        // The transaction policy of vLLM's models, and Triton's words for it.
        Some("ModelInfer") => failed_call(
            grpc::UNIMPLEMENTED,
            "ModelInfer RPC doesn't support models with decoupled transaction policy",
        ),
        _ => failed_call(grpc::UNIMPLEMENTED, ""),
    }
}
