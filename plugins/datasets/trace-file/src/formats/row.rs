//! A row of a trace as one request, and the numbers and lines that rows are read from. Leaves their
//! names to the module of the format.

use runner_plugin::{Message, Part, Role};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::content::{self, Run};

pub(crate) const MOST_TOKENS: u64 = 4 << 20;

#[derive(Debug, Default)]
pub(crate) struct Row {
    /// Time when it arrived, in nanoseconds of the trace's clock.
    pub(crate) time: Option<i64>,
    /// Duration of the reply, in nanoseconds.
    pub(crate) took: Option<i64>,
    /// Time that the client waited before it, in nanoseconds, if the trace says so itself.
    pub(crate) wait: Option<i64>,
    pub(crate) session: Option<String>,
    /// Its own name and its predecessor's, in traces that link requests.
    pub(crate) link: Option<Link>,
    pub(crate) class: Option<String>,
    pub(crate) output: Option<u32>,
    pub(crate) content: Content,
    /// True if it holds only the new messages since the previous request of its session.
    pub(crate) delta: bool,
    /// True if the conversation begins anew with it, although it is a delta.
    pub(crate) anew: bool,
    /// The hash ids of its whole blocks, unless the row itself says whether it is a delta.
    pub(crate) ids: Vec<u64>,
    pub(crate) parameters: Map<String, Value>,
    pub(crate) repaired: Option<&'static str>,
    /// The reason why the row is no request.
    pub(crate) unusable: Option<&'static str>,
    /// True if it had pictures; the trace says only their number.
    pub(crate) pictures: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) name: i64,
    pub(crate) parent: Option<i64>,
}

#[derive(Debug)]
pub(crate) enum Content {
    /// Made up.
    Runs(Vec<Run>),
    /// Made up: the beginning of the session's previous prompt, and then new tokens.
    Split {
        prefix: u32,
        fresh: u32,
    },
    /// Made up: this many tokens. They continue the session's shorter prompts, or are the row's own
    /// where it has no session.
    Tokens(u32),
    Text(String),
    Messages(Vec<Message>),
}

impl Default for Content {
    fn default() -> Self {
        Content::Tokens(1)
    }
}

impl Content {
    pub(crate) fn tokens(&self) -> Option<u32> {
        match self {
            Content::Runs(runs) => Some(content::length(runs)),
            Content::Split { prefix, fresh } => Some(prefix.saturating_add(*fresh)),
            Content::Tokens(tokens) => Some(*tokens),
            Content::Text(_) | Content::Messages(_) => None,
        }
    }
}

pub(crate) fn parsed<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    runner_plugin::json::parse(line).map_err(|message| match line.trim_ascii_start().first() {
        Some(b'{') => message,
        _ => {
            let line = String::from_utf8_lossy(line.trim_ascii());
            let shown: String = line.chars().take(60).collect();
            format!("expected a JSON object, found `{shown}`")
        }
    })
}

pub(crate) fn nanos(seconds: f64) -> Option<i64> {
    let nanos = (seconds * 1e9).round();
    (nanos.abs() < 9e18).then_some(nanos as i64)
}

/// Tokens of a row, in bounds. 0 counts as 1: a server refuses an empty prompt or answer.
pub(crate) fn tokens(key: &str, tokens: u64) -> Result<(u32, bool), String> {
    if tokens > MOST_TOKENS {
        return Err(format!("`{key}` asks for {tokens} tokens; expected at most {MOST_TOKENS}"));
    }
    Ok((tokens.max(1) as u32, tokens == 0))
}

pub(crate) const NOTHING: &str = "a prompt or an answer of 0 tokens; it now has 1";

/// The messages of a JSON array. Errors: the number of the wrong message, and the expected form.
pub(super) fn messages(value: Value) -> Result<Vec<Message>, String> {
    let Value::Array(values) = value else { return Err("`messages` is no array".to_owned()) };
    if values.is_empty() {
        return Err("`messages` is empty".to_owned());
    }
    let mut messages = Vec::with_capacity(values.len());
    for (at, value) in values.into_iter().enumerate() {
        messages.push(message(value).map_err(|cause| format!("message {}: {cause}", at + 1))?);
    }
    Ok(messages)
}

fn message(value: Value) -> Result<Message, String> {
    let Value::Object(mut fields) = value else {
        return Err("expected an object with `role` and `content`".to_owned());
    };
    let role = match fields.shift_remove("role").as_ref().and_then(Value::as_str) {
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => {
            return Err(format!(
                "the role is {other:?}; expected system, developer, user, assistant or tool"
            ));
        }
    };
    let parts = match fields.shift_remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => vec![Part::Text(text)],
        Some(Value::Array(parts)) => parts.into_iter().map(part).collect::<Result<_, _>>()?,
        Some(other) => {
            return Err(format!("`content` is {other}; expected a text or an array of parts"));
        }
    };
    Ok(Message {
        role,
        parts,
        extra: (!fields.is_empty()).then(|| Value::Object(fields).to_string()),
    })
}

fn part(part: Value) -> Result<Part, String> {
    let kind = part["type"].as_str().unwrap_or_default().to_owned();
    match part["text"].as_str() {
        Some(text) if kind == "text" => Ok(Part::Text(text.to_owned())),
        _ => Err(format!("a part of type `{kind}`; expected parts of type `text`")),
    }
}

/// The content of a request's body, and its other fields, except fields that the run decides.
pub(super) fn body(mut body: Map<String, Value>) -> Result<(Content, Map<String, Value>), String> {
    for decided in ["model", "stream", "stream_options"] {
        body.shift_remove(decided);
    }
    let content = match (body.shift_remove("messages"), body.shift_remove("prompt")) {
        (Some(value), None) => Content::Messages(messages(value)?),
        (None, Some(Value::String(text))) => Content::Text(text),
        _ => return Err("`payload` has neither `messages` nor a text `prompt`".to_owned()),
    };
    Ok((content, body))
}
