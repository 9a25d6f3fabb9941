//! Replies of `Converse` and `ConverseStream`.
//!
//! A stream ends with the message `metadata`, which counts the tokens; without it, it is cut short.
//! The count of the prompt excludes tokens that were read from or written to the cache.

use runner_plugin::dialect::{explain, frames, tools};
use runner_plugin::{Error, Frame, Meaning, Output, Reason, Refusal, Usage};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::message::Message;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    streaming: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockStart {
    #[serde(default)]
    content_block_index: u32,
    start: Option<Start>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    tool_use: Option<ToolUse>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse {
    #[serde(default)]
    tool_use_id: String,
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockDelta {
    #[serde(default)]
    content_block_index: u32,
    delta: Option<Delta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta {
    text: Option<String>,
    tool_use: Option<ToolInput>,
    reasoning_content: Option<Reasoning>,
}

#[derive(Deserialize)]
struct ToolInput {
    input: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning {
    text: Option<String>,
    redacted_content: Option<String>,
    /// The place where a whole reply has the text.
    reasoning_text: Option<ReasoningText>,
}

#[derive(Deserialize)]
struct ReasoningText {
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stop {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    usage: Option<Counts>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    cache_read_input_tokens: Option<u32>,
    cache_write_input_tokens: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    #[serde(borrow)]
    output: WholeOutput<'a>,
    stop_reason: Option<String>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct WholeOutput<'a> {
    #[serde(borrow)]
    message: WholeMessage<'a>,
}

#[derive(Deserialize)]
struct WholeMessage<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    text: Option<String>,
    reasoning_content: Option<Reasoning>,
    #[serde(borrow)]
    tool_use: Option<WholeToolUse<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WholeToolUse<'a> {
    #[serde(default)]
    tool_use_id: String,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl Reply {
    /// Appends the events of one frame: a message of a stream, or a whole body.
    pub fn decode(&mut self, frame: &Frame<'_>, events: &mut Vec<Meaning>) -> Result<(), Error> {
        if !self.streaming {
            return whole(parse(frame.data.trim_ascii())?, events);
        }
        let message = Message::read(frame.data)?;
        let kind = message.header(":message-type").unwrap_or("event");
        match kind {
            "event" => {}
            "exception" => {
                let name = message.header(":exception-type").unwrap_or("exception");
                events.push(Meaning::Failure(exception(name, message.payload)));
                return Ok(());
            }
            "error" => {
                let code = message.header(":error-code").unwrap_or("error");
                let text = message.header(":error-message").unwrap_or_default();
                events.push(Meaning::Failure(exception(code, text.as_bytes())));
                return Ok(());
            }
            other => {
                return Err(Error::Protocol(format!(
                    "expected a message of the type `event`, `exception` or `error`, got `{}`",
                    explain::excerpt(other.as_bytes(), 60)
                )));
            }
        }
        let payload = message.payload;
        match message.header(":event-type").unwrap_or_default() {
            "messageStart" => events.push(Meaning::Opened),
            "contentBlockStart" => {
                let block: BlockStart = parse(payload)?;
                let call = block.start.and_then(|start| start.tool_use);
                events.extend(call.map(|call| {
                    tools::begun(block.content_block_index, &call.tool_use_id, &call.name, "")
                }));
            }
            "contentBlockDelta" => {
                let block: BlockDelta = parse(payload)?;
                if let Some(delta) = block.delta {
                    delta.read(block.content_block_index, events);
                }
            }
            "messageStop" => {
                let stop: Stop = parse(payload)?;
                events.extend(stop.stop_reason.map(finish));
            }
            "metadata" => {
                let metadata: Metadata = parse(payload)?;
                events.extend(metadata.usage.map(|counts| Meaning::Usage(counts.usage())));
                events.push(Meaning::End);
            }
            // Ends of blocks, and future events of the API.
            _ => {}
        }
        Ok(())
    }

    pub fn new(streaming: bool) -> Self {
        Reply { streaming }
    }
}

fn whole(reply: Whole<'_>, events: &mut Vec<Meaning>) -> Result<(), Error> {
    for (index, block) in (0..).zip(reply.output.message.content) {
        if let Some(reasoning) = block.reasoning_content {
            reasoning.read(events);
        }
        events.extend(Output::some(block.text).map(Meaning::Text));
        if let Some(call) = block.tool_use {
            let input = call.input.map_or("{}", |input| input.get());
            events.push(tools::begun(index, &call.tool_use_id, &call.name, input));
        }
    }
    events.extend(reply.usage.map(|counts| Meaning::Usage(counts.usage())));
    events.extend(reply.stop_reason.map(finish));
    Ok(())
}

impl Delta {
    fn read(self, index: u32, events: &mut Vec<Meaning>) {
        if let Some(reasoning) = self.reasoning_content {
            reasoning.read(events);
        }
        events.extend(Output::some(self.text).map(Meaning::Text));
        let input = self.tool_use.and_then(|call| call.input);
        let input = input.filter(|input| !input.is_empty());
        events.extend(input.map(|input| tools::continued(index, &input)));
    }
}

impl Reasoning {
    fn read(self, events: &mut Vec<Meaning>) {
        let text = self.reasoning_text.and_then(|inner| inner.text);
        events.extend(Output::some(self.text.or(text)).map(Meaning::Reasoning));
        // The model thought, but the server hides its thoughts.
        let redacted = self.redacted_content;
        events.extend(redacted.map(|_| Meaning::Reasoning(Output::text(""))));
    }
}

impl Counts {
    fn usage(self) -> Usage {
        let cached = [self.cache_read_input_tokens, self.cache_write_input_tokens];
        let cached = cached.iter().flatten();
        let input = self.input_tokens;
        Usage {
            input_tokens: input.map(|fresh| cached.fold(fresh, |sum, n| sum.saturating_add(*n))),
            cached_input_tokens: self.cache_read_input_tokens,
            output_tokens: self.output_tokens,
            ..Usage::default()
        }
    }
}

/// Two reasons say that the model's output could not be read.
fn finish(reason: String) -> Meaning {
    match reason.as_str() {
        "malformed_model_output" | "malformed_tool_use" => Meaning::Failure(Refusal {
            reason: Reason::Internal,
            message: format!("the server gave up on the answer (stop reason `{reason}`)"),
        }),
        _ => Meaning::Finish(reason),
    }
}

fn parse<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, Error> {
    frames::json(data, "JSON of Bedrock's Converse")
}

/// An error inside a stream: the name of its type, and a payload with a message.
fn exception(name: &str, payload: &[u8]) -> Refusal {
    let guessed = explain::in_band(&lower_message(payload));
    let name = explain::excerpt(name.as_bytes(), 60);
    let reason = match name.as_str() {
        _ if guessed.reason == Reason::TooLong => Reason::TooLong,
        "throttlingException" => Reason::Overloaded,
        "serviceUnavailableException" | "modelTimeoutException" => Reason::Unavailable,
        "modelStreamErrorException" | "internalServerException" | "InternalError" => {
            Reason::Internal
        }
        "validationException" => Reason::Invalid,
        "accessDeniedException" => Reason::Unauthorised,
        _ => guessed.reason,
    };
    let message = if guessed.message.is_empty() || guessed.message == "{}" {
        format!("the server sent a `{name}` without a message")
    } else {
        format!("{} ({name})", guessed.message)
    };
    Refusal { reason, message }
}

/// The error in a reply with an error status; the header with its type is not there to read.
pub fn refusal(status: u16, body: &[u8]) -> Refusal {
    let guessed = explain::refusal(status, &lower_message(body));
    let text = guessed.message.to_lowercase();
    let reason = match status {
        // ModelTimeoutException, ModelErrorException
        408 => Reason::Unavailable,
        424 => Reason::Internal,
        400 | 404 if text.contains("model identifier") => Reason::UnknownModel,
        _ => guessed.reason,
    };
    Refusal { reason, ..guessed }
}

/// Some services of AWS write `Message`.
fn lower_message(body: &[u8]) -> Vec<u8> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Upper {
        message: String,
    }
    match serde_json::from_slice::<Upper>(body) {
        Ok(Upper { message }) => serde_json::json!({"message": message}).to_string().into(),
        Err(_) => body.to_vec(),
    }
}
