//! vLLM: the OpenAI routes, with vLLM's own parameters for answers of an exact length.
#![deny(unsafe_code)]

use runner_plugin::dialect::openai::{self, RouteReply, responses, speech, transcriptions};
use runner_plugin::dialect::prometheus;
use runner_plugin::serde_json::json;
use runner_plugin::{
    Backend, Call, Control, Credentials, Earlier, Error, Frame, Framing, Head, Meaning, Reading,
    Request,
};
use runner_plugin::{Sample, ServerMetric, Settings};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use: `completions` (text or token ids, unchanged), `chat` (conversations; text
    /// becomes a single user message), `responses` (as `chat`, with OpenAI's newer API),
    /// `transcriptions` (the text of one sound) or `speech` (the sound of a text, by vLLM-Omni).
    route: openai::Route,
    /// True if the server reports token counts in every chunk of a stream
    /// (`stream_options.continuous_usage_stats`), so that the number of tokens in each chunk is
    /// known. This makes chunks larger and costs the server a little more work.
    continuous_usage: bool,
    /// True if the server reports the ids of the answer's tokens (`return_token_ids`), so that the
    /// number of tokens in each chunk is known, of each choice too. Cheaper for the server than
    /// `continuous-usage`.
    return_token_ids: bool,
    /// True to also send `min_tokens` when the end-of-sequence token is ignored.
    min_tokens: bool,
    /// True if the server keeps the replies of `responses`, so that the next request of a
    /// conversation names the last reply and holds only new messages. The server must be started
    /// with `VLLM_ENABLE_RESPONSES_API_STORE=1`.
    store: bool,
    /// The route that puts texts in order: `rerank` or `score`.
    ranking: openai::Ranking,
    /// The form of transcriptions that are not streamed: `json`, `verbose-json` (with segments) or
    /// `text`.
    response_format: transcriptions::Format,
    /// Settings of `speech`.
    speech: speech::Options,
}

/// vLLM's names of server metrics (`vllm/v1/metrics/loggers.py`).
const METRICS: [(&str, ServerMetric); 9] = [
    ("vllm:request_success_total", ServerMetric::FinishedRequests),
    ("vllm:num_requests_running", ServerMetric::RunningRequests),
    ("vllm:num_requests_waiting", ServerMetric::WaitingRequests),
    ("vllm:prompt_tokens_total", ServerMetric::InputTokens),
    ("vllm:generation_tokens_total", ServerMetric::OutputTokens),
    ("vllm:prefix_cache_queries_total", ServerMetric::PrefixCacheQueries),
    ("vllm:prefix_cache_hits_total", ServerMetric::PrefixCacheHits),
    ("vllm:kv_cache_usage_perc", ServerMetric::KvCacheUsage),
    ("vllm:num_preemptions_total", ServerMetric::Preemptions),
];

pub struct Vllm(Config);

/// Parameters of `/v1/responses` beyond OpenAI's (`vllm/entrypoints/openai/responses/protocol.py`).
const FURTHER: [&str; 4] = ["top_k", "repetition_penalty", "seed", "stop"];

impl Vllm {
    fn request(
        &self,
        sample: &Sample,
        settings: &Settings,
        earlier: Option<&Earlier>,
    ) -> Result<Request, Error> {
        let pooling = openai::requested("/v1", sample, settings, self.0.ranking)?;
        if let Some(request) = pooling {
            return Ok(request);
        }
        let route = self.0.route;
        if route == openai::Route::Transcriptions {
            // `vllm/entrypoints/speech_to_text/transcription/protocol.py`.
            let fields = transcriptions::Fields {
                format: self.0.response_format,
                limit: Some(route.limit()),
                samples: true,
                usage: Some("stream_include_usage"),
            };
            return transcriptions::request("/v1", sample, settings, &fields);
        }
        if route == openai::Route::Speech {
            // vLLM-Omni's `vllm_omni/entrypoints/openai/protocol/audio.py`.
            return speech::request("/v1", sample, settings, &self.0.speech, true);
        }
        let limit = route.limit();
        let mut body = if route == openai::Route::Responses {
            let fields = responses::Fields { limit, further: &FURTHER, store: self.0.store };
            responses::body(sample, settings, &fields, earlier)?
        } else {
            openai::standard_body(route, limit, sample, settings)?
        };
        if settings.streaming && self.0.continuous_usage {
            let options = json!({"include_usage": true, "continuous_usage_stats": true});
            body.set("stream_options", options);
        }
        if settings.ignore_eos {
            body.set("ignore_eos", true);
            if self.0.min_tokens {
                body.set_some("min_tokens", settings.output_tokens_for(sample));
            }
        }
        if self.0.return_token_ids {
            body.set("return_token_ids", true);
        }
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json(format!("/v1{}", route.path()), &body))
    }
}

impl Backend for Vllm {
    type Config = Config;
    type State = RouteReply;

    fn open(config: Config) -> Result<Self, Error> {
        let responses = config.route == openai::Route::Responses;
        if config.store && !responses {
            return Err(responses::store_needs_route());
        }
        config.response_format.check(config.route)?;
        config.speech.check(config.route)?;
        let lacks = responses
            || matches!(config.route, openai::Route::Transcriptions | openai::Route::Speech);
        let not_there: Vec<_> = [
            ("continuous-usage", config.continuous_usage),
            ("return-token-ids", config.return_token_ids),
            ("min-tokens", config.min_tokens),
        ]
        .into_iter()
        .filter(|(_, set)| *set && lacks)
        .map(|(key, _)| {
            let path = config.route.path();
            format!("key `{key}`: /v1{path} has no such parameter; leave it out")
        })
        .collect();
        if not_there.is_empty() {
            Ok(Vllm(config))
        } else {
            Err(Error::InvalidConfig(not_there.join("; ")))
        }
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn credentials(&self) -> Credentials {
        // The server reads the key that it asks for from the same variable (`vllm/envs.py`).
        Credentials::bearer("VLLM_API_KEY")
    }

    fn control(&self, control: Control) -> Option<Request> {
        Some(match control {
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

    fn start(
        &self,
        sample: &Sample,
        settings: &Settings,
        earlier: Option<&Earlier>,
    ) -> Result<Call, Error> {
        self.request(sample, settings, earlier).map(Call::Request)
    }

    fn framing(&self, streaming: bool) -> Framing {
        match self.0.route {
            openai::Route::Speech => self.0.speech.framing(streaming),
            _ => openai::framing(streaming),
        }
    }

    fn begin(&self, head: &Head) -> Result<RouteReply, Error> {
        Ok(RouteReply::begin(self.0.route, head.streaming))
    }

    fn decode(
        &self,
        state: &mut RouteReply,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        let config = &self.0;
        state.decode(config.store, config.response_format, &config.speech, frame, events)
    }
}

runner_plugin::export_backend!(Vllm);
