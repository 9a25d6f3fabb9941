//! Speech to text: requests for `/v1/audio/transcriptions`, a form with a file of sound, and their
//! replies.
//!
//! | reply | servers |
//! | --- | --- |
//! | `{"text", "usage"}`, also with segments (`verbose_json`) | all |
//! | the text alone (`text`) | OpenAI |
//! | a stream of `transcript.text.delta` and `transcript.text.done` | OpenAI |
//! | a stream of `transcription.chunk`, as chunks of chat, and `[DONE]` | vLLM |
//!
//! `usage` counts tokens, or says the length of the sound in seconds, which has no place among
//! counts and is left out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::reply::{self, end, failure, not_a_chunk, parse};
use super::{Route, not_taken};
use crate::dialect::frames;
use crate::{Body, Error, Form, Frame, Meaning, Media, Output, Part, Prompt, Request, Sample};
use crate::{Setting, Settings, Usage};

/// The form of a reply that is not streamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JSON with the text.
    #[default]
    Json,
    /// JSON with the text, its segments and their times. Not for streamed replies.
    VerboseJson,
    /// The text alone, which OpenAI's server sends; vLLM's sends JSON all the same.
    Text,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::VerboseJson => "verbose_json",
            Format::Text => "text",
        }
    }

    /// Refuses a form that a route does not have.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if a route other than transcriptions is to have one.
    pub fn check(self, route: Route) -> Result<(), Error> {
        if self == Format::Json || route == Route::Transcriptions {
            return Ok(());
        }
        Err(Error::config(
            "key `response-format`: only /v1/audio/transcriptions has it; set route = \"transcriptions\", or leave this out",
        ))
    }
}

/// The fields of a server's requests.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'f> {
    /// The form of the reply.
    pub format: Format,
    /// The field that limits the answer's length, if the server has one.
    pub limit: Option<&'f str>,
    /// True if the server takes the sampling parameters of other routes, not `temperature` alone.
    pub samples: bool,
    /// The field that asks for token counts at the end of a stream, if the server has one.
    pub usage: Option<&'f str>,
}

const NEVER: [Setting; 3] = [Setting::IgnoreEos, Setting::MinOutputTokens, Setting::Stop];

/// The request for a sample with one sound. Texts around the sound become the field `prompt`.
///
/// # Errors
/// [`Error::InvalidConfig`] if the sample has no sound or more than one, or the API has no field
/// for a setting.
pub fn request(
    prefix: &str,
    sample: &Sample,
    settings: &Settings,
    fields: &Fields<'_>,
) -> Result<Request, Error> {
    let path = format!("{prefix}{}", Route::Transcriptions.path());
    let (sound, prompt) = sound_and_prompt(&path, sample)?;
    let unsupported = match fields.samples {
        true => NEVER.to_vec(),
        false => Setting::all_but(&[Setting::Temperature, Setting::Adapter]),
    };
    settings.refuse(sample, &path, &unsupported)?;
    if settings.streaming && fields.format == Format::VerboseJson {
        return Err(Error::config(
            "key `response-format`: verbose-json is not streamed; set `stream = false` under [request], or \
             response-format = \"json\"",
        ));
    }
    let mut body = Body::new();
    body.set("model", settings.model_for(sample));
    if !prompt.is_empty() {
        body.set("prompt", prompt);
    }
    body.set("response_format", fields.format.name());
    super::set_sampling(&mut body, &settings.sampling);
    if let Some(limit) = fields.limit {
        body.set_some(limit, settings.output_tokens_for(sample));
    }
    body.set("stream", settings.streaming);
    if let (true, Some(field)) = (settings.streaming, fields.usage) {
        body.set(field, true);
    }
    settings.lay_over(&mut body, sample)?;
    let mut form = Form::new();
    form.file("file", &file_name(sound), sound).fields(&body);
    Ok(form.request(path))
}

fn sound_and_prompt<'s>(path: &str, sample: &'s Sample) -> Result<(&'s Media, String), Error> {
    let Prompt::Messages(messages) = &sample.prompt else {
        return Err(no_sound(path, sample.prompt.kind()));
    };
    let (mut sounds, mut texts) = (Vec::new(), Vec::new());
    for part in messages.iter().flat_map(|message| &message.parts) {
        match part {
            Part::Audio(media) => sounds.push(media),
            Part::Text(text) => texts.push(text.as_str()),
            Part::Image(_) => return Err(no_sound(path, "images")),
            Part::Video(_) => return Err(no_sound(path, "videos")),
            Part::Answer(_) => return Err(not_taken(&sample.prompt, path, "chat")),
        }
    }
    match sounds[..] {
        [sound] => Ok((sound, texts.join("\n"))),
        [] => Err(no_sound(path, "conversations without sound")),
        _ => Err(Error::InvalidConfig(format!(
            "key `route`: sample {} has {} sounds, and {path} takes one; have the dataset give one each, or set route = \
             \"chat\"",
            sample.id,
            sounds.len()
        ))),
    }
}

fn no_sound(path: &str, given: &str) -> Error {
    Error::InvalidConfig(format!(
        "key `route`: the dataset gives {given}, and {path} takes a sound; name a dataset of sounds, such as \
         datasets/speech.wasm, or set another route"
    ))
}

/// A name with the ending by which servers tell the format.
fn file_name(sound: &Media) -> String {
    let ending = match sound.media_type.as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/flac" | "audio/x-flac" => "flac",
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/ogg" => "ogg",
        "audio/webm" => "webm",
        "audio/mp4" | "audio/m4a" | "audio/x-m4a" => "m4a",
        _ => return "audio".to_owned(),
    };
    format!("audio.{ending}")
}

/// The state that decoding keeps of a reply from one frame to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    streaming: bool,
    /// True if something of the text came in an event of its own.
    begun: bool,
    ended: bool,
    /// Of a stream of chunks.
    chunks: reply::Reply,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    delta: Option<String>,
    text: Option<String>,
    usage: Option<Counts>,
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    input_token_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    audio_tokens: Option<u32>,
}

/// Appends the events of one frame, of a stream or a whole body in this format.
///
/// # Errors
/// [`Error::Protocol`] if the frame is not of this API.
pub fn decode(
    reply: &mut Reply,
    format: Format,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    if data == b"[DONE]" {
        end(&mut reply.ended, events);
        return Ok(());
    }
    let event: Event = match parse(data) {
        Ok(event) => event,
        Err(_) if format == Format::Text && !reply.streaming => {
            let text = str::from_utf8(data)
                .map_err(|error| frames::unexpected(data, "the text of a transcription", &error))?;
            events.push(Meaning::Text(Output::text(text)));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match (event.kind.as_deref().or(frame.name), event.text) {
        _ if event.choices.is_some() => {
            return reply::decode(&mut reply.chunks, frame, events);
        }
        (Some("transcript.text.delta"), _) => {
            let Some(delta) = event.delta else {
                return Err(not_a_chunk(data, &"it has no delta"));
            };
            reply.begun = true;
            events.push(Meaning::Text(Output::text(delta)));
        }
        (Some("transcript.text.done"), text) => {
            // The text comes again, unless it did not come in pieces.
            if !reply.begun {
                events.extend(text.map(|text| Meaning::Text(Output::text(text))));
            }
            events.extend(event.usage.and_then(Counts::usage).map(Meaning::Usage));
            end(&mut reply.ended, events);
        }
        // A speaker's text, again and with its times.
        (Some("transcript.text.segment"), _) => {}
        (Some("error"), _) => {
            events.push(failure(event.error.map_or(data, |error| error.get().as_bytes())));
        }
        (_, Some(text)) if !reply.streaming => {
            events.push(Meaning::Text(Output::text(text)));
            events.extend(event.usage.and_then(Counts::usage).map(Meaning::Usage));
        }
        _ => return reply::decode(&mut reply.chunks, frame, events),
    }
    Ok(())
}

impl Reply {
    /// A reply that has not begun.
    pub fn begin(streaming: bool) -> Self {
        Reply { streaming, ..Reply::default() }
    }
}

impl Counts {
    /// `None` if no tokens were counted.
    fn usage(self) -> Option<Usage> {
        let audio = self.input_token_details.and_then(|details| details.audio_tokens);
        let usage = Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            input_audio_tokens: audio,
            ..Usage::default()
        };
        (usage != Usage::default()).then_some(usage)
    }
}
