//! Several engines at one address, each below a base path of its own, beside pages about them.
//!
//! Maps a path to its engine, and keeps an engine's log. The other pages belong to the code that
//! mounts the engines.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, Uri};

use super::engine::Engine;
use super::response::{JSON, ready};
use super::script::{Script, ScriptError};
use super::stream::ReplyBody;
use super::truth::lock;

/// A page that is not the engine's own.
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
    /// Engines that play these scripts and keep every byte. Make them inside the runtime that
    /// serves them. Fails if a script cannot be played.
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

    /// The engine of that name, as it is now.
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
