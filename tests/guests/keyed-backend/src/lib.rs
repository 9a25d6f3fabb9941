//! A sound backend of the OpenAI routes whose configuration sets the scheme of its key: schemes
//! that no shipped engine uses.
#![deny(unsafe_code)]

use std::collections::BTreeMap;

use runner_plugin::dialect::openai;
use runner_plugin::{
    Authentication, Backend, Control, Credentials, Digest, Encoding, Error, Frame,
};
use runner_plugin::{Hmac, Meaning, Prepared, Prompt, Request, Sample, Settings, Token};
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
    /// The text that is signed.
    #[serde(default)]
    message: String,
    /// The path to delete after each exchange.
    #[serde(default)]
    clean_up: Option<String>,
    /// The path that prepares a workspace, whose name each request has in `x-workspace`.
    #[serde(default)]
    prepare: Option<String>,
    /// True to keep cookies.
    #[serde(default)]
    cookies: bool,
    /// Numbers to count with each frame, by name.
    #[serde(default)]
    counts: BTreeMap<String, u64>,
    /// A code that each request has in `x-pin`.
    #[serde(default)]
    #[schemars(extend("writeOnly" = true))]
    pin: Option<String>,
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
    /// By HMAC.
    Hmac,
    /// By a token.
    Token,
    /// Not at all.
    None,
}

/// A workspace, as the server names it.
#[derive(Deserialize)]
struct Workspace {
    name: String,
    lifetime_ms: Option<u64>,
}

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
                Scheme::Hmac => Authentication::Hmac(Hmac {
                    digest: Digest::Sha512,
                    message: self.0.message.clone(),
                    encoding: Encoding::Base64,
                    headers: vec![
                        ("x-time".to_owned(), "{time-ms}".to_owned()),
                        (name, "id={id}, signature={signature}".to_owned()),
                    ],
                }),
                Scheme::Token => Authentication::Token(Token {
                    login: Request {
                        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
                        body: br#"{"id": "{id}", "secret": "{secret}"}"#.to_vec(),
                        ..Request::post("/login")
                    },
                    token: "/access/token".to_owned(),
                    lifetime: Some("/expires_in".to_owned()),
                    headers: vec![(name, "Token {token}".to_owned())],
                }),
                Scheme::None => Authentication::None,
            },
            variable: self.0.variable.clone(),
            cookies: self.0.cookies,
        }
    }

    fn control(&self, control: Control) -> Option<Request> {
        (control == Control::ListModels).then(|| openai::list_models("/v1"))
    }

    fn prepare(&self) -> Option<Request> {
        self.0.prepare.clone().map(Request::post)
    }

    fn read_prepared(&self, body: &[u8]) -> Result<Prepared, Error> {
        let workspace: Workspace = serde_json::from_slice(body)
            .map_err(|error| Error::Protocol(format!("no workspace: {error}")))?;
        Ok(Prepared {
            value: workspace.name.into_bytes(),
            lifetime: workspace.lifetime_ms.map(|lifetime| lifetime * 1_000_000),
        })
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let route = match sample.prompt {
            Prompt::Messages(_) => openai::Route::Chat,
            _ => openai::Route::Completions,
        };
        let mut body = openai::standard_body(route, route.limit(), sample, settings)?;
        settings.lay_over(&mut body, sample)?;
        // The hard parts of a signature: an escape in the path, and parameters that are not in
        // order.
        let path = format!("/v1{}?b=%2Fx%20y&a=1", route.path());
        let mut request = Request::json(path, &body);
        if let Some(pin) = &self.0.pin {
            request = request.with_header("x-pin", pin);
        }
        Ok(match self.0.prepare {
            None => request,
            Some(_) => {
                let name = String::from_utf8_lossy(&settings.prepared);
                request.with_header("x-workspace", &name)
            }
        })
    }

    fn decode(
        &self,
        state: &mut openai::Reply,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        for (name, count) in &self.0.counts {
            events.push(Meaning::Count((name.clone(), 0)));
            events.push(Meaning::Count((name.clone(), *count)));
        }
        if let Some(path) = &self.0.clean_up {
            events.push(Meaning::CleanUp(Request::delete("/never")));
            events.push(Meaning::CleanUp(Request::delete(path.clone())));
        }
        openai::decode(state, frame, events)
    }
}

runner_plugin::export_backend!(Keyed);
