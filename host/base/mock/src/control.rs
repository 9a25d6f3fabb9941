//! Routes of a mock engine beside answers: health, models, counters, and clearing the cache.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, Uri};

use super::dialect::{Content, ScriptedRoute};
use super::engine::Engine;
use super::fault::web_page_everywhere;
use super::response::{JSON, authorized, failed_call, page, ready, response, unauthorized};
use super::script::{Script, ScriptError};
use super::stream::ReplyBody;
use super::triton::{self, Readiness};
use super::truth::lock;
use super::{grpc, metrics};

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub content_type: &'static str,
    pub text: String,
}

/// Returns a page of a mounted engine by the engine's name (none for the root) and the page's name
/// with its query, such as `expected?warm-up=1`.
pub type Pages = Box<dyn Fn(Option<(&str, &Engine)>, &str) -> Option<Page> + Send + Sync>;

/// Engines below base paths: `/NAME/v1/chat/completions` is answered by the engine `NAME`,
/// `/NAME/truth` has its log as JSON lines, and `POST /NAME/reset` begins it anew. A single engine
/// also answers without its base path.
pub struct Mounts {
    engines: BTreeMap<String, Mutex<Arc<Engine>>>,
    pages: Pages,
}

impl std::fmt::Debug for Mounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.engines.keys()).finish()
    }
}

impl Mounts {
    /// Engines that play these scripts and keep every byte. Make them inside their runtime.
    pub fn new(
        scripts: impl IntoIterator<Item = (String, Script)>,
        pages: Pages,
    ) -> Result<Arc<Self>, ScriptError> {
        let engines = scripts.into_iter().map(|(name, script)| {
            let engine = Engine::with_bytes(script)?;
            Ok((name, Mutex::new(engine)))
        });
        let engines = engines.collect::<Result<_, ScriptError>>()?;
        Ok(Arc::new(Mounts { engines, pages }))
    }

    pub fn engine(&self, name: &str) -> Option<Arc<Engine>> {
        Some(Arc::clone(&lock(self.engines.get(name)?)))
    }

    /// The log of the engine of that name, as `/NAME/truth` gives it.
    pub fn log(&self, name: &str) -> Option<String> {
        self.engine(name).map(|engine| log(&engine))
    }

    /// The engine that a request is for, with its base path taken off the request; or the page
    /// that answers it.
    pub(super) fn find<B>(
        &self,
        request: &mut Request<B>,
    ) -> Result<Arc<Engine>, Box<Response<ReplyBody>>> {
        let path = request.uri().path().to_owned();
        let below = path.trim_start_matches('/');
        let (name, rest) = below.split_once('/').unwrap_or((below, ""));
        let Some(place) = self.engines.get(name) else {
            if let Some(page) = (self.pages)(None, below) {
                return Err(Box::new(ready(200, page.content_type, page.text)));
            }
            return match self.engines.values().next() {
                Some(only) if self.engines.len() == 1 => Ok(Arc::clone(&lock(only))),
                _ => Err(Box::new(self.unknown(name))),
            };
        };
        let engine = Arc::clone(&lock(place));
        if request.method() == Method::POST && rest == "reset" {
            let anew = Engine::with_bytes(engine.script().clone());
            if let Ok(anew) = anew {
                *lock(place) = anew;
            }
            return Err(Box::new(ready(200, JSON, "{}")));
        }
        if request.method() == Method::GET {
            if rest == "truth" {
                let text = log(&engine);
                return Err(Box::new(ready(200, "application/jsonl", text)));
            }
            let query = request.uri().query();
            let page = query.map_or(rest.to_owned(), |query| format!("{rest}?{query}"));
            if let Some(page) = (self.pages)(Some((name, &engine)), &page) {
                return Err(Box::new(ready(200, page.content_type, page.text)));
            }
        }
        let query = request.uri().query();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        if let Ok(path) = PathAndQuery::from_str(&format!("/{rest}{query}")) {
            let mut parts = request.uri().clone().into_parts();
            parts.path_and_query = Some(path);
            if let Ok(uri) = Uri::from_parts(parts) {
                *request.uri_mut() = uri;
            }
        }
        Ok(engine)
    }

    fn unknown(&self, name: &str) -> Response<ReplyBody> {
        let names: Vec<&str> = self.engines.keys().map(String::as_str).collect();
        let message = format!("no `{name}` here; there are {}", names.join(", "));
        let body = serde_json::json!({ "error": { "message": message } });
        ready(404, JSON, body.to_string())
    }
}

/// An engine's log, a line of JSON for each request that has ended.
pub fn log(engine: &Engine) -> String {
    let mut text = String::new();
    for truth in engine.truths() {
        if let Ok(line) = serde_json::to_string(&truth) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}
