//! vLLM: the OpenAI routes, with vLLM's own parameters for answers of an exact length.
#![deny(unsafe_code)]

use runner_plugin::dialect::{openai, prometheus};
use runner_plugin::{
    Backend, Control, Credentials, Error, Frame, Meaning, Reading, Request, Sample,
};
use runner_plugin::{ServerMetric, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use: `completions` (text or token ids, unchanged) or `chat` (conversations; text
    /// becomes a single user message).
    route: openai::Route,
    /// Whether the server reports token counts in every chunk of a stream
    /// (`stream_options.continuous_usage_stats`), so that the number of tokens in each chunk is known. This
    /// makes chunks larger and costs the server a little more work.
    continuous_usage: bool,
    /// Whether to also send `min_tokens` when the end-of-sequence token is ignored.
    min_tokens: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            route: openai::Route::Completions,
            continuous_usage: false,
            min_tokens: false,
        }
    }
}

/// vLLM's names of server metrics (`vllm/v1/metrics/loggers.py`).
const METRICS: [(&str, ServerMetric); 9] = [
    ("vllm:request_success_total", ServerMetric::FinishedRequests),
    ("vllm:num_requests_running", ServerMetric::RunningRequests),
    ("vllm:num_requests_waiting", ServerMetric::WaitingRequests),
    ("vllm:prompt_tokens_total", ServerMetric::InputTokens),
    ("vllm:generation_tokens_total", ServerMetric::OutputTokens),
    (
        "vllm:prefix_cache_queries_total",
        ServerMetric::PrefixCacheQueries,
    ),
    (
        "vllm:prefix_cache_hits_total",
        ServerMetric::PrefixCacheHits,
    ),
    ("vllm:kv_cache_usage_perc", ServerMetric::KvCacheUsage),
    ("vllm:num_preemptions_total", ServerMetric::Preemptions),
];

/// The backend.
pub struct Vllm(Config);

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
    continuous_usage_stats: bool,
}

impl Backend for Vllm {
    type Config = Config;
    type State = openai::Reply;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Vllm(config))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn credentials(&self) -> Credentials {
        // The server reads the key that it asks for from the same variable (`vllm/envs.py`).
        Credentials::bearer("VLLM_API_KEY")
    }

    fn control(&self, what: Control) -> Option<Request> {
        Some(match what {
            Control::Health => Request::get("/health"),
            Control::ListModels => openai::list_models("/v1"),
            // Served only if the engine was started with VLLM_SERVER_DEV_MODE=1.
            Control::FlushCache => Request::post("/reset_prefix_cache"),
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
        let route = self.0.route;
        let mut body = openai::standard_body(route, route.limit(), sample, settings)?;
        if settings.streaming && self.0.continuous_usage {
            let options = StreamOptions {
                include_usage: true,
                continuous_usage_stats: true,
            };
            body.set("stream_options", options);
        }
        if settings.ignore_eos {
            body.set("ignore_eos", true);
            if self.0.min_tokens {
                body.set_some("min_tokens", settings.output_tokens_for(sample));
            }
        }
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json(format!("/v1{}", route.path()), &body))
    }

    fn decode(
        &self,
        state: &mut openai::Reply,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        openai::decode(state, frame, events)
    }
}

runner_plugin::export_backend!(Vllm);
