//! Conversations as the OpenAI API writes them: a message of one text as a string, of several parts
//! as a list.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::{Error, Media, Message, Part, Role};

#[derive(Serialize)]
pub(super) struct PlainMessage<'a> {
    role: &'static str,
    content: &'a str,
}

pub(super) fn plain<'a>(role: &'static str, content: &'a str) -> PlainMessage<'a> {
    PlainMessage { role, content }
}

/// A message with all its fields; further fields come last.
#[derive(Serialize)]
struct Full<'a> {
    role: &'static str,
    /// Absent for a message without parts, such as one of tool calls alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Value>),
}

pub(super) fn written(messages: &[Message]) -> Result<Vec<Box<RawValue>>, Error> {
    messages
        .iter()
        .map(|message| {
            let content = match message.parts.as_slice() {
                [] => None,
                [Part::Text(text)] => Some(Content::Text(text)),
                parts => Some(Content::Parts(parts.iter().map(part).collect::<Result<_, _>>()?)),
            };
            let extra = further_fields(message, &["role", "content"])?;
            let full = Full { role: speaker(message.role), content, extra };
            serde_json::value::to_raw_value(&full).map_err(|error| Error::Other(error.to_string()))
        })
        .collect()
}

/// The further fields of a message, which must not be its `own`, such as `role` and `content`.
///
/// # Errors
/// [`Error::InvalidInput`] if they are no JSON object, or hold such a field.
pub fn further_fields(message: &Message, own: &[&str]) -> Result<Map<String, Value>, Error> {
    let Some(extra) = &message.extra else { return Ok(Map::new()) };
    let wrong = |why: &dyn std::fmt::Display| {
        let (last, first) = own.split_last().unwrap_or((&"", &[]));
        Error::InvalidInput(format!(
            "the further fields of a message must be a JSON object without {} and {last}: {why}",
            first.join(", ")
        ))
    };
    let fields: Map<String, Value> = serde_json::from_str(extra).map_err(|error| wrong(&error))?;
    match own.iter().find(|key| fields.contains_key(**key)) {
        Some(key) => Err(wrong(&format!("it holds `{key}`"))),
        None => Ok(fields),
    }
}

fn part(part: &Part) -> Result<Value, Error> {
    Ok(match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image(media) => {
            json!({"type": "image_url", "image_url": {"url": media.data_url()}})
        }
        Part::Audio(media) => {
            json!({"type": "input_audio", "input_audio": audio(media)?})
        }
        // OpenAI's own API takes none; vLLM, SGLang and LMDeploy read them in this form.
        Part::Video(media) => {
            json!({"type": "video_url", "video_url": {"url": media.data_url()}})
        }
        Part::Answer(of) => return Err(no_answer(of)),
    })
}

pub(super) fn audio(media: &Media) -> Result<Value, Error> {
    Ok(json!({"data": media.base64(), "format": format(media)?}))
}

/// The error for a part that the host should have replaced.
pub fn no_answer(of: &str) -> Error {
    Error::Other(format!("the placeholder for the answer of sample `{of}` was not replaced"))
}

fn format(media: &Media) -> Result<&'static str, Error> {
    match media.media_type.as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Ok("wav"),
        "audio/mpeg" | "audio/mp3" => Ok("mp3"),
        other => Err(Error::InvalidInput(format!(
            "audio of type `{other}`: this API accepts only audio/wav and audio/mpeg"
        ))),
    }
}

pub(super) fn speaker(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(messages: &[Message]) -> Result<String, Error> {
        Ok(serde_json::to_string(&written(messages)?).unwrap())
    }

    #[test]
    fn parts_and_further_fields_are_written() {
        let picture = Media { media_type: "image/png".to_owned(), bytes: b"foo".to_vec() };
        let sound = Media { media_type: "audio/wav".to_owned(), bytes: b"foo".to_vec() };
        let mut called = Message::text(Role::Assistant, "");
        called.extra = Some(r#"{"tool_calls":[{"id":"1"}]}"#.to_owned());
        let shown = Message {
            role: Role::User,
            parts: vec![
                Part::Text("what is this?".to_owned()),
                Part::Image(picture),
                Part::Audio(sound),
            ],
            extra: None,
        };
        assert_eq!(
            text(&[Message::text(Role::System, "be brief"), called, shown]).unwrap(),
            concat!(
                r#"[{"role":"system","content":"be brief"},"#,
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"1"}]},"#,
                r#"{"role":"user","content":[{"type":"text","text":"what is this?"},"#,
                r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,Zm9v"}},"#,
                r#"{"type":"input_audio","input_audio":{"data":"Zm9v","format":"wav"}}]}]"#
            )
        );
    }

    #[test]
    fn unsupported_parts_are_refused() {
        let mut message = Message::text(Role::User, "a");
        for extra in ["[]", r#"{"content":"b"}"#] {
            message.extra = Some(extra.to_owned());
            assert!(matches!(text(&[message.clone()]), Err(Error::InvalidInput(_))));
        }
        message.extra = None;
        message.parts =
            vec![Part::Audio(Media { media_type: "audio/midi".to_owned(), bytes: Vec::new() })];
        assert!(
            matches!(text(&[message]), Err(Error::InvalidInput(error)) if error.contains("audio/midi"))
        );
    }
}
