//! An exchange: one request and all that came of it. This is the unit that is recorded,
//! and everything that is ever reported of a run is computed from its exchanges.
//!
//! It holds what was seen, not what it amounts to: definitions of metrics are `metric`'s.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Which part of the run a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before the measurement; recorded, never counted.
    Warmup,
    /// What the result is made of.
    Measure,
}

/// One request and all that came of it. Every instant is in nanoseconds since the run's origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Exchange {
    /// Position in its phase's sequence of samples, from 0.
    pub index: u64,
    /// Which part of the run it belongs to.
    pub phase: Phase,
    /// What was asked.
    pub sample: SampleFacts,
    /// When it should have been sent. In a closed loop, when its slot became free.
    pub due: Nanos,
    /// When the cap on requests in flight let it go; absent without a cap, or if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<Nanos>,
    /// Which of the plan's targets it was for, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub target: u32,
    /// How its connection came about; absent if it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,
    /// When its first byte was handed to the socket; absent if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Nanos>,
    /// When its last byte was handed to the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Nanos>,
    /// When the reply's first byte was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte: Option<Nanos>,
    /// When the reply's headers were whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Nanos>,
    /// The reply's HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The longest that bytes of the reply lay in the socket before they were read; absent where
    /// the system did not say when they came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_lag: Option<Nanos>,
    /// What the reply's frames meant, and when each arrived.
    pub events: Events,
    /// When the reply ended, well or badly; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Nanos>,
    /// The answer's text.
    pub output: String,
    /// The text of its reasoning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The text of its tool calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_calls: String,
    /// The server's own word for why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// What the server counted, if it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How it went.
    pub outcome: Outcome,
}

/// How a connection came about. Opened ahead of need, it is older than the request it carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Connection {
    /// Whether it had carried a request before, or carried others at the same time.
    pub reused: bool,
    /// Whether it was opened because this request found none, so that the request waited for it.
    pub waited: bool,
    /// When its opening began.
    pub begun: Nanos,
    /// When the host's name was looked up; absent where that was known from an earlier connection, or an
    /// address was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_up: Option<Nanos>,
    /// When the other side took it.
    pub connected: Nanos,
    /// When TLS was agreed on; absent without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secured: Option<Nanos>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What a record keeps of a sample. The prompt itself is not kept: the plan gives it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SampleFacts {
    /// Unique within the run.
    pub id: String,
    /// Tokens of the prompt as the dataset counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u32>,
    /// Tokens of output that were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    /// What a scorer compares the answer with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<serde_json::Value>,
    /// Where it stands in a conversation of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
    /// The kind of sample it is, in the dataset's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The adapter that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// Bytes of the request's body.
    pub request_bytes: u64,
    /// First 16 hexadecimal digits of the SHA-256 of method, path and body.
    pub request_digest: String,
}

/// Where a sample stands in a conversation of several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Turn {
    /// The conversation's name, unique within a run.
    pub session: String,
    /// Which of its turns this is, from 0.
    pub index: u32,
}

/// What the server says it counted. Absent is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u32>,
    /// Of these, tokens found in the prefix cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u32>,
    /// Tokens of the answer, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    /// Of these, tokens of reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u32>,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The reply has begun; nothing of the answer yet.
    Role,
    /// A piece of the answer.
    Text,
    /// A piece of reasoning.
    Reasoning,
    /// A piece of a tool call.
    Tool,
    /// What the server counted.
    Usage,
    /// Why it stopped.
    Finish,
    /// An error inside a reply that began as a success.
    Failure,
    /// The end marker.
    End,
}

impl Kind {
    /// Whether such an event carries output: text, reasoning or a tool call.
    pub fn is_output(self) -> bool {
        matches!(self, Kind::Text | Kind::Reasoning | Kind::Tool)
    }
}

/// What a reply's frames meant, in order of arrival: columns of equal length, but for `tokens`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Events {
    /// When the bytes that complete the event's frame were read. Events of one read share an instant.
    pub at: Vec<Nanos>,
    /// What each is, a letter an event: `o` role, `t` text, `r` reasoning, `c` tool call, `u` usage,
    /// `f` finish, `x` failure, `e` end.
    #[serde(with = "letters")]
    #[schemars(with = "String", regex(pattern = r"^[otrcufxe]*$"))]
    pub kind: Vec<Kind>,
    /// Tokens each stands for, where the server says so; empty where it never does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Option<u32>>,
    /// Bytes of UTF-8 text each adds; 0 for events that carry none, and for empty pieces.
    pub bytes: Vec<u32>,
}

/// Kinds as letters: a long answer has thousands of events, and a record should stay small.
mod letters {
    use super::Kind;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    const LETTERS: [(Kind, char); 8] = [
        (Kind::Role, 'o'),
        (Kind::Text, 't'),
        (Kind::Reasoning, 'r'),
        (Kind::Tool, 'c'),
        (Kind::Usage, 'u'),
        (Kind::Finish, 'f'),
        (Kind::Failure, 'x'),
        (Kind::End, 'e'),
    ];

    pub fn serialize<S: Serializer>(kinds: &[Kind], serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = kinds
            .iter()
            .filter_map(|kind| LETTERS.iter().find(|(known, _)| known == kind))
            .map(|(_, letter)| letter)
            .collect();
        serializer.serialize_str(&text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Kind>, D::Error> {
        String::deserialize(deserializer)?
            .chars()
            .map(|c| {
                LETTERS
                    .iter()
                    .find(|(_, letter)| *letter == c)
                    .map(|(kind, _)| *kind)
                    .ok_or_else(|| D::Error::custom(format!("unknown event kind `{c}`")))
            })
            .collect()
    }
}

/// One event of [`Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When its frame was complete.
    pub at: Nanos,
    /// What it is.
    pub kind: Kind,
    /// Tokens it stands for, where the server says so.
    pub tokens: Option<u32>,
    /// Bytes of text it adds.
    pub bytes: u32,
}

impl Events {
    /// Appends one event.
    pub fn push(&mut self, event: Event) {
        if event.tokens.is_some() {
            self.tokens.resize(self.at.len(), None);
        }
        if event.tokens.is_some() || !self.tokens.is_empty() {
            self.tokens.push(event.tokens);
        }
        self.at.push(event.at);
        self.kind.push(event.kind);
        self.bytes.push(event.bytes);
    }

    /// The events in order of arrival.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Event> + '_ {
        (0..self.at.len()).map(|i| Event {
            at: self.at[i],
            kind: self.kind[i],
            tokens: self.tokens.get(i).copied().flatten(),
            bytes: self.bytes[i],
        })
    }

    /// Whether the columns are of equal length, as a record read from outside must be.
    pub fn is_consistent(&self) -> bool {
        let len = self.at.len();
        self.kind.len() == len
            && self.bytes.len() == len
            && (self.tokens.is_empty() || self.tokens.len() == len)
    }
}

/// How an exchange went. A failure is never counted as a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum Outcome {
    /// The reply was whole and held an answer.
    Ok,
    /// It was not.
    Failed {
        /// What kind of failure.
        class: FailureClass,
        /// Why the server refused, as far as its reply tells; absent where it does not, and where the server
        /// did not refuse.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
        /// What was seen, for people; no secrets.
        message: String,
    },
}

crate::words! {
    /// The kinds of failure. Each is counted and printed apart.
    pub enum FailureClass {
        /// It was due, but the run ended before the cap on requests in flight let it go.
        NotSent = "not-sent",
        /// No connection could be made.
        Connect = "connect",
        /// The connection broke before the reply's headers.
        Send = "send",
        /// The server answered with an HTTP status that is not a success.
        HttpStatus = "http-status",
        /// The server reported an error inside a reply that began as a success.
        InBandError = "in-band-error",
        /// The reply ended before its end marker.
        CutOff = "cut-off",
        /// The reply was whole but held no answer.
        Empty = "empty",
        /// No connection within the time allowed.
        ConnectTimeout = "connect-timeout",
        /// Nothing of the answer within the time allowed for its first token.
        FirstTokenTimeout = "first-token-timeout",
        /// No more of the answer within the time allowed between tokens.
        TokenGapTimeout = "token-gap-timeout",
        /// The answer was not whole within the time allowed for a request.
        RequestTimeout = "request-timeout",
        /// The reply is not in the backend's dialect.
        Protocol = "protocol",
        /// The plugin trapped, ran too long or broke its contract.
        Plugin = "plugin",
        /// The run was stopped while the request was in flight.
        Interrupted = "interrupted",
    }
}

crate::words! {
    /// Why a server did not answer, in words that all engines share; the backend reads them off the reply.
    pub enum Reason {
        /// It has too much to do: a full queue, a limit on the rate of requests.
        Overloaded = "overloaded",
        /// It does not serve yet, or no more.
        Unavailable = "unavailable",
        /// Prompt and answer are longer than the model's context.
        TooLong = "too-long",
        /// It serves no such model or adapter.
        UnknownModel = "unknown-model",
        /// The key is missing or wrong, or may not do this.
        Unauthorised = "unauthorised",
        /// The request is wrong in another way.
        Invalid = "invalid",
        /// The server failed.
        Internal = "internal",
    }
}

impl Exchange {
    /// Whether the reply was whole and held an answer.
    pub fn is_ok(&self) -> bool {
        self.outcome == Outcome::Ok
    }
}
