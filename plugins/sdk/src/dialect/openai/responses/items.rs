//! Conversations as the Responses API writes them: a list of items, in which tool calls and their
//! results are items of their own.

use serde_json::{Map, Value, json};

use crate::{Error, Message, Part, Role};

use super::super::messages::{audio, no_answer, speaker};

pub(super) fn written(messages: &[Message]) -> Result<Vec<Value>, Error> {
    let mut items = Vec::with_capacity(messages.len());
    for message in messages {
        let mut extra = extra(message)?;
        if message.role == Role::Tool {
            items.push(json!({
                "type": "function_call_output",
                "call_id": extra.remove("tool_call_id").unwrap_or_default(),
                "output": text(&message.parts)?,
            }));
        } else {
            let calls = match message.role {
                Role::Assistant => extra.remove("tool_calls"),
                _ => None,
            };
            // A message that only calls tools has no text.
            if calls.is_none() || !text(&message.parts)?.is_empty() {
                let content = content(message)?;
                items.push(json!({"role": speaker(message.role), "content": content}));
            }
            for call in calls.iter().filter_map(Value::as_array).flatten() {
                items.push(json!({
                    "type": "function_call",
                    "call_id": call["id"],
                    "name": call["function"]["name"],
                    "arguments": call["function"]["arguments"],
                }));
            }
        }
        if let Some(key) = extra.keys().next() {
            return Err(Error::InvalidInput(format!(
                "the further field `{key}` of a message has no place in /v1/responses; leave it out, or set route = \
                 \"chat\""
            )));
        }
    }
    Ok(items)
}

fn extra(message: &Message) -> Result<Map<String, Value>, Error> {
    let Some(extra) = &message.extra else { return Ok(Map::new()) };
    serde_json::from_str(extra).map_err(|error| {
        Error::InvalidInput(format!(
            "the further fields of a message must be a JSON object: {error}"
        ))
    })
}

/// A single text as a string, several parts as a list.
fn content(message: &Message) -> Result<Value, Error> {
    if let [Part::Text(text)] = &message.parts[..] {
        return Ok(json!(text));
    }
    let kind = match message.role {
        Role::Assistant => "output_text",
        _ => "input_text",
    };
    let parts = message.parts.iter().map(|part| {
        Ok(match part {
            Part::Text(text) => json!({"type": kind, "text": text}),
            Part::Image(media) => json!({"type": "input_image", "image_url": media.data_url()}),
            Part::Audio(media) => json!({"type": "input_audio", "input_audio": audio(media)?}),
            Part::Video(_) => {
                let cause = "the dataset gives videos, which /v1/responses does not accept; set route = \"chat\", or name \
                            another dataset";
                return Err(Error::InvalidConfig(cause.to_owned()));
            }
            Part::Answer(of) => return Err(no_answer(of)),
        })
    });
    parts.collect::<Result<Vec<Value>, Error>>().map(Value::from)
}

fn text(parts: &[Part]) -> Result<String, Error> {
    let mut joined = String::new();
    for part in parts {
        match part {
            Part::Text(text) => joined.push_str(text),
            Part::Answer(of) => return Err(no_answer(of)),
            // Not a text, but not nothing either.
            Part::Image(_) | Part::Audio(_) | Part::Video(_) => joined.push(' '),
        }
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_beside_a_call_is_an_item_before_it() {
        let mut explained = Message::text(Role::Assistant, "I look.");
        explained.extra = Some(
            r#"{"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#
                .to_owned(),
        );
        let call =
            json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"});
        let text = json!({"role": "assistant", "content": "I look."});
        assert_eq!(written(&[explained]).unwrap(), [text, call]);
    }

    #[test]
    fn further_fields_without_a_place_are_an_error() {
        let mut named = Message::text(Role::User, "a");
        named.extra = Some(r#"{"name":"Ada"}"#.to_owned());
        assert!(matches!(
            written(&[named]),
            Err(Error::InvalidInput(message)) if message.contains("`name`")
        ));
    }
}
