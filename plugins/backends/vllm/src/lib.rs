//! vLLM: the OpenAI routes, with vLLM's own parameters for answers of an exact length.
#![deny(unsafe_code)]

use runner_plugin::dialect::{explain, openai};
use runner_plugin::{Backend, Error, Frame, Framing, Meaning, Request, Sample, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the user may set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Which route to ask: `completions` (text or token ids as they are) or `chat` (conversations; text
    /// becomes a single user message).
    route: openai::Route,
    /// Whether to have the server count tokens in every chunk of a stream
    /// (`stream_options.continuous_usage_stats`), which tells how many tokens each chunk stands for. It makes
    /// chunks larger and the server's work a little more.
    continuous_usage: bool,
    /// Whether to send `min_tokens` as well where the end-of-sequence token is ignored.
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

    fn list_models(&self) -> Option<Request> {
        Some(openai::list_models("/v1"))
    }

    fn read_models(&self, body: &[u8]) -> Result<Vec<String>, Error> {
        openai::read_models(body)
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
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
                body.set_some("min_tokens", sample.output_tokens);
            }
        }
        body.merge(settings.extra_body.as_deref())?;
        Ok(openai::post(format!("/v1{}", route.path()), &body))
    }

    fn framing(&self, streaming: bool) -> Framing {
        openai::framing(streaming)
    }

    fn decode(
        &self,
        state: &mut openai::Reply,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        openai::decode(state, frame, events)
    }

    fn explain(&self, status: u16, body: &[u8]) -> String {
        explain::body(status, body)
    }
}

runner_plugin::export_backend!(Vllm);

#[cfg(test)]
mod tests {
    #[test]
    fn cases_hold() {
        runner_plugin::case::check_backend::<super::Vllm>(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/cases"
        ));
    }
}
