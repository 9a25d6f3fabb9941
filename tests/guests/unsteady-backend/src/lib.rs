//! A backend that is steady or has one of the faults that only `runner plugin test` finds: nothing
//! traps, and no single call breaks the contract. It goes below the kit's own glue, which would not
//! let it.
//!
//! Its server's reply is one word per frame; `end` ends it. Framed as raw bytes, words end with a
//! line feed.

use std::cell::Cell;

use misdeeds::hook_panics;
use runner_plugin::bindings::{about, backend};
use runner_plugin::{
    Call, Control, Credentials, Earlier, Error, Framing, Head, LengthPrefix, Meaning, Output,
    Prepared, Reading, Reason, Refusal, Request, Sample, ServedModel, ServerMetric, Settings,
};
use schemars::JsonSchema;
use serde::Deserialize;

/// The behaviour that is configured.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct Config {
    /// The fault.
    fault: Option<Fault>,
    /// The framing of replies.
    framing: Cut,
}

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    /// Words contain the number of frames in their batch.
    ByBatch,
    /// Words are counted separately in each batch.
    Forgets,
    /// Words are counted in the instance, from each reply's beginning on.
    InInstance,
    /// Words are counted in the instance, from its own beginning on.
    Everlasting,
    /// Looks at the next frame.
    LooksAhead,
    /// Panics at a frame that is not a word.
    Trusting,
    /// No two requests are the same.
    Requests,
    /// Requests that follow others contain how many there were in the instance.
    NextRequests,
    /// Replies begin with the number of replies of the instance.
    Begins,
    /// Leaves a byte unread that it then reads a second time.
    ReadsTwice,
}

/// The framing of replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Cut {
    /// One word per line.
    #[default]
    Lines,
    /// Two bytes before each word give its length, little-endian.
    Lengths,
    /// Raw bytes.
    Raw,
}

pub struct Codec {
    config: Config,
    counted: Cell<u32>,
    requests: Cell<u32>,
    begun: Cell<u32>,
}

/// State between batches: the number of words so far.
struct State {
    words: u32,
}

impl State {
    fn thawed(bytes: &[u8]) -> Self {
        let words = bytes.first_chunk();
        State { words: words.map_or(0, |words| u32::from_le_bytes(*words)) }
    }

    fn frozen(&self) -> Vec<u8> {
        self.words.to_le_bytes().to_vec()
    }
}

impl Codec {
    fn is(&self, fault: Fault) -> bool {
        self.config.fault == Some(fault)
    }

    fn word(&self, state: &mut State, word: &[u8], together: usize) -> Result<Meaning, Error> {
        if word == b"end" {
            return Ok(Meaning::End);
        }
        let is_word = word.iter().all(u8::is_ascii_lowercase);
        assert!(is_word || !self.is(Fault::Trusting), "only words come");
        let Ok(word) = str::from_utf8(word) else {
            return Err(Error::Protocol("a word is no UTF-8".to_owned()));
        };
        if !is_word {
            return Err(Error::Protocol(format!("`{word}` is no word")));
        }
        state.words += 1;
        self.counted.set(self.counted.get() + 1);
        let text = match self.config.fault {
            Some(Fault::ByBatch) => format!("{word}/{together}"),
            Some(Fault::InInstance | Fault::Everlasting) => {
                format!("{word}#{}", self.counted.get())
            }
            _ => format!("{word}#{}", state.words),
        };
        Ok(Meaning::Text(Output { text, tokens: Some(1), choice: 0 }))
    }
}

impl Codec {
    /// Reads words that end with a line feed, and leaves an incomplete word unread.
    fn lines(&self, mut state: State, frames: &backend::Frames) -> Result<backend::Decoded, Error> {
        let bytes = &frames.bytes;
        let mut events = Vec::new();
        let mut start = 0;
        while let Some(length) = bytes[start..].iter().position(|byte| *byte == b'\n') {
            let end = start + length;
            let frame = frames.ends.partition_point(|known| (*known as usize) <= end);
            events.push(backend::Event {
                frame: frame as u32,
                what: self.word(&mut state, &bytes[start..end], frames.ends.len())?,
            });
            start = end + 1;
        }
        if self.is(Fault::ReadsTwice) {
            start = start.saturating_sub(1);
        }
        Ok(backend::Decoded { events, state: state.frozen(), unread: (bytes.len() - start) as u32 })
    }
}

impl backend::GuestCodec for Codec {
    fn open(config: String) -> Result<backend::Codec, Error> {
        hook_panics();
        Ok(backend::Codec::new(Codec {
            config: runner_plugin::parse(&config)?,
            counted: Cell::new(0),
            requests: Cell::new(0),
            begun: Cell::new(0),
        }))
    }

    fn default_url(&self) -> String {
        "http://127.0.0.1:8000".to_owned()
    }

    fn control(&self, control: Control) -> Option<Request> {
        (control == Control::Metrics).then(|| Request {
            method: "GET".to_owned(),
            path: "/counted".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        })
    }

    fn credentials(&self) -> Credentials {
        Credentials::none()
    }

    fn read_models(&self, _body: Vec<u8>) -> Result<Vec<ServedModel>, Error> {
        Ok(Vec::new())
    }

    fn read_metrics(&self, body: Vec<u8>) -> Result<Vec<Reading>, Error> {
        let value = str::from_utf8(&body).ok().and_then(|text| text.trim().parse().ok());
        let value: f64 = value.ok_or_else(|| Error::Protocol("no number".to_owned()))?;
        // Infinite if the server sends a number that is too large, which the contract forbids.
        if self.is(Fault::Trusting) || value.is_finite() {
            let metric = ServerMetric::OutputTokens;
            return Ok(vec![Reading { metric, value }]);
        }
        Err(Error::Protocol("too large a number".to_owned()))
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
        _settings: Settings,
        earlier: Option<Earlier>,
    ) -> Result<Call, Error> {
        self.requests.set(self.requests.get() + 1);
        let after = match &earlier {
            Some(earlier) => {
                format!("/after/{}/{}", String::from_utf8_lossy(&earlier.carry), earlier.messages)
            }
            None => String::new(),
        };
        let is_unsteady =
            self.is(Fault::Requests) || self.is(Fault::NextRequests) && earlier.is_some();
        let path = if is_unsteady {
            format!("/{}{after}/{}", sample.id, self.requests.get())
        } else {
            format!("/{}{after}", sample.id)
        };
        Ok(Call::Request(Request {
            method: "POST".to_owned(),
            path,
            headers: Vec::new(),
            body: Vec::new(),
        }))
    }

    fn framing(&self, _streaming: bool) -> Framing {
        match self.config.framing {
            Cut::Lines => Framing::Lines,
            Cut::Lengths => Framing::LengthPrefixed(LengthPrefix {
                skip: 0,
                width: 2,
                adjust: 0,
                little_endian: true,
            }),
            Cut::Raw => Framing::Raw,
        }
    }

    /// The number of words before the reply, from the header `x-words`.
    fn begin(&self, head: Head) -> Result<Vec<u8>, Error> {
        if !self.is(Fault::Everlasting) {
            self.counted.set(0);
        }
        self.begun.set(self.begun.get() + 1);
        let header = head.headers.iter().find(|(name, _)| name == "x-words");
        let words = match header {
            Some((_, words)) => words
                .parse()
                .map_err(|_| Error::Protocol(format!("`{words}` words before the reply")))?,
            None => 0,
        };
        let words = if self.is(Fault::Begins) { self.begun.get() } else { words };
        Ok(State { words }.frozen())
    }

    fn decode(&self, state: Vec<u8>, frames: backend::Frames) -> Result<backend::Decoded, Error> {
        let mut state = State::thawed(&state);
        if self.is(Fault::Forgets) {
            state.words = 0;
        }
        if self.config.framing == Cut::Raw {
            return self.lines(state, &frames);
        }
        let mut events = Vec::new();
        let mut start = 0;
        for (index, end) in frames.ends.iter().enumerate() {
            let data = &frames.bytes[start..*end as usize];
            start = *end as usize;
            let mut add = |what| {
                events.push(backend::Event { frame: index as u32, what });
            };
            let ends_here = frames.bytes[start..].starts_with(b"end");
            if self.is(Fault::LooksAhead) && ends_here {
                add(Meaning::Finish("stop".to_owned()));
            }
            add(self.word(&mut state, data, frames.ends.len())?);
        }
        Ok(backend::Decoded { events, state: state.frozen(), unread: 0 })
    }

    fn explain(&self, status: u16, body: Vec<u8>) -> Refusal {
        let message = if self.is(Fault::Trusting) {
            String::from_utf8(body).expect("only text comes")
        } else {
            String::from_utf8_lossy(&body).into_owned()
        };
        Refusal {
            reason: match status {
                429 => Reason::Overloaded,
                _ => Reason::Other,
            },
            message,
        }
    }
}

pub struct Component;

impl about::Guest for Component {
    fn describe() -> about::Info {
        about::Info {
            name: "unsteady".to_owned(),
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

// Natively, where nothing calls it, the exports' names could not be linked.
#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code)]
const _: () = {
    about::export!(Component with_types_in about);
    backend::export!(Component with_types_in backend);
};
