//! LMDeploy: its OpenAI routes with the bodies that its own benchmark sends, and its native
//! `/generate`, which is not SGLang's.
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
    /// True to request token counts at the end of a stream (`stream_options.include_usage`), on the
    /// OpenAI routes. LMDeploy's own benchmark does not.
    include_usage: bool,
    /// True to also send the output length as the minimum (`min_new_tokens`) when the
    /// end-of-sequence token is ignored. Only the chat route supports this.
    min_tokens: bool,
}

/// A route of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `/v1/completions`, as LMDeploy's own benchmark uses it: text or token ids, unchanged.
    #[default]
    Completions,
    /// `/v1/chat/completions`: conversations; text becomes a single user message.
    Chat,
    /// `/generate`: text or token ids, unchanged; token counts in every chunk.
    Generate,
}

/// State of decoding a reply: only the part for the route in use is filled.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    generate: generate::Reply,
    openai: openai::Reply,
}

/// LMDeploy's names of server metrics (`lmdeploy/metrics/loggers.py`).
const METRICS: [(&str, ServerMetric); 7] = [
    // The name in older releases.
    ("lmdeploy:num_requests_finished", ServerMetric::FinishedRequests),
    ("lmdeploy:num_requests_succeeded", ServerMetric::FinishedRequests),
    ("lmdeploy:num_requests_running", ServerMetric::RunningRequests),
    ("lmdeploy:num_requests_waiting", ServerMetric::WaitingRequests),
    ("lmdeploy:prompt_tokens_total", ServerMetric::InputTokens),
    ("lmdeploy:generation_tokens_total", ServerMetric::OutputTokens),
    ("lmdeploy:gpu_cache_usage_perc", ServerMetric::KvCacheUsage),
];

pub struct Lmdeploy(Config);

impl Lmdeploy {
    /// The benchmark's body, key for key.
    fn encode_openai(
        &self,
        route: openai::Route,
        sample: &Sample,
        settings: &Settings,
    ) -> Result<Request, Error> {
        let mut body = Body::new();
        body.set("model", settings.model_for(sample));
        openai::set_prompt(&mut body, route, &sample.prompt)?;
        openai::set_sampling(&mut body, &settings.sampling);
        if route == openai::Route::Completions {
            body.set("best_of", 1);
        }
        body.set_some(route.limit(), settings.output_tokens_for(sample));
        body.set("stream", settings.streaming);
        body.set("ignore_eos", settings.ignore_eos);
        if route == openai::Route::Chat {
            let whole = settings.output_tokens_for(sample);
            let whole = whole.filter(|_| self.0.min_tokens && settings.ignore_eos);
            body.set_some("min_new_tokens", whole.or(settings.min_output_tokens));
        }
        if self.0.include_usage && settings.streaming {
            let options = openai::StreamOptions { include_usage: true };
            body.set("stream_options", options);
        }
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json(format!("/v1{}", route.path()), &body))
    }

    /// Refuses settings that the server would ignore (`lmdeploy/serve/openai/protocol.py`).
    fn refuse(&self, sample: &Sample, settings: &Settings) -> Result<(), Error> {
        let sampling = &settings.sampling;
        let native = self.0.route == Route::Generate;
        let path = match self.0.route {
            Route::Completions => "/v1/completions",
            Route::Chat => return Ok(()),
            Route::Generate => "/generate",
        };
        let set = [
            ("--min-output-tokens", settings.min_output_tokens.is_some()),
            ("--frequency-penalty", native && sampling.frequency_penalty.is_some()),
            ("--presence-penalty", native && sampling.presence_penalty.is_some()),
            ("--sampling-seed", native && sampling.seed.is_some()),
            ("--lora-modules", native && sample.adapter.is_some()),
        ];
        let refused: Vec<_> =
            set.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| *flag).collect();
        if refused.is_empty() {
            return Ok(());
        }
        Err(Error::InvalidConfig(format!(
            "key `route`: {path} has no field for {}; leave the setting out, or set route = \"chat\"",
            refused.join(", ")
        )))
    }

    fn encode_native(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let mut body = Body::new();
        match &sample.prompt {
            Prompt::Text(text) => body.set("prompt", text),
            Prompt::Tokens(tokens) => body.set("input_ids", tokens),
            other => return Err(openai::not_taken(other, "/generate", "chat")),
        };
        body.set_some("max_tokens", settings.output_tokens_for(sample));
        openai::set_sampling(&mut body, &settings.sampling);
        body.set("ignore_eos", settings.ignore_eos);
        body.set("stream", settings.streaming);
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json("/generate", &body))
    }
}

impl Backend for Lmdeploy {
    type Config = Config;
    type State = State;

    fn open(config: Config) -> Result<Self, Error> {
        if config.min_tokens && config.route != Route::Chat {
            return Err(Error::config(
                "key `min-tokens`: only the chat route has a minimum; set route = \"chat\", or leave \
                 this out",
            ));
        }
        if config.include_usage && config.route == Route::Generate {
            return Err(Error::config(
                "key `include-usage`: /generate always counts tokens; leave this out",
            ));
        }
        Ok(Lmdeploy(config))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:23333".to_owned()
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::Health => Some(Request::get("/health")),
            Control::ListModels => Some(openai::list_models("/v1")),
            Control::FlushCache => None,
            // Served only if the engine was started with --enable-metrics.
            Control::Metrics => Some(Request::get("/metrics")),
        }
    }

    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        Ok(prometheus::readings(body, &METRICS))
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        self.refuse(sample, settings)?;
        match self.0.route {
            Route::Completions => self.encode_openai(openai::Route::Completions, sample, settings),
            Route::Chat => self.encode_openai(openai::Route::Chat, sample, settings),
            Route::Generate => self.encode_native(sample, settings),
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
                generate::decode(&mut state.generate, generate::Text::New, frame, events)
            }
            Route::Completions | Route::Chat => openai::decode(&mut state.openai, frame, events),
        }
    }
}

runner_plugin::export_backend!(Lmdeploy);
