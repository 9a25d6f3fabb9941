//! {{name}}: an engine that answers conversations with an event stream, as the OpenAI API does.
//! Change the parts in which your engine differs; `runner_plugin::Backend` documents each function,
//! and further ones that you can add.

use runner_plugin::dialect::openai::{self, Route};
use runner_plugin::{Backend, Control, Error, Frame, Meaning, Request, Sample, Settings};

/// The keys that a user may write under `[backend.config]`. The comments become its help text.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The path of the engine's route, below the target's URL.
    path: String,
}

impl Default for Config {
    fn default() -> Self {
        let path = "/v1/chat/completions".to_owned();
        Config { path }
    }
}

/// The dialect, with its configuration.
pub struct Plugin(Config);

impl Backend for Plugin {
    type Config = Config;
    type State = openai::Reply;

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Plugin(config))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::Health => Some(Request::get("/health")),
            Control::ListModels => Some(openai::list_models("/v1")),
            Control::FlushCache | Control::Metrics => None,
        }
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        let route = Route::Chat;
        let mut body = openai::standard_body(route, route.limit(), sample, settings)?;
        if settings.ignore_eos {
            body.set("ignore_eos", true);
        }
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json(&self.0.path, &body))
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

runner_plugin::export_backend!(Plugin);

#[cfg(test)]
mod tests;
