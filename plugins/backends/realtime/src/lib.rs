//! `/v1/realtime`, a WebSocket whose messages are JSON: speech is sent in pieces, as fast as it is
//! spoken or at once, and the answer comes as text or sound.
//!
//! [`vllm`] has the events of vLLM, which transcribes, [`openai`] the events of OpenAI, which
//! answers; [`sound`] cuts the sound of a sample into pieces.
#![deny(unsafe_code)]

mod openai;
mod sound;
mod vllm;

use runner_plugin::dialect::openai as http;
use runner_plugin::{
    Backend, Call, Control, Credentials, Earlier, Error, Frame, Meaning, Outgoing, Request, Sample,
    Settings, Socket, check_prefix,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The server's events: `vllm` (one sound is transcribed) or `openai` (a conversation, with
    /// sound or without, is answered).
    api: Api,
    /// The path before `/realtime` and `/models`, below the target's URL.
    prefix: String,
    /// Pace of sound: `spoken` (each piece at the time of its speaking, so that sending takes the
    /// sound's own length) or `at-once`.
    pace: Pace,
    /// The length of a piece of sound, in milliseconds, from 1 to 10000.
    piece: u32,
    /// Form of the model's answers, of `openai`: `text`, or `audio` with its transcript.
    output: Modality,
    /// The voice that the model answers in, of `openai` with `audio`. By default the server's.
    voice: Option<String>,
}

/// A server's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// The events of vLLM.
    #[default]
    Vllm,
    /// The events of OpenAI's Realtime API.
    Openai,
}

/// The pace at which sound is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Each piece at the time of its speaking.
    #[default]
    Spoken,
    /// One piece after the other.
    AtOnce,
}

/// The form of a model's answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Modality {
    /// Text.
    #[default]
    Text,
    /// Sound, and its transcript.
    Audio,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            api: Api::Vllm,
            prefix: "/v1".to_owned(),
            pace: Pace::Spoken,
            piece: 100,
            output: Modality::Text,
            voice: None,
        }
    }
}

const LONGEST_PIECE: u32 = 10_000;

pub struct Realtime(Config);

#[derive(Default, Serialize, Deserialize)]
pub struct State {
    /// True if a piece of the text has come.
    begun: bool,
}

impl Backend for Realtime {
    type Config = Config;
    type State = State;

    fn open(mut config: Config) -> Result<Self, Error> {
        check_prefix(&mut config.prefix).map_err(Error::InvalidConfig)?;
        if !(1..=LONGEST_PIECE).contains(&config.piece) {
            return Err(Error::InvalidConfig(format!(
                "key `piece`: expected 1 to {LONGEST_PIECE} ms, got {}",
                config.piece
            )));
        }
        if config.api == Api::Vllm && (config.output == Modality::Audio || config.voice.is_some()) {
            return Err(Error::config(
                "keys `output` and `voice`: vLLM's /v1/realtime answers with text; set api = \"openai\", or leave them \
                 out",
            ));
        }
        Ok(Realtime(config))
    }

    fn default_url(&self) -> String {
        match self.0.api {
            Api::Vllm => "http://127.0.0.1:8000".to_owned(),
            Api::Openai => "https://api.openai.com".to_owned(),
        }
    }

    fn credentials(&self) -> Credentials {
        Credentials::bearer(match self.0.api {
            Api::Vllm => "VLLM_API_KEY",
            Api::Openai => "OPENAI_API_KEY",
        })
    }

    fn control(&self, control: Control) -> Option<Request> {
        match control {
            Control::ListModels => Some(http::list_models(&self.0.prefix)),
            Control::Health if self.0.api == Api::Vllm => Some(Request::get("/health")),
            Control::Health | Control::FlushCache | Control::Metrics => None,
        }
    }

    fn start(
        &self,
        sample: &Sample,
        settings: &Settings,
        _earlier: Option<&Earlier>,
    ) -> Result<Call, Error> {
        let path = format!("{}/realtime", self.0.prefix);
        if !settings.streaming {
            return Err(Error::InvalidConfig(format!(
                "key `request.stream`: {path} always streams; leave out --disable-stream"
            )));
        }
        let (query, messages) = match self.0.api {
            Api::Vllm => (String::new(), vllm::messages(&self.0, &path, sample, settings)?),
            Api::Openai => (
                format!("?model={}", Request::segment(settings.model_for(sample))),
                openai::messages(&self.0, &path, sample, settings)?,
            ),
        };
        Ok(Call::Socket(Socket { path: format!("{path}{query}"), headers: Vec::new(), messages }))
    }

    fn decode(
        &self,
        state: &mut State,
        frame: &Frame<'_>,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        match (frame.name, self.0.api) {
            // The host gives the reason for the close.
            (Some("close"), _) => Ok(()),
            (Some("text"), Api::Vllm) => vllm::decode(state, frame.data, events),
            (Some("text"), Api::Openai) => openai::decode(state, frame.data, events),
            _ => Err(Error::Protocol(
                "the server sent a binary message, and events of /v1/realtime are text".to_owned(),
            )),
        }
    }
}

/// An event to send, as a message.
fn event(event: &Value) -> Outgoing {
    Outgoing::text(event.to_string())
}

/// The events that send a sound, in pieces.
fn appended(config: &Config, pieces: impl Iterator<Item = sound::Piece>) -> Vec<Outgoing> {
    let append = |piece: sound::Piece| {
        let sent = event(&json!({"type": "input_audio_buffer.append", "audio": piece.base64}));
        match config.pace {
            Pace::Spoken => sent.after(piece.nanoseconds),
            Pace::AtOnce => sent,
        }
    };
    pieces.map(append).collect()
}

runner_plugin::export_backend!(Realtime);
