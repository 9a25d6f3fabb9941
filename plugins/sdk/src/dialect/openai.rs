//! The OpenAI API as engines implement it: requests for `/v1/completions` and
//! `/v1/chat/completions`. `openai::reply` reads the replies; `openai::responses` has
//! `/v1/responses`, `openai::transcriptions` speech to text, `openai::speech` text to speech, and
//! `openai::pooling` the routes whose replies are vectors and orders.

mod counts;
pub(crate) use counts::Tiers;
mod messages;
mod pattern;
mod pooling;
mod reply;
pub mod responses;
pub mod speech;
pub mod transcriptions;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dialect::frames;
use crate::{
    Body, Error, Frame, Framing, Meaning, Prompt, Request, Sample, Sampling, ServedModel, Settings,
};

pub use messages::{further_fields, no_answer};
pub use pooling::{Ranking, pooled, pooling, requested};
pub use reply::{Reply, decode};
pub(crate) use reply::{end, failure, not_a_chunk, parse};

/// A route of the OpenAI API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `/v1/completions`: the prompt unchanged, as text or as token ids.
    #[default]
    Completions,
    /// `/v1/chat/completions`: a conversation, to which the server applies the model's template.
    Chat,
    /// `/v1/responses`: the same with typed events, reasoning and, with `store`, conversations that
    /// the server keeps.
    Responses,
    /// `/v1/audio/transcriptions`: the text of a sound.
    Transcriptions,
    /// `/v1/audio/speech`: the sound of a text.
    Speech,
}

impl Route {
    /// The route's path below `/v1`.
    pub fn path(self) -> &'static str {
        match self {
            Route::Completions => "/completions",
            Route::Chat => "/chat/completions",
            Route::Responses => "/responses",
            Route::Transcriptions => "/audio/transcriptions",
            Route::Speech => "/audio/speech",
        }
    }

    /// The field that limits the answer's length: `max_tokens`, or its newer names.
    pub fn limit(self) -> &'static str {
        match self {
            Route::Completions => "max_tokens",
            Route::Chat | Route::Transcriptions => "max_completion_tokens",
            Route::Responses => "max_output_tokens",
            Route::Speech => "max_new_tokens",
        }
    }
}

/// Sets `prompt` or `messages`. Where the route needs messages, a text becomes one message.
///
/// # Errors
/// [`Error::InvalidConfig`] if the route does not support such a prompt.
pub fn set_prompt(body: &mut Body, route: Route, prompt: &Prompt) -> Result<(), Error> {
    match (route, prompt) {
        (Route::Completions, Prompt::Text(text)) => body.set("prompt", text),
        (Route::Completions, Prompt::Tokens(tokens)) => body.set("prompt", tokens),
        (Route::Chat, Prompt::Text(text)) => body.set("messages", [messages::plain("user", text)]),
        (Route::Chat, Prompt::Messages(messages)) => {
            body.set("messages", messages::written(messages)?)
        }
        (Route::Chat, Prompt::Tokens(_)) => {
            return Err(Error::config(
                "key `route`: the dataset gives token ids, which /v1/chat/completions does not accept; \
                 set route = \"completions\", or have the dataset give text",
            ));
        }
        (route, other) => {
            let path = format!("/v1{}", route.path());
            return Err(not_taken(other, &path, "chat"));
        }
    };
    Ok(())
}

/// The value of `messages` for a text, which becomes a single user message, or for a conversation;
/// `None` for another prompt.
///
/// # Errors
/// [`Error::InvalidInput`] if a message holds what this API cannot express.
pub fn messages(prompt: &Prompt) -> Result<Option<Value>, Error> {
    let written = match prompt {
        Prompt::Text(text) => serde_json::to_value([messages::plain("user", text)]),
        Prompt::Messages(messages) => serde_json::to_value(messages::written(messages)?),
        _ => return Ok(None),
    };
    let written = written.map_err(|error| Error::Other(error.to_string()))?;
    Ok(Some(written))
}

/// The error for a prompt that a path does not accept; `chat` names the route for conversations.
pub fn not_taken(prompt: &Prompt, path: &str, chat: &str) -> Error {
    let remedy = match prompt {
        Prompt::Messages(_) | Prompt::Continuation(_) => format!("set route = \"{chat}\""),
        _ => "name another dataset, or another backend".to_owned(),
    };
    Error::InvalidConfig(format!(
        "key `route`: the dataset gives {}, which {path} does not accept; {remedy}",
        prompt.kind()
    ))
}

/// The fields that every server with this API supports: model, prompt, sampling, length, and
/// streaming with token counts at the end of the stream.
///
/// # Errors
/// As [`set_prompt`].
pub fn standard_body(
    route: Route,
    limit: &str,
    sample: &Sample,
    settings: &Settings,
) -> Result<Body, Error> {
    let mut body = Body::new();
    body.set("model", settings.model_for(sample));
    set_prompt(&mut body, route, &sample.prompt)?;
    set_sampling(&mut body, &settings.sampling);
    body.set_some(limit, settings.output_tokens_for(sample));
    body.set_some("min_tokens", settings.min_output_tokens);
    body.set("stream", settings.streaming);
    if settings.streaming {
        body.set("stream_options", StreamOptions { include_usage: true });
    }
    Ok(body)
}

/// Sets the sampling settings, under their names in OpenAI's API and the engines that extend it.
pub fn set_sampling(body: &mut Body, sampling: &Sampling) {
    body.set_some("temperature", sampling.temperature)
        .set_some("top_p", sampling.top_p)
        .set_some("top_k", sampling.top_k)
        .set_some("min_p", sampling.min_p)
        .set_some("frequency_penalty", sampling.frequency_penalty)
        .set_some("presence_penalty", sampling.presence_penalty)
        .set_some("repetition_penalty", sampling.repetition_penalty)
        .set_some("seed", sampling.seed);
    body.set_list("stop", &sampling.stop);
}

/// The value of `stream_options`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StreamOptions {
    /// True if a last chunk reports the token counts.
    pub include_usage: bool,
}

/// Server-sent events if the reply is streamed, otherwise one body.
pub fn framing(streaming: bool) -> Framing {
    if streaming { Framing::EventStream } else { Framing::Whole }
}

/// The request for the list of models, below `prefix` (usually `/v1`).
pub fn list_models(prefix: &str) -> Request {
    Request::get(format!("{prefix}/models"))
}

/// The models in the answer to [`list_models`]: vLLM, SGLang and LMDeploy add `root`, and vLLM and
/// SGLang `max_model_len`.
///
/// # Errors
/// [`Error::Protocol`] if the body is not such a list.
pub fn read_models(body: &[u8]) -> Result<Vec<ServedModel>, Error> {
    #[derive(Deserialize)]
    struct List {
        data: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        id: String,
        root: Option<String>,
        max_model_len: Option<u32>,
    }
    let list: List = frames::json(body, "a list of models")?;
    let models = list.data.into_iter();
    let served = models.map(|model| ServedModel {
        name: model.id,
        root: model.root.filter(|root| !root.is_empty()),
        context_tokens: model.max_model_len,
    });
    Ok(served.collect())
}

/// State of decoding a reply, of the route in use. It crosses to the host and back with each call,
/// so it is no larger than it has to be.
#[derive(Debug, Serialize, Deserialize)]
pub enum RouteReply {
    /// Of completions, chat, vectors and orders.
    OpenAi(Reply),
    /// Of the newer API.
    Responses(responses::Reply),
    /// Of speech to text.
    Transcriptions(transcriptions::Reply),
    /// Of text to speech.
    Speech(speech::Reply),
}

impl Default for RouteReply {
    fn default() -> Self {
        Self::OpenAi(Reply::default())
    }
}

impl RouteReply {
    /// The state before the first frame.
    pub fn begin(route: Route, streaming: bool) -> Self {
        match route {
            Route::Responses => Self::Responses(responses::Reply::default()),
            Route::Transcriptions => Self::Transcriptions(transcriptions::Reply::begin(streaming)),
            Route::Speech => Self::Speech(speech::Reply::begin(streaming)),
            Route::Completions | Route::Chat => Self::default(),
        }
    }

    /// Appends the events of a frame. `store` is for responses, `format` for transcriptions.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the frame is not of the route's API.
    pub fn decode(
        &mut self,
        store: bool,
        format: transcriptions::Format,
        options: &speech::Options,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        match self {
            Self::OpenAi(state) => decode(state, frame, events),
            Self::Responses(state) => responses::decode(state, store, frame, events),
            Self::Transcriptions(state) => transcriptions::decode(state, format, frame, events),
            Self::Speech(state) => speech::decode(state, options, frame, events),
        }
    }
}
