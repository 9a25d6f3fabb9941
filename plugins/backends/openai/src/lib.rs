//! Any server with the OpenAI API. It sends only standard parameters; non-standard fields of a
//! server can be named in the configuration.
#![deny(unsafe_code)]

use runner_plugin::dialect::openai::{self, RouteReply, responses, speech, transcriptions};
use runner_plugin::{
    Backend, Call, Control, Earlier, Error, Frame, Framing, Head, Meaning, Request, Sample,
    Settings, check_prefix,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The route to use: `chat` (text becomes a single user message), `completions` (text or token
    /// ids, unchanged), `responses` (as `chat`, with the newer API), `transcriptions` (the text of
    /// one sound) or `speech` (the sound of a text).
    route: openai::Route,
    /// The path before `/chat/completions`, `/completions`, `/responses`, `/audio/transcriptions`,
    /// `/audio/speech` and `/models`, below the target's URL.
    prefix: String,
    /// The field that limits the answer's length. By default `max_tokens` for completions,
    /// `max_completion_tokens` for chat and `max_output_tokens` for responses; older servers
    /// support only `max_tokens`. Transcriptions have none by default.
    max_tokens_field: Option<String>,
    /// The field that makes this server ignore the end-of-sequence token, such as `ignore_eos`. The
    /// OpenAI API has none, so by default answers may end early.
    ignore_eos_field: Option<String>,
    /// True to request token counts at the end of a stream (`stream_options.include_usage`). Turn
    /// this off for a server that rejects the field. Not for responses and transcriptions, whose
    /// API has no such field.
    include_usage: bool,
    /// True if the server keeps the replies of `responses`, so that the next request of a
    /// conversation names the last reply and holds only new messages. By default, every request
    /// holds the whole conversation.
    store: bool,
    /// The form of transcriptions that are not streamed: `json`, `verbose-json` (with segments) or
    /// `text`.
    response_format: transcriptions::Format,
    /// Settings of `speech`.
    speech: speech::Options,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            route: openai::Route::Chat,
            prefix: "/v1".to_owned(),
            max_tokens_field: None,
            ignore_eos_field: None,
            include_usage: true,
            store: false,
            response_format: transcriptions::Format::Json,
            speech: speech::Options::default(),
        }
    }
}

pub struct OpenAi(Config);

impl OpenAi {
    fn request(
        &self,
        sample: &Sample,
        settings: &Settings,
        earlier: Option<&Earlier>,
    ) -> Result<Request, Error> {
        let config = &self.0;
        if let Some(request) = openai::pooling(&config.prefix, sample, settings)? {
            return Ok(request);
        }
        let limit = config.max_tokens_field.as_deref();
        if config.route == openai::Route::Transcriptions {
            let fields = transcriptions::Fields {
                format: config.response_format,
                limit,
                samples: false,
                usage: None,
            };
            return transcriptions::request(&config.prefix, sample, settings, &fields);
        }
        if config.route == openai::Route::Speech {
            return speech::request(&config.prefix, sample, settings, &config.speech, false);
        }
        let limit = limit.unwrap_or(config.route.limit());
        let mut body = if config.route == openai::Route::Responses {
            let fields = responses::Fields { limit, further: &[], store: config.store };
            responses::body(sample, settings, &fields, earlier)?
        } else {
            openai::standard_body(config.route, limit, sample, settings)?
        };
        if !config.include_usage {
            body.remove("stream_options");
        }
        if let (true, Some(field)) = (settings.ignore_eos, &config.ignore_eos_field) {
            body.set(field, true);
        }
        settings.lay_over(&mut body, sample)?;
        Ok(Request::json(format!("{}{}", config.prefix, config.route.path()), &body))
    }
}

impl Backend for OpenAi {
    type Config = Config;
    type State = RouteReply;

    fn open(mut config: Config) -> Result<Self, Error> {
        check_prefix(&mut config.prefix).map_err(Error::InvalidConfig)?;
        if config.store && config.route != openai::Route::Responses {
            return Err(responses::store_needs_route());
        }
        config.response_format.check(config.route)?;
        config.speech.check(config.route)?;
        Ok(OpenAi(config))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::ListModels => Some(openai::list_models(&self.0.prefix)),
            Control::Health | Control::FlushCache | Control::Metrics => None,
        }
    }

    fn start(
        &self,
        sample: &Sample,
        settings: &Settings,
        earlier: Option<&Earlier>,
    ) -> Result<Call, Error> {
        self.request(sample, settings, earlier).map(Call::Request)
    }

    fn framing(&self, streaming: bool) -> Framing {
        match self.0.route {
            openai::Route::Speech => self.0.speech.framing(streaming),
            _ => openai::framing(streaming),
        }
    }

    fn begin(&self, head: &Head) -> Result<RouteReply, Error> {
        Ok(RouteReply::begin(self.0.route, head.streaming))
    }

    fn decode(
        &self,
        state: &mut RouteReply,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        let config = &self.0;
        state.decode(config.store, config.response_format, &config.speech, frame, events)
    }
}

runner_plugin::export_backend!(OpenAi);
