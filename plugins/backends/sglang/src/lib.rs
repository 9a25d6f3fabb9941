//! SGLang: its native `/generate`, whose replies count tokens in every chunk, and its OpenAI routes.
#![deny(unsafe_code)]

use runner_plugin::dialect::{generate, openai, prometheus};
use runner_plugin::{Backend, Body, Control, Error, Frame, Meaning, Prompt, Reading, Request};
use runner_plugin::{Sample, ServerMetric, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use.
    route: Route,
    /// Whether to also send the output length as the minimum (`min_new_tokens`, on the OpenAI routes
    /// `min_tokens`) when the end-of-sequence token is ignored.
    min_tokens: bool,
}

/// A route of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `/generate`: text or token ids, unchanged; token counts in every chunk.
    #[default]
    Generate,
    /// `/v1/completions`: text or token ids, unchanged.
    Completions,
    /// `/v1/chat/completions`: conversations; text becomes a single user message.
    Chat,
}

/// What decoding remembers of a reply: only the part for the route in use is filled.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    generate: generate::Reply,
    openai: openai::Reply,
}

/// SGLang's names of server metrics (`sglang/srt/metrics/collector.py`).
const METRICS: [(&str, ServerMetric); 7] = [
    ("sglang:num_requests_total", ServerMetric::FinishedRequests),
    ("sglang:num_running_reqs", ServerMetric::RunningRequests),
    ("sglang:num_queue_reqs", ServerMetric::WaitingRequests),
    ("sglang:prompt_tokens_total", ServerMetric::InputTokens),
    ("sglang:generation_tokens_total", ServerMetric::OutputTokens),
    ("sglang:cached_tokens_total", ServerMetric::PrefixCacheHits),
    ("sglang:token_usage", ServerMetric::KvCacheUsage),
];

/// The backend.
pub struct Sglang(Config);

#[derive(Serialize)]
struct SamplingParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling_seed: Option<u64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_new_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_new_tokens: Option<u32>,
    ignore_eos: bool,
}

impl Sglang {
    /// The minimum number of tokens to request.
    fn minimum(&self, sample: &Sample, settings: &Settings) -> Option<u32> {
        settings
            .output_tokens_for(sample)
            .filter(|_| settings.ignore_eos && self.0.min_tokens)
            .or(settings.min_output_tokens)
    }

    fn encode_native(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let mut body = Body::new();
        match &sample.prompt {
            Prompt::Text(text) => body.set("text", text),
            Prompt::Tokens(tokens) => body.set("input_ids", tokens),
            Prompt::Messages(_) => {
                return Err(Error::InvalidConfig(
                    "key `route`: the dataset gives conversations, which /generate does not take; \
                     set route = \"chat\""
                        .to_owned(),
                ));
            }
        };
        let sampling = &settings.sampling;
        let params = SamplingParams {
            temperature: sampling.temperature,
            top_p: sampling.top_p,
            top_k: sampling.top_k,
            min_p: sampling.min_p,
            frequency_penalty: sampling.frequency_penalty,
            presence_penalty: sampling.presence_penalty,
            repetition_penalty: sampling.repetition_penalty,
            sampling_seed: sampling.seed,
            stop: &sampling.stop,
            max_new_tokens: settings.output_tokens_for(sample),
            min_new_tokens: self.minimum(sample, settings),
            ignore_eos: settings.ignore_eos,
        };
        body.set("sampling_params", params);
        body.set_some("lora_path", sample.adapter.as_deref());
        body.set("stream", settings.streaming);
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json("/generate", &body))
    }

    fn encode_openai(
        &self,
        route: openai::Route,
        sample: &Sample,
        settings: &Settings,
    ) -> Result<Request, Error> {
        let mut body = openai::standard_body(route, route.limit(), sample, settings)?;
        body.set("ignore_eos", settings.ignore_eos);
        if let Some(minimum) = self.minimum(sample, settings) {
            body.set("min_tokens", minimum);
        }
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json(format!("/v1{}", route.path()), &body))
    }
}

impl Backend for Sglang {
    type Config = Config;
    type State = State;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Sglang(config))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:30000".to_owned()
    }

    fn control(&self, what: Control) -> Option<Request> {
        Some(match what {
            Control::Health => Request::get("/health"),
            Control::ListModels => openai::list_models("/v1"),
            Control::FlushCache => Request::post("/flush_cache"),
            // Served only if the engine was started with --enable-metrics.
            Control::Metrics => Request::get("/metrics"),
        })
    }

    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        Ok(prometheus::readings(body, &METRICS))
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        match self.0.route {
            Route::Generate => self.encode_native(sample, settings),
            Route::Completions => self.encode_openai(openai::Route::Completions, sample, settings),
            Route::Chat => self.encode_openai(openai::Route::Chat, sample, settings),
        }
    }

    fn decode(
        &self,
        state: &mut State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        match self.0.route {
            Route::Generate => {
                generate::decode(&mut state.generate, generate::Text::Unknown, frame, events)
            }
            Route::Completions | Route::Chat => openai::decode(&mut state.openai, frame, events),
        }
    }
}

runner_plugin::export_backend!(Sglang);
