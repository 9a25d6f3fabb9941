//! The columns of a row by their roles, under configured or usual names, and the values in them.

use runner_plugin::report::shortened;
use serde_json::Value;

use crate::config::{Columns, Config};
use crate::source::Row;

/// Usual names of columns.
pub const PROMPT: &[&str] =
    &["prompt", "instruction", "question", "input", "context", "text", "query", "turn"];
pub const MESSAGES: &[&str] = &["messages", "conversations", "conversation", "turns"];
pub const SYSTEM: &[&str] = &["system", "system_prompt"];
pub const REFERENCE: &[&str] = &["reference", "answer", "completion", "response", "output"];
pub const OUTPUT_TOKENS: &[&str] = &[
    "output_tokens",
    "output_tokens_count",
    "output_len",
    "output_length",
    "completion_tokens",
    "completion_tokens_count",
    "max_completion_tokens",
    "max_tokens",
];
pub const CLASS: &[&str] = &["class", "category"];
pub const ID: &[&str] = &["id", "question_id", "custom_id", "request_id"];
pub const ADAPTER: &[&str] = &["adapter", "lora", "lora_name"];
pub const IMAGES: &[&str] = &["images", "image", "image_files"];
pub const AUDIO: &[&str] = &["audio"];
pub const VIDEOS: &[&str] = &["video", "videos"];
pub const EMBEDDING: &[&str] = &["embedding"];
pub const TOOLS: &[&str] = &["tools"];
pub const PARAMETERS: &[&str] = &["parameters", "extra_body"];
pub const ARRIVAL: &[&str] = &["arrival", "timestamp"];
pub const SESSION: &[&str] = &["session", "session_id"];

/// Usual names of Alpaca's columns: the instruction and its subject.
pub const ALPACA: (&str, &str) = ("instruction", "input");

/// The meaning of the names in a first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// One is in the configuration: they are columns.
    Configured,
    /// One is usual for a column.
    Usual,
    Unknown,
}

/// Fields of a recorded request that the runner sets itself.
pub const OWN: &[&str] = &[
    "model",
    "messages",
    "prompt",
    "input",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
];

/// Fields of requests that a row with `messages` may have beside them.
pub const PASSED: &[&str] = &[
    "tool_choice",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "stop",
    "seed",
    "response_format",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "reasoning_effort",
    "chat_template_kwargs",
];

/// Tells if the names of a first line look like columns' names.
pub fn header(config: &Config, names: &[String]) -> Header {
    let of = &config.columns;
    let configured = [&of.prompt, &of.messages, &of.reference, &of.images];
    let configured = |name: &String| {
        let mut configured = configured.iter().filter_map(|own| own.as_deref());
        let in_template = config.template.as_deref();
        configured.any(|own| own.eq_ignore_ascii_case(name))
            || in_template.is_some_and(|template| template.contains(&format!("{{{name}}}")))
    };
    let usual = |name: &String| {
        let mut usual = PROMPT.iter().chain(MESSAGES);
        usual.any(|usual| usual.eq_ignore_ascii_case(name))
    };
    if names.iter().any(configured) {
        Header::Configured
    } else if names.iter().any(usual) {
        Header::Usual
    } else {
        Header::Unknown
    }
}

/// The class of a row; for rows that are chosen by it before they are read in full.
pub fn class(columns: &Columns, row: &Row) -> Option<String> {
    find(row, columns.class.as_deref(), CLASS).map(text)
}

pub fn is_of(config: &Config, row: &Row) -> bool {
    let classes = &config.classes;
    classes.is_empty() || class(&config.columns, row).is_some_and(|class| classes.contains(&class))
}

/// The turns of a ShareGPT conversation, if a row has one.
fn shared<'r>(columns: &Columns, row: &'r Row) -> Option<&'r Vec<Value>> {
    const USUAL: &[&str] = &["conversations", "conversation"];
    let named = columns.messages.as_deref();
    if columns.prompt.is_some() || named.is_some_and(|name| !USUAL.contains(&name)) {
        return None;
    }
    if named.is_none() && row.contains_key("messages") {
        return None;
    }
    find(row, named, USUAL)?.as_array()
}

pub fn is_pair(columns: &Columns, row: &Row) -> bool {
    shared(columns, row).is_some()
}

/// True if a row is a ShareGPT conversation of fewer than two turns, which no client takes.
pub fn is_short_pair(columns: &Columns, row: &Row) -> bool {
    shared(columns, row).is_some_and(|turns| turns.len() < 2)
}

/// A column by its configured or by a usual name, unless it is empty.
pub fn find<'r>(row: &'r Row, configured: Option<&str>, usual: &[&str]) -> Option<&'r Value> {
    match configured {
        Some(name) => path(row, name).filter(|value| !is_empty(value)),
        None => named(row, None, usual).map(|(_, value)| value),
    }
}

/// As [`find`], with the column's name.
pub fn named<'r>(
    row: &'r Row,
    configured: Option<&'r str>,
    usual: &[&str],
) -> Option<(&'r str, &'r Value)> {
    let there = |(_, value): &(&str, &Value)| !is_empty(value);
    match configured {
        Some(name) => path(row, name).map(|value| (name, value)).filter(there),
        None => usual.iter().filter_map(|name| field(row, name)).find(there),
    }
}

/// True if a value is absent, or an empty text.
pub fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// A column by a usual name, which may be written in capitals, as in `Question`.
fn field<'r>(row: &'r Row, name: &str) -> Option<(&'r str, &'r Value)> {
    let exact = row.get_key_value(name);
    let found = exact.or_else(|| row.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)));
    found.map(|(name, value)| (name.as_str(), value))
}

/// A column, or a field in one.
pub fn path<'r>(row: &'r Row, name: &str) -> Option<&'r Value> {
    if let Some(value) = row.get(name) {
        return Some(value);
    }
    let (first, rest) = name.split_once('.')?;
    rest.split('.').try_fold(row.get(first)?, |value, key| value.get(key))
}

pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A list or object, also as JSON in a text, as CSV files have it.
pub fn structured(value: &Value) -> Value {
    let parsed = value
        .as_str()
        .filter(|text| text.trim_start().starts_with(['[', '{']))
        .and_then(|text| serde_json::from_str(text).ok());
    parsed.unwrap_or_else(|| value.clone())
}

/// A limit of output tokens in a column; `None` if there is none: 0, or -1 as in vLLM's files.
pub fn tokens(name: &str, value: &Value) -> Result<Option<u32>, String> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match number {
        Some(number) if number == -1.0 || number == 0.0 => Ok(None),
        Some(number) if number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&number) => {
            Ok(Some(number as u32))
        }
        _ => Err(format!(
            "column `{name}`: expected a whole number from 0 to {}, found {}",
            u32::MAX,
            shown(value)
        )),
    }
}

/// A value in a message: its JSON, cut to 60 characters.
pub fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 60)
}

pub fn list(row: &Row) -> String {
    let names: Vec<_> = row.keys().take(20).map(|name| format!("`{name}`")).collect();
    match names.len() {
        0 => "it has none".to_owned(),
        _ => format!("it has {}", names.join(", ")),
    }
}

/// A template, filled with a row's columns.
pub fn filled(template: &str, row: &Row) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        filled.push_str(&rest[..at]);
        let mark = &rest[at..=at];
        let after = &rest[at + 1..];
        if after.starts_with(mark) {
            filled.push_str(mark);
            rest = &after[1..];
        } else if let (true, Some((name, after))) = (mark == "{", after.split_once('}')) {
            let value = path(row, name).ok_or_else(|| {
                format!("there is no column `{name}`, which `template` names; {}", list(row))
            })?;
            if !value.is_null() {
                filled.push_str(&text(value));
            }
            rest = after;
        } else {
            return Err(format!(
                "`template`: expected `{{column}}`, or `{mark}{mark}` for a brace"
            ));
        }
    }
    filled.push_str(rest);
    Ok(filled)
}
