//! Replicate's predictions: one request creates a prediction, and others stream its output or read
//! its state.
//!
//! Responsible for reading such requests, and for the predictions that are kept. The answer of a
//! prediction is made as any other: its time counts from the request that created it. `wire` has
//! the bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use hyper::header::HOST;
use hyper::{Method, Request};
use serde::Deserialize;
use tokio::time::Instant;

use super::ask::body::{Prompt, prompt};
use super::ask::{Ask, Refusal, Route};
use super::engine::Engine;
use super::pace::Pace;
use super::stream::Fate;
use super::truth::lock;

/// The most predictions that are kept; beyond, the oldest is forgotten.
const KEPT: usize = 1 << 16;

/// A request of the predictions API.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PredictionRequest {
    /// Creates a prediction, at a server with this origin.
    Create(String),
    /// The state of a prediction.
    Look(Arc<Job>),
    /// Its output as it comes.
    Stream(Arc<Job>),
    /// A prediction that does not exist.
    Unknown,
}

#[derive(Debug, PartialEq)]
pub(super) struct Job {
    pub id: String,
    /// The origin of its URLs.
    pub origin: String,
    /// The number of the request that created it.
    pub number: u64,
    /// The time when that was complete.
    pub received: Instant,
    /// The parameters of the prediction.
    pub ask: Ask,
}

/// The predictions of an engine.
#[derive(Debug, Default)]
pub(super) struct Predictions {
    known: HashMap<String, Arc<Job>>,
    /// Their ids, the oldest first.
    ids: VecDeque<String>,
}

#[derive(Deserialize)]
struct Body {
    input: Input,
    #[serde(default)]
    stream: bool,
}

#[derive(Deserialize)]
struct Input {
    prompt: Option<Prompt>,
    max_tokens: Option<u32>,
    min_tokens: Option<u32>,
}

/// The request of the predictions API; absent for any other request.
pub(super) fn request<B>(
    engine: &Engine,
    request: &Request<B>,
    fate: &Fate,
) -> Option<PredictionRequest> {
    let path: Vec<&str> = request.uri().path().split('/').skip(1).collect();
    let job = |id: &str| lock(&engine.predictions).known.get(id).map(Arc::clone);
    match (request.method(), &*path) {
        (&Method::POST, ["v1", "predictions"] | ["v1", "models", _, _, "predictions"]) => {
            let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
            let authority = request.uri().authority().map(|authority| authority.as_str());
            let host = authority.or(named).unwrap_or("localhost");
            let scheme = if fate.secure.load(Relaxed) { "https" } else { "http" };
            Some(PredictionRequest::Create(format!("{scheme}://{host}")))
        }
        (&Method::GET, ["v1", "predictions", id]) => {
            Some(job(id).map_or(PredictionRequest::Unknown, PredictionRequest::Look))
        }
        (&Method::GET, ["v1", "streams", id]) => {
            Some(job(id).map_or(PredictionRequest::Unknown, PredictionRequest::Stream))
        }
        _ => None,
    }
}

impl PredictionRequest {
    /// The prediction, if it exists already.
    pub fn job(&self) -> Option<&Arc<Job>> {
        match self {
            PredictionRequest::Look(job) | PredictionRequest::Stream(job) => Some(job),
            PredictionRequest::Create(_) | PredictionRequest::Unknown => None,
        }
    }

    /// The path as the truth has it.
    pub fn path(&self) -> String {
        match self {
            PredictionRequest::Create(_) => "/v1/predictions".to_owned(),
            PredictionRequest::Look(job) => format!("/v1/predictions/{}", job.id),
            PredictionRequest::Stream(job) => format!("/v1/streams/{}", job.id),
            PredictionRequest::Unknown => "/v1/predictions/{id}".to_owned(),
        }
    }

    /// Reads the parameters: from the body, or from the request that created the prediction.
    pub fn read(&self, body: &[u8]) -> Result<Ask, Refusal> {
        if let Some(job) = self.job() {
            return Ok(Ask {
                route: Route::Prediction(self.clone()),
                stream: matches!(self, PredictionRequest::Stream(_)),
                ..job.ask.clone()
            });
        }
        if *self == PredictionRequest::Unknown {
            return Err(Refusal {
                status: 404,
                kind: "NotFoundError",
                message: "The requested resource could not be found.".to_owned(),
                param: None,
            });
        }
        let body: Body = serde_json::from_slice(body).map_err(|error| Refusal {
            status: 422,
            ..Refusal::bad(format!("- {error}"), Some("input"))
        })?;
        Ok(Ask {
            stream: body.stream,
            max_tokens: body.input.max_tokens,
            min_tokens: body.input.min_tokens.unwrap_or(0),
            ..Ask::new(Route::Prediction(self.clone()), prompt(body.input.prompt, "prompt")?)
        })
    }
}

impl Predictions {
    pub fn keep(&mut self, job: Arc<Job>) {
        self.ids.push_back(job.id.clone());
        self.known.insert(job.id.clone(), job);
        while self.ids.len() > KEPT {
            if let Some(oldest) = self.ids.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }
}

impl Job {
    /// Returns the prediction's status: `starting` before its first token, `processing` before its
    /// last, which is token number `last`; absent after.
    pub fn status(&self, engine: &Engine, last: u32) -> Option<&'static str> {
        let pace = Pace::new(&engine.script, self.number);
        let now = Instant::now();
        let first = engine.unpaused(self.received + pace.ttft);
        let all = engine.unpaused(self.received + pace.ttft + pace.itl * last);
        match () {
            () if now < first => Some("starting"),
            () if now < all => Some("processing"),
            () => None,
        }
    }
}
