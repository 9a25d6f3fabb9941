//! Replicate's predictions: one request creates a prediction, and others stream its output or read
//! its state.
//!
//! Responsible for reading such requests, and for the predictions that are kept. The answer of a
//! prediction is made as any other: its time counts from the request that created it. `wire` has
//! the bytes.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use hyper::header::HOST;
use hyper::{Method, Request};
use serde::Deserialize;

use super::ask::types::{Ask, Job, PredictionRequest, Refusal, Route};
use super::ask::{Prompt, prompt};
use super::truth::lock;

/// The most predictions that are kept; beyond, the oldest is forgotten.
const KEPT: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Predictions {
    known: HashMap<String, Arc<Job>>,
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

/// The request of the predictions API; absent for any other request. `scheme` is the connection's.
pub(super) fn request<B>(
    predictions: &Mutex<Predictions>,
    request: &Request<B>,
    scheme: &str,
) -> Option<PredictionRequest> {
    let path: Vec<&str> = request.uri().path().split('/').skip(1).collect();
    let job = |id: &str| lock(predictions).known.get(id).map(Arc::clone);
    match (request.method(), &*path) {
        (&Method::POST, ["v1", "predictions"] | ["v1", "models", _, _, "predictions"]) => {
            let named = request.headers().get(HOST).and_then(|host| host.to_str().ok());
            let authority = request.uri().authority().map(|authority| authority.as_str());
            let host = authority.or(named).unwrap_or("localhost");
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

/// Reads the parameters: from the body, or from the request that created the prediction.
pub(super) fn read(request: &PredictionRequest, body: &[u8]) -> Result<Ask, Refusal> {
    let route = Route::Prediction(request.clone());
    if let Some(job) = request.job() {
        let stream = matches!(request, PredictionRequest::Stream(_));
        return Ok(Ask { route, stream, ..job.ask.clone() });
    }
    if *request == PredictionRequest::Unknown {
        let message = "The requested resource could not be found.";
        return Err(Refusal::new(404, "NotFoundError", message, None));
    }
    let body: Body = serde_json::from_slice(body).map_err(|error| Refusal {
        status: 422,
        ..Refusal::bad(format!("- {error}"), Some("input"))
    })?;
    Ok(Ask {
        stream: body.stream,
        max_tokens: body.input.max_tokens,
        min_tokens: body.input.min_tokens.unwrap_or(0),
        ..Ask::new(route, prompt(body.input.prompt, "prompt")?)
    })
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
