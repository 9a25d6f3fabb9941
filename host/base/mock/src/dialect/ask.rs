//! The parameters of a request to a route of the script.

use std::sync::Arc;

use serde_json::Value;

use super::{Dialect, Stream};
use crate::ask::types::{Ask, Refusal, Route};
use crate::ask::{Message, Prompt, chat_prompt, prompt};

pub(crate) fn read(dialect: &Arc<Dialect>, body: &[u8]) -> Result<Ask, Refusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| Refusal::bad(format!("the body is not JSON: {error}"), None))?;
    let pointers = &dialect.pointers;
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
    let summary = match body.pointer(&pointers.prompt).cloned() {
        Some(Value::Array(items)) if items.iter().any(Value::is_object) => {
            let messages: Vec<Message> = serde_json::from_value(Value::Array(items))
                .map_err(|_| wrong(&pointers.prompt, "a list of messages with `content`"))?;
            chat_prompt(Some(messages))?
        }
        Some(value) => {
            let read: Prompt = serde_json::from_value(value)
                .map_err(|_| wrong(&pointers.prompt, "a text, token ids or messages"))?;
            prompt(Some(read), &pointers.prompt)?
        }
        None => return Err(wrong(&pointers.prompt, "there: it is the prompt")),
    };
    let max_tokens = match (&pointers.tokens, at(&pointers.tokens)) {
        (Some(pointer), Some(value)) => {
            let number = value.as_u64().filter(|number| *number > 0);
            let number = number.ok_or_else(|| wrong(pointer, "a number of at least 1"))?;
            Some(u32::try_from(number).unwrap_or(u32::MAX))
        }
        _ => None,
    };
    let model = match (&pointers.model, at(&pointers.model)) {
        (Some(pointer), Some(value)) => {
            let name = value.as_str().ok_or_else(|| wrong(pointer, "a text"))?;
            Some(name.to_owned())
        }
        _ => None,
    };
    let stream = match &pointers.stream {
        Stream::Always => true,
        Stream::Never => false,
        Stream::Pointer(pointer) => flag(&Some(pointer.clone()))?,
    };
    let ignore_eos = flag(&pointers.ignore_eos)?;
    let route = Route::Scripted(Arc::clone(dialect));
    let ask = Ask::new(route, summary);
    Ok(Ask { stream, model, max_tokens, ignore_eos, ..ask })
}
