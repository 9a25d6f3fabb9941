//! Replies of the Responses API: a stream of typed events, or one object.
//!
//! A stream ends with `response.completed`, `response.incomplete` or `response.failed`; without one
//! of them it was cut off. Each text comes several times: in deltas, again in the `done` events of
//! its part and item, and in the last event. Only the deltas count, or the last event if the server
//! sent none. vLLM's own facts about the request are in the last event too.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::dialect::explain;
use crate::{Error, Frame, Meaning, Output, Reason, Refusal, Usage};

use super::super::counts::Metrics;
use super::super::{end, failure, not_a_chunk, parse, pooled};

/// The state that decoding keeps of a reply from one frame to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reply {
    opened: bool,
    /// True if something of the answer came in an event of its own.
    begun: bool,
    ended: bool,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    output_index: Option<u32>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    id: Option<String>,
    status: Option<String>,
    error: Option<Value>,
    incomplete_details: Option<Details>,
    #[serde(default)]
    output: Vec<Value>,
    usage: Option<Counts>,
    #[serde(borrow)]
    metrics: Option<Metrics<'a>>,
    store: Option<bool>,
}

#[derive(Deserialize)]
struct Details {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type", default)]
    kind: String,
    content: Option<Vec<Part>>,
    summary: Option<Vec<Part>>,
    call_id: Option<String>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    /// Of a tool that takes any text.
    input: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type", default)]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u32>,
}

/// Appends the events of one frame, of a stream or a whole body. With `store`, the reply's id is
/// carried to the next request of the conversation.
///
/// # Errors
/// [`Error::Protocol`] if the frame is not of this API.
pub fn decode(
    reply: &mut Reply,
    store: bool,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    // Some servers send it, but it does not say whether the answer is complete.
    if data == b"[DONE]" {
        return Ok(());
    }
    if data.starts_with(b"[") && pooled(data, events)? {
        return Ok(());
    }
    let event: Event = parse(data)?;
    let Some(kind) = event.kind.as_deref().or(frame.name) else {
        match (event.error, event.output) {
            (Some(error), _) => events.push(failure(error.get().as_bytes())),
            (None, Some(_)) => {
                let whole: Response = parse(data)?;
                reply.finish(whole, store, events)?;
            }
            (None, None) if pooled(data, events)? => {}
            (None, None) => return Err(not_a_chunk(data, &"it has no type, output or error")),
        }
        return Ok(());
    };
    match kind {
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
            let Some(response) = event.response else {
                return Err(not_a_chunk(data, &"it has no response"));
            };
            let mut response: Response = parse(response.get().as_bytes())?;
            if matches!(kind, "response.failed" | "response.cancelled") {
                response.status = kind.strip_prefix("response.").map(str::to_owned);
            }
            reply.finish(response, store, events)?;
            end(&mut reply.ended, events);
        }
        "error" => {
            events.push(failure(event.error.map_or(data, |error| error.get().as_bytes())));
        }
        "response.output_item.added" => {
            let item = event.item.map(|item| parse::<Value>(item.get().as_bytes()));
            let item = item.transpose()?.map(Item::from_value).transpose()?.flatten();
            if let Some(call) = item.as_ref().and_then(Item::call) {
                reply.begun = true;
                events.push(tool(call, event.output_index));
            }
        }
        "response.output_text.delta" | "response.refusal.delta" => {
            let text = reply.delta(data, event.delta)?;
            events.push(Meaning::Text(Output::text(text)));
        }
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
            let text = reply.delta(data, event.delta)?;
            events.push(Meaning::Reasoning(Output::text(text)));
        }
        "response.function_call_arguments.delta"
        | "response.custom_tool_call_input.delta"
        | "response.mcp_call_arguments.delta"
        | "response.code_interpreter_call_code.delta" => {
            let more = json!({"function": {"arguments": reply.delta(data, event.delta)?}});
            events.push(tool(more, event.output_index));
        }
        _ if !reply.opened && !reply.begun => events.push(Meaning::Opened),
        _ => {}
    }
    reply.opened = true;
    Ok(())
}

/// A piece of a tool call, as on the chat route: the host puts calls into histories.
fn tool(mut piece: Value, index: Option<u32>) -> Meaning {
    let mut call = json!({ "index": index.unwrap_or(0) });
    if let (Some(call), Some(piece)) = (call.as_object_mut(), piece.as_object_mut()) {
        call.append(piece);
    }
    Meaning::ToolCall(Output::text(call.to_string()))
}

impl Item {
    /// An item of a kind that belongs to the answer; `None` for another, such as a search.
    fn from_value(item: Value) -> Result<Option<Item>, Error> {
        let kind = item["type"].as_str().unwrap_or_default();
        if !matches!(kind, "message" | "reasoning") && !is_call(kind) {
            return Ok(None);
        }
        let shown = item.to_string();
        let read = serde_json::from_value(item).map(Some);
        read.map_err(|error| not_a_chunk(shown.as_bytes(), &error))
    }

    /// A call of a tool, as the chat route writes it.
    fn call(&self) -> Option<Value> {
        let name = self.name.as_deref().filter(|_| is_call(&self.kind))?;
        let id = self.call_id.as_deref().or(self.id.as_deref());
        let arguments = self.arguments.as_deref().or(self.input.as_deref());
        Some(json!({
            "id": id.unwrap_or_default(),
            "type": "function",
            "function": {"name": name, "arguments": arguments.unwrap_or_default()},
        }))
    }
}

/// True if an item of this kind is a call with a name and arguments.
fn is_call(kind: &str) -> bool {
    matches!(kind, "function_call" | "custom_tool_call" | "mcp_call")
}

impl Reply {
    fn delta(&mut self, data: &[u8], delta: Option<&RawValue>) -> Result<String, Error> {
        let delta = delta.ok_or_else(|| not_a_chunk(data, &"it has no delta"))?;
        let text = serde_json::from_str(delta.get()).map_err(|error| not_a_chunk(data, &error))?;
        self.begun = true;
        Ok(text)
    }

    /// Reads a reply as a whole: how it ended, and its output if that did not come before.
    fn finish(
        &mut self,
        response: Response<'_>,
        store: bool,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        if !self.begun {
            output(response.output, events)?;
        }
        let mut usage = response.usage.and_then(Counts::usage);
        let metrics = response.metrics;
        let further = metrics.map(|metrics| metrics.read(usage.as_mut()));
        events.extend(usage.map(Meaning::Usage));
        events.extend(further.into_iter().flatten());
        let status = response.status.unwrap_or_else(|| "completed".to_owned());
        let error = response.error.filter(|error| !error.is_null());
        if error.is_some() || matches!(status.as_str(), "failed" | "cancelled") {
            events.push(Meaning::Failure(refusal(error.as_ref(), &status)));
            return Ok(());
        }
        if let (true, Some(id)) = (store && response.store != Some(false), response.id) {
            events.push(Meaning::Carry(id.into_bytes()));
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        events.push(Meaning::Finish(reason.unwrap_or(status)));
        Ok(())
    }
}

fn output(items: Vec<Value>, events: &mut Vec<Meaning>) -> Result<(), Error> {
    for (index, item) in items.into_iter().enumerate() {
        let Some(item) = Item::from_value(item)? else { continue };
        if let Some(call) = item.call() {
            events.push(tool(call, u32::try_from(index).ok()));
            continue;
        }
        let parts = item.content.iter().chain(&item.summary).flatten();
        for part in parts {
            let text = part.text.as_ref().or(part.refusal.as_ref());
            let Some(text) = text.filter(|text| !text.is_empty()) else { continue };
            let piece = Output::text(text.as_str());
            events.push(match part.kind.as_str() {
                "reasoning_text" | "summary_text" => Meaning::Reasoning(piece),
                _ if item.kind == "reasoning" => Meaning::Reasoning(piece),
                _ => Meaning::Text(piece),
            });
        }
    }
    Ok(())
}

fn refusal(error: Option<&Value>, status: &str) -> Refusal {
    match error {
        Some(error) => explain::in_band(error.to_string().as_bytes()),
        None => Refusal {
            reason: Reason::Internal,
            message: format!("the server gave up on the answer (status `{status}`)"),
        },
    }
}

impl Counts {
    /// `None` if nothing was counted.
    fn usage(self) -> Option<Usage> {
        let usage = Usage {
            input_tokens: self.input_tokens,
            cached_input_tokens: self.input_tokens_details.and_then(|d| d.cached_tokens),
            output_tokens: self.output_tokens,
            reasoning_tokens: self.output_tokens_details.and_then(|d| d.reasoning_tokens),
            ..Usage::default()
        };
        let counted = usage.input_tokens.or(usage.output_tokens);
        counted.map(|_| usage)
    }
}
