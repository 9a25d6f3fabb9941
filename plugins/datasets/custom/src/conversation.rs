//! Conversations in a row: messages of the OpenAI API, a user's messages turn by turn, and
//! ShareGPT's conversations.

use runner_plugin::{Media, Message, Part, Role};
use serde_json::{Map, Value};

use crate::{Finder, Kind};

/// A turn: the messages to send, and the answer on record.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Messages before the answer, after the answer of the turn before.
    pub messages: Vec<Message>,
    pub answer: Option<Message>,
}

/// The place where a conversation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Messages of the OpenAI API.
    Messages,
    User,
    ShareGpt,
}

pub fn read(of: &str, value: &Value, finder: &Finder) -> Result<(Origin, Vec<Turn>), String> {
    let items = value.as_array().ok_or_else(|| format!("`{of}`: expected a list"))?;
    if let Some(texts) = texts(items) {
        return Ok((Origin::User, texts));
    }
    let shared = |item: &Value| item.get("from").is_some() || item.get("value").is_some();
    let shared = of.starts_with("conversation") || items.iter().any(shared);
    let mut messages = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let message = message(item, shared, finder);
        messages.push(message.map_err(|cause| format!("`{of}[{index}]`: {cause}"))?);
    }
    let only_user = messages.iter().all(|message| message.role == Role::User);
    if !shared && only_user && messages.len() > 1 {
        let turns =
            messages.into_iter().map(|message| Turn { messages: vec![message], answer: None });
        return Ok((Origin::User, turns.collect()));
    }
    let turns = turns(messages);
    if turns.is_empty() {
        return Err(format!("`{of}`: no question; expected a user's message"));
    }
    let origin = if shared { Origin::ShareGpt } else { Origin::Messages };
    Ok((origin, turns))
}

/// The first two texts of a ShareGPT conversation, from any speaker, as the tools take them.
pub fn first_pair(value: &Value) -> Option<(String, String)> {
    let text_of = |item: &Value| {
        let text = item.get("content").or_else(|| item.get("value"));
        text.map_or(Some(String::new()), |text| text.as_str().map(str::to_owned))
    };
    match value.as_array()?.as_slice() {
        [first, second, ..] => Some((text_of(first)?, text_of(second)?)),
        _ => None,
    }
}

fn texts(items: &[Value]) -> Option<Vec<Turn>> {
    let turn = |item: &Value| {
        Some(Turn { messages: vec![Message::text(Role::User, item.as_str()?)], answer: None })
    };
    let turns: Option<Vec<_>> = items.iter().map(turn).collect();
    turns.filter(|turns| !turns.is_empty())
}

/// A turn ends at a user's or a tool's message before an assistant's message, or before the end.
fn turns(messages: Vec<Message>) -> Vec<Turn> {
    let mut turns = Vec::new();
    let mut group = Vec::new();
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        let asks = matches!(message.role, Role::User | Role::Tool);
        group.push(message);
        let answered = messages.peek().is_none_or(|next| next.role == Role::Assistant);
        if asks && answered {
            turns.push(Turn { messages: std::mem::take(&mut group), answer: messages.next() });
        }
    }
    turns
}

fn message(item: &Value, shared: bool, finder: &Finder) -> Result<Message, String> {
    let Value::Object(fields) = item else {
        return Err("expected an object with `role` and `content`".to_owned());
    };
    let (who, body) =
        if fields.contains_key("from") { ("from", "value") } else { ("role", "content") };
    let speaker = fields.get(who).and_then(Value::as_str).unwrap_or_default();
    let role = match speaker {
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "human" if shared => Role::User,
        "gpt" | "chatgpt" | "bing" | "bard" if shared => Role::Assistant,
        "observation" | "function" if shared => Role::Tool,
        other => {
            return Err(format!(
                "`{who}` is `{other}`; expected `system`, `developer`, `user`, `assistant` or `tool`"
            ));
        }
    };
    let parts = content(fields.get(body), finder).map_err(|error| format!("`{body}`: {error}"))?;
    let extra: Map<String, Value> = fields
        .iter()
        .filter(|(key, value)| *key != who && *key != body && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Ok(Message {
        role,
        parts,
        extra: (!extra.is_empty() && !shared).then(|| Value::Object(extra).to_string()),
    })
}

/// The content of a message: a text, or a list of parts.
pub fn content(value: Option<&Value>, finder: &Finder) -> Result<Vec<Part>, String> {
    match value {
        None | Some(Value::Null) => Ok(vec![Part::Text(String::new())]),
        Some(Value::String(text)) => Ok(vec![Part::Text(text.clone())]),
        Some(Value::Array(items)) => items.iter().map(|item| part(item, finder)).collect(),
        Some(_) => Err("expected a text or a list of parts".to_owned()),
    }
}

fn part(item: &Value, finder: &Finder) -> Result<Part, String> {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("");
    let media = |media_kind| finder.one(item.get(kind).unwrap_or(&Value::Null), media_kind);
    match kind {
        "text" => match item.get("text").and_then(Value::as_str) {
            Some(text) => Ok(Part::Text(text.to_owned())),
            None => Err("a part of type `text` needs a `text`".to_owned()),
        },
        "image_url" | "image" => media(Kind::Image).map(Part::Image),
        "audio_url" | "audio" => media(Kind::Audio).map(Part::Audio),
        "video_url" | "video" => media(Kind::Video).map(Part::Video),
        "input_audio" => {
            let sound = item.get("input_audio");
            let field = |key| sound.and_then(|sound| sound.get(key)?.as_str());
            let media_type = match field("format") {
                Some("mp3") => "audio/mpeg".to_owned(),
                Some(format) => format!("audio/{format}"),
                None => return Err("a part of type `input_audio` needs a `format`".to_owned()),
            };
            Media::of_base64(media_type, field("data").unwrap_or("-"))
                .map(Part::Audio)
                .ok_or_else(|| "a part of type `input_audio` needs `data` in base64".to_owned())
        }
        other => Err(format!(
            "a part of type `{other}`; expected `text`, `image_url`, `image`, `input_audio`, `audio_url`, `audio`, \
             `video_url` or `video`"
        )),
    }
}

/// The texts of a message, one below the other.
pub fn text(message: &Message) -> String {
    let texts: Vec<_> = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}
