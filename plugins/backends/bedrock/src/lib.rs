//! Amazon Bedrock: `Converse` and `ConverseStream`, which have one form for the models of all
//! providers.
//!
//! `request` writes bodies, `message` reads the binary messages of a stream, and `reply` interprets
//! them; this module has the rest.
#![deny(unsafe_code)]

mod message;
mod reply;
mod request;

use runner_plugin::{Backend, Control, Credentials, Error, Frame, Framing, Head, LengthPrefix};
use runner_plugin::{Meaning, Refusal, Request, Sample, Settings};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration. What only some models have stands in the request's `extra-body`, as
/// `additionalModelRequestFields`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Authentication of requests: signed with an AWS access key, or with a Bedrock API key as a
    /// bearer token.
    key: Key,
}

/// The authentication of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// AWS Signature Version 4.
    #[default]
    Sigv4,
    /// `authorization: Bearer KEY`
    Bearer,
}

pub struct Bedrock(Config);

impl Backend for Bedrock {
    type Config = Config;
    type State = reply::Reply;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Bedrock(config))
    }

    fn default_url(&self) -> String {
        "https://bedrock-runtime.us-east-1.amazonaws.com".to_owned()
    }

    fn credentials(&self) -> Credentials {
        match self.0.key {
            Key::Sigv4 => Credentials::sigv4("bedrock"),
            Key::Bearer => Credentials::bearer("AWS_BEARER_TOKEN_BEDROCK"),
        }
    }

    fn control(&self, control: Control) -> Option<Request> {
        // Models are listed at another address: the control plane.
        match control {
            Control::ListModels | Control::Health | Control::FlushCache | Control::Metrics => None,
        }
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let body = request::body(sample, settings)?;
        let model = Request::segment(settings.model_for(sample));
        let operation = if settings.streaming { "converse-stream" } else { "converse" };
        Ok(Request::json(format!("/model/{model}/{operation}"), &body))
    }

    fn framing(&self, streaming: bool) -> Framing {
        if !streaming {
            return Framing::Whole;
        }
        // A message begins with its length, which includes the four bytes of the length itself.
        Framing::LengthPrefixed(LengthPrefix {
            skip: 0,
            width: 4,
            adjust: -4,
            little_endian: false,
        })
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
        reply::refusal(status, body)
    }
}

runner_plugin::export_backend!(Bedrock);
