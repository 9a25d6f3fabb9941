//! TraceLab's rounds of coding agents (`uw-syfi/TraceLab`): a row a round, with the engine's split
//! of its prompt into cached and new tokens. There are no hash ids; equal tokens follow from the
//! split. The cached part of a round's prompt is the beginning of the session's previous prompt,
//! and the rest is its own.

use runner_plugin::date::instant;
use serde::Deserialize;

use super::row::{Content, NOTHING, Row, parsed, tokens};

/// The remark on rows whose split and total do not agree.
const SPLIT: &str = "`prefix_tokens` and `newly_append_tokens` that do not add up to `input_tokens_total`, which counts; the \
    prefix beyond it is cut off";

#[derive(Deserialize)]
struct Line {
    session_id: String,
    input_tokens_total: Option<u64>,
    prefix_tokens: u64,
    newly_append_tokens: u64,
    output_tokens: Option<u64>,
    reasoning_output_tokens: Option<u64>,
    model: Option<String>,
    #[serde(default)]
    timing_events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    event_type: Option<String>,
    timestamp: Option<String>,
}

pub(super) fn row(line: &[u8]) -> Result<Row, String> {
    let line: Line = parsed(line)?;
    let total = line.input_tokens_total;
    let total =
        total.unwrap_or_else(|| line.prefix_tokens.saturating_add(line.newly_append_tokens));
    let (total, no_input) = tokens("input_tokens_total", total)?;
    let prefix = line.prefix_tokens.min(total.into()) as u32;
    let split = line.prefix_tokens.saturating_add(line.newly_append_tokens);
    let split = (split != u64::from(total) && !no_input).then_some(SPLIT);
    let reasoning = line.reasoning_output_tokens.unwrap_or_default();
    let output = line.output_tokens.map(|output| output.saturating_add(reasoning));
    let output = output.map(|output| tokens("output_tokens", output)).transpose()?;
    let (mut sent, mut began, mut ended) = (None, None, None);
    for event in &line.timing_events {
        let Some(at) = &event.timestamp else { continue };
        let at = instant(at).ok_or_else(|| {
            format!(
                "`timing_events` has the time `{at}`; expected one like `2026-03-01T10:00:00.5Z`"
            )
        })?;
        match event.event_type.as_deref() {
            // With several results of tools, the request was sent after the last.
            Some("user_message" | "tool_result") => sent = sent.max(Some(at)),
            Some("text" | "reasoning" | "tool_call") => {
                began = Some(began.map_or(at, |began: i64| began.min(at)));
                ended = ended.max(Some(at));
            }
            _ => {}
        }
    }
    let time = sent.or(began);
    Ok(Row {
        time,
        took: time.zip(ended).map(|(time, ended)| (ended - time).max(0)),
        session: Some(line.session_id),
        class: line.model,
        output: output.map(|(output, _)| output),
        content: Content::Split { prefix, fresh: total - prefix },
        repaired: split.or((no_input || output.is_some_and(|(_, none)| none)).then_some(NOTHING)),
        unusable: time.is_none().then_some("a round without a time"),
        ..Row::default()
    })
}
