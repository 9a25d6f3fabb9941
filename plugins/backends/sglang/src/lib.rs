//! SGLang: its native `/generate`, whose replies count tokens in every chunk, and its OpenAI
//! routes.
#![deny(unsafe_code)]

use runner_plugin::dialect::{generate, openai, prometheus};
use runner_plugin::{Backend, Body, Control, Error, Frame, Head, Meaning};
use runner_plugin::{Prompt, Reading, Request, Sample, ServerMetric, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use.
    route: Route,
    /// True to also send the output length as the minimum (`min_new_tokens`, on the OpenAI routes
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

/// State of decoding a reply: only the part for the route in use is filled.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    /// The reply is not streamed, so that it may be one of vectors or an order.
    whole: bool,
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

pub struct Sglang(Config);

impl Sglang {
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
            other => return Err(openai::not_taken(other, "/generate", "chat")),
        };
        let sampling = &settings.sampling;
        let mut params = Body::new();
        params
            .set_some("temperature", sampling.temperature)
            .set_some("top_p", sampling.top_p)
            .set_some("top_k", sampling.top_k)
            .set_some("min_p", sampling.min_p)
            .set_some("frequency_penalty", sampling.frequency_penalty)
            .set_some("presence_penalty", sampling.presence_penalty)
            .set_some("repetition_penalty", sampling.repetition_penalty)
            .set_some("sampling_seed", sampling.seed)
            .set_list("stop", &sampling.stop)
            .set_some("max_new_tokens", settings.output_tokens_for(sample))
            .set_some("min_new_tokens", self.minimum(sample, settings))
            .set("ignore_eos", settings.ignore_eos);
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
        body.set_some("min_tokens", self.minimum(sample, settings));
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

    fn control(&self, control: Control) -> Option<Request> {
        Some(match control {
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
        if let Some(request) = openai::pooling("/v1", sample, settings)? {
            return Ok(request);
        }
        match self.0.route {
            Route::Generate => self.encode_native(sample, settings),
            Route::Completions => self.encode_openai(openai::Route::Completions, sample, settings),
            Route::Chat => self.encode_openai(openai::Route::Chat, sample, settings),
        }
    }

    fn begin(&self, head: &Head) -> Result<State, Error> {
        Ok(State { whole: !head.streaming, ..State::default() })
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
            Route::Generate => {
                generate::decode(&mut state.generate, generate::Text::Unknown, frame, events)
            }
            Route::Completions | Route::Chat => openai::decode(&mut state.openai, frame, events),
        }
    }
}

runner_plugin::export_backend!(Sglang);
