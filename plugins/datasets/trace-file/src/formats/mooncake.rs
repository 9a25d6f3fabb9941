//! Mooncake's traces (`kvcache-ai/Mooncake`, `FAST25-release/traces`): milliseconds, blocks of 512
//! tokens, one hash id for each of them, the last one partial. AIPerf adds to it: a row has exactly
//! one of `input_length`, `text_input`, `messages` and `payload`; rows may be the turns of a
//! session, with a `delay` after the previous turn's end. Turns by length or text are deltas: they
//! hold only new content. Turns with `messages` or a `payload` hold the whole conversation.
//! `context_mode` names exceptions. If a row without it has the hash ids of its session's previous
//! row and more, `index` takes all rows of the session for whole prompts.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Format;
use super::blocks::{HashId, Rule};
use super::row::{Content, NOTHING, Row, body, messages, parsed, tokens};
use crate::content;

#[derive(Deserialize)]
struct Line {
    timestamp: Option<f64>,
    delay: Option<f64>,
    session_id: Option<String>,
    context_mode: Option<String>,
    input_length: Option<u64>,
    output_length: Option<u64>,
    new_length: Option<u64>,
    hash_ids: Option<Vec<HashId>>,
    text_input: Option<String>,
    messages: Option<Value>,
    tools: Option<Value>,
    payload: Option<Map<String, Value>>,
    extra: Option<Map<String, Value>>,
    /// Of `runner record`: the reply's duration in seconds, and the model's number.
    api_time: Option<f64>,
    model: Option<String>,
}

pub(super) fn row(format: &Format, line: &[u8], number: u32) -> Result<Row, String> {
    let line: Line = parsed(line)?;
    let given: Vec<&str> = [
        ("input_length", line.input_length.is_some()),
        ("text_input", line.text_input.is_some()),
        ("messages", line.messages.is_some()),
        ("payload", line.payload.is_some()),
    ]
    .into_iter()
    .filter_map(|(key, given)| given.then_some(key))
    .collect();
    if given.len() != 1 {
        let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
        return Err(format!(
            "it has {found} of `input_length`, `text_input`, `messages` and `payload`; expected exactly one"
        ));
    }
    if line.hash_ids.is_some() && line.input_length.is_none() {
        return Err("`hash_ids` without `input_length`: add it, or leave them out".to_owned());
    }
    if line.tools.is_some() && line.messages.is_none() {
        return Err("`tools` without `messages`: add them, or leave `tools` out".to_owned());
    }
    if line.session_id.is_none() && line.delay.is_some_and(|delay| delay != 0.0) {
        return Err(
            "`delay` without `session_id`: name the session in which it is the pause, or leave `delay` out"
                .to_owned(),
        );
    }
    let whole = line.messages.is_some() || line.payload.is_some();
    let delta = match line.context_mode.as_deref() {
        None => !whole,
        Some("message_array_with_responses") => false,
        Some("deltas_without_responses") => true,
        Some(other) => {
            return Err(format!(
                "`context_mode` is `{other}`; expected `deltas_without_responses` or `message_array_with_responses`"
            ));
        }
    };
    let delta = delta && line.session_id.is_some();
    let assumed = delta && line.context_mode.is_none();
    // The conversation's own answers stand before the new tokens.
    let live = format.live && line.session_id.is_some() && line.input_length.is_some();
    let mut known = Vec::new();
    let mut repaired = None;
    let mut parameters = Map::new();
    let content = if let Some(length) = line.input_length {
        let (length, none) = tokens("input_length", length)?;
        repaired = none.then_some(NOTHING);
        match line.hash_ids {
            // Nothing has no blocks.
            Some(ids) if none && ids.is_empty() => Content::Tokens(length),
            Some(ids) if none => {
                return Err(format!(
                    "{} hash ids for a prompt of 0 tokens; expected none: correct `input_length`, or leave `hash_ids` empty",
                    ids.len()
                ));
            }
            Some(ids) => {
                let (runs, wrong) = format.blocks(Rule::Ceil, length, &ids, number.into())?;
                repaired = wrong.or(repaired);
                if assumed {
                    let whole = (length / format.block) as usize;
                    known.extend(ids.iter().take(whole).map(|id| id.0));
                }
                let mut runs = runs;
                if let Some(new) = line.new_length.filter(|_| live) {
                    content::end(&mut runs, tokens("new_length", new)?.0);
                }
                Content::Runs(runs)
            }
            None => match line.new_length.filter(|_| live) {
                Some(new) => Content::Tokens(tokens("new_length", new)?.0),
                None => Content::Tokens(length),
            },
        }
    } else if let Some(text) = line.text_input {
        if text.is_empty() {
            return Err("`text_input` is empty".to_owned());
        }
        Content::Text(text)
    } else if let Some(value) = line.messages {
        if let Some(tools) = line.tools {
            parameters.insert("tools".to_owned(), tools);
        }
        Content::Messages(messages(value)?)
    } else {
        let (content, rest) = body(line.payload.unwrap_or_default())?;
        parameters = rest;
        content
    };
    parameters.extend(line.extra.unwrap_or_default());
    let output = line.output_length.map(|output| tokens("output_length", output)).transpose()?;
    if output.is_some_and(|(_, none)| none) {
        repaired = repaired.or(Some(NOTHING));
    }
    let nanos = |units: Option<f64>| units.map(|units| format.nanos(units)).transpose();
    let took = line.api_time.filter(|seconds| *seconds >= 0.0);
    Ok(Row {
        took: took.and_then(super::row::nanos),
        class: line.model,
        time: nanos(line.timestamp)?,
        wait: nanos(line.delay)?,
        delta: delta || live,
        anew: live && line.new_length.is_none(),
        ids: known,
        session: line.session_id,
        output: output.map(|(output, _)| output),
        content,
        parameters,
        repaired,
        ..Row::default()
    })
}
