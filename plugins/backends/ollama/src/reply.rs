//! Replies: lines of JSON, the last with `done` and the counts; or one such object with everything.

use std::borrow::Cow;

use runner_plugin::dialect::{explain, frames};
use runner_plugin::{Embedded, Error, Frame, Head, Meaning, Output, Refusal, Timings, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::refined;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    begun: bool,
    /// True if the end marker has been given, or is not needed.
    ended: bool,
}

/// The state before the first frame. The host itself finds the end of a reply that is not streamed.
pub fn begin(head: &Head) -> Reply {
    Reply { begun: false, ended: !head.streaming }
}

/// A line of a stream, or a whole reply.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// Of `/api/chat`.
    #[serde(borrow)]
    message: Option<AnswerMessage<'a>>,
    /// Of `/api/generate`, as are the two after it.
    #[serde(borrow)]
    response: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
    /// Of `/api/embed`.
    embeddings: Option<Vec<Vec<f32>>>,
    done: Option<bool>,
    #[serde(borrow)]
    done_reason: Option<Cow<'a, str>>,
    prompt_eval_count: Option<u32>,
    eval_count: Option<u32>,
    // Nanoseconds, in the last line: from the request's arrival until its answer was complete, from
    // its arrival until a loaded model was ready, and of each later part.
    total_duration: Option<i64>,
    load_duration: Option<i64>,
    prompt_eval_duration: Option<i64>,
    eval_duration: Option<i64>,
}

impl Line<'_> {
    /// The event of the durations. The total minus the answer's tokens precedes the first token.
    fn timings(&self) -> Option<Meaning> {
        let milliseconds = |nanoseconds: Option<i64>| Some(nanoseconds? as f64 / 1e6);
        let decode = milliseconds(self.eval_duration);
        let timings = Timings {
            queue: milliseconds(self.load_duration),
            prefill: milliseconds(self.prompt_eval_duration),
            first_token: milliseconds(self.total_duration)
                .zip(decode)
                .map(|(total, decode)| total - decode),
            decode,
        };
        timings.meaning()
    }
}

#[derive(Default, Deserialize)]
struct AnswerMessage<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
}

/// Appends the events of one frame: a line of a stream, or a whole reply.
pub fn decode(
    reply: &mut Reply,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    let line: Line = serde_json::from_slice(data).map_err(|error| wrong(data, &error))?;
    if line.error.is_some() {
        events.push(Meaning::Failure(failure(data)));
        return Ok(());
    }
    if let Some(vectors) = line.embeddings {
        for (values, index) in vectors.into_iter().zip(0..) {
            events.push(Meaning::Vector(Embedded { index, values }));
        }
        events.extend(Usage::counted(line.prompt_eval_count, line.eval_count));
        return Ok(());
    }
    if line.message.is_none() && line.response.is_none() && line.done.is_none() {
        return Err(wrong(data, &"it has no message, response, done or error"));
    }
    let done = line.done.unwrap_or(false);
    let timings = line.timings().filter(|_| done);
    let answer = line.message.unwrap_or_default();
    let thinking = answer.thinking.or(line.thinking).unwrap_or_default();
    let text = answer.content.or(line.response).unwrap_or_default();
    let calls = answer.tool_calls.or(line.tool_calls).unwrap_or_default();
    let silent = thinking.is_empty() && text.is_empty() && calls.is_empty();
    if !thinking.is_empty() {
        events.push(Meaning::Reasoning(Output::text(thinking)));
    }
    if !text.is_empty() {
        events.push(Meaning::Text(Output::text(text)));
    }
    let calls = calls.into_iter().map(|call| Output::text(call.get()));
    events.extend(calls.map(Meaning::ToolCall));
    let begun = std::mem::replace(&mut reply.begun, true);
    if silent && !done {
        events.push(match begun {
            // No text, but perhaps a token: half a character, say.
            true => Meaning::Text(Output::text("")),
            false => Meaning::Opened,
        });
    }
    if !done {
        return Ok(());
    }
    events.extend(Usage::counted(line.prompt_eval_count, line.eval_count));
    events.extend(timings);
    let finish = line.done_reason.filter(|reason| !reason.is_empty());
    events.extend(finish.map(|reason| Meaning::Finish(reason.into_owned())));
    if !std::mem::replace(&mut reply.ended, true) {
        events.push(Meaning::End);
    }
    Ok(())
}

/// The error in a line, which may state the status that it would have had.
fn failure(line: &[u8]) -> Refusal {
    let status = serde_json::from_slice::<Value>(line)
        .ok()
        .and_then(|value| u16::try_from(value.get("status")?.as_u64()?).ok());
    refined(match status {
        Some(status) => explain::refusal(status, line),
        None => explain::in_band(line),
    })
}

fn wrong(data: &[u8], why: &dyn std::fmt::Display) -> Error {
    frames::unexpected(data, "a line of Ollama", why)
}
