//! A backend that misbehaves as its configuration says; by default it speaks OpenAI's completions
//! well enough for whole runs. It goes below the kit's own glue, which would not let it break the
//! contract.

use misdeeds::{Deed, PatchedDeed, commit, hook_panics, no_text};
use runner_plugin::bindings::{about, backend};
use runner_plugin::{Authentication, Control, Credentials, Earlier, Error, Framing, Head, Meaning};
use runner_plugin::{
    Outgoing, Output, Prepared, Prompt, Reading, Reason, Refusal, Request, Sample, ServedModel,
};
use runner_plugin::{Settings, Speculation, Timings, log};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The behaviour that is configured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Config {
    /// The misdeed.
    misbehave: Option<Deed>,
    /// An invalid answer to give.
    answer: Option<Answer>,
    /// The call for it; if absent, none.
    call: Option<Call>,
    /// Only if the sample, the frame or the body contains this.
    only_on: Option<String>,
    /// Log all inputs.
    spill: bool,
    /// The method of its requests.
    method: Option<String>,
    /// The path of its requests.
    path: Option<String>,
    /// Ask for bytes as they come, and leave them unread until a blank line.
    raw: bool,
    /// The header that the key goes into.
    key_header: Option<String>,
    /// The AWS service whose signature is needed.
    aws_service: Option<String>,
    /// A header field of its requests, name and value.
    header: Option<(String, String)>,
}

/// A call of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Call {
    Open,
    DefaultUrl,
    Control,
    ReadModels,
    ReadMetrics,
    Encode,
    Framing,
    Begin,
    Decode,
    Credentials,
    Explain,
}

/// An answer that breaks the contract, or is very large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Answer {
    /// An error of the user's configuration.
    Refuse,
    /// An error whose text is long and contains control characters.
    Shout,
    /// A text of 100 MB.
    Huge,
    /// A million empty strings, header fields or events.
    Million,
    /// An event of a frame that is not in the batch.
    FrameOutside,
    /// An event of an earlier frame after one of a later.
    FrameBackwards,
    /// A state of 64 KiB and a byte.
    LargeState,
    /// A state of 64 KiB.
    FullState,
    /// 64 KiB and a byte to carry to the next request.
    LargeCarry,
    /// 64 KiB to carry to the next request.
    FullCarry,
    /// A timing below zero.
    NegativeTiming,
    /// A timing that is not a number.
    TimingOfNothing,
    /// A timing without end.
    EndlessTiming,
    /// A list of steps that does not add up to their number.
    UnevenSteps,
    /// A list of steps with an entry more than allowed.
    LongSteps,
    /// A list of steps that is as long as allowed, and timings of zero.
    FullSteps,
    /// A count whose name is no name.
    WrongCount,
    /// A count whose name is longer than allowed.
    LongCount,
    /// A method that is not allowed, after the exchange.
    WrongCleanUp,
    /// The last byte is left unread.
    Unread,
    /// A byte more is left unread than there was.
    UnreadTooMuch,
    /// Eight megabytes of text for every frame.
    Swell,
    /// A text that is not UTF-8.
    NoText,
    /// A message to send, although there is no WebSocket.
    SendOutside,
    /// Releases held messages, although there is no WebSocket.
    ProceedOutside,
}

/// The misdeed before there is a configuration.
#[cfg(target_arch = "wasm32")]
static AT_START: PatchedDeed = PatchedDeed::nothing(b"misdeed at start: nothing...............");
static IN_DESCRIBE: PatchedDeed = PatchedDeed::nothing(b"misdeed in describe: nothing............");

pub struct Codec(Config);

impl Codec {
    /// Does the configured misdeed if it belongs to this call, about `matter`.
    fn tempted(&self, call: Call, matter: &[u8]) -> Option<Answer> {
        let config = &self.0;
        if config.spill {
            log::info(&format!("{call:?}: {}", String::from_utf8_lossy(matter)));
        }
        let wanted = config.only_on.as_deref().unwrap_or_default().as_bytes();
        let is_there = wanted.is_empty() || matter.windows(wanted.len()).any(|part| part == wanted);
        if config.call != Some(call) || !is_there {
            return None;
        }
        if let Some(deed) = config.misbehave {
            commit(deed);
        }
        config.answer
    }

    fn request(&self, body: Vec<u8>) -> Request {
        Request {
            method: self.0.method.clone().unwrap_or_else(|| "POST".to_owned()),
            path: self.0.path.clone().unwrap_or_else(|| "/v1/completions".to_owned()),
            headers: self.0.header.iter().cloned().collect(),
            body,
        }
    }
}

fn huge() -> String {
    "x".repeat(100 << 20)
}

fn checked(answer: Option<Answer>) -> Result<Option<Answer>, Error> {
    match answer {
        Some(Answer::Refuse) => {
            Err(Error::InvalidConfig("key `call`: refused on purpose".to_owned()))
        }
        Some(Answer::Shout) => Err(Error::Other("\u{1b}[2J shout ".repeat(100_000))),
        other => Ok(other),
    }
}

/// Leaves bytes unread until they end in a blank line, then returns their number.
fn wait(state: Vec<u8>, frames: &backend::Frames) -> backend::Decoded {
    let mut events = Vec::new();
    let mut unread = frames.bytes.len() as u32;
    if frames.bytes.ends_with(b"\n\n") {
        let frame = frames.ends.len() as u32 - 1;
        let mut add = |what| events.push(backend::Event { frame, what });
        add(text(&unread.to_string()));
        add(Meaning::End);
        unread = 0;
    }
    backend::Decoded { events, state, unread }
}

fn timings(decode: f64) -> Meaning {
    Meaning::Timings(Timings { decode: Some(decode), ..Timings::default() })
}

fn steps(steps: u32, steps_by_accepted: Vec<u32>) -> Meaning {
    Meaning::Speculation(Speculation { steps, steps_by_accepted })
}

fn text(text: &str) -> Meaning {
    Meaning::Text(Output { text: text.to_owned(), tokens: None, choice: 0 })
}

impl backend::GuestCodec for Codec {
    fn open(config: String) -> Result<backend::Codec, Error> {
        hook_panics();
        let codec = Codec(runner_plugin::parse(&config)?);
        checked(codec.tempted(Call::Open, config.as_bytes()))?;
        Ok(backend::Codec::new(codec))
    }

    fn default_url(&self) -> String {
        match self.tempted(Call::DefaultUrl, b"") {
            Some(Answer::Huge) => huge(),
            Some(Answer::NoText) => no_text(),
            _ => "http://127.0.0.1:8000".to_owned(),
        }
    }

    fn control(&self, _control: Control) -> Option<Request> {
        self.tempted(Call::Control, b"");
        let Config { method, path, header, .. } = &self.0;
        let steered = method.is_some() || path.is_some() || header.is_some();
        steered.then(|| self.request(Vec::new()))
    }

    fn read_metrics(&self, body: Vec<u8>) -> Result<Vec<Reading>, Error> {
        checked(self.tempted(Call::ReadMetrics, &body))?;
        Ok(Vec::new())
    }

    fn credentials(&self) -> Credentials {
        let variable = match self.tempted(Call::Credentials, b"") {
            Some(Answer::Huge) => Some(huge()),
            _ => None,
        };
        let scheme = match (&self.0.key_header, &self.0.aws_service) {
            (Some(name), _) => Authentication::Header(name.clone()),
            (_, Some(service)) => Authentication::Sigv4(service.clone()),
            _ => Authentication::Bearer,
        };
        Credentials { variable, ..Credentials::new(scheme) }
    }

    fn read_models(&self, body: Vec<u8>) -> Result<Vec<ServedModel>, Error> {
        let named = |name| ServedModel { name, root: None, context_tokens: None };
        Ok(match checked(self.tempted(Call::ReadModels, &body))? {
            Some(Answer::Million) => (0..1_000_000).map(|_| named(String::new())).collect(),
            Some(Answer::Huge) => vec![named(huge())],
            _ => Vec::new(),
        })
    }

    fn prepare(&self) -> Option<Request> {
        None
    }

    fn read_prepared(&self, body: Vec<u8>) -> Result<Prepared, Error> {
        Ok(Prepared { value: body, lifetime: None })
    }

    fn encode(
        &self,
        sample: Sample,
        settings: Settings,
        earlier: Option<Earlier>,
    ) -> Result<backend::Call, Error> {
        let Prompt::Text(prompt) = &sample.prompt else {
            return Err(Error::InvalidConfig("it asks texts only".to_owned()));
        };
        let matter = format!("{sample:?} {settings:?} {earlier:?}");
        let answer = checked(self.tempted(Call::Encode, matter.as_bytes()))?;
        let body = json!({
            "model": settings.model,
            "prompt": prompt,
            "max_tokens": sample.output_tokens,
            "stream": true,
        });
        let mut request = self.request(body.to_string().into_bytes());
        match answer {
            Some(Answer::Million) => {
                request.headers = vec![(String::new(), String::new()); 1_000_000]
            }
            Some(Answer::Huge) => request.body = huge().into_bytes(),
            _ => {}
        }
        Ok(backend::Call::Request(request))
    }

    fn framing(&self, _streaming: bool) -> Framing {
        self.tempted(Call::Framing, b"");
        if self.0.raw { Framing::Raw } else { Framing::EventStream }
    }

    fn begin(&self, head: Head) -> Result<Vec<u8>, Error> {
        let matter = format!("{head:?}");
        Ok(match checked(self.tempted(Call::Begin, matter.as_bytes()))? {
            Some(Answer::LargeState) => vec![0; (64 << 10) + 1],
            Some(Answer::FullState) => vec![0; 64 << 10],
            Some(Answer::Huge) => huge().into_bytes(),
            _ => Vec::new(),
        })
    }

    fn decode(&self, state: Vec<u8>, frames: backend::Frames) -> Result<backend::Decoded, Error> {
        if self.0.raw {
            if self.0.spill {
                log::info(&format!("{} bytes to read", frames.bytes.len()));
            }
            let mut decoded = wait(state, &frames);
            match checked(self.tempted(Call::Decode, &frames.bytes))? {
                Some(Answer::LargeState) => decoded.state = vec![0; (64 << 10) + 1],
                Some(Answer::FullState) => decoded.state = vec![0; 64 << 10],
                Some(Answer::UnreadTooMuch) => decoded.unread = frames.bytes.len() as u32 + 1,
                _ => {}
            }
            return Ok(decoded);
        }
        let mut decoded = backend::Decoded { events: Vec::new(), state, unread: 0 };
        let mut start = 0;
        for (index, end) in frames.ends.iter().enumerate() {
            let data = &frames.bytes[start..*end as usize];
            start = *end as usize;
            let answer = checked(self.tempted(Call::Decode, data))?;
            let mut add = |frame: usize, what| {
                decoded
                    .events
                    .push(backend::Event { frame: u32::try_from(frame).unwrap_or(u32::MAX), what });
            };
            match answer {
                Some(Answer::FrameOutside) => add(frames.ends.len(), Meaning::Opened),
                Some(Answer::FrameBackwards) if index > 0 => add(0, Meaning::Opened),
                Some(Answer::Million) => (0..1_000_000).for_each(|_| add(index, text(""))),
                Some(Answer::Huge) => add(index, text(&huge())),
                Some(Answer::NoText) => add(index, text(&no_text())),
                Some(Answer::Swell) => add(index, text(&"x".repeat(8 << 20))),
                Some(Answer::LargeState) => decoded.state = vec![0; (64 << 10) + 1],
                Some(Answer::FullState) => decoded.state = vec![0; 64 << 10],
                Some(Answer::LargeCarry) => add(index, Meaning::Carry(vec![0; (64 << 10) + 1])),
                Some(Answer::FullCarry) => add(index, Meaning::Carry(vec![0; 64 << 10])),
                Some(Answer::NegativeTiming) => add(index, timings(-1e-9)),
                Some(Answer::TimingOfNothing) => add(index, timings(f64::NAN)),
                Some(Answer::EndlessTiming) => add(index, timings(f64::INFINITY)),
                Some(Answer::UnevenSteps) => add(index, steps(4, vec![1, 2])),
                Some(Answer::LongSteps) => add(index, steps(1025, vec![1; 1025])),
                Some(Answer::FullSteps) => {
                    add(index, timings(0.0));
                    add(index, steps(1024, vec![1; 1024]));
                }
                Some(Answer::WrongCount) => {
                    add(index, Meaning::Count(("Image tokens".to_owned(), 1)));
                }
                Some(Answer::LongCount) => add(index, Meaning::Count(("x".repeat(65), 1))),
                Some(Answer::WrongCleanUp) => {
                    let method = "CONNECT".to_owned();
                    add(index, Meaning::CleanUp(Request { method, ..self.request(Vec::new()) }));
                }
                Some(Answer::Unread) => decoded.unread = 1,
                Some(Answer::SendOutside) => {
                    add(index, Meaning::Send(Outgoing::binary(Vec::new())));
                }
                Some(Answer::ProceedOutside) => add(index, Meaning::Proceed),
                _ => {}
            }
            let mut add = |what| {
                decoded.events.push(backend::Event { frame: index as u32, what });
            };
            if data == b"[DONE]" {
                add(Meaning::End);
                continue;
            }
            let chunk: Value =
                serde_json::from_slice(data).map_err(|error| Error::Protocol(error.to_string()))?;
            let choice = &chunk["choices"][0];
            if let Some(piece) = choice["text"].as_str() {
                add(text(piece));
            }
            if let Some(reason) = choice["finish_reason"].as_str() {
                add(Meaning::Finish(reason.to_owned()));
            }
        }
        Ok(decoded)
    }

    fn explain(&self, status: u16, body: Vec<u8>) -> Refusal {
        Refusal {
            reason: Reason::Other,
            message: match self.tempted(Call::Explain, &body) {
                Some(Answer::Huge) => huge(),
                _ => format!("status {status}"),
            },
        }
    }
}

pub struct Component;

impl about::Guest for Component {
    fn describe() -> about::Info {
        IN_DESCRIBE.commit();
        about::Info {
            name: "hostile".to_owned(),
            // A version of its own, so that a release changes no page that shows it.
            version: "0.1.0".to_owned(),
            summary: env!("CARGO_PKG_DESCRIPTION").to_owned(),
            config_schema: runner_plugin::schema::<Config>(),
        }
    }
}

impl backend::Guest for Component {
    type Codec = Codec;
}

/// Called as an instance is made.
#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    AT_START.commit();
}

// Natively, where nothing calls it, the exports' names could not be linked.
#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code)]
const _: () = {
    about::export!(Component with_types_in about);
    backend::export!(Component with_types_in backend);
};
