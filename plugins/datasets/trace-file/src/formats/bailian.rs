//! Alibaba Bailian's traces of Qwen (`alibaba-edu/qwen-bailian-usagetraces-anon`): seconds, blocks
//! of 16 tokens, and requests that name their predecessor. Every row is a whole prompt, with the
//! earlier turns as far as the service kept them.

use serde::Deserialize;

use super::Format;
use super::blocks::{HashId, Rule};
use super::row::{Content, Link, NOTHING, Row, parsed, tokens};

#[derive(Deserialize)]
struct Line {
    chat_id: i64,
    parent_chat_id: i64,
    timestamp: f64,
    input_length: u64,
    output_length: u64,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    hash_ids: Vec<HashId>,
}

pub(super) fn row(format: &Format, line: &[u8], number: u32) -> Result<Row, String> {
    let line: Line = parsed(line)?;
    let (length, no_input) = tokens("input_length", line.input_length)?;
    let (output, no_output) = tokens("output_length", line.output_length)?;
    let (runs, repaired) = format.blocks(Rule::Either, length, &line.hash_ids, number.into())?;
    Ok(Row {
        time: Some(format.nanos(line.timestamp)?),
        link: Some(Link {
            name: line.chat_id,
            parent: (line.parent_chat_id >= 0).then_some(line.parent_chat_id),
        }),
        class: line.kind,
        output: Some(output),
        content: Content::Runs(runs),
        repaired: repaired.or((no_input || no_output).then_some(NOTHING)),
        ..Row::default()
    })
}
