//! Text Generation Inference (TGI): its native `/generate_stream` and `/generate`, which report
//! every token, and its chat route.
#![deny(unsafe_code)]

mod chat;
mod native;

use runner_plugin::dialect::{explain, frames, openai, prometheus};
use runner_plugin::{Backend, Control, Error, Frame, Head, Meaning, Reading};
use runner_plugin::{Refusal, Request, Sample, ServedModel, ServerMetric, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use.
    route: Route,
}

/// A route of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `/generate_stream`, or `/generate` without streaming: the text unchanged; an event for every
    /// token.
    #[default]
    Generate,
    /// `/v1/chat/completions`: conversations; text becomes a single user message.
    Chat,
}

/// State of decoding a reply: only the part for the route in use is filled.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    native: native::Reply,
    openai: openai::Reply,
}

/// The names of server metrics (`docs/source/reference/metrics.md`); tokens are sums.
const METRICS: [(&str, ServerMetric); 5] = [
    ("tgi_request_success", ServerMetric::FinishedRequests),
    ("tgi_batch_current_size", ServerMetric::RunningRequests),
    ("tgi_queue_size", ServerMetric::WaitingRequests),
    ("tgi_request_input_length_sum", ServerMetric::InputTokens),
    ("tgi_request_generated_tokens_sum", ServerMetric::OutputTokens),
];

pub struct Tgi(Config);

impl Backend for Tgi {
    type Config = Config;
    type State = State;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Tgi(config))
    }

    fn default_url(&self) -> String {
        // The launcher's port is 3000, its container's 80, and its documentation's 8080.
        "http://127.0.0.1:8080".to_owned()
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::Health => Some(Request::get("/health")),
            // Unlike /v1/models, it gives the longest prompt and answer.
            Control::ListModels => Some(Request::get("/info")),
            Control::FlushCache => None,
            Control::Metrics => Some(Request::get("/metrics")),
        }
    }

    fn read_models(&self, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
        #[derive(Deserialize)]
        struct Info {
            model_id: String,
            max_total_tokens: Option<u32>,
        }
        let info: Info = frames::json(body, "an object with `model_id`")?;
        Ok(vec![ServedModel {
            root: Some(info.model_id.clone()),
            name: info.model_id,
            context_tokens: info.max_total_tokens,
        }])
    }

    fn read_metrics(&self, body: &[u8]) -> Result<Vec<Reading>, Error> {
        Ok(prometheus::readings(body, &METRICS))
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        match self.0.route {
            Route::Generate => native::encode(sample, settings),
            Route::Chat => chat::encode(sample, settings),
        }
    }

    fn begin(&self, head: &Head) -> Result<State, Error> {
        Ok(State { native: native::begin(head), ..State::default() })
    }

    fn decode(
        &self,
        state: &mut State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        match self.0.route {
            Route::Generate => native::decode(&mut state.native, frame, events),
            Route::Chat => chat::decode(&mut state.openai, frame, events),
        }
    }

    fn explain(&self, status: u16, body: &[u8]) -> Refusal {
        native::refined(explain::refusal(status, body), body)
    }
}

runner_plugin::export_backend!(Tgi);
