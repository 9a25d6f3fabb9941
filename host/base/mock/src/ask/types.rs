//! Requests in any of the dialects: their types, and the refusals of an engine.

use std::borrow::Cow;
use std::sync::Arc;

use tokio::time::Instant;

use super::PromptSummary;
use crate::dialect::Dialect;
use crate::script::{Generate, Script, Transcriptions};
use crate::triton;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    Completions,
    Chat,
    Transcriptions,
    /// OpenAI's `/v1/audio/speech`, with a reply of this form.
    Speech(SpeechForm),
    /// SGLang's or LMDeploy's `/generate`.
    Generate(Generate),
    /// Triton's call `ModelStreamInfer`, with answers of this form.
    Triton(TritonForm),
    Prediction(PredictionRequest),
    Scripted(Arc<Dialect>),
}

impl Route {
    /// The route of this path that is neither of gRPC, of predictions nor of the script.
    pub fn built_in(path: &str, generate: Generate) -> Option<Self> {
        let routes = [
            Route::Completions,
            Route::Chat,
            Route::Transcriptions,
            Route::Speech(SpeechForm::default()),
            Route::Generate(generate),
        ];
        routes.into_iter().find(|route| route.path() == path)
    }

    pub fn path(&self) -> Cow<'static, str> {
        match self {
            Route::Completions => "/v1/completions".into(),
            Route::Chat => "/v1/chat/completions".into(),
            Route::Transcriptions => "/v1/audio/transcriptions".into(),
            Route::Speech(_) => "/v1/audio/speech".into(),
            Route::Generate(_) => "/generate".into(),
            Route::Triton(_) => triton::STREAM.into(),
            Route::Prediction(prediction) => prediction.path().into(),
            Route::Scripted(dialect) => dialect.path.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ask {
    pub route: Route,
    pub stream: bool,
    pub model: Option<String>,
    pub prompt_tokens: u32,
    pub prompt_hash: u64,
    /// Hashes of the prompt's beginnings, for the prefix cache.
    pub prefixes: Vec<u64>,
    /// The answer of an echoing engine.
    pub echo: String,
    pub max_tokens: Option<u32>,
    pub min_tokens: u32,
    pub ignore_eos: bool,
    pub include_usage: bool,
    pub continuous_usage: bool,
    pub sound: Option<Sound>,
}

impl Ask {
    pub fn new(route: Route, prompt: PromptSummary) -> Self {
        Ask {
            route,
            stream: false,
            model: None,
            prompt_tokens: u32::try_from(prompt.tokens).unwrap_or(u32::MAX),
            prompt_hash: prompt.hash.0,
            prefixes: prompt.prefixes,
            echo: prompt.last,
            max_tokens: None,
            min_tokens: 0,
            ignore_eos: false,
            include_usage: false,
            continuous_usage: false,
            sound: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: u16,
    /// vLLM's name for the kind of error.
    pub kind: &'static str,
    pub message: String,
    pub param: Option<String>,
}

impl Refusal {
    pub fn new(
        status: u16,
        kind: &'static str,
        message: impl Into<String>,
        param: Option<&str>,
    ) -> Self {
        Refusal { status, kind, message: message.into(), param: param.map(str::to_owned) }
    }

    pub fn bad(message: impl Into<String>, param: Option<&str>) -> Self {
        Refusal::new(400, "BadRequestError", message, param)
    }

    /// A body, or a field of it, is not of the API.
    pub fn invalid(error: &dyn std::fmt::Display, param: &str) -> Self {
        Refusal::new(400, "Bad Request", format!("1 validation error:\n  {error}"), Some(param))
    }

    /// Too many requests wait. The message is SGLang's.
    pub fn overloaded() -> Self {
        Refusal::new(503, "ServiceUnavailableError", "The request queue is full.", None)
    }

    pub fn unauthorized() -> Self {
        Refusal::new(401, "AuthenticationError", "Unauthorized", None)
    }

    pub fn internal(status: u16) -> Self {
        let message =
            "EngineCore encountered an issue. See stack trace (above) for the root cause.";
        Refusal::new(status, "InternalServerError", message, None)
    }
}

/// The facts about a sound that a reply repeats.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sound {
    pub seconds: f64,
    /// Number of the prompt's tokens that it has.
    pub tokens: u32,
    pub form: ReplyForm,
}

impl Sound {
    /// True if a whole reply is the text alone; vLLM sends JSON all the same.
    pub fn is_text(&self, script: &Script) -> bool {
        self.form == ReplyForm::Text && script.transcriptions == Transcriptions::Openai
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    Json,
    VerboseJson,
    Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpeechForm {
    pub is_wav: bool,
    /// True if a streamed reply is the sound alone, without events.
    pub is_raw: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TritonForm {
    pub id: String,
    /// True if an answer in one piece repeats its prompt.
    pub has_input: bool,
    pub has_finish: bool,
    pub has_input_tokens: bool,
    pub has_output_tokens: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PredictionRequest {
    /// Creates a prediction, at a server with this origin.
    Create(String),
    Look(Arc<Job>),
    /// Its output as it comes.
    Stream(Arc<Job>),
    Unknown,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Job {
    pub id: String,
    pub origin: String,
    /// The number of the request that created it.
    pub number: u64,
    /// The time when that was complete.
    pub received: Instant,
    pub ask: Ask,
}

impl PredictionRequest {
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
}
