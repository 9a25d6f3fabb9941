//! Replies: values at the configured places of an event.

use runner_plugin::dialect::{explain, frames};
use runner_plugin::{Error, Frame, Meaning, Output, Reason, Refusal, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{Done, Events, Place, Places};

#[derive(Default, Serialize, Deserialize)]
pub struct State {
    /// True if the reply is one event, whose end the host detects.
    whole: bool,
    begun: bool,
    ended: bool,
    text: SentLength,
    reasoning: SentLength,
    /// Tokens so far, where events state that.
    produced: u32,
    /// The last counts, in the order of the contract's record; true if not yet reported.
    counts: [Option<u32>; 10],
    unreported: bool,
}

/// Bytes seen of a text that every event repeats: the most so far.
///
/// A server may change text that it sent before, above all half a character: it sends U+FFFD until
/// the other half comes. So these count as seen only once they are final. If a server changes other
/// text, only the part beyond the longest text so far is new: nothing is sent twice. A text that
/// became shorter adds nothing until it is longer than before.
#[derive(Default, Serialize, Deserialize)]
struct SentLength(u32);

impl SentLength {
    fn added<'t>(&mut self, text: &'t str, is_final: bool) -> &'t str {
        let text = if is_final { text } else { text.trim_end_matches('\u{fffd}') };
        let mut start = (self.0 as usize).min(text.len());
        while !text.is_char_boundary(start) {
            start += 1;
        }
        self.0 = self.0.max(u32::try_from(text.len()).unwrap_or(u32::MAX));
        &text[start..]
    }
}

/// The value at the first of these places that has one, with its pointer; null is none.
fn find<'v, 'p>(event: &'v Value, places: &'p Places) -> Option<(&'p str, &'v Value)> {
    places.all().iter().find_map(|place| {
        let at = match place {
            Place::Pointer(at) => at,
            Place::OfKind(kind) if event.pointer(&kind.when) == Some(&kind.is) => &kind.at,
            Place::OfKind(_) => return None,
        };
        let value = event.pointer(at).filter(|value| !value.is_null())?;
        Some((at.as_str(), value))
    })
}

/// A value that says something: neither `false` nor an empty text.
fn value_at<'v>(event: &'v Value, places: &Places) -> Option<&'v Value> {
    let (_, value) = find(event, places)?;
    (value != &Value::Bool(false) && value.as_str() != Some("")).then_some(value)
}

fn wrong(at: &str, expected: &str, value: &Value) -> Error {
    Error::Protocol(format!(
        "expected {expected} at `{at}`, got `{}`",
        explain::excerpt(value.to_string().as_bytes(), 120)
    ))
}

fn text_at<'v>(event: &'v Value, places: &Places) -> Result<Option<&'v str>, Error> {
    match find(event, places) {
        None => Ok(None),
        Some((_, Value::String(text))) => Ok(Some(text)),
        Some((at, other)) => Err(wrong(at, "a text", other)),
    }
}

/// A number, or the number of a list's items.
fn count_at(event: &Value, places: &Places) -> Result<Option<u32>, Error> {
    let Some((at, value)) = find(event, places) else { return Ok(None) };
    let count = match value {
        Value::Array(items) => u32::try_from(items.len()).ok(),
        other => other.as_u64().and_then(|count| u32::try_from(count).ok()),
    };
    count.map(Some).ok_or_else(|| wrong(at, "a number of tokens", value))
}

/// A word, or the JSON text of anything else.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn failure(value: &Value) -> Refusal {
    explain::in_band(value.to_string().as_bytes())
}

/// The error in a reply with an error status.
pub fn refusal(places: &Events, status: u16, body: &[u8]) -> Refusal {
    let event: Option<Value> = serde_json::from_slice(body).ok();
    let error = event.as_ref().and_then(|event| value_at(event, &places.error));
    match error {
        Some(error) => explain::refusal(status, error.to_string().as_bytes()),
        None => explain::refusal(status, body),
    }
}

/// Appends the meanings of one frame.
pub fn decode(
    places: &Events,
    state: &mut State,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    if let (Some(Done::Text(text)), false) = (&places.done, state.whole)
        && data == text.as_bytes()
    {
        state.end(events);
        return Ok(());
    }
    let event: Value = frames::json(data, "an event in JSON")?;
    if let Some(error) = value_at(&event, &places.error) {
        events.push(Meaning::Failure(failure(error)));
        return Ok(());
    }
    if frame.name == Some("error") {
        events.push(Meaning::Failure(failure(&event)));
        return Ok(());
    }
    let before = events.len();
    let done = !state.whole && is_done(&event, places.done.as_ref());
    let finish = value_at(&event, &places.finish);
    let is_last = done || finish.is_some();
    state.pieces(places, &event, is_last, events)?;
    state.count(places, &event)?;
    let unmarked = matches!(&places.done, Some(Done::Text(text)) if text == "end-of-body");
    // Servers that count in every event repeat the counts; only the last are new.
    if is_last || unmarked || state.whole || events.len() == before {
        state.report(events);
    }
    events.extend(finish.map(finished));
    if !state.begun && events.len() == before && !done {
        events.push(Meaning::Opened);
    }
    state.begun = true;
    // Without an end marker, a reply is complete if it has something of an answer.
    let something =
        events[before..].iter().any(|event| !matches!(event, Meaning::Opened | Meaning::Usage(_)));
    if done || (unmarked && something && !state.whole) {
        state.end(events);
    }
    Ok(())
}

fn is_done(event: &Value, done: Option<&Done>) -> bool {
    let Some(Done::Value(done)) = done else { return false };
    let value = event.pointer(&done.at).filter(|value| !value.is_null());
    match &done.is {
        Some(wanted) => value == Some(wanted),
        None => value.is_some(),
    }
}

/// The reasons that a complete answer never has are failures.
fn finished(reason: &Value) -> Meaning {
    match word(reason) {
        reason if reason == "abort" || reason == "error" => Meaning::Failure(Refusal {
            reason: Reason::Internal,
            message: format!("the server gave up on the answer (finish reason `{reason}`)"),
        }),
        reason => Meaning::Finish(reason),
    }
}

impl State {
    pub fn new(whole: bool) -> Self {
        State { whole, ..State::default() }
    }

    fn pieces(
        &mut self,
        places: &Events,
        event: &Value,
        is_last: bool,
        events: &mut Vec<Meaning>,
    ) -> Result<(), Error> {
        let first = events.len();
        let text = text_at(event, &places.text)?;
        let reasoning = text_at(event, &places.reasoning)?;
        let so_far = count_at(event, &places.tokens_so_far)?.map(|total| {
            let new = total.saturating_sub(self.produced);
            self.produced = self.produced.max(total);
            new
        });
        let tokens = count_at(event, &places.tokens)?.or(so_far);
        let any_text = [text, reasoning].iter().flatten().any(|text| !text.is_empty());
        let new_reasoning = reasoning
            .map(|text| if places.cumulative { self.reasoning.added(text, is_last) } else { text });
        let new_text =
            text.map(|text| if places.cumulative { self.text.added(text, is_last) } else { text });
        let some = |text: Option<&str>| {
            let text = text.filter(|text| !text.is_empty())?;
            Some(Output::text(text))
        };
        events.extend(some(new_reasoning).map(Meaning::Reasoning));
        events.extend(some(new_text).map(Meaning::Text));
        if let Some((_, call)) = find(event, &places.tool_call) {
            let call = word(call);
            if !matches!(call.as_str(), "" | "[]" | "{}" | "false") {
                events.push(Meaning::ToolCall(Output::text(call)));
            }
        }
        if events.len() == first {
            let counted = tokens.is_some_and(|tokens| tokens > 0);
            let silent = (text.is_some() || reasoning.is_some()) && !is_last;
            // No new text, but perhaps tokens: half a character, say, or a special one. The first
            // event without either only opens the reply.
            if counted || (silent && (self.begun || any_text)) {
                events.push(Meaning::Text(Output::text("")));
            }
        }
        // The split of the tokens among several pieces is unknown.
        if let [Meaning::Text(piece) | Meaning::Reasoning(piece) | Meaning::ToolCall(piece)] =
            &mut events[first..]
        {
            piece.tokens = tokens;
        }
        Ok(())
    }

    fn count(&mut self, places: &Events, event: &Value) -> Result<(), Error> {
        for (count, places) in self.counts.iter_mut().zip([
            &places.input_tokens,
            &places.cached_input_tokens,
            &places.output_tokens,
            &places.reasoning_tokens,
            &places.draft_tokens,
            &places.accepted_draft_tokens,
            &places.input_image_tokens,
            &places.input_video_tokens,
            &places.input_audio_tokens,
            &places.output_audio_tokens,
        ]) {
            if let Some(new) = count_at(event, places)? {
                self.unreported |= *count != Some(new);
                *count = Some(new);
            }
        }
        Ok(())
    }

    fn report(&mut self, events: &mut Vec<Meaning>) {
        if std::mem::take(&mut self.unreported) {
            let mut usage = Usage::default();
            let fields = [
                &mut usage.input_tokens,
                &mut usage.cached_input_tokens,
                &mut usage.output_tokens,
                &mut usage.reasoning_tokens,
                &mut usage.draft_tokens,
                &mut usage.accepted_draft_tokens,
                &mut usage.input_image_tokens,
                &mut usage.input_video_tokens,
                &mut usage.input_audio_tokens,
                &mut usage.output_audio_tokens,
            ];
            for (field, count) in fields.into_iter().zip(self.counts) {
                *field = count;
            }
            events.push(Meaning::Usage(usage));
        }
    }

    fn end(&mut self, events: &mut Vec<Meaning>) {
        if !self.ended {
            self.report(events);
            events.push(Meaning::End);
            self.ended = true;
        }
    }
}
