//! The Gemini API of Google: `models/MODEL:streamGenerateContent` and
//! `models/MODEL:generateContent`, as Google's API for developers and Vertex AI serve them.
//!
//! `request` writes bodies and `reply` reads replies; this module has the rest.
#![deny(unsafe_code)]

mod reply;
mod request;

use runner_plugin::dialect::explain;
use runner_plugin::{Backend, Control, Credentials, Error, Frame, Head, Meaning, Refusal};
use runner_plugin::{Request, Sample, ServedModel, Settings, check_prefix};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The path before `/models/MODEL:generateContent`, below the target's URL. For Vertex AI, it
    /// is `/v1/projects/PROJECT/locations/LOCATION/publishers/google`.
    prefix: String,
    /// Header of the API key: alone in the header `x-goog-api-key`, or as a bearer token in
    /// `authorization`, as Vertex AI expects access tokens.
    key: Key,
    /// True to request the model's thoughts (`thinkingConfig.includeThoughts`), so that they are
    /// timed. Models that do not think refuse this. Without it, a model thinks silently before the
    /// first token.
    include_thoughts: bool,
    /// Most tokens to think (`thinkingConfig.thinkingBudget`): 0 turns thinking off, -1 lets the
    /// model decide. Absent: the model's default.
    thinking_budget: Option<i32>,
}

/// The header of the API key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// `x-goog-api-key: KEY`
    #[default]
    Header,
    /// `authorization: Bearer KEY`
    Bearer,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            prefix: "/v1beta".to_owned(),
            key: Key::Header,
            include_thoughts: false,
            thinking_budget: None,
        }
    }
}

pub struct Gemini(Config);

impl Backend for Gemini {
    type Config = Config;
    type State = reply::Reply;

    fn open(mut config: Config) -> Result<Self, Error> {
        let mut wrong: Vec<String> = check_prefix(&mut config.prefix).err().into_iter().collect();
        if let Some(budget) = config.thinking_budget.filter(|budget| *budget < -1) {
            wrong.push(format!(
                "key `thinking-budget`: expected a number of tokens, or -1 to let the model decide, got {budget}"
            ));
        }
        if !wrong.is_empty() {
            return Err(Error::InvalidConfig(wrong.join("\n")));
        }
        Ok(Gemini(config))
    }

    fn default_url(&self) -> String {
        "https://generativelanguage.googleapis.com".to_owned()
    }

    fn credentials(&self) -> Credentials {
        const VARIABLE: &str = "GEMINI_API_KEY";
        match self.0.key {
            Key::Header => Credentials::header("x-goog-api-key", VARIABLE),
            Key::Bearer => Credentials::bearer(VARIABLE),
        }
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::ListModels => {
                Some(Request::get(format!("{}/models?pageSize=1000", self.0.prefix)))
            }
            Control::Health | Control::FlushCache | Control::Metrics => None,
        }
    }

    fn read_models(&self, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
        reply::models(body)
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let body = request::body(&self.0, sample, settings)?;
        // A model is named `NAME`, or with its kind: `models/NAME`, `tunedModels/NAME`.
        let model = settings.model_for(sample);
        let (kind, name) = model.split_once('/').unwrap_or(("models", model));
        let (kind, name) = (Request::segment(kind), Request::segment(name));
        let method =
            if settings.streaming { "streamGenerateContent?alt=sse" } else { "generateContent" };
        let path = format!("{}/{kind}/{name}:{method}", self.0.prefix);
        Ok(Request::json(path, &body))
    }

    fn begin(&self, head: &Head) -> Result<reply::Reply, Error> {
        Ok(reply::Reply::new(head.streaming))
    }

    fn decode(
        &self,
        state: &mut reply::Reply,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        state.decode(frame, events)
    }

    fn explain(&self, status: u16, body: &[u8]) -> Refusal {
        reply::refine(body, explain::refusal(status, body))
    }
}

runner_plugin::export_backend!(Gemini);
