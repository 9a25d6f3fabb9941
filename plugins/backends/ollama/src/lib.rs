//! Ollama: its own `/api/generate` and `/api/chat`, whose replies are lines of JSON, and
//! `/api/embed`.
#![deny(unsafe_code)]

mod reply;
mod request;

use std::collections::BTreeSet;

use runner_plugin::dialect::{explain, frames};
use runner_plugin::{Backend, Control, Credentials, Error, Frame, Framing, Head, Meaning};
use runner_plugin::{Reason, Refusal, Request, Sample, ServedModel, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The user's configuration.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use.
    route: Route,
    /// True if `/api/generate` gets the text unchanged (`raw`); otherwise the server puts it into
    /// the model's template. By default it does. The chat route always applies the template.
    raw: Option<bool>,
    /// Reasoning before the answer: `true`, `false`, or a level such as `"low"`. By default, the
    /// model decides. A raw text decides by itself.
    think: Option<Think>,
    /// The size of the context in tokens, for prompt and answer together (`options.num_ctx`). The
    /// server's default is small, 4096 tokens for any model. A size other than the loaded model's
    /// loads the model anew.
    num_ctx: Option<u32>,
    /// True if the server may cut a prompt that exceeds the context, and drop the beginning of a
    /// text that outgrows it. These are its defaults (`truncate` and `shift`). By default, such a
    /// request fails instead.
    truncate: bool,
    /// Time for which the model stays loaded after a request (`keep_alive`), such as `"10m"` or
    /// `"-1s"` for ever. The server's default is five minutes.
    keep_alive: Option<String>,
}

/// A route of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// `/api/generate`: text.
    #[default]
    Generate,
    /// `/api/chat`: conversations; text becomes a single user message.
    Chat,
}

/// Reasoning: on, off, or a level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected `true`, `false`, or a level such as \"low\"")]
pub enum Think {
    /// On or off.
    Switch(bool),
    /// The level.
    Level(String),
}

/// The tag that a name without one stands for.
const LATEST: &str = ":latest";

pub struct Ollama(Config);

impl Backend for Ollama {
    type Config = Config;
    type State = reply::Reply;

    fn open(config: Config) -> Result<Self, Error> {
        let mut wrong = Vec::new();
        if config.raw.is_some() && config.route == Route::Chat {
            wrong.push(
                "key `raw`: /api/chat always applies the model's template; set route = \"generate\", or leave this out",
            );
        }
        if config.think.is_some() && config.route == Route::Generate && config.raw.unwrap_or(true) {
            wrong.push(
                "key `think`: a raw text decides by itself whether the model reasons; set raw = false or \
                 route = \"chat\", or leave this out",
            );
        }
        if config.num_ctx == Some(0) {
            wrong.push("key `num-ctx`: expected a number of tokens of at least 1, found 0");
        }
        if wrong.is_empty() {
            Ok(Ollama(config))
        } else {
            Err(Error::InvalidConfig(wrong.join("; ")))
        }
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:11434".to_owned()
    }

    fn credentials(&self) -> Credentials {
        // A local server asks for no key; Ollama's cloud does, and its clients read this variable.
        Credentials::bearer("OLLAMA_API_KEY")
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::Health => Some(Request::get("/api/version")),
            Control::ListModels => Some(Request::get("/api/tags")),
            Control::FlushCache | Control::Metrics => None,
        }
    }

    /// A name without a tag means the tag `latest`, so such a model has two names. The only model
    /// of a server gets one name, so that the host can choose it.
    fn read_models(&self, body: &[u8]) -> Result<Vec<ServedModel>, Error> {
        #[derive(Deserialize)]
        struct List {
            models: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            name: String,
        }
        let list: List = frames::json(body, "a list of models")?;
        let names: Vec<String> = list.models.into_iter().map(|model| model.name).collect();
        let short = |name: &str| name.strip_suffix(LATEST).unwrap_or(name).to_owned();
        let served: BTreeSet<String> = match names.as_slice() {
            [only] => BTreeSet::from([short(only)]),
            several => several.iter().flat_map(|name| [short(name), name.clone()]).collect(),
        };
        Ok(served.into_iter().map(ServedModel::named).collect())
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        request::encode(&self.0, sample, settings)
    }

    fn framing(&self, streaming: bool) -> Framing {
        if streaming { Framing::Lines } else { Framing::Whole }
    }

    fn begin(&self, head: &Head) -> Result<reply::Reply, Error> {
        Ok(reply::begin(head))
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
        refined(explain::refusal(status, body))
    }
}

/// The refusal with the kind of error in Ollama's words (`ErrMaxQueue`, `server/sched.go`).
fn refined(refusal: Refusal) -> Refusal {
    let reason =
        if refusal.message.contains("server busy") { Reason::Overloaded } else { refusal.reason };
    Refusal { reason, ..refusal }
}

runner_plugin::export_backend!(Ollama);
