//! Any server with the OpenAI API. It sends only standard parameters; non-standard fields of a server can be named in
//! the configuration.
#![deny(unsafe_code)]

use runner_plugin::dialect::openai;
use runner_plugin::{
    Backend, Control, Credentials, Error, Frame, Meaning, Request, Sample, Settings,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use: `chat` (text becomes a single user message) or `completions` (text or token ids,
    /// unchanged).
    route: openai::Route,
    /// The path before `/chat/completions`, `/completions` and `/models`, below the target's URL.
    prefix: String,
    /// The field that limits the answer's length. By default `max_tokens` for completions and
    /// `max_completion_tokens` for chat; older servers support only `max_tokens`.
    max_tokens_field: Option<String>,
    /// The field that makes this server ignore the end-of-sequence token, such as `ignore_eos`. The OpenAI
    /// API has none, so by default answers may end early.
    ignore_eos_field: Option<String>,
    /// Whether to request token counts at the end of a stream (`stream_options.include_usage`). Turn this
    /// off for a server that rejects the field.
    include_usage: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            route: openai::Route::Chat,
            prefix: "/v1".to_owned(),
            max_tokens_field: None,
            ignore_eos_field: None,
            include_usage: true,
        }
    }
}

/// The backend.
pub struct OpenAi(Config);

impl Backend for OpenAi {
    type Config = Config;
    type State = openai::Reply;

    fn open(mut config: Config) -> Result<Self, Error> {
        if !config.prefix.is_empty() && !config.prefix.starts_with('/') {
            return Err(Error::InvalidConfig(format!(
                "key `prefix`: expected a path that begins with `/`, or nothing, got `{}`",
                config.prefix
            )));
        }
        config
            .prefix
            .truncate(config.prefix.trim_end_matches('/').len());
        Ok(OpenAi(config))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn credentials(&self) -> Credentials {
        Credentials::bearer("OPENAI_API_KEY")
    }

    fn control(&self, what: Control) -> Option<Request> {
        match what {
            Control::ListModels => Some(openai::list_models(&self.0.prefix)),
            Control::Health | Control::FlushCache | Control::Metrics => None,
        }
    }

    fn encode(&self, sample: &Sample, settings: &Settings) -> Result<Request, Error> {
        if let Some(request) = openai::pooling(&self.0.prefix, sample, settings)? {
            return Ok(request);
        }
        let config = &self.0;
        let limit = config
            .max_tokens_field
            .as_deref()
            .unwrap_or(config.route.limit());
        let mut body = openai::standard_body(config.route, limit, sample, settings)?;
        if !config.include_usage {
            body.remove("stream_options");
        }
        if let (true, Some(field)) = (settings.ignore_eos, &config.ignore_eos_field) {
            body.set(field, true);
        }
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json(
            format!("{}{}", config.prefix, config.route.path()),
            &body,
        ))
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

runner_plugin::export_backend!(OpenAi);
