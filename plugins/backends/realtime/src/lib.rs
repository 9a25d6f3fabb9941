//! `/v1/realtime`, a WebSocket whose messages are JSON: speech is sent in pieces, as fast as it is
//! spoken or at once, and the answer comes as text or sound.
//!
//! [`vllm`] has the events of vLLM, which transcribes, [`openai`] the events of OpenAI, which
//! answers; [`sound`] cuts the sound of a sample into pieces.
#![deny(unsafe_code)]

mod openai;
mod vllm;

use runner_plugin::dialect::openai as http;
use runner_plugin::{
    Backend, Call, Control, Credentials, Earlier, Error, Frame, Meaning, Media, Outgoing, Request,
    Sample, Settings, Socket, check_prefix,
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
fn appended(config: &Config, pieces: impl Iterator<Item = Piece>) -> Vec<Outgoing> {
    let append = |piece: Piece| {
        let sent = event(&json!({"type": "input_audio_buffer.append", "audio": piece.base64}));
        match config.pace {
            Pace::Spoken => sent.after(piece.nanoseconds),
            Pace::AtOnce => sent,
        }
    };
    pieces.map(append).collect()
}

runner_plugin::export_backend!(Realtime);

// Sound in the form of `/v1/realtime`: PCM of 16 bits, one channel, the API's rate, in pieces.

struct Piece {
    /// Its samples, in base64.
    pub base64: String,
    pub nanoseconds: u64,
}

/// The samples of a WAV file.
fn samples(sample: &Sample, media: &Media, path: &str, rate: u32) -> Result<Vec<i16>, Error> {
    let wrong = |cause: String| {
        Error::InvalidInput(format!(
            "sample {}: {cause}, and {path} takes PCM of 16 bits, one channel and {rate} Hz; convert the sounds to such \
             WAV files, or set the dataset's sample rate",
            sample.id
        ))
    };
    let unread = |error: hound::Error| {
        let kind = &media.media_type;
        wrong(format!("its sound ({kind}) is not a readable WAV file ({error})"))
    };
    let mut reader = hound::WavReader::new(&*media.bytes).map_err(unread)?;
    let spec = reader.spec();
    let is_taken = spec.channels == 1
        && spec.sample_rate == rate
        && spec.bits_per_sample == 16
        && spec.sample_format == hound::SampleFormat::Int;
    if !is_taken {
        return Err(wrong(format!(
            "its sound has {} bits, {} channels and {} Hz",
            spec.bits_per_sample, spec.channels, spec.sample_rate
        )));
    }
    let samples: Result<Vec<i16>, _> = reader.samples().collect();
    let samples = samples.map_err(unread)?;
    if samples.is_empty() { Err(wrong("its sound has no samples".to_owned())) } else { Ok(samples) }
}

/// Cuts these samples into pieces of this many milliseconds; the last may be shorter.
fn pieces(samples: &[i16], rate: u32, milliseconds: u32) -> impl Iterator<Item = Piece> + '_ {
    let each = (u64::from(rate) * u64::from(milliseconds) / 1_000).max(1) as usize;
    samples.chunks(each).map(move |piece| {
        let bytes: Vec<u8> = piece.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let media = Media { media_type: "audio/pcm".to_owned(), bytes };
        Piece {
            base64: media.base64(),
            nanoseconds: piece.len() as u64 * 1_000_000_000 / u64::from(rate),
        }
    })
}

/// The milliseconds of PCM of 16 bits, one channel and this rate, in base64.
fn milliseconds(base64: &str, rate: u32) -> f64 {
    let digits = base64.trim_end_matches('=').len();
    let samples = digits * 3 / 4 / 2;
    samples as f64 * 1_000.0 / f64::from(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_plugin::Prompt;

    fn wav(channels: u16, rate: u32, samples: &[i16]) -> Media {
        let spec = hound::WavSpec {
            channels,
            sample_rate: rate,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut bytes = std::io::Cursor::new(Vec::new());
        let mut writer = hound::WavWriter::new(&mut bytes, spec).unwrap();
        for sample in samples {
            writer.write_sample(*sample).unwrap();
        }
        writer.finalize().unwrap();
        Media { media_type: "audio/wav".to_owned(), bytes: bytes.into_inner() }
    }

    fn read(media: &Media) -> Result<Vec<i16>, String> {
        let sample = Sample::new("a", Prompt::Text(String::new()));
        samples(&sample, media, "/v1/realtime", 16_000).map_err(|error| match error {
            Error::InvalidInput(message) => message,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn pieces_hold_every_sample_in_order() {
        let spoken: Vec<i16> = (-2_000..2_001).collect();
        let samples = read(&wav(1, 16_000, &spoken)).unwrap();
        let pieces: Vec<Piece> = pieces(&samples, 16_000, 100).collect();
        let lengths: Vec<u64> = pieces.iter().map(|piece| piece.nanoseconds).collect();
        assert_eq!(lengths, [100_000_000, 100_000_000, 50_062_500]);
        let lengths: Vec<f64> = (pieces.iter().map(|piece| &piece.base64))
            .map(|base64| milliseconds(base64, 16_000))
            .collect();
        assert_eq!(lengths, [100.0, 100.0, 50.0625]);
        let bytes = pieces.iter().flat_map(|piece| {
            let media = Media::of_base64("audio/pcm", &piece.base64);
            media.unwrap().bytes
        });
        let bytes: Vec<u8> = bytes.collect();
        let decoded: Vec<i16> =
            bytes.chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
        assert_eq!(decoded, spoken);
    }

    #[test]
    fn unsupported_sound_is_refused() {
        for (media, message) in [
            (wav(2, 16_000, &[1, 2]), "16 bits, 2 channels and 16000 Hz"),
            (wav(1, 44_100, &[1]), "16 bits, 1 channels and 44100 Hz"),
            (wav(1, 16_000, &[]), "no samples"),
            (
                Media { media_type: "audio/flac".to_owned(), bytes: b"fLaC".to_vec() },
                "(audio/flac) is not a readable WAV file",
            ),
        ] {
            let refused = read(&media).unwrap_err();
            assert!(refused.contains(message), "{refused}");
        }
    }
}
