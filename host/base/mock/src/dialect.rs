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

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use hyper::header::HeaderValue;

use crate::answer::{Answer, Finish};
use crate::ask::types::Ask;
use crate::truth::Timings;
use crate::wire::{Head, Piece, Wire};
pub(super) use read::routes;
use template::{Template, Values};

/// A route that a script defines. It takes precedence over the built-in routes.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedRoute {
    pub(super) method: Method,
    pub(super) path: String,
    /// True if requests need the script's API key.
    pub(super) asks_for_key: bool,
    pub(super) content: Content,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Fixed(Fixed),
    Answers(std::sync::Arc<Dialect>),
}

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

#[derive(Clone, Copy, Debug, PartialEq)]
enum Framing {
    /// One line each.
    Lines,
    /// A `data:` line and an empty line each.
    EventStream,
    /// Some zero bytes, then a length of some bytes, then the event.
    LengthPrefixed {
        skip: usize,
        width: usize,
        little_endian: bool,
    },
    /// Messages of AWS's event stream: each line of an event is one.
    AwsEventStream,
    Raw,
}

impl Dialect {
    pub fn error_body(&self, status: u16, message: &str) -> Vec<u8> {
        let mut out = Vec::new();
        self.error.write(&Self::of_error(status, message), &mut out);
        out
    }

    pub(crate) fn error_event(&self, status: u16, message: &str, out: &mut Vec<u8>) {
        let mut event = Vec::new();
        self.error_event.write(&Self::of_error(status, message), &mut event);
        self.framing.put(&event, out);
    }

    fn of_error(status: u16, message: &str) -> Values<'_> {
        Values { message, status, ..Values::default() }
    }

    /// Bytes before an event that keep a connection alive; empty if the framing has none.
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

impl FinishWords {
    fn word(&self, finish: Finish) -> &str {
        let own = match finish {
            Finish::Stop => &self.stop,
            Finish::Length => &self.length,
        };
        own.as_deref().unwrap_or(finish.name())
    }
}

pub(super) struct ScriptedWriter {
    dialect: Arc<Dialect>,
    id: String,
    model: String,
    input_tokens: u32,
    cached_tokens: u32,
    index: Cell<u32>,
    tokens: Cell<u32>,
    /// The time when the last of them were due.
    seconds: Cell<f64>,
    /// The engine's own timings until then.
    timings: Cell<Timings>,
}

impl ScriptedWriter {
    pub fn new(dialect: &Arc<Dialect>, ask: &Ask, head: &Head<'_>) -> Self {
        ScriptedWriter {
            dialect: Arc::clone(dialect),
            id: head.id(),
            model: ask.model.as_deref().unwrap_or(head.model).to_owned(),
            input_tokens: ask.prompt_tokens,
            cached_tokens: head.cached_tokens,
            index: Cell::new(0),
            tokens: Cell::new(0),
            seconds: Cell::new(0.0),
            timings: Cell::new(Timings::default()),
        }
    }

    fn values<'a>(&'a self, answer: &'a Answer, from: u32, to: u32) -> Values<'a> {
        Values {
            text: answer.piece(from, to),
            text_so_far: answer.piece(0, to),
            ids: answer.ids(from, to),
            tokens: to,
            index: self.index.get(),
            id: &self.id,
            model: &self.model,
            input_tokens: self.input_tokens,
            cached_tokens: self.cached_tokens,
            output_tokens: answer.tokens,
            finish: self.dialect.finish.word(answer.finish),
            seconds: self.seconds.get(),
            timings: self.timings.get(),
            ..Values::default()
        }
    }

    fn event(&self, template: Option<&Template>, values: &Values<'_>, out: &mut Vec<u8>) {
        let Some(template) = template else { return };
        let mut event = Vec::with_capacity(256);
        template.write(values, &mut event);
        self.dialect.framing.put(&event, out);
        self.index.set(self.index.get() + 1);
    }

    /// The values of an event after the last token, or after the last token that was sent if the
    /// reply broke off. It adds no text.
    fn after<'a>(&'a self, answer: &'a Answer) -> Values<'a> {
        let sent = self.tokens.get();
        Values { output_tokens: sent, ..self.values(answer, sent, sent) }
    }
}

impl Wire for ScriptedWriter {
    fn role(&self, out: &mut Vec<u8>) {
        let values = Values {
            index: self.index.get(),
            id: &self.id,
            model: &self.model,
            input_tokens: self.input_tokens,
            cached_tokens: self.cached_tokens,
            ..Values::default()
        };
        self.event(self.dialect.first.as_ref(), &values, out);
    }

    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        let dialect = &self.dialect;
        let last = dialect.last.as_ref().filter(|_| piece.last);
        self.seconds.set(piece.seconds);
        self.timings.set(piece.timings.unwrap_or_default());
        self.tokens.set(piece.to);
        let values = self.values(answer, piece.from, piece.to);
        self.event(last.or(dialect.event.as_ref()), &values, out);
    }

    fn usage(&self, answer: &Answer, out: &mut Vec<u8>) {
        self.event(self.dialect.usage.as_ref(), &self.after(answer), out);
    }

    fn done(&self, answer: &Answer, out: &mut Vec<u8>) {
        self.event(self.dialect.end.as_ref(), &self.after(answer), out);
    }

    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>) {
        self.seconds.set(all.seconds);
        self.timings.set(all.timings.unwrap_or_default());
        if let Some(template) = &self.dialect.whole {
            template.write(&self.values(answer, 0, answer.tokens), out);
        }
    }
}
