//! Routes that a script defines: the wire format of an engine that is not built in, and fixed
//! replies to its other routes.
//!
//! Responsible for the type of such a route; `read` handles its keys in TOML, `ask` the parameters
//! of a request, and `wire` the bytes of its reply. As for every route, `reply` decides on the
//! events, their due times and their faults.

pub(super) mod ask;
mod aws;
mod read;
mod template;
mod wire;

use std::borrow::Cow;

use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderValue;

pub(super) use read::routes;
use template::{Template, Values};
pub(super) use wire::ScriptedWriter;

/// A route that a script defines. It takes precedence over the built-in routes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedRoute {
    pub(super) method: Method,
    pub(super) path: String,
    /// True if requests need the script's API key.
    pub(super) asks_for_key: bool,
    pub(super) content: Content,
}

/// The bytes that a scripted route sends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    /// Always the same reply.
    Fixed(Fixed),
    Answers(std::sync::Arc<Dialect>),
}

/// A reply that is always the same.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fixed {
    pub status: u16,
    pub content_type: Option<HeaderValue>,
    pub body: Bytes,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dialect {
    pub path: Cow<'static, str>,
    pointers: Pointers,
    framing: Framing,
    /// The engine's words for the reasons why an answer ends.
    finish: FinishWords,
    pub content_type: HeaderValue,
    pub whole_content_type: HeaderValue,
    first: Option<Template>,
    event: Option<Template>,
    last: Option<Template>,
    usage: Option<Template>,
    end: Option<Template>,
    whole: Option<Template>,
    error: Template,
    error_event: Template,
}

/// The places of a request's parameters: JSON pointers into its body.
#[derive(Clone, Debug, PartialEq)]
struct Pointers {
    prompt: String,
    tokens: Option<String>,
    ignore_eos: Option<String>,
    stream: Stream,
    model: Option<String>,
}

/// The requests that get a stream.
#[derive(Clone, Debug, PartialEq)]
enum Stream {
    Always,
    Never,
    /// Requests that have `true` at this pointer.
    Pointer(String),
}

/// An engine's words for the reasons why an answer ends; absent where they equal OpenAI's.
#[derive(Clone, Debug, Default, PartialEq)]
struct FinishWords {
    stop: Option<String>,
    length: Option<String>,
}

/// The way a streamed reply is cut into events.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Framing {
    /// One line each.
    Lines,
    /// A `data:` line and an empty line each.
    EventStream,
    /// Some zero bytes, then a length of some bytes, then the event.
    LengthPrefixed { skip: usize, width: usize, little_endian: bool },
    /// Messages of AWS's event stream: each line of an event is one.
    AwsEventStream,
    /// Exactly as in the templates.
    Raw,
}

impl Dialect {
    pub fn error_body(&self, status: u16, message: &str) -> Vec<u8> {
        let mut out = Vec::new();
        self.error.write(&Self::of_error(status, message), &mut out);
        out
    }

    /// An error as an event inside a reply that began as a success.
    pub(crate) fn error_event(&self, status: u16, message: &str, out: &mut Vec<u8>) {
        let mut event = Vec::new();
        self.error_event.write(&Self::of_error(status, message), &mut event);
        self.framing.put(&event, out);
    }

    fn of_error(status: u16, message: &str) -> Values<'_> {
        Values { message, status, ..Values::default() }
    }

    /// Bytes sent before an event to keep a connection alive, without a meaning; empty if the
    /// framing has no such thing.
    pub fn ping(&self) -> &'static [u8] {
        match self.framing {
            Framing::Lines => b"\n",
            Framing::EventStream => super::wire::bytes::PING,
            Framing::LengthPrefixed { .. } | Framing::AwsEventStream | Framing::Raw => b"",
        }
    }

    /// True if its events are lines, which may end in CR LF as well.
    pub(crate) fn has_lines(&self) -> bool {
        matches!(self.framing, Framing::Lines | Framing::EventStream)
    }
}

impl Framing {
    fn put(self, event: &[u8], out: &mut Vec<u8>) {
        match self {
            Framing::Lines => {
                out.extend(event);
                out.push(b'\n');
            }
            Framing::EventStream => {
                for line in event.split(|byte| *byte == b'\n') {
                    out.extend(b"data: ");
                    out.extend(line);
                    out.push(b'\n');
                }
                out.push(b'\n');
            }
            Framing::LengthPrefixed { skip, width, little_endian } => {
                out.resize(out.len() + skip, 0);
                let length = event.len() as u64;
                if little_endian {
                    out.extend(&length.to_le_bytes()[..width]);
                } else {
                    out.extend(&length.to_be_bytes()[8 - width..]);
                }
                out.extend(event);
            }
            Framing::AwsEventStream => aws::put(event, out),
            Framing::Raw => out.extend(event),
        }
    }
}
