//! llama.cpp's server: its native `/completion`, which counts tokens in every event, and its OpenAI
//! routes for conversations, vectors and orders.
#![deny(unsafe_code)]

mod chat;
mod completion;

use runner_plugin::dialect::{frames, openai, prometheus};
use runner_plugin::{Backend, Control, Credentials, Error, Frame, Head, Meaning, Reading};
use runner_plugin::{Request, Sample, ServedModel, ServerMetric, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's configuration.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use.
    route: Route,
    /// True if the server may reuse the tokens that a slot still holds of an earlier prompt
    /// (`cache_prompt`). The server's own default is to reuse it. Without it, every prompt is
    /// processed as a whole, so requests do not depend on the order of slots.
    cache_prompt: bool,
}

/// A route of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `/completion`: text or token ids, unchanged; token counts in every event.
    #[default]
    Completion,
    /// `/v1/chat/completions`: conversations; text becomes a single user message.
    Chat,
}

/// State of decoding a reply: only the part for the route in use is filled.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    /// The reply is not streamed, so that it may be one of vectors or an order.
    whole: bool,
    completion: completion::Reply,
    openai: openai::Reply,
}

/// llama.cpp's names of server metrics (`tools/server/README.md`), also of older servers.
const METRICS: [(&str, ServerMetric); 6] = [
    ("llamacpp:requests_processing", ServerMetric::RunningRequests),
    ("llamacpp:requests_deferred", ServerMetric::WaitingRequests),
    // Excludes cached tokens, which newer servers count beside it.
    ("llamacpp:prompt_tokens_total", ServerMetric::InputTokens),
    ("llamacpp:prompt_tokens_cached_total", ServerMetric::PrefixCacheHits),
    ("llamacpp:tokens_predicted_total", ServerMetric::OutputTokens),
    ("llamacpp:kv_cache_usage_ratio", ServerMetric::KvCacheUsage),
];

pub struct LlamaCpp(Config);

impl Backend for LlamaCpp {
    type Config = Config;
    type State = State;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(LlamaCpp(config))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8080".to_owned()
    }

    fn credentials(&self) -> Credentials {
        // The server reads the key that it asks for from the same variable (`common/arg.cpp`).
        Credentials::bearer("LLAMA_API_KEY")
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            // It answers 503 while the model is being loaded.
            Control::Health => Some(Request::get("/health")),
            Control::ListModels => Some(openai::list_models("/v1")),
            // Only single slots can be erased, of a server that was started with --slot-save-path.
            Control::FlushCache => None,
            // Served only if the server was started with --metrics.
            Control::Metrics => Some(Request::get("/metrics")),
        }
    }

    /// As the OpenAI API's, with the context of a slot as `meta.n_ctx`. `meta.n_ctx_train` is the
    /// context that the model was trained with; a slot may have another.
    fn read_models(&self, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
        #[derive(Deserialize)]
        struct List {
            data: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            id: String,
            meta: Option<Meta>,
        }
        #[derive(Deserialize)]
        struct Meta {
            n_ctx: Option<u32>,
        }
        let list: List = frames::json(body, "a list of models")?;
        let models = list.data.into_iter();
        let served = models.map(|model| ServedModel {
            context_tokens: model.meta.and_then(|meta| meta.n_ctx),
            ..ServedModel::named(model.id)
        });
        Ok(served.collect())
    }

    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        let mut readings = prometheus::readings(body, &METRICS);
        let figure = |of: ServerMetric| readings.iter().find(|reading| reading.metric == of);
        let cached = figure(ServerMetric::PrefixCacheHits).map_or(0.0, |reading| reading.value);
        for reading in &mut readings {
            if reading.metric == ServerMetric::InputTokens {
                reading.value += cached;
            }
        }
        Ok(readings)
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        if let Some(request) = openai::pooling("/v1", sample, settings)? {
            return Ok(request);
        }
        let cache = self.0.cache_prompt;
        match self.0.route {
            Route::Completion => completion::encode(cache, sample, settings),
            Route::Chat => chat::encode(cache, sample, settings),
        }
    }

    fn begin(&self, head: &Head) -> Result<State, Error> {
        Ok(State {
            whole: !head.streaming,
            completion: completion::begin(head),
            openai: openai::Reply::default(),
        })
    }

    fn decode(
        &self,
        state: &mut State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        if state.whole && openai::pooled(frame.data, events)? {
            return Ok(());
        }
        match self.0.route {
            Route::Completion => state.completion.decode(frame, events),
            Route::Chat => chat::decode(&mut state.openai, frame, events),
        }
    }
}

/// The adapter by its number, its only name on the server, as the value of `lora`.
fn adapter(sample: &Sample) -> Result<Option<[Adapter; 1]>, Error> {
    let Some(name) = &sample.adapter else { return Ok(None) };
    let id = name.parse().map_err(|_| {
        Error::InvalidConfig(format!(
            "key `adapters` (--lora-modules): llama.cpp knows adapters by number, in the order of its --lora flags; \
             expected one such as `0`, found `{name}`"
        ))
    })?;
    Ok(Some([Adapter { id, scale: 1.0 }]))
}

#[derive(Serialize)]
struct Adapter {
    id: u32,
    scale: f32,
}

runner_plugin::export_backend!(LlamaCpp);
