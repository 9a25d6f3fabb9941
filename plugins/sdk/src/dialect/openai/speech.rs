//! Text to speech: requests for `/v1/audio/speech`, and their replies, which are sound.
//!
//! | reply | servers |
//! | --- | --- |
//! | the sound in one piece | all |
//! | a stream of `speech.audio.delta` and `speech.audio.done` (`sse`) | OpenAI, vLLM-Omni |
//! | the sound as it is made, without an end marker (`audio`) | OpenAI, vLLM-Omni |
//!
//! The length of the sound follows from its bytes for PCM and WAV. Of formats that would have to be
//! decoded it stays unknown. A WAV whose header states more bytes than come was cut, and is no
//! answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::reply::failure;
use super::{Route, not_taken};
use crate::dialect::frames;
use crate::{Body, Error, Frame, Framing, Meaning, Media, Part, Prompt, Request, Sample, Setting};
use crate::{Settings, Sound, Usage};

/// The user's settings of speech.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Options {
    /// The voice, by the server's name for it. OpenAI's server needs one, such as `alloy`.
    pub voice: Option<String>,
    /// Description of the voice.
    pub instructions: Option<String>,
    /// The format of the sound. Only of `pcm` and `wav` is the length known, and with it the
    /// real-time factor.
    pub format: Format,
    /// The form of a streamed reply: `sse` (events, with the end marked) or `audio` (the bytes of
    /// the sound alone).
    pub stream_format: StreamFormat,
    /// The samples per second of `pcm`, which does not say so itself: 24000 of OpenAI's server and
    /// of most models.
    pub sample_rate: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            voice: None,
            instructions: None,
            format: Format::Pcm,
            stream_format: StreamFormat::Sse,
            sample_rate: 24_000,
        }
    }
}

/// The format of sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Samples of 16 bits, one channel, without a header.
    Pcm,
    /// The same with a header.
    Wav,
    /// MP3.
    Mp3,
    /// Opus.
    Opus,
    /// AAC.
    Aac,
    /// FLAC.
    Flac,
}

/// The form of a streamed reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamFormat {
    /// Events, each with a piece of the sound.
    Sse,
    /// The bytes of the sound.
    Audio,
}

const EVENT: &str = "an event of /v1/audio/speech";

/// Bytes of a WAV header that are kept at most until the sound begins.
const HEADER_BYTES: usize = 4 << 10;

impl Options {
    /// Refuses settings of speech on another route, and settings that contradict each other.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] that names the key.
    pub fn check(&self, route: Route) -> Result<(), Error> {
        let cause = if route != Route::Speech && *self != Options::default() {
            "key `speech`: only /v1/audio/speech has these settings; set route = \"speech\", or leave them out"
        } else if self.sample_rate == 0 {
            "key `speech.sample-rate`: expected at least 1 sample per second, found 0"
        } else {
            return Ok(());
        };
        Err(Error::InvalidConfig(cause.to_owned()))
    }

    /// Returns the way to split the reply into frames.
    pub fn framing(&self, streaming: bool) -> Framing {
        match (streaming, self.stream_format) {
            (false, _) => Framing::Whole,
            (true, StreamFormat::Sse) => Framing::EventStream,
            (true, StreamFormat::Audio) => Framing::Raw,
        }
    }
}

/// The request for a sample of text, below `prefix` (usually `/v1`). `own` says that the server
/// takes vLLM-Omni's fields beside OpenAI's: the limit of tokens, the random seed, and `stream`.
///
/// # Errors
/// [`Error::InvalidConfig`] if the sample is no text, or the API has no field for a setting.
pub fn request(
    prefix: &str,
    sample: &Sample,
    settings: &Settings,
    options: &Options,
    own: bool,
) -> Result<Request, Error> {
    let path = format!("{prefix}{}", Route::Speech.path());
    let kept = [Setting::Adapter, Setting::Seed];
    let kept = if own { &kept[..] } else { &kept[..1] };
    settings.refuse(sample, &path, &Setting::all_but(kept))?;
    let mut body = Body::new();
    body.set("model", settings.model_for(sample));
    body.set("input", spoken_text(&path, &sample.prompt)?);
    body.set_some("voice", options.voice.as_deref());
    body.set_some("instructions", options.instructions.as_deref());
    body.set("response_format", options.format);
    if settings.streaming {
        body.set("stream_format", options.stream_format);
    }
    if own {
        body.set("stream", settings.streaming);
        body.set_some("max_new_tokens", settings.output_tokens_for(sample));
        body.set_some("seed", settings.sampling.seed);
    }
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json(path, &body))
}

/// The text to be spoken: a text, or the last message of a conversation.
fn spoken_text(path: &str, prompt: &Prompt) -> Result<String, Error> {
    let messages = match prompt {
        Prompt::Text(text) => return Ok(text.clone()),
        Prompt::Messages(messages) => messages,
        other => return Err(not_taken(other, path, "chat")),
    };
    let parts = messages.last().map(|message| &message.parts[..]);
    let texts = parts.unwrap_or_default().iter().map(|part| match part {
        Part::Text(text) => Ok(text.as_str()),
        _ => Err(not_taken(prompt, path, "chat")),
    });
    texts.collect()
}

/// The state that decoding keeps of a reply from one frame to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    streaming: bool,
    /// True if its end needs no mark any more.
    ends: bool,
    /// Of WAV: bytes of the header so far, until the sound begins.
    header: Vec<u8>,
    /// Of WAV: bytes per second, once the header has said it.
    per_second: Option<u32>,
    /// Of WAV: bytes of the sound that the header states and that did not come yet.
    missing: u32,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    audio: Option<String>,
    usage: Option<Counts>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
}

/// Appends the events of one frame: an event, or bytes of the sound.
///
/// # Errors
/// [`Error::Protocol`] if the frame is not of this API.
pub fn decode(
    reply: &mut Reply,
    options: &Options,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    if options.framing(reply.streaming) != Framing::EventStream {
        reply.ends |= !reply.streaming;
        reply.hear(options, frame.data, events);
        if !reply.streaming && reply.missing > 0 {
            let cause = format!(
                "the sound was cut: its header states {} bytes more than arrived",
                reply.missing
            );
            return Err(Error::Protocol(cause));
        }
        return Ok(());
    }
    let data = frame.data.trim_ascii();
    let event: Event = frames::json(data, EVENT)?;
    match event.kind.as_deref().or(frame.name) {
        Some("speech.audio.delta") => {
            let sound = event.audio.ok_or_else(|| wrong(data, "it has no audio"))?;
            let sound = Media::of_base64("", &sound);
            let sound = sound.ok_or_else(|| wrong(data, "its audio is not base64"))?;
            reply.ends = true;
            reply.hear(options, &sound.bytes, events);
        }
        Some("speech.audio.done") => {
            events.extend(event.usage.map(|Counts { input_tokens, output_tokens }| {
                Meaning::Usage(Usage { input_tokens, output_tokens, ..Usage::default() })
            }));
            events.push(Meaning::End);
        }
        kind if kind == Some("error") || event.error.is_some() => {
            events.push(failure(event.error.map_or(data, |error| error.get().as_bytes())));
        }
        _ => return Err(wrong(data, "it is no event of speech")),
    }
    Ok(())
}

fn wrong(data: &[u8], why: &str) -> Error {
    frames::unexpected(data, EVENT, &why)
}

impl Reply {
    /// A reply that has not begun.
    pub fn begin(streaming: bool) -> Self {
        Reply { streaming, ..Reply::default() }
    }

    /// Takes bytes of the sound in.
    fn hear(&mut self, options: &Options, bytes: &[u8], events: &mut Vec<Meaning>) {
        if options.format == Format::Wav {
            return match self.per_second {
                None => self.hear_header(bytes, events),
                known => self.hear_stated(bytes.len(), known, events),
            };
        }
        self.end(events);
        let of_pcm = options.format == Format::Pcm;
        let per_second = of_pcm.then(|| options.sample_rate.saturating_mul(2));
        self.push(bytes.len(), per_second, events);
    }

    /// Takes bytes of a WAV in, which ends with as many as its header states.
    fn hear_stated(&mut self, bytes: usize, per_second: Option<u32>, events: &mut Vec<Meaning>) {
        self.missing = self.missing.saturating_sub(bytes as u32);
        self.push(bytes, per_second, events);
        if self.missing == 0 {
            self.end(events);
        }
    }

    /// From here on the end of its body is its end.
    fn end(&mut self, events: &mut Vec<Meaning>) {
        if !std::mem::replace(&mut self.ends, true) {
            events.push(Meaning::EndsWithBody);
        }
    }

    fn push(&self, bytes: usize, per_second: Option<u32>, events: &mut Vec<Meaning>) {
        if bytes > 0 {
            let milliseconds = |per_second: u32| bytes as f64 * 1000.0 / f64::from(per_second);
            events.push(Meaning::Audio(Sound {
                duration: per_second.filter(|rate| *rate > 0).map(milliseconds),
                choice: 0,
            }));
        }
    }

    /// Reads WAV before its sound. If the header does not end within some kilobytes, the sound
    /// counts and its length is unknown.
    fn hear_header(&mut self, bytes: &[u8], events: &mut Vec<Meaning>) {
        self.header.extend_from_slice(bytes);
        match sound_of(&self.header) {
            Some(Header { per_second, start, length }) => {
                let sound = self.header.len() - start;
                self.per_second = Some(per_second);
                self.header = Vec::new();
                self.missing = length;
                if length == 0 {
                    self.end(events);
                }
                self.hear_stated(sound, self.per_second, events);
            }
            None if self.header.len() > HEADER_BYTES => {
                let sound = self.header.len();
                self.per_second = Some(0);
                self.header = Vec::new();
                self.end(events);
                self.push(sound, None, events);
            }
            None => {}
        }
    }
}

struct Header {
    per_second: u32,
    start: usize,
    /// The bytes of the sound; 0 if they were not known when it began.
    length: u32,
}

/// The header of a WAV file from its first bytes.
///
/// Source: the RIFF form `WAVE`: chunks of a name, a length and content, `fmt ` with the bytes per
/// second at its ninth byte, and `data` with the sound. While a server still makes the sound, the
/// stated length is 0 or the largest that programs can write, of 31 or 32 bits less the header.
fn sound_of(header: &[u8]) -> Option<Header> {
    const UNKNOWN: u32 = 0x7fff_0000;
    let number = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
    if header.get(..4)? != b"RIFF" || header.get(8..12)? != b"WAVE" {
        return None;
    }
    let (mut at, mut per_second) = (12, None);
    loop {
        let name = header.get(at..at + 4)?;
        let length = number(at + 4)? as usize;
        match name {
            b"fmt " => per_second = Some(number(at + 16)?),
            b"data" => {
                let length = u32::try_from(length).ok().filter(|length| *length < UNKNOWN);
                let (start, length) = (at + 8, length.unwrap_or(0));
                return Some(Header { per_second: per_second?, start, length });
            }
            _ => {}
        }
        at = at.checked_add(8 + length + length % 2)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One channel of 16 bits at 8,000 Hz, with a chunk before the sound, as ffmpeg writes one.
    fn wav(sound: &[u8]) -> Vec<u8> {
        stating(u32::MAX, sound)
    }

    /// The same with this length in its header.
    fn stating(length: u32, sound: &[u8]) -> Vec<u8> {
        let mut file = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        file.extend(8_000u32.to_le_bytes());
        file.extend(16_000u32.to_le_bytes());
        file.extend(b"\x02\0\x10\0LIST\x03\0\0\0abc\0data");
        file.extend(length.to_le_bytes());
        file.extend(sound);
        file
    }

    fn events(streaming: bool, format: Format, pieces: &[&[u8]]) -> Result<Vec<Meaning>, Error> {
        let options = Options { format, stream_format: StreamFormat::Audio, ..Options::default() };
        let (mut reply, mut events) = (Reply::begin(streaming), Vec::new());
        for data in pieces {
            decode(&mut reply, &options, &Frame { name: None, data }, &mut events)?;
        }
        Ok(events)
    }

    fn durations(format: Format, pieces: &[&[u8]]) -> Vec<Option<f64>> {
        let mut events = events(true, format, pieces).unwrap();
        let end = events.iter().position(|event| *event == Meaning::EndsWithBody);
        events.remove(end.expect("an end"));
        let sounds = events.iter().map(|event| match event {
            Meaning::Audio(sound) => sound.duration,
            other => panic!("{other:?}"),
        });
        sounds.collect()
    }

    #[test]
    fn sound_has_the_length_of_its_bytes() {
        assert_eq!(durations(Format::Pcm, &[&[0; 480], &[0; 48]]), [Some(10.0), Some(1.0)]);
        assert_eq!(durations(Format::Mp3, &[&[0; 480]]), [None]);
        let file = wav(&[0; 1600]);
        assert_eq!(durations(Format::Wav, &[&file]), [Some(100.0)]);
    }

    #[test]
    fn a_header_may_be_cut_anywhere() {
        let file = wav(&[0; 160]);
        for cut in 1..file.len() {
            let sum: f64 = durations(Format::Wav, &[&file[..cut], &file[cut..]])
                .into_iter()
                .map(|length| length.expect("a length"))
                .sum();
            assert!((sum - 10.0).abs() < 1e-9, "cut at {cut}: {sum}");
        }
    }

    #[test]
    fn sound_that_was_cut_is_no_answer() {
        let file = stating(1600, &[0; 1600]);
        let ends = |pieces: &[&[u8]]| {
            events(true, Format::Wav, pieces).unwrap().contains(&Meaning::EndsWithBody)
        };
        for cut in 1..file.len() {
            assert!(!ends(&[&file[..cut]]), "cut at {cut}");
            assert!(ends(&[&file[..cut], &file[cut..], b"LIST"]), "cut at {cut}");
        }
        assert_eq!(events(false, Format::Wav, &[&file]).unwrap().len(), 1);
        let cut = events(false, Format::Wav, &[&file[..file.len() - 100]]).unwrap_err();
        assert!(
            matches!(&cut, Error::Protocol(message) if message.contains("100 bytes more")),
            "{cut:?}"
        );
        for unknown in [0, 0x7fff_ffff, u32::MAX - 36] {
            assert!(ends(&[&stating(unknown, &[0; 1600])]), "{unknown}");
        }
    }

    #[test]
    fn sound_that_is_not_wav_has_no_length() {
        assert_eq!(durations(Format::Wav, &[&[7; HEADER_BYTES + 1], &[7; 10]]), [None, None]);
    }
}
