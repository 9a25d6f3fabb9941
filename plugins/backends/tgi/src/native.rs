//! TGI's own routes: `/generate_stream`, with an event for every token, and `/generate`
//! (`router/src/lib.rs` and `router/src/server.rs` of TGI).

use std::borrow::Cow;

use runner_plugin::dialect::{explain, frames, openai};
use runner_plugin::{Body, Error, Frame, Head, Meaning, Output, Prompt, Reason, Refusal};
use runner_plugin::{Request, Sample, Sampling, Setting, Settings, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Settings without a field in `parameters`. TGI always ends at the end-of-sequence token.
const UNSUPPORTED: [Setting; 4] =
    [Setting::IgnoreEos, Setting::MinOutputTokens, Setting::MinP, Setting::PresencePenalty];

pub fn encode(sample: &Sample, settings: &Settings) -> Result<Request, Error> {
    let path = if settings.streaming { "/generate_stream" } else { "/generate" };
    let inputs = match &sample.prompt {
        Prompt::Text(text) => text,
        Prompt::Tokens(_) => {
            return Err(Error::InvalidConfig(format!(
                "the dataset gives token ids, which TGI does not accept; have the dataset give text for {path}"
            )));
        }
        other => return Err(openai::not_taken(other, path, "chat")),
    };
    settings.refuse(sample, &format!("TGI's {path}"), &UNSUPPORTED)?;
    let mut body = Body::new();
    body.set("inputs", inputs).set("parameters", parameters(sample, settings));
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json(path, &body))
}

/// TGI refuses values that switch a setting off (`router/src/validation.rs`), so these are left
/// out. A temperature of 0 means greedy decoding; `top_p` and `top_k` would turn sampling on again.
fn parameters(sample: &Sample, settings: &Settings) -> Body {
    let sampling: &Sampling = &settings.sampling;
    let greedy = sampling.temperature == Some(0.0);
    let mut parameters = Body::new();
    parameters
        .set_some("max_new_tokens", settings.output_tokens_for(sample))
        .set_some("do_sample", sampling.temperature.map(|_| !greedy))
        .set_some("temperature", sampling.temperature.filter(|_| !greedy))
        .set_some("top_p", sampling.top_p.filter(|share| !greedy && *share < 1.0))
        .set_some("top_k", sampling.top_k.filter(|tokens| !greedy && *tokens > 0))
        .set_some("frequency_penalty", sampling.frequency_penalty)
        .set_some("repetition_penalty", sampling.repetition_penalty)
        .set_some("seed", sampling.seed)
        .set_list("stop", &sampling.stop)
        .set_some("adapter_id", sample.adapter.as_deref())
        // Without them, the last event counts no tokens and gives no reason.
        .set("details", true);
    parameters
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    ended: bool,
    tokens: u32,
    /// Tokens of the prompt, if a header field states them.
    prompt_tokens: Option<u32>,
}

/// The state before the first frame. `/generate` states the number of the prompt's tokens only in a
/// header field, `/generate_stream` only in its last event.
pub fn begin(head: &Head) -> Reply {
    let stated = head.headers.iter().find(|(name, _)| name == "x-prompt-tokens");
    Reply {
        prompt_tokens: stated.and_then(|(_, tokens)| tokens.trim().parse().ok()),
        ..Reply::default()
    }
}

/// An event of a stream, or a whole reply, which has no `token`.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    token: Option<Token<'a>>,
    #[serde(borrow)]
    generated_text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    details: Option<Details<'a>>,
}

#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(default)]
    special: bool,
}

#[derive(Default, Deserialize)]
struct Details<'a> {
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
    generated_tokens: Option<u32>,
    input_length: Option<u32>,
    #[serde(borrow, default)]
    best_of_sequences: Vec<Sequence<'a>>,
}

/// Another answer to the same request; the best answer is in the reply itself.
#[derive(Deserialize)]
struct Sequence<'a> {
    #[serde(borrow)]
    generated_text: Cow<'a, str>,
    generated_tokens: Option<u32>,
}

/// Appends the events of one frame: an event of a stream, or a whole reply. The event with the
/// whole text, or with details, is the last one; TGI sends no other end marker.
pub fn decode(
    reply: &mut Reply,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let data = frame.data.trim_ascii();
    let event: Event = serde_json::from_slice(data).map_err(|error| wrong(data, &error))?;
    if event.error.is_some() {
        events.push(Meaning::Failure(refined(explain::in_band(data), data)));
        return Ok(());
    }
    let is_last = event.generated_text.is_some() || event.details.is_some();
    let streamed = event.token.is_some();
    match (event.token, event.generated_text) {
        (Some(token), _) => {
            reply.tokens = reply.tokens.saturating_add(1);
            // A special token counts, but its text, such as `</s>`, is none of the answer's.
            let text = if token.special { String::new() } else { token.text.into_owned() };
            events.push(Meaning::Text(piece(text, 0, Some(1))));
        }
        (None, Some(text)) => {
            let tokens = event.details.as_ref().and_then(|details| details.generated_tokens);
            events.push(Meaning::Text(piece(text.into_owned(), 0, tokens)));
        }
        (None, None) => {
            return Err(wrong(data, &"it has no token, generated_text or error"));
        }
    }
    if !is_last {
        return Ok(());
    }
    let details = event.details.unwrap_or_default();
    let mut output = details.generated_tokens.or(streamed.then_some(reply.tokens));
    for (sequence, choice) in details.best_of_sequences.into_iter().zip(1..) {
        let tokens = sequence.generated_tokens;
        output = output.zip(tokens).map(|(sum, more)| sum.saturating_add(more));
        let text = sequence.generated_text.into_owned();
        events.push(Meaning::Text(piece(text, choice, tokens)));
    }
    let input = details.input_length.or(reply.prompt_tokens);
    events.extend(Usage::counted(input, output));
    let finish = details.finish_reason.map(Cow::into_owned);
    events.extend(finish.map(Meaning::Finish));
    if streamed && !std::mem::replace(&mut reply.ended, true) {
        events.push(Meaning::End);
    }
    Ok(())
}

fn piece(text: String, choice: u32, tokens: Option<u32>) -> Output {
    Output { text, tokens, choice }
}

fn wrong(data: &[u8], why: &dyn std::fmt::Display) -> Error {
    frames::unexpected(data, "an event of TGI", why)
}

/// The refusal with the kind of error that TGI itself states as `error_type` (`InferError` in
/// `router/src/infer/mod.rs`), because its status 424 for a failed generation looks like a wrong
/// request. Otherwise the kind follows from its words (`ValidationError` in
/// `router/src/validation.rs`).
pub fn refined(refusal: Refusal, body: &[u8]) -> Refusal {
    let kind = serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|value| Some(value.get("error_type")?.as_str()?.to_owned()));
    let too_long = ["must have less than", "tokens + `max_new_tokens`"]
        .iter()
        .any(|words| refusal.message.contains(words));
    let reason = match kind.as_deref() {
        _ if too_long => Reason::TooLong,
        Some("validation" | "template_error" | "tool_error") => Reason::Invalid,
        Some("overloaded") => Reason::Overloaded,
        Some("healthcheck") => Reason::Unavailable,
        Some(
            "generation"
            | "incomplete_generation"
            | "incomplete_generation_stream"
            | "stream_serialization_error",
        ) => Reason::Internal,
        _ => refusal.reason,
    };
    Refusal { reason, ..refusal }
}
