//! TGI's `/v1/chat/completions`. The replies are OpenAI's; the request has traps of its own.

use runner_plugin::dialect::openai;
use runner_plugin::{Error, Frame, Meaning, Part, Prompt, Request, Sample, Setting, Settings};

use super::native;

/// Fields that TGI does not have, or reads otherwise: it turns `presence_penalty` into a repetition
/// penalty of 2 more (`ChatRequest::try_into_generate` in `router/src/lib.rs`).
const UNSUPPORTED: [Setting; 6] = [
    Setting::IgnoreEos,
    Setting::MinOutputTokens,
    Setting::TopK,
    Setting::MinP,
    Setting::PresencePenalty,
    Setting::RepetitionPenalty,
];

/// The name that stands for the model itself: TGI takes every other name for an adapter's.
const MODEL: &str = "tgi";

pub fn encode(sample: &Sample, settings: &Settings) -> Result<Request, Error> {
    settings.refuse(sample, "TGI's /v1/chat/completions", &UNSUPPORTED)?;
    if let Some(kind) = not_taken(&sample.prompt) {
        return Err(Error::InvalidConfig(format!(
            "the dataset gives {kind}, which TGI does not accept; name another dataset, or another backend"
        )));
    }
    // `max_completion_tokens` would be ignored.
    let mut body = openai::standard_body(openai::Route::Chat, "max_tokens", sample, settings)?;
    body.set("model", sample.adapter.as_deref().unwrap_or(MODEL));
    let sampling = &settings.sampling;
    if sampling.temperature == Some(0.0) || sampling.top_p.is_some_and(|share| share >= 1.0) {
        // It would turn greedy decoding off; and 1, which restricts nothing, is refused.
        body.remove("top_p");
    }
    settings.lay_over(&mut body, sample)?;
    Ok(Request::json("/v1/chat/completions", &body))
}

fn not_taken(prompt: &Prompt) -> Option<&'static str> {
    let messages = match prompt {
        Prompt::Messages(messages) => messages,
        Prompt::Tokens(_) => return Some(prompt.kind()),
        _ => return None,
    };
    let mut parts = messages.iter().flat_map(|message| &message.parts);
    parts.find_map(|part| match part {
        Part::Audio(_) => Some("audio"),
        Part::Video(_) => Some("videos"),
        Part::Text(_) | Part::Image(_) | Part::Answer(_) => None,
    })
}

pub fn decode(
    reply: &mut openai::Reply,
    frame: &Frame<'_>,
    events: &mut Vec<Meaning>,
) -> Result<(), Error> {
    let before = events.len();
    openai::decode(reply, frame, events)?;
    for event in &mut events[before..] {
        if let Meaning::Failure(refusal) = event {
            *refusal = native::refined(refusal.clone(), frame.data);
        }
    }
    Ok(())
}
