//! The question that a request to a route of the script asks.

use std::sync::Arc;

use serde_json::Value;

use super::{Dialect, Stream};
use crate::ask::body::{Message, Prompt, chat_prompt, prompt};
use crate::ask::{Ask, Refusal, Route};

/// Parses a request's body.
pub(crate) fn read(dialect: &Arc<Dialect>, body: &[u8]) -> Result<Ask, Refusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad(format!("the body is not JSON: {error}"), None))?;
    let asks = &dialect.asks;
    let at = |pointer: &Option<String>| {
        let pointer = pointer.as_deref()?;
        body.pointer(pointer).filter(|value| !value.is_null())
    };
    let wrong = |pointer: &str, expected: &str| {
        Refusal::bad(format!("`{pointer}` must be {expected}"), Some(pointer))
    };
    let flag = |pointer: &Option<String>| match (pointer, at(pointer)) {
        (Some(pointer), Some(value)) => {
            value.as_bool().ok_or_else(|| wrong(pointer, "true or false"))
        }
        _ => Ok(false),
    };
    let counted = match body.pointer(&asks.prompt).cloned() {
        Some(Value::Array(items)) if items.iter().any(Value::is_object) => {
            let messages: Vec<Message> = serde_json::from_value(Value::Array(items))
                .map_err(|_| wrong(&asks.prompt, "a list of messages with `content`"))?;
            chat_prompt(Some(messages))?
        }
        Some(value) => {
            let read: Prompt = serde_json::from_value(value)
                .map_err(|_| wrong(&asks.prompt, "a text, token ids or messages"))?;
            prompt(Some(read), &asks.prompt)?
        }
        None => return Err(wrong(&asks.prompt, "there: it is the prompt")),
    };
    let max_tokens = match (&asks.tokens, at(&asks.tokens)) {
        (Some(pointer), Some(value)) => {
            let number = value.as_u64().filter(|number| *number > 0);
            let number = number.ok_or_else(|| wrong(pointer, "a number of at least 1"))?;
            Some(u32::try_from(number).unwrap_or(u32::MAX))
        }
        _ => None,
    };
    let model = match (&asks.model, at(&asks.model)) {
        (Some(pointer), Some(value)) => {
            let name = value.as_str().ok_or_else(|| wrong(pointer, "a text"))?;
            Some(name.to_owned())
        }
        _ => None,
    };
    let stream = match &asks.stream {
        Stream::Always => true,
        Stream::Never => false,
        Stream::Asked(pointer) => flag(&Some(pointer.clone()))?,
    };
    let ignore_eos = flag(&asks.ignore_eos)?;
    let route = Route::Scripted(Arc::clone(dialect));
    let ask = Ask::of(route, counted);
    Ok(Ask { stream, model, max_tokens, ignore_eos, ..ask })
}
