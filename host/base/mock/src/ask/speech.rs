//! Requests for the sound of a text.

use serde::Deserialize;

use super::PromptSummary;
use super::types::{Ask, Refusal, Route, SpeechForm};

#[derive(Deserialize)]
struct Body {
    input: String,
    model: Option<String>,
    response_format: Option<String>,
    stream_format: Option<String>,
    stream: Option<bool>,
    max_new_tokens: Option<u32>,
}

/// Reads a request. Refuses it with vLLM-Omni's messages.
pub(super) fn read(body: &[u8]) -> Result<Ask, Refusal> {
    let body: Body =
        serde_json::from_slice(body).map_err(|error| Refusal::invalid(&error, "body"))?;
    if body.input.trim().is_empty() {
        return Err(Refusal::bad("Input text cannot be empty", Some("input")));
    }
    let is_raw = match body.stream_format.as_deref() {
        None | Some("sse") => false,
        Some("audio") => true,
        Some(other) => {
            let message = format!("Input should be 'sse' or 'audio', got '{other}'");
            return Err(Refusal::bad(message, Some("stream_format")));
        }
    };
    let is_wav = match body.response_format.as_deref() {
        None | Some("wav") => true,
        Some("pcm") => false,
        Some(other) => {
            let message = format!("this engine makes only 'wav' and 'pcm', not '{other}'");
            return Err(Refusal::bad(message, Some("response_format")));
        }
    };
    let mut summary = PromptSummary::default();
    summary.add_text(body.input);
    let form = SpeechForm { is_wav, is_raw };
    Ok(Ask {
        stream: body.stream.unwrap_or(false) || body.stream_format.is_some(),
        model: body.model,
        max_tokens: body.max_new_tokens,
        ..Ask::new(Route::Speech(form), summary)
    })
}
