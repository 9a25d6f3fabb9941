//! Messages in the JSON of the OpenAI API: `{"role": "user", "content": "…"}`, with content in
//! parts, tool calls and further fields.

use runner_plugin::{Media, Message, Part, Role, Tokenizer, report};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Bytes of text to tokenize in one call of the host.
const BATCH_BYTES: usize = 1 << 20;

/// Reads a message. Other fields become its `extra`, without fields that are `null`.
pub fn message(value: Value) -> Result<Message, String> {
    let Value::Object(mut fields) = value else {
        return Err(
            "expected a message such as {\"role\": \"user\", \"content\": \"…\"}".to_owned()
        );
    };
    let role = match fields.remove("role") {
        Some(Value::String(name)) => role(&name)?,
        _ => return Err("`role` is missing; expected `user`, `assistant` or another".to_owned()),
    };
    let parts = content(fields.remove("content"))?;
    fields.retain(|_, value| !value.is_null());
    Ok(Message { role, parts, extra: object(fields) })
}

/// Reads a list of messages. Errors: the mistake, after its place in the list: `messages[2]: …`.
pub fn messages(values: Vec<Value>) -> Result<Vec<Message>, String> {
    let numbered = values.into_iter().enumerate();
    numbered
        .map(|(index, value)| {
            message(value).map_err(|cause| format!("`messages[{index}]`: {cause}"))
        })
        .collect()
}

pub fn role(name: &str) -> Result<Role, String> {
    Ok(match name {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => {
            return Err(format!(
                "`role` is `{}`; expected `system`, `developer`, `user`, `assistant` or `tool`",
                shortened(name)
            ));
        }
    })
}

/// Content: a text, a list of parts, or nothing.
pub fn content(value: Option<Value>) -> Result<Vec<Part>, String> {
    match value {
        None | Some(Value::Null) => Ok(vec![Part::Text(String::new())]),
        Some(Value::String(text)) => Ok(vec![Part::Text(text)]),
        Some(Value::Array(pieces)) => pieces.into_iter().map(part).collect(),
        Some(_) => Err("`content`: expected a text or a list of parts".to_owned()),
    }
}

fn part(piece: Value) -> Result<Part, String> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Piece {
        Text { text: String },
        ImageUrl { image_url: Url },
        InputAudio { input_audio: Sound },
    }
    #[derive(Deserialize)]
    struct Url {
        url: String,
    }
    #[derive(Deserialize)]
    struct Sound {
        data: String,
        format: String,
    }
    let piece = Piece::deserialize(piece).map_err(|error| {
        format!("`content`: expected parts of type `text`, `image_url` or `input_audio`: {error}")
    })?;
    let wrong = |cause: String| format!("`content`: {cause}");
    Ok(match piece {
        Piece::Text { text } => Part::Text(text),
        Piece::ImageUrl { image_url } => picture(&image_url.url).map_err(wrong)?,
        Piece::InputAudio { input_audio } => {
            let media_type = match input_audio.format.as_str() {
                "mp3" => "audio/mpeg".to_owned(),
                format => format!("audio/{format}"),
            };
            let media = Media::of_base64(media_type, &input_audio.data);
            Part::Audio(media.ok_or_else(|| wrong("expected base64".to_owned()))?)
        }
    })
}

/// A picture from a `data:` URL. Errors: the message, with the expected form; nothing is fetched.
pub fn picture(url: &str) -> Result<Part, String> {
    let parts = url.strip_prefix("data:").and_then(|rest| rest.split_once(','));
    if !parts.is_some_and(|(head, _)| head.ends_with(";base64")) {
        let shown: String = url.chars().take(40).collect();
        return Err(format!(
            "expected a data URL such as `data:image/png;base64,…`, found `{shown}`; nothing is fetched"
        ));
    }
    Media::of_data_url(url).map(Part::Image).ok_or_else(|| "expected base64".to_owned())
}

/// A JSON object as text; `None` if it is empty.
pub fn object(fields: Map<String, Value>) -> Option<String> {
    (!fields.is_empty()).then(|| Value::Object(fields).to_string())
}

/// The texts of a message that become tokens: content, reasoning, tool calls' names and arguments.
pub fn texts(message: &Message) -> Vec<String> {
    let mut texts: Vec<String> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        })
        .collect();
    let extra = message.extra.as_deref().unwrap_or("{}");
    if let Ok(Value::Object(extra)) = serde_json::from_str(extra) {
        for key in ["reasoning_content", "reasoning"] {
            if let Some(Value::String(text)) = extra.get(key) {
                texts.push(text.clone());
                break;
            }
        }
        for call in calls(&extra) {
            texts.extend(["name", "arguments"].iter().filter_map(|key| {
                match call.get("function").unwrap_or(call).get(*key)? {
                    Value::String(text) => Some(text.clone()),
                    Value::Null => None,
                    value => Some(value.to_string()),
                }
            }));
        }
    }
    texts.retain(|text| !text.is_empty());
    texts
}

/// The tool calls among the further fields of a message.
fn calls(extra: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let calls = extra.get("tool_calls").and_then(Value::as_array);
    calls.into_iter().flatten()
}

/// The first tool call of a message whose arguments are not a JSON object. Models write such calls,
/// and some servers refuse a history with one.
pub fn bad_tool_call(message: &Message) -> Option<String> {
    let extra = serde_json::from_str::<Map<String, Value>>(message.extra.as_deref()?).ok()?;
    calls(&extra).find_map(|call| {
        let function = call.get("function").unwrap_or(call);
        let good = match function.get("arguments") {
            None | Some(Value::Null | Value::Object(_)) => true,
            Some(Value::String(text)) => {
                text.is_empty() || serde_json::from_str::<Map<String, Value>>(text).is_ok()
            }
            Some(_) => false,
        };
        let named = function.get("name").and_then(Value::as_str);
        (!good).then(|| named.unwrap_or("a tool without a name").to_owned())
    })
}

/// True if a message holds nothing but text.
pub fn is_text(message: &Message) -> bool {
    let mut parts = message.parts.iter();
    parts.all(|part| matches!(part, Part::Text(_) | Part::Answer(_)))
}

/// Tokens of each group of messages without the chat template's, in few calls of the host; absent
/// for a group that holds more than text.
pub fn count(tokenizer: &dyn Tokenizer, groups: &[&[Message]]) -> Vec<Option<u32>> {
    let mut counts: Vec<Option<u32>> =
        groups.iter().map(|group| group.iter().all(is_text).then_some(0)).collect();
    let mut batch: Vec<String> = Vec::new();
    let mut owners: Vec<usize> = Vec::new();
    let mut bytes = 0;
    let mut flush = |batch: &mut Vec<String>, owners: &mut Vec<usize>| {
        for (owner, tokens) in owners.drain(..).zip(tokenizer.count(batch, false)) {
            counts[owner] = counts[owner].map(|sum| sum.saturating_add(tokens));
        }
        batch.clear();
    };
    for (owner, group) in groups.iter().enumerate() {
        for text in group.iter().flat_map(texts) {
            bytes += text.len();
            batch.push(text);
            owners.push(owner);
            if bytes >= BATCH_BYTES {
                flush(&mut batch, &mut owners);
                bytes = 0;
            }
        }
    }
    if !batch.is_empty() {
        flush(&mut batch, &mut owners);
    }
    counts
}

/// The beginning of a text, for a message to the user.
pub fn shortened(text: &str) -> String {
    report::shortened(text, 40)
}

#[cfg(test)]
mod tests {
    use runner_plugin_testing::tokenizer::StandIn;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_data_urls_are_taken() {
        let Ok(Part::Image(media)) = picture("data:image/png;base64,Zm9v") else {
            panic!("it is a picture");
        };
        assert_eq!((media.media_type.as_str(), &media.bytes[..]), ("image/png", &b"foo"[..]));
        for url in ["https://example.org/a.png", "data:text/plain,a", "data:"] {
            assert!(picture(url).unwrap_err().contains("nothing is fetched"), "{url}");
        }
    }

    #[test]
    fn fields_beside_role_and_content_are_kept() {
        let read = message(json!({"role": "assistant", "content": null, "refusal": null,
            "tool_calls": [{"id": "1", "function": {"name": "ls", "arguments": "{}"}}]}))
        .expect("a message");
        assert_eq!(read.role, Role::Assistant);
        assert_eq!(
            read.extra.as_deref(),
            Some(r#"{"tool_calls":[{"id":"1","function":{"name":"ls","arguments":"{}"}}]}"#)
        );
        assert_eq!(texts(&read), ["ls", "{}"]);
        assert_eq!(bad_tool_call(&read), None);
    }

    #[test]
    fn arguments_that_are_no_object_make_a_bad_call() {
        for (arguments, bad) in [
            (json!("{\"a\": 1}"), false),
            (json!({"a": 1}), false),
            (json!(""), false),
            (json!("{\"a\": "), true),
            (json!("[1]"), true),
            (json!(7), true),
        ] {
            let call = json!({"role": "assistant", "tool_calls": [{"function": {"name": "ls", "arguments": arguments}}]});
            let read = message(call).expect("a message");
            assert_eq!(bad_tool_call(&read).is_some(), bad, "{arguments}");
        }
    }

    #[test]
    fn groups_are_counted_apart_and_pictures_not_at_all() {
        let text = |text: &str| Message::text(Role::User, text);
        let picture = message(json!({"role": "user", "content": [
            {"type": "text", "text": "what is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,Zm9v"}}]}))
        .expect("a message");
        let long = "x".repeat(BATCH_BYTES);
        let groups: [&[Message]; 4] =
            [&[text("abc"), text(&long)], &[picture], &[], &[text("de"), text("f")]];
        assert_eq!(
            count(&StandIn, &groups),
            [Some(3 + BATCH_BYTES as u32), None, Some(0), Some(3)]
        );
    }

    #[test]
    fn a_mistake_names_its_field() {
        for (value, expected) in [
            (json!(3), "expected a message such as"),
            (json!({"content": "a"}), "`role` is missing"),
            (json!({"role": "human", "content": "a"}), "`role` is `human`; expected `system`"),
            (
                json!({"role": "user", "content": 5}),
                "`content`: expected a text or a list of parts",
            ),
            (
                json!({"role": "user", "content": [{"type": "video"}]}),
                "`content`: expected parts of type",
            ),
            (
                json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b"}}]}),
                "nothing is fetched",
            ),
        ] {
            let cause = message(value.clone()).expect_err("a mistake");
            assert!(cause.contains(expected), "{value}: {cause}");
        }
    }
}
