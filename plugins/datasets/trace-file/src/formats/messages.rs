//! Conversations as the OpenAI API writes them, for rows that hold their own.

use runner_plugin::{Message, Part, Role};
use serde_json::{Map, Value};

/// The messages of a JSON array. Errors: the number of the wrong message, and the expected form.
pub(super) fn messages(value: Value) -> Result<Vec<Message>, String> {
    let Value::Array(values) = value else { return Err("`messages` is no array".to_owned()) };
    if values.is_empty() {
        return Err("`messages` is empty".to_owned());
    }
    let mut messages = Vec::with_capacity(values.len());
    for (at, value) in values.into_iter().enumerate() {
        messages.push(message(value).map_err(|cause| format!("message {}: {cause}", at + 1))?);
    }
    Ok(messages)
}

fn message(value: Value) -> Result<Message, String> {
    let Value::Object(mut fields) = value else {
        return Err("expected an object with `role` and `content`".to_owned());
    };
    let role = match fields.shift_remove("role").as_ref().and_then(Value::as_str) {
        Some("system") => Role::System,
        Some("developer") => Role::Developer,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => {
            return Err(format!(
                "the role is {other:?}; expected system, developer, user, assistant or tool"
            ));
        }
    };
    let parts = match fields.shift_remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(text)) => vec![Part::Text(text)],
        Some(Value::Array(parts)) => parts.into_iter().map(part).collect::<Result<_, _>>()?,
        Some(other) => {
            return Err(format!("`content` is {other}; expected a text or an array of parts"));
        }
    };
    Ok(Message {
        role,
        parts,
        extra: (!fields.is_empty()).then(|| Value::Object(fields).to_string()),
    })
}

fn part(part: Value) -> Result<Part, String> {
    let kind = part["type"].as_str().unwrap_or_default().to_owned();
    match part["text"].as_str() {
        Some(text) if kind == "text" => Ok(Part::Text(text.to_owned())),
        _ => Err(format!("a part of type `{kind}`; expected parts of type `text`")),
    }
}

/// The content of a request's body, and its other fields, except fields that the run decides.
pub(super) fn body(
    mut body: Map<String, Value>,
) -> Result<(super::row::Content, Map<String, Value>), String> {
    for decided in ["model", "stream", "stream_options"] {
        body.shift_remove(decided);
    }
    let content = match (body.shift_remove("messages"), body.shift_remove("prompt")) {
        (Some(value), None) => super::row::Content::Messages(messages(value)?),
        (None, Some(Value::String(text))) => super::row::Content::Text(text),
        _ => return Err("`payload` has neither `messages` nor a text `prompt`".to_owned()),
    };
    Ok((content, body))
}
