//! The Messages API of Anthropic, `POST /v1/messages`, as Anthropic itself serves it and as vLLM,
//! SGLang, LMDeploy and llama.cpp do.
//!
//! `request` writes bodies and `reply` reads replies; this module has the rest.
#![deny(unsafe_code)]

mod reply;
mod request;

use runner_plugin::dialect::explain;
use runner_plugin::{Backend, Control, Credentials, Error, Frame, Meaning, Refusal, Request};
use runner_plugin::{Sample, Settings, check_prefix};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The path before `/messages` and `/models`, below the target's URL.
    prefix: String,
    /// The version of the API, the header `anthropic-version`.
    version: String,
    /// Names of beta features to use, the header `anthropic-beta`.
    beta: Vec<String>,
    /// Header of the API key: alone in the header `x-api-key`, as Anthropic expects it, or as a
    /// bearer token in `authorization`, as vLLM and SGLang expect it.
    key: Key,
}

/// The header of the API key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// `x-api-key: KEY`
    #[default]
    Header,
    /// `authorization: Bearer KEY`
    Bearer,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            prefix: "/v1".to_owned(),
            version: "2023-06-01".to_owned(),
            beta: Vec::new(),
            key: Key::Header,
        }
    }
}

pub struct Anthropic(Config);

impl Anthropic {
    fn versioned(&self, mut request: Request) -> Request {
        let mut add = |name: &str, value: String| request.headers.push((name.to_owned(), value));
        add("anthropic-version", self.0.version.clone());
        if !self.0.beta.is_empty() {
            add("anthropic-beta", self.0.beta.join(","));
        }
        request
    }
}

impl Backend for Anthropic {
    type Config = Config;
    type State = reply::Reply;

    fn open(mut config: Config) -> Result<Self, Error> {
        let mut wrong: Vec<String> = check_prefix(&mut config.prefix).err().into_iter().collect();
        let token = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        if !token(&config.version) {
            wrong.push(format!(
                "key `version`: expected a date such as `2023-06-01`, got `{}`",
                config.version
            ));
        }
        if let Some(name) = config.beta.iter().find(|name| !token(name)) {
            wrong.push(format!(
                "key `beta`: expected names such as `interleaved-thinking-2025-05-14`, got `{name}`"
            ));
        }
        if !wrong.is_empty() {
            return Err(Error::InvalidConfig(wrong.join("\n")));
        }
        Ok(Anthropic(config))
    }

    fn default_url(&self) -> String {
        "https://api.anthropic.com".to_owned()
    }

    fn credentials(&self) -> Credentials {
        const VARIABLE: &str = "ANTHROPIC_API_KEY";
        match self.0.key {
            Key::Header => Credentials::header("x-api-key", VARIABLE),
            Key::Bearer => Credentials::bearer(VARIABLE),
        }
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::ListModels => {
                let list = Request::get(format!("{}/models", self.0.prefix));
                Some(self.versioned(list))
            }
            Control::Health | Control::FlushCache | Control::Metrics => None,
        }
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let body = request::body(sample, settings)?;
        let request = Request::json(format!("{}/messages", self.0.prefix), &body);
        Ok(self.versioned(request))
    }

    fn decode(
        &self,
        state: &mut reply::Reply,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        reply::decode(state, frame, events)
    }

    fn explain(&self, status: u16, body: &[u8]) -> Refusal {
        reply::refine(body, explain::refusal(status, body))
    }
}

runner_plugin::export_backend!(Anthropic);
