//! Conversations as the model's chat template sees them, and their number of tokens.

use serde_json::{Map, Value, json};
use tokenizer::Tokenizer;

use super::bindings::types::{Message, Part, Role};

/// The name of a role in the APIs and templates that models are trained with.
pub fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// A message as templates take it; `None` if it holds more than text.
pub fn message(message: &Message) -> Option<Value> {
    let mut content = String::new();
    for part in &message.parts {
        match part {
            Part::Text(text) => content.push_str(text),
            Part::Image(_) | Part::Audio(_) | Part::Video(_) | Part::Answer(_) => return None,
        }
    }
    let mut fields = match &message.extra {
        None => Map::new(),
        Some(extra) => serde_json::from_str(extra).ok()?,
    };
    fields.insert("role".to_owned(), json!(role(message.role)));
    fields.insert("content".to_owned(), json!(content));
    Some(Value::Object(fields))
}

/// Counts the tokens of a conversation, with the beginning of the answer, if that is possible.
pub fn count(tokenizer: &Tokenizer, messages: &[Message], tools: Option<&Value>) -> Option<u32> {
    if !is_known(tokenizer) {
        return None;
    }
    let messages: Vec<Value> = messages.iter().map(message).collect::<Option<_>>()?;
    tokenizer.count_chat(&messages, tools, &Map::new()).ok()
}

pub fn is_known(tokenizer: &Tokenizer) -> bool {
    tokenizer.chat_template().is_ok()
}

pub(super) fn bytes(messages: &[Message]) -> u64 {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let text = parts.map(|part| match part {
        Part::Text(text) | Part::Answer(text) => text.len() as u64,
        Part::Image(media) | Part::Audio(media) | Part::Video(media) => media.bytes.len() as u64,
    });
    let extra = messages.iter().filter_map(|message| message.extra.as_ref());
    text.sum::<u64>() + extra.map(|extra| extra.len() as u64).sum::<u64>()
}
