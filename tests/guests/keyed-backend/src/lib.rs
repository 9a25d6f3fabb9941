//! A sound backend of the OpenAI routes whose server wants its key as the configuration says: what
//! no engine that ships does, and what others do.
#![deny(unsafe_code)]

use runner_plugin::dialect::openai;
use runner_plugin::{Authentication, Backend, Control, Credentials, Error, Frame, Meaning};
use runner_plugin::{Request, Sample, Settings};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Authentication of requests.
    scheme: Scheme,
    /// The name of the header or of the service of AWS.
    #[serde(default)]
    name: String,
    /// The variable in which people keep the key.
    #[serde(default)]
    variable: Option<String>,
}

/// The authentication of requests.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// As a bearer token.
    Bearer,
    /// Alone in a header.
    Header,
    /// By a signature.
    Sigv4,
    /// Not at all.
    None,
}

/// The backend.
pub struct Keyed(Config);

impl Backend for Keyed {
    type Config = Config;
    type State = openai::Reply;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Keyed(config))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn credentials(&self) -> Credentials {
        let name = self.0.name.clone();
        Credentials {
            scheme: match self.0.scheme {
                Scheme::Bearer => Authentication::Bearer,
                Scheme::Header => Authentication::Header(name),
                Scheme::Sigv4 => Authentication::Sigv4(name),
                Scheme::None => Authentication::None,
            },
            variable: self.0.variable.clone(),
        }
    }

    fn control(&self, what: Control) -> Option<Request> {
        (what == Control::ListModels).then(|| openai::list_models("/v1"))
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let route = openai::Route::Completions;
        let mut body = openai::standard_body(route, route.limit(), sample, settings)?;
        settings.lay_over(&mut body, sample)?;
        // What a signature has to get right: an escape in the path, and parameters that are not in
        // order.
        let path = format!("/v1{}?b=%2Fx%20y&a=1", route.path());
        Ok(Request::json(path, &body))
    }

    fn decode(
        &self,
        state: &mut openai::Reply,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        openai::decode(state, frame, events)
    }
}

runner_plugin::export_backend!(Keyed);
