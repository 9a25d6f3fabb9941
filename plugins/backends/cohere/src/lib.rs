//! Cohere, version 2 of its API: `/v2/chat`, `/v2/embed` and `/v2/rerank`.
//!
//! `request` writes bodies and `reply` reads replies; this module has the rest.
#![deny(unsafe_code)]

mod reply;
mod request;

use runner_plugin::dialect::explain;
use runner_plugin::{Backend, Control, Credentials, Error, Frame, Meaning, Refusal, Request};
use runner_plugin::{Sample, ServedModel, Settings};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Purpose of the texts to embed. Models from the third version on need to know it.
    input_type: InputType,
}

/// The purpose of texts to embed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InputType {
    /// To be found.
    #[default]
    SearchDocument,
    /// To find others.
    SearchQuery,
    /// To be classified.
    Classification,
    /// To be grouped.
    Clustering,
}

pub struct Cohere(Config);

impl Backend for Cohere {
    type Config = Config;
    type State = reply::Reply;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Cohere(config))
    }

    fn default_url(&self) -> String {
        "https://api.cohere.com".to_owned()
    }

    fn credentials(&self) -> Credentials {
        Credentials::bearer("COHERE_API_KEY")
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            // The list of models has no second version.
            Control::ListModels => Some(Request::get("/v1/models?page_size=1000")),
            Control::Health | Control::FlushCache | Control::Metrics => None,
        }
    }

    fn read_models(&self, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
        reply::models(body)
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        request::written(self.0.input_type, sample, settings)
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
        reply::refine(status, explain::refusal(status, body))
    }
}

runner_plugin::export_backend!(Cohere);
