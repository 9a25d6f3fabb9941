//! The format that `vllm bench serve --dataset-name timed_trace` reads: JSON lines with four keys,
//! whose names can be configured. Times are in seconds times a multiplier, and a hash id stands for
//! 16 tokens, if not configured otherwise. vLLM ends a prompt with its ids; here the rest of its
//! length is content of its own.

use serde_json::{Map, Value};

use super::Format;
use super::blocks::{HashId, Rule};
use super::row::{Content, NOTHING, Row, parsed, tokens};

pub(super) fn row(format: &Format, line: &[u8], number: u32) -> Result<Row, String> {
    let mut line: Map<String, Value> = parsed(line)?;
    let labels = &format.labels;
    let mut take = |key: &str| {
        line.remove(key).ok_or_else(|| {
            format!("no key `{key}`: add it, or set the name of the column under `labels`")
        })
    };
    let time = take(&labels.timestamp)?;
    let time = time
        .as_f64()
        .ok_or_else(|| format!("`{}` is {time}; expected a number", labels.timestamp))?;
    let mut count = |key: &str| {
        let value = take(key)?;
        value.as_u64().ok_or_else(|| format!("`{key}` is {value}; expected a number of tokens"))
    };
    let (length, no_input) = tokens(&labels.input_length, count(&labels.input_length)?)?;
    let (output, no_output) = tokens(&labels.output_length, count(&labels.output_length)?)?;
    let ids = line.remove(&labels.hash_ids).unwrap_or(Value::Array(Vec::new()));
    let ids: Vec<HashId> =
        serde_json::from_value(ids).map_err(|error| format!("`{}`: {error}", labels.hash_ids))?;
    let (runs, repaired) = if ids.is_empty() {
        (Vec::new(), None)
    } else {
        format.blocks(Rule::Either, length, &ids, number.into())?
    };
    Ok(Row {
        time: Some(format.nanos(time)?),
        output: Some(output),
        content: if ids.is_empty() { Content::Tokens(length) } else { Content::Runs(runs) },
        repaired: repaired.or((no_input || no_output).then_some(NOTHING)),
        ..Row::default()
    })
}
