//! SGLang: its native `/generate`, whose replies count tokens in every chunk, and its OpenAI routes.
#![deny(unsafe_code)]

use runner_plugin::dialect::{explain, generate, openai};
use runner_plugin::{Backend, Body, Error, Frame, Framing, Meaning, Prompt};
use runner_plugin::{Request, Sample, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the user may set.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Which route to ask.
    route: Route,
    /// Whether to send the output length as the minimum as well (`min_new_tokens`, on the OpenAI routes
    /// `min_tokens`) where the end-of-sequence token is ignored.
    min_tokens: bool,
}

/// A route of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `/generate`: text or token ids as they are; a count of tokens in every chunk.
    #[default]
    Generate,
    /// `/v1/completions`: text or token ids as they are.
    Completions,
    /// `/v1/chat/completions`: conversations; text becomes a single user message.
    Chat,
}

/// What decoding remembers of a reply: only the part for the route in use is ever filled.
#[derive(Default, Serialize, Deserialize)]
pub struct State {
    generate: generate::Reply,
    openai: openai::Reply,
}

/// The backend.
pub struct Sglang(Config);

#[derive(Serialize)]
struct SamplingParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_new_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_new_tokens: Option<u32>,
    ignore_eos: bool,
}

impl Sglang {
    /// The least number of tokens to ask for.
    fn minimum(&self, sample: &Sample, settings: &Settings) -> Option<u32> {
        sample
            .output_tokens
            .filter(|_| settings.ignore_eos && self.0.min_tokens)
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
        let params = SamplingParams {
            temperature: settings.temperature,
            max_new_tokens: sample.output_tokens,
            min_new_tokens: self.minimum(sample, settings),
            ignore_eos: settings.ignore_eos,
        };
        body.set("sampling_params", params);
        body.set("stream", settings.streaming);
        body.merge(settings.extra_body.as_deref())?;
        Ok(openai::post("/generate", &body))
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
        body.merge(settings.extra_body.as_deref())?;
        Ok(openai::post(format!("/v1{}", route.path()), &body))
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

    fn list_models(&self) -> Option<Request> {
        Some(openai::list_models("/v1"))
    }

    fn read_models(&self, body: &[u8]) -> Result<Vec<String>, Error> {
        openai::read_models(body)
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        match self.0.route {
            Route::Generate => self.encode_native(sample, settings),
            Route::Completions => self.encode_openai(openai::Route::Completions, sample, settings),
            Route::Chat => self.encode_openai(openai::Route::Chat, sample, settings),
        }
    }

    fn framing(&self, streaming: bool) -> Framing {
        openai::framing(streaming)
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

    fn explain(&self, status: u16, body: &[u8]) -> String {
        explain::body(status, body)
    }
}

runner_plugin::export_backend!(Sglang);

#[cfg(test)]
mod tests {
    #[test]
    fn cases_hold() {
        runner_plugin::case::check_backend::<super::Sglang>(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/cases"
        ));
    }
}
