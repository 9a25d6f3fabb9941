//! Replies of the Messages API, streamed and whole.
//!
//! A stream counts tokens twice. `message_start` has the prompt's tokens. `message_delta` has the
//! total of the answer so far, with the prompt's tokens again on some servers. The prompt's counts
//! exclude tokens that were found in or written to the cache, so the prompt's length is the sum of
//! three fields.

use runner_plugin::dialect::{explain, frames, tools};
use runner_plugin::{Error, Frame, Meaning, Output, Reason, Refusal, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    counts: Counts,
}

/// Counts of a `usage` object; later ones replace earlier ones, field by field.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Counts {
    input_tokens: Option<u32>,
    cache_creation_input_tokens: Option<u32>,
    cache_read_input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    output_tokens_details: Option<Details>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Details {
    thinking_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    index: Option<u32>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    delta: Option<Delta>,
    usage: Option<Counts>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Of a whole reply.
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message<'a> {
    usage: Option<Counts>,
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// The change of a block, or of the message.
#[derive(Default, Deserialize)]
struct Delta {
    text: Option<String>,
    thinking: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

const EVENT: &str = "an event of the Messages API";

pub fn decode(
    reply: &mut Reply,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    // vLLM's own end marker follows the API's.
    if data == b"[DONE]" {
        return Ok(());
    }
    let event: Event = frames::json(data, EVENT)?;
    if event.error.is_some() {
        events.push(Meaning::Failure(refine(data, explain::in_band(data))));
        return Ok(());
    }
    let Some(kind) = event.kind.as_deref() else {
        return Err(frames::unexpected(data, EVENT, &"it has no type or error"));
    };
    let index = event.index.unwrap_or(0);
    match kind {
        "message_start" => {
            events.push(Meaning::Opened);
            if let Some(message) = event.message {
                reply.counts.take(message.usage);
                blocks(message.content.unwrap_or_default(), events);
            }
        }
        "content_block_start" => {
            if let Some(block) = event.content_block {
                block.read(index, events);
            }
        }
        "content_block_delta" => event.delta.unwrap_or_default().read(index, events),
        "message_delta" => {
            reply.counts.take(event.usage);
            events.extend(event.usage.and(reply.counts.usage()).map(Meaning::Usage));
            let reason = event.delta.and_then(|delta| delta.stop_reason);
            events.extend(reason.map(Meaning::Finish));
        }
        "message_stop" => events.push(Meaning::End),
        "message" => {
            blocks(event.content.unwrap_or_default(), events);
            reply.counts.take(event.usage);
            events.extend(reply.counts.usage().map(Meaning::Usage));
            events.extend(event.stop_reason.map(Meaning::Finish));
        }
        "error" => events.push(Meaning::Failure(refine(data, explain::in_band(data)))),
        // Pings, ends of blocks, and future types, which the documentation says to ignore.
        _ => {}
    }
    Ok(())
}

fn blocks(blocks: Vec<Block<'_>>, events: &mut Vec<Meaning>) {
    for (index, block) in (0..).zip(blocks) {
        block.read(index, events);
    }
}

impl Block<'_> {
    fn read(self, index: u32, events: &mut Vec<Meaning>) {
        match self.kind.as_str() {
            // The model thought, but the server hides its thoughts.
            "redacted_thinking" => events.push(Meaning::Reasoning(Output::text(""))),
            "tool_use" | "server_tool_use" => {
                // A stream begins with an empty object, and sends the arguments piece by piece.
                let input = self.input.map_or("", |input| input.get());
                let empty = input.split_ascii_whitespace().eq(["{}"]);
                let input = if empty { "" } else { input };
                let id = self.id.unwrap_or_default();
                let name = self.name.unwrap_or_default();
                events.push(tools::begun(index, &id, &name, input));
            }
            _ => {
                events.extend(Output::some(self.thinking).map(Meaning::Reasoning));
                events.extend(Output::some(self.text).map(Meaning::Text));
            }
        }
    }
}

impl Delta {
    fn read(self, index: u32, events: &mut Vec<Meaning>) {
        events.extend(Output::some(self.thinking).map(Meaning::Reasoning));
        events.extend(Output::some(self.text).map(Meaning::Text));
        let arguments = self.partial_json.filter(|text| !text.is_empty());
        events.extend(arguments.map(|text| tools::continued(index, &text)));
    }
}

impl Counts {
    /// Replaces counts by a later object's. Servers that learn counts late begin with zeros, and
    /// servers that forgot the prompt's end with a zero: neither replaces a count.
    fn take(&mut self, later: Option<Counts>) {
        let Some(later) = later else { return };
        let input = |counts: &Counts| {
            [
                counts.input_tokens,
                counts.cache_creation_input_tokens,
                counts.cache_read_input_tokens,
            ]
        };
        if input(&later).iter().flatten().any(|tokens| *tokens > 0) || self.input().is_none() {
            self.input_tokens = later.input_tokens.or(self.input_tokens);
            self.cache_creation_input_tokens =
                later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
            self.cache_read_input_tokens =
                later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        }
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// The prompt's length: tokens read, found in the cache, and written to it. Zero is no count.
    fn input(&self) -> Option<u32> {
        let cached = [self.cache_creation_input_tokens, self.cache_read_input_tokens];
        let cached = cached.iter().flatten();
        let fresh = self.input_tokens?;
        let sum = cached.fold(fresh, |sum, tokens| sum.saturating_add(*tokens));
        Some(sum).filter(|tokens| *tokens > 0)
    }

    /// `None` if nothing was counted.
    fn usage(&self) -> Option<Usage> {
        let input = self.input();
        if input.is_none() && self.output_tokens.is_none() {
            return None;
        }
        Some(Usage {
            input_tokens: input,
            cached_input_tokens: self.cache_read_input_tokens,
            output_tokens: self.output_tokens,
            reasoning_tokens: self
                .output_tokens_details
                .and_then(|details| details.thinking_tokens),
            ..Usage::default()
        })
    }
}

#[derive(Deserialize)]
struct Failed {
    error: ErrorBody,
}

#[derive(Deserialize)]
struct ErrorBody {
    #[serde(rename = "type")]
    kind: String,
    message: Option<String>,
}

/// Reads the kind of an error from its body, which outweighs the guess from its status and words.
pub fn refine(body: &[u8], guessed: Refusal) -> Refusal {
    let Ok(Failed { error }) = serde_json::from_slice(body) else { return guessed };
    let names_model = error.message.is_some_and(|message| message.starts_with("model:"));
    let reason = match error.kind.as_str() {
        _ if guessed.reason == Reason::TooLong => Reason::TooLong,
        "overloaded_error" | "rate_limit_error" => Reason::Overloaded,
        "api_error" => Reason::Internal,
        "timeout_error" => Reason::Unavailable,
        "authentication_error" | "permission_error" => Reason::Unauthorised,
        "request_too_large" => Reason::TooLong,
        // All that Anthropic says of a model it does not serve is `model: NAME`.
        "not_found_error" if names_model => Reason::UnknownModel,
        "invalid_request_error" if guessed.reason == Reason::Other => Reason::Invalid,
        _ => guessed.reason,
    };
    Refusal { reason, ..guessed }
}
