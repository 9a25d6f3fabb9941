//! The user's configuration as written. `check` finds its mistakes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The path of requests below the target's URL, such as `/v2/models/{model}/generate`. It may
    /// contain the placeholders `{model}` and `{adapter}`.
    pub path: String,
    /// The path of requests for streamed replies, if the server has a separate path for them.
    pub stream_path: Option<String>,
    /// `POST` or `PUT`.
    pub method: String,
    /// Header fields of requests. `content-type` is `application/json` unless it is set here.
    pub headers: BTreeMap<String, String>,
    /// The body of requests. A text that is only a placeholder, such as `"{prompt}"` or
    /// `"{max-tokens}"`, becomes its value with its type; within a longer text it becomes text. A
    /// key whose value is absent is left out. Write `{{prompt}}` for a text that is not a
    /// placeholder.
    ///
    /// Placeholders: `{model}`, `{adapter}`, `{prompt}` (a text), `{messages}` (a conversation as
    /// in the OpenAI API), `{token-ids}`, `{max-tokens}`, `{min-tokens}`, `{temperature}`,
    /// `{top-p}`, `{top-k}`, `{min-p}`, `{frequency-penalty}`, `{presence-penalty}`,
    /// `{repetition-penalty}`, `{seed}`, `{stop}` (a list), `{ignore-eos}` and `{stream}` (true or
    /// false).
    pub body: Map<String, Value>,
    /// Further fields of `body` in requests for streamed replies.
    pub stream_body: Map<String, Value>,
    /// Further fields of `body` to ignore the end-of-sequence token, for servers without a single
    /// field for it.
    pub ignore_eos_body: Map<String, Value>,
    /// Framing: the division of a streamed reply into events.
    pub framing: Framing,
    /// Length field of each event, for the framing `length-prefixed`: `skip` bytes (default 0),
    /// then a length of `width` bytes (1, 2, 4 or 8; default 4), the highest first unless
    /// `little-endian` is true. `adjust` (default 0) is added to it: negative if the length
    /// includes itself.
    pub length_prefix: Option<LengthPrefix>,
    /// Content of events, and its places; a whole reply is a single event. Each place is a JSON
    /// pointer such as `/choices/0/text`, or a list of pointers; the first that finds a value
    /// counts. In place of a pointer, `{ at = "/delta", when = "/type", is = "text" }` applies only
    /// to events that have this value at `when`.
    ///
    /// Places: `text`, `reasoning` and `tool-call` of a piece; `finish`, the reason why the server
    /// stopped; `tokens` of the event (a number, or a list such as token ids) or `tokens-so-far`;
    /// the server's counts `input-tokens`, `cached-input-tokens`, `output-tokens`,
    /// `reasoning-tokens`, `draft-tokens`, `accepted-draft-tokens`, `input-image-tokens`,
    /// `input-video-tokens`, `input-audio-tokens` and `output-audio-tokens`; `error` (default
    /// `/error`), the message of an error. Null, `false` and an empty text are no finish reason and
    /// no error.
    ///
    /// With `cumulative = true`, text and reasoning are the whole answer so far. `done` is the end
    /// of a stream: an event that is only this text, such as `[DONE]`; `{ at = "/done", is = true
    /// }`, an event with this value; or `end-of-body`, if the server has no end marker.
    pub events: Events,
    /// The URL of a server with its default settings.
    pub default_url: String,
    /// The path that answers a GET request with a success status once the server is ready.
    pub health: Option<String>,
    /// The path that empties the prefix cache on a POST request.
    pub flush_cache: Option<String>,
    /// The list of models that the server serves: at the path `path` (default `/v1/models`), with
    /// the list at the pointer `list` (`/data`), and in each item the name at `name` (`/id`; empty
    /// if the items are the names) and the most tokens of prompt and answer together at
    /// `context-tokens`.
    pub models: Option<Models>,
    /// The server's metrics in the Prometheus text format, at the path `path` (default `/metrics`).
    /// The other keys have the server's names: `finished-requests`, `running-requests`,
    /// `waiting-requests`, `input-tokens`, `output-tokens`, `prefix-cache-queries`,
    /// `prefix-cache-hits`, `kv-cache-usage`, `preemptions`.
    pub metrics: Option<Metrics>,
    /// Authentication of requests: `bearer`, `none`, or `{ header = "x-api-key" }` for the key
    /// alone in a header.
    pub authentication: Authentication,
    /// The environment variable that has the API key; its name ends in `_API_KEY`.
    pub api_key_variable: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            path: String::new(),
            stream_path: None,
            method: "POST".to_owned(),
            headers: BTreeMap::new(),
            body: Map::new(),
            stream_body: Map::new(),
            ignore_eos_body: Map::new(),
            framing: Framing::EventStream,
            length_prefix: None,
            events: Events::default(),
            default_url: "http://127.0.0.1:8000".to_owned(),
            health: None,
            flush_cache: None,
            models: None,
            metrics: None,
            authentication: Authentication::Bearer,
            api_key_variable: None,
        }
    }
}

/// The division of a streamed reply into events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Server-sent events.
    EventStream,
    /// An event in each line.
    Lines,
    /// The length of each event before it.
    LengthPrefixed,
    /// The server does not stream.
    Whole,
}

/// The length field of an event.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LengthPrefix {
    /// Bytes before the length that are not part of an event, at most 16.
    pub skip: u8,
    /// Bytes of the length: 1, 2, 4 or 8.
    pub width: u8,
    /// Added to the stated length to get the number of bytes that follow it: negative if the length
    /// includes itself.
    pub adjust: i32,
    /// True if the lowest byte of the length comes first.
    pub little_endian: bool,
}

impl Default for LengthPrefix {
    fn default() -> Self {
        LengthPrefix { skip: 0, width: 4, adjust: 0, little_endian: false }
    }
}

/// Places of the content in events: a JSON pointer (RFC 6901) such as `/choices/0/text`, or
/// several; the first that finds a value counts. `{ at = "/delta", when = "/type", is = "text" }`
/// applies only to events that have this value at the second pointer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Events {
    /// A piece of the answer.
    pub text: Places,
    /// A piece of reasoning.
    pub reasoning: Places,
    /// A piece of a tool call, of any type. Histories of conversations take over those in the form
    /// of the OpenAI API.
    pub tool_call: Places,
    /// Reason why the server stopped. Null, `false` and an empty text mean no reason.
    pub finish: Places,
    /// Number of tokens that the event adds: a number, or a list that has as many items, such as
    /// token ids.
    pub tokens: Places,
    /// Number of tokens of the answer so far, in place of `tokens`.
    pub tokens_so_far: Places,
    /// Tokens of the prompt.
    pub input_tokens: Places,
    /// Of these, tokens found in the prefix cache.
    pub cached_input_tokens: Places,
    /// Tokens of the whole answer.
    pub output_tokens: Places,
    /// Of these, tokens of reasoning.
    pub reasoning_tokens: Places,
    /// Tokens that speculative decoding proposed for the answer.
    pub draft_tokens: Places,
    /// Of these, tokens that the model accepted.
    pub accepted_draft_tokens: Places,
    /// Tokens of the prompt that are images.
    pub input_image_tokens: Places,
    /// Tokens of the prompt that are videos.
    pub input_video_tokens: Places,
    /// Tokens of the prompt that are audio.
    pub input_audio_tokens: Places,
    /// Tokens of the answer that are audio.
    pub output_audio_tokens: Places,
    /// An error inside a reply with a success status, and the message in a reply with an error
    /// status. Null, `false` and an empty text mean no error.
    #[serde(default = "error_place")]
    pub error: Places,
    /// True if text and reasoning are the whole answer so far, so that only the new part counts.
    pub cumulative: bool,
    /// End of a stream: an event that is only this text, such as `[DONE]`; `{ at = "/done", is =
    /// true }` for an event with this value, or without `is` with any value; or `end-of-body` if
    /// the server has no end marker. An answer that breaks off at the end of the body then looks
    /// complete.
    pub done: Option<Done>,
}

fn error_place() -> Places {
    Places::One(Place::Pointer("/error".to_owned()))
}

/// A place in an event, or several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Places {
    // First, because a list of three could also be read as the fields of `OfKind`.
    /// The first that finds a value counts.
    Several(Vec<Place>),
    /// One place.
    One(Place),
}

impl Default for Places {
    fn default() -> Self {
        Places::Several(Vec::new())
    }
}

impl Places {
    pub fn all(&self) -> &[Place] {
        match self {
            Places::One(place) => std::slice::from_ref(place),
            Places::Several(places) => places,
        }
    }
}

/// A place in an event.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Place {
    /// A JSON pointer.
    Pointer(String),
    /// A JSON pointer into events of one kind.
    OfKind(OfKind),
}

/// A JSON pointer into events of one kind.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OfKind {
    /// The pointer.
    pub at: String,
    /// Place of the kind.
    pub when: String,
    /// The kind.
    pub is: Value,
}

/// The end of a stream.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Done {
    /// An event that is only this text; or `end-of-body`.
    Text(String),
    /// An event with a value.
    Value(DoneValue),
}

/// An event that ends a stream.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DoneValue {
    /// Place of its value.
    pub at: String,
    /// The value; without it, any value except null.
    pub is: Option<Value>,
}

/// The list of models that the server serves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Models {
    /// The path that answers a GET request with the list.
    pub path: String,
    /// Place of the list in the answer.
    pub list: String,
    /// Place of the model's name in an item of the list; empty if the items are the names.
    pub name: String,
    /// Place in an item of the list of the most tokens of a prompt and its answer together.
    pub context_tokens: Option<String>,
}

impl Default for Models {
    fn default() -> Self {
        Models {
            path: "/v1/models".to_owned(),
            list: "/data".to_owned(),
            name: "/id".to_owned(),
            context_tokens: None,
        }
    }
}

/// The server's metrics.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Metrics {
    /// The path that answers a GET request with the metrics.
    #[serde(default = "metrics_path")]
    pub path: String,
    /// The server's name of the number of requests that it has answered.
    pub finished_requests: Option<String>,
    /// Of requests that are running.
    pub running_requests: Option<String>,
    /// Of requests that are waiting.
    pub waiting_requests: Option<String>,
    /// Of prompt tokens since it started.
    pub input_tokens: Option<String>,
    /// Of answer tokens since it started.
    pub output_tokens: Option<String>,
    /// Of tokens looked up in the prefix cache.
    pub prefix_cache_queries: Option<String>,
    /// Of these, tokens found.
    pub prefix_cache_hits: Option<String>,
    /// Of the share of the KV cache that is in use, from 0 to 1.
    pub kv_cache_usage: Option<String>,
    /// Of preempted requests.
    pub preemptions: Option<String>,
}

fn metrics_path() -> String {
    "/metrics".to_owned()
}

/// The authentication of requests.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Authentication {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// The key alone, in the header of this name, such as `{ header = "x-api-key" }`.
    Header(String),
    /// Not at all.
    None,
}
