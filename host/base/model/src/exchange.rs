//! An exchange: one request and everything that happened to it. This is the unit that is recorded,
//! and everything reported about a run is computed from its exchanges.
//!
//! It holds observations alone; `metric` defines the metrics that follow from them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::identity::Ids;
use crate::units::Nanos;

mod outcome;
mod stage;

pub use outcome::{Class, Outcome, Reason};
pub use stage::{Due, Open, Prepared, Reply};

/// The part of the run that a request belongs to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before the measurement; recorded, never counted.
    Warmup,
    /// The measured part, which the result is made from.
    Measure,
    /// After the measured part, while the last sessions of a number of them go on; counted, never
    /// measured.
    Tail,
}

/// One request and everything that happened to it. Every instant is in nanoseconds since the run's
/// origin.
#[model::apply(model::document!)]
pub struct Exchange {
    /// Position in its phase's sequence of samples, from 0.
    pub index: u64,
    /// Part of the run that it belongs to.
    pub phase: Phase,
    /// The sample that was sent.
    pub sample: SampleFacts,
    /// Instant at which it should have been sent. In a closed loop, when its slot became free; for
    /// a request that depends on others, when they had reached the required point, plus the delay.
    pub due: Nanos,
    /// Instant at which the first of the requests that it depends on released it; absent if it
    /// depends on none. It is due when the last of them released it, so the time between is its
    /// wait for the others.
    pub released: Option<Nanos>,
    /// Instant at which the cap on requests in flight released it; absent without a cap, or if it
    /// never did.
    pub granted: Option<Nanos>,
    /// Index of the target that it was sent to among the plan's targets, from 0.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub target: u32,
    /// Opening of the connection of its first request; absent if it had none.
    pub connection: Option<Connection>,
    /// Instant at which the first byte of its first request was handed to the socket; absent if it
    /// never was.
    pub sent: Option<Nanos>,
    /// Instant at which its last byte was handed to the socket.
    pub written: Option<Nanos>,
    /// Instant at which the last message before the first output was handed to a WebSocket: the end
    /// of that output's input. Absent without output.
    pub input_sent: Option<Nanos>,
    /// Instant at which the reply's first byte was read.
    pub first_byte: Option<Nanos>,
    /// Instant at which the reply's headers were complete, of the first reply if there were
    /// several.
    pub headers: Option<Nanos>,
    /// The HTTP status of the last reply.
    pub status: Option<u16>,
    /// The longest time that bytes of the reply were in the socket before they were read; absent
    /// without arrival times from the system.
    pub read_lag: Option<Nanos>,
    /// Meaning and arrival of the reply's frames.
    pub events: Events,
    /// Instant at which the reply ended, well or badly; absent if there was none.
    pub ended: Option<Nanos>,
    /// Its requests in the order in which they were sent, where each reply may lead to a next
    /// request; empty if it is of one request by its nature.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The answer's text.
    pub output: String,
    /// The text of its reasoning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The text of its tool calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_calls: String,
    /// The texts of further answers to the same request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Vectors that came back for texts to embed.
    pub vectors: Option<Vectors>,
    /// Order that came back for texts to rank, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Ranked>,
    /// The server's own finish reason.
    pub finish: Option<String>,
    /// The token counts from the server, if it reported them.
    pub usage: Option<Usage>,
    /// The server's own timings, if it reported them.
    pub timings: Option<ServerTimings>,
    /// The steps of speculative decoding, if the server reported them.
    pub speculation: Option<Speculation>,
    /// Length of the sound in the answer, in nanoseconds; absent if it has none, or if the length
    /// of a piece is not known.
    pub audio_duration: Option<Nanos>,
    /// Further numbers that the server counted for it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// The ids that it carried, to join a server's log with it; absent if it carried none.
    pub ids: Option<Box<Ids>>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The name of the count of microseconds that a gateway states as its own time.
pub const GATEWAY_OVERHEAD: &str = "gateway-overhead-us";

/// Words of servers for an answer that the limit of tokens ended.
const CUT: [&str; 6] = [
    "length",
    "limit",
    "max_tokens",
    "model_length",
    "max_output_tokens",
    "model_context_window_exceeded",
];

impl Exchange {
    /// True if the limit of tokens ended the answer, by the server's finish reason.
    pub fn is_cut(&self) -> bool {
        let finish = self.finish.as_deref().unwrap_or_default();
        CUT.iter().any(|word| word.eq_ignore_ascii_case(finish))
    }

    /// Returns the memory that it takes, in bytes, more or less.
    pub fn memory(&self) -> usize {
        let Events { at, kind, tokens, bytes } = &self.events;
        size_of::<Exchange>()
            + size_of_val(&**at)
            + size_of_val(&**kind)
            + size_of_val(&**tokens)
            + size_of_val(&**bytes)
            + self.output.len()
            + self.reasoning.len()
            + self.tool_calls.len()
            + self.choices.iter().map(String::len).sum::<usize>()
            + size_of_val(&*self.order)
            + size_of_val(&*self.steps)
            + self.speculation.as_ref().map_or(0, Speculation::memory)
            + self.counts.keys().map(|name| name.len() + size_of::<(String, u64)>()).sum::<usize>()
            + self.ids.as_ref().map_or(0, |ids| ids.memory())
    }
}

/// The opening of a connection. If it was opened ahead of need, it is older than the request it
/// carries.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct Connection {
    /// True if it had carried a request before, or carried others at the same time.
    pub reused: bool,
    /// True if the request had to wait for this connection to open.
    pub waited: bool,
    /// Instant at which its opening began.
    pub begun: Nanos,
    /// Instant at which the host's name was looked up; absent if it was known from an earlier
    /// connection, or an address was given.
    pub looked_up: Option<Nanos>,
    /// Instant at which the other side accepted it.
    pub connected: Nanos,
    /// Instant at which the TLS handshake ended; absent without TLS.
    pub secured: Option<Nanos>,
}

impl Connection {
    fn shift(&mut self, moved: impl Fn(Nanos) -> Nanos) {
        self.begun = moved(self.begun);
        self.connected = moved(self.connected);
        self.looked_up = self.looked_up.map(&moved);
        self.secured = self.secured.map(&moved);
    }
}

/// The vectors of one reply, without their numbers.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct Vectors {
    /// Number of vectors.
    pub count: u32,
    /// Number of dimensions of the longest.
    pub dimensions: u32,
}

/// The place of one text in an order.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Ranked {
    /// Index of the text among the request's texts, from 0.
    pub index: u32,
    /// Relevance to the query, in the server's own measure.
    pub score: f64,
}

/// The facts about a sample that a record keeps. The prompt itself is not kept, except for its end:
/// the plan reproduces it.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct SampleFacts {
    /// Unique within the run.
    pub id: String,
    /// Tokens of the prompt as the dataset counted them.
    pub input_tokens: Option<u32>,
    /// Length of the sound in the prompt, as the dataset measured it, in nanoseconds.
    pub audio_duration: Option<Nanos>,
    /// Time that the recorded request took, in nanoseconds, from the dataset.
    pub recorded_duration: Option<Nanos>,
    /// Number of output tokens that were requested.
    pub output_tokens: Option<u32>,
    /// The last few hundred characters of the prompt, so that an answer can be read; only with
    /// scorers.
    pub prompt_end: Option<String>,
    /// Value that a scorer compares the answer with.
    pub reference: Option<serde_json::Value>,
    /// Its position in a conversation of several turns.
    pub turn: Option<Turn>,
    /// The kind of sample, as the dataset names it.
    pub class: Option<String>,
    /// The requests that it depends on, by their index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<u64>,
    /// Number of requests that depend on it, directly or through others; only for a request that
    /// depends on none.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub descendants: u32,
    /// The history in front of it; absent if it begins a conversation.
    pub history: Option<History>,
    /// The requested adapter.
    pub adapter: Option<String>,
    /// Bytes of the request's body.
    pub request_bytes: u64,
    /// First 16 hexadecimal digits of the SHA-256 of method, path and body.
    pub request_digest: String,
}

/// The history that the host put in front of a request.
#[model::apply(model::document!)]
#[derive(Copy, Eq)]
pub struct History {
    /// The index of the request whose conversation it continues.
    pub continues: u64,
    /// Number of answers in it.
    pub answers: u32,
    /// Of these, answers on record in place of the server's.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub recorded: u32,
}

/// The position of a sample in a conversation of several turns.
#[model::apply(model::document!)]
#[derive(Eq)]
pub struct Turn {
    /// The conversation's name, unique within a run.
    pub session: String,
    /// Index of this turn in its session, from 0.
    pub index: u32,
}

/// The server's token counts. Absent is not zero.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub input_tokens: Option<u32>,
    /// Of these, tokens found in the prefix cache.
    pub cached_input_tokens: Option<u32>,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: Option<u32>,
    /// Of these, tokens of reasoning.
    pub reasoning_tokens: Option<u32>,
    /// Tokens that speculative decoding proposed for the answer.
    pub draft_tokens: Option<u32>,
    /// Of these, tokens that the model accepted, which are part of the answer.
    pub accepted_draft_tokens: Option<u32>,
    /// Tokens of images in the prompt.
    pub input_image_tokens: Option<u32>,
    /// Tokens of videos in the prompt, without their sound.
    pub input_video_tokens: Option<u32>,
    /// Tokens of audio in the prompt.
    pub input_audio_tokens: Option<u32>,
    /// Tokens of audio in the answer.
    pub output_audio_tokens: Option<u32>,
}

/// Durations of the parts of a request by the server's own clock, in nanoseconds. Absent is not
/// zero.
#[model::apply(model::document!)]
#[derive(Copy, Default, Eq)]
pub struct ServerTimings {
    /// From the request's entry into the queue to the first work on it.
    pub queue: Option<Nanos>,
    /// From the first work on the request to the first token of the answer.
    pub prefill: Option<Nanos>,
    /// From the receipt of the request to the first token of the answer.
    pub first_token: Option<Nanos>,
    /// From the first token of the answer to the last.
    pub decode: Option<Nanos>,
}

/// The steps of speculative decoding.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Speculation {
    /// Number of steps in which the model verified proposed tokens.
    pub steps: u32,
    /// Number of these steps that accepted 0, 1, 2, … of the proposed tokens; empty if the server
    /// did not report it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps_by_accepted: Vec<u32>,
}

impl Speculation {
    /// Returns the number of accepted tokens, from the list; absent without a list.
    pub fn accepted_tokens(&self) -> Option<u64> {
        let tokens = (0..)
            .zip(&self.steps_by_accepted)
            .map(|(tokens, steps): (u64, _)| tokens.saturating_mul(u64::from(*steps)));
        (!self.steps_by_accepted.is_empty()).then(|| tokens.fold(0, u64::saturating_add))
    }

    fn memory(&self) -> usize {
        size_of_val(&*self.steps_by_accepted)
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The reply has begun; there is no part of the answer yet.
    Role,
    /// A piece of the answer.
    Text,
    /// A piece of reasoning.
    Reasoning,
    /// A piece of a tool call.
    Tool,
    /// Token counts from the server.
    Usage,
    /// The finish reason.
    Finish,
    /// An error inside a reply that began as a success.
    Failure,
    /// The end marker.
    End,
    /// The vector of one text.
    Vector,
    /// An order of texts.
    Order,
    /// A piece of sound.
    Audio,
}

impl Kind {
    /// The kind that a letter stands for in a record.
    pub fn from_letter(letter: u8) -> Option<Self> {
        letters::kind(letter)
    }

    /// True if an event carries output: text, reasoning, a tool call, sound, a vector or an order.
    pub fn is_output(self) -> bool {
        matches!(
            self,
            Kind::Text | Kind::Reasoning | Kind::Tool | Kind::Audio | Kind::Vector | Kind::Order
        )
    }
}

/// The meanings of a reply's frames, in order of arrival: columns of equal length, except for
/// `tokens`.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Events {
    /// Instants at which the bytes that complete the event's frame were read. Events of one read
    /// share an instant.
    pub at: Vec<Nanos>,
    /// The kind of each, one letter per event: `o` role, `t` text, `r` reasoning, `c` tool call,
    /// `u` usage, `f` finish, `x` failure, `e` end, `v` vector, `k` order.
    #[serde(with = "letters")]
    #[schemars(with = "String", regex(pattern = r"^[otrcufxevka]*$"))]
    pub kind: Vec<Kind>,
    /// The number of tokens in each, if the server states it; empty if it never does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Option<u32>>,
    /// Bytes of UTF-8 text that each adds; 0 for events without text, and for empty pieces.
    pub bytes: Vec<u32>,
}

/// Kinds as letters, because a long answer has thousands of events and a record should stay small.
mod letters {
    use super::Kind;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    const LETTERS: [(Kind, char); 11] = [
        (Kind::Role, 'o'),
        (Kind::Text, 't'),
        (Kind::Reasoning, 'r'),
        (Kind::Tool, 'c'),
        (Kind::Usage, 'u'),
        (Kind::Finish, 'f'),
        (Kind::Failure, 'x'),
        (Kind::End, 'e'),
        (Kind::Vector, 'v'),
        (Kind::Order, 'k'),
        (Kind::Audio, 'a'),
    ];

    pub fn serialize<S: Serializer>(kinds: &[Kind], serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = kinds
            .iter()
            .filter_map(|kind| LETTERS.iter().find(|(known, _)| known == kind))
            .map(|(_, letter)| letter)
            .collect();
        serializer.serialize_str(&text)
    }

    /// The kind of each letter: a table, because a run's summary reads a letter for every event.
    const KINDS: [Option<Kind>; 128] = {
        let mut kinds = [None; 128];
        let mut at = 0;
        while at < LETTERS.len() {
            let (kind, letter) = LETTERS[at];
            kinds[letter as usize] = Some(kind);
            at += 1;
        }
        kinds
    };

    pub fn kind(letter: u8) -> Option<Kind> {
        KINDS.get(usize::from(letter)).copied().flatten()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Kind>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let kinds: Option<Vec<Kind>> = text.bytes().map(kind).collect();
        kinds.ok_or_else(|| {
            let is_unknown = |c: &char| u8::try_from(*c).ok().and_then(kind).is_none();
            let unknown = text.chars().find(is_unknown).unwrap_or_default();
            D::Error::custom(format!("unknown event kind `{unknown}`"))
        })
    }
}

/// One event of [`Events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Instant at which its frame was complete.
    pub at: Nanos,
    /// The kind of event.
    pub kind: Kind,
    /// The number of tokens in it, if the server states it.
    pub tokens: Option<u32>,
    /// Bytes of text it adds.
    pub bytes: u32,
}

impl Events {
    /// Makes room for `more` events.
    pub fn reserve(&mut self, more: usize) {
        self.at.reserve(more);
        self.kind.reserve(more);
        self.bytes.reserve(more);
    }

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
        let columns = self.at.iter().zip(&self.kind).zip(&self.bytes);
        columns.enumerate().map(|(i, ((at, kind), bytes))| Event {
            at: *at,
            kind: *kind,
            tokens: self.tokens.get(i).copied().flatten(),
            bytes: *bytes,
        })
    }

    /// True if the columns are of equal length, as a record read from outside must be.
    pub fn is_consistent(&self) -> bool {
        let len = self.at.len();
        self.kind.len() == len
            && self.bytes.len() == len
            && (self.tokens.is_empty() || self.tokens.len() == len)
    }
}

impl Exchange {
    /// Moves every instant by `by` nanoseconds, but none to before the origin.
    pub fn shift(&mut self, by: i128) {
        let moved = |at: Nanos| {
            let at = i128::from(at.0).saturating_add(by).max(0);
            Nanos(u64::try_from(at).unwrap_or(u64::MAX))
        };
        let all = |at: &mut Option<Nanos>| *at = at.map(moved);
        self.due = moved(self.due);
        all(&mut self.released);
        all(&mut self.granted);
        all(&mut self.sent);
        all(&mut self.written);
        all(&mut self.input_sent);
        all(&mut self.first_byte);
        all(&mut self.headers);
        all(&mut self.ended);
        self.connection.iter_mut().for_each(|own| own.shift(moved));
        self.steps.iter_mut().for_each(|step| step.shift(moved));
        self.events.at.iter_mut().for_each(|at| *at = moved(*at));
    }

    /// True if the reply was complete and held the requested answer.
    pub fn is_ok(&self) -> bool {
        self.outcome == Outcome::Ok
    }

    /// True if sound came back.
    pub fn has_sound(&self) -> bool {
        self.events.kind.contains(&Kind::Audio)
    }

    /// True if the reply held an answer, though it may be shorter than requested.
    pub fn has_answer(&self) -> bool {
        matches!(self.outcome.class(), Class::Complete | Class::Short)
    }

    /// True if the server refused it because its context is too long, by AIPerf's words for that.
    pub fn overflows_context(&self) -> bool {
        const WORDS: [&str; 4] =
            ["context length", "maximum context", "context_length_exceeded", "prompt is too long"];
        let Outcome::Incomplete { message, .. } = &self.outcome else { return false };
        let message = message.to_lowercase();
        WORDS.iter().any(|words| message.contains(words))
    }

    /// True if it counts as failed: it is not complete and was not given up on purpose.
    pub fn has_failed(&self) -> bool {
        self.outcome.class().is_failure()
    }
}

/// One request of an exchange that has several, with the transport's view of its reply. The
/// exchange has the answer's events.
#[model::apply(model::document!)]
#[derive(Default, Eq)]
pub struct Step {
    /// The host that it went to, with its port unless that is the scheme's own; absent if it went
    /// to the exchange's target. Paths are not kept, because a server may put an access key there.
    pub host: Option<String>,
    /// Opening of its connection; absent if it had none.
    pub connection: Option<Connection>,
    /// Instant at which its first byte was handed to the socket; absent if it never was.
    pub sent: Option<Nanos>,
    /// Instant at which the first byte of its reply was read.
    pub first_byte: Option<Nanos>,
    /// Instant at which the headers of its reply were complete.
    pub headers: Option<Nanos>,
    /// Instant at which its reply ended, well or badly; absent if there was none.
    pub ended: Option<Nanos>,
    /// The HTTP status of its reply.
    pub status: Option<u16>,
    /// Bytes of the reply's body, without framing; for an error, the kept bytes.
    pub bytes: u64,
}

impl Step {
    fn shift(&mut self, moved: impl Fn(Nanos) -> Nanos) {
        let instants = [&mut self.sent, &mut self.first_byte, &mut self.headers, &mut self.ended];
        for at in instants {
            *at = at.map(&moved);
        }
        self.connection.iter_mut().for_each(|own| own.shift(&moved));
    }
}
