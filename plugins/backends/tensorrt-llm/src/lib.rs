//! TensorRT-LLM: `trtllm-serve` with its OpenAI routes, and models behind Triton's generate
//! extension.
#![deny(unsafe_code)]

mod serve;
mod triton;

use runner_plugin::dialect::{explain, openai, prometheus};
use runner_plugin::{Backend, Control, Error, Frame, Head, Meaning, Reading, Reason, Refusal};
use runner_plugin::{Request, Sample, ServedModel, ServerMetric, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's configuration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use.
    route: Route,
    /// True if the server reports token counts in every chunk of a stream
    /// (`stream_options.continuous_usage_stats`), on the OpenAI routes.
    continuous_usage: bool,
    /// True to also send the output length as the minimum (`min_tokens`) when the end-of-sequence
    /// token is ignored, on the OpenAI routes. The route `generate` always does.
    min_tokens: bool,
    /// The model's version in Triton's repository; by default, Triton chooses.
    version: Option<String>,
    /// True if every event of the route `generate` holds all the text so far, as a model
    /// `tensorrt_llm_bls` with `accumulate_tokens` sends it. A model `ensemble` sends only the new
    /// text.
    accumulated: bool,
    /// The input of the route `generate` for the least number of tokens: `min_length` for models of
    /// older releases.
    min_tokens_field: String,
    /// The input of the route `generate` for the seed: `random_seed` for models of older releases.
    seed_field: String,
    /// End-of-sequence token that the route `generate` names (`end_id`) when it is to be ignored:
    /// an id that no token has. The engine's own word for none is -1; SGLang's client sends
    /// 1048576.
    end_id: i32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            route: Route::Completions,
            continuous_usage: false,
            min_tokens: false,
            version: None,
            accumulated: false,
            min_tokens_field: "min_tokens".to_owned(),
            seed_field: "seed".to_owned(),
            end_id: -1,
        }
    }
}

/// A route of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `/v1/completions` of `trtllm-serve`: text or token ids, unchanged.
    Completions,
    /// `/v1/chat/completions` of `trtllm-serve`: conversations; text becomes a single user message.
    Chat,
    /// `/v2/models/MODEL/generate_stream` of Triton, or `/generate` without streaming, for the
    /// models `ensemble` and `tensorrt_llm_bls`: text, unchanged.
    Generate,
}

/// State of decoding a reply: only the part for the route in use is filled.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    /// The reply is not streamed, so that it may be one of vectors.
    whole: bool,
    triton: triton::Reply,
    openai: openai::Reply,
}

/// Names of `trtllm-serve`'s metrics (`tensorrt_llm/metrics/collector.py`).
const METRICS: [(&str, ServerMetric); 4] = [
    ("trtllm_request_success_total", ServerMetric::FinishedRequests),
    ("trtllm_num_requests_running", ServerMetric::RunningRequests),
    ("trtllm_num_requests_waiting", ServerMetric::WaitingRequests),
    ("trtllm_kv_cache_utilization", ServerMetric::KvCacheUsage),
];

pub struct TensorRtLlm(Config);

impl Backend for TensorRtLlm {
    type Config = Config;
    type State = State;

    fn open(config: Config) -> Result<Self, Error> {
        let usual = Config::default();
        let triton = config.route == Route::Generate;
        let keys = [
            ("continuous-usage", triton && config.continuous_usage),
            ("min-tokens", triton && config.min_tokens),
            ("version", !triton && config.version.is_some()),
            ("accumulated", !triton && config.accumulated),
            ("min-tokens-field", !triton && config.min_tokens_field != usual.min_tokens_field),
            ("seed-field", !triton && config.seed_field != usual.seed_field),
            ("end-id", !triton && config.end_id != usual.end_id),
        ];
        let other =
            if triton { "the routes `completions` and `chat`" } else { "the route `generate`" };
        let wrong = keys.iter().filter(|(_, is_wrong)| *is_wrong);
        let wrong: Vec<_> = wrong
            .map(|(key, _)| format!("key `{key}`: it is only for {other}; leave it out"))
            .collect();
        if wrong.is_empty() {
            Ok(TensorRtLlm(config))
        } else {
            Err(Error::InvalidConfig(wrong.join("; ")))
        }
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn control(&self, control: Control) -> Option<Request> {
        match (self.0.route, control) {
            (Route::Generate, Control::Health) => Some(Request::get("/v2/health/ready")),
            (Route::Generate, Control::ListModels) => Some(triton::list_models()),
            // Triton serves its metrics on another port.
            (Route::Generate, Control::Metrics) | (_, Control::FlushCache) => None,
            (_, Control::Health) => Some(Request::get("/health")),
            (_, Control::ListModels) => Some(openai::list_models("/v1")),
            // Served only if the engine was started with `return_perf_metrics`. `/metrics` is
            // another thing: a list of iterations, each reported once.
            (_, Control::Metrics) => Some(Request::get("/prometheus/metrics")),
        }
    }

    fn read_models(&self, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
        match self.0.route {
            Route::Generate => triton::read_models(body),
            Route::Completions | Route::Chat => openai::read_models(body),
        }
    }

    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        Ok(prometheus::readings(body, &METRICS))
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        match self.0.route {
            Route::Generate => triton::encode(&self.0, sample, settings),
            Route::Completions => {
                serve::encode(&self.0, openai::Route::Completions, sample, settings)
            }
            Route::Chat => serve::encode(&self.0, openai::Route::Chat, sample, settings),
        }
    }

    fn begin(&self, head: &Head) -> Result<State, Error> {
        Ok(State {
            whole: !head.streaming,
            triton: triton::begin(head),
            openai: openai::Reply::default(),
        })
    }

    fn decode(
        &self,
        state: &mut State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        let before = events.len();
        match self.0.route {
            Route::Generate => {
                triton::decode(&mut state.triton, self.0.accumulated, frame, events)?;
            }
            _ if state.whole && openai::pooled(frame.data, events)? => {}
            _ => openai::decode(&mut state.openai, frame, events)?,
        }
        for event in &mut events[before..] {
            if let Meaning::Failure(refusal) = event {
                *refusal = refined(refusal.clone());
            }
        }
        Ok(())
    }

    fn explain(&self, status: u16, body: &[u8]) -> Refusal {
        refined(explain::refusal(status, body))
    }
}

/// The refusal with the kind of error that the engine's words tell.
fn refined(refusal: Refusal) -> Refusal {
    let says = |words: &[&str]| words.iter().any(|word| refusal.message.contains(word));
    let reason = if says(&["maximum input length", "should not exceed max_", "max_seq_len"]) {
        Reason::TooLong
    } else if says(&["maximum queue size", "max queue size"]) {
        Reason::Overloaded
    } else {
        refusal.reason
    };
    Refusal { reason, ..refusal }
}

runner_plugin::export_backend!(TensorRtLlm);
