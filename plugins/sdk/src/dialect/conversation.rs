//! Conversations in the form of no API in particular: the instructions apart, then alternating
//! turns of user and model, with tool calls and their results as parts.
//!
//! Datasets give messages with the fields of OpenAI's API. Backends of APIs with another form write
//! them from this.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Error, Media, Message, Part, Prompt, Role};

/// A prompt as a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation<'a> {
    /// The texts of the system and developer messages that it begins with.
    pub instructions: Vec<&'a str>,
    /// The turns; no two in a row have the same speaker.
    pub turns: Vec<Turn<'a>>,
}

/// The messages of one side until the other side speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn<'a> {
    /// The side that speaks.
    pub speaker: Speaker,
    /// The parts in their order, at least one.
    pub parts: Vec<Piece<'a>>,
}

/// A side of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user, and the tools.
    User,
    /// The model.
    Model,
}

/// A part of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'a> {
    /// Text; empty only if the turn has nothing else.
    Text(&'a str),
    /// An image.
    Image(&'a Media),
    /// Audio.
    Audio(&'a Media),
    /// A video.
    Video(&'a Media),
    /// The model calls a tool.
    Call(Call),
    /// The result that a tool returned.
    ToolResult(ToolResult<'a>),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The call's id, which its result names.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult<'a> {
    /// The call's id.
    pub id: String,
    /// The tool's name, if the message or the call says it.
    pub name: Option<String>,
    /// The result; only text, images and audio.
    pub parts: Vec<Piece<'a>>,
}

/// The further fields of a message that have a meaning in every API with tools.
#[derive(Default, Deserialize)]
struct Fields {
    tool_calls: Option<Vec<CallFields>>,
    tool_call_id: Option<String>,
    name: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct CallFields {
    #[serde(default)]
    id: String,
    function: FunctionFields,
}

#[derive(Deserialize)]
struct FunctionFields {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// Fields of the model's reasoning. APIs refuse unsigned reasoning, and templates leave it out.
const REASONING: [&str; 2] = ["reasoning", "reasoning_content"];

/// Reads a text or messages as a conversation; `api` names the API in messages.
///
/// # Errors
/// [`Error::InvalidConfig`] for another kind of prompt, and [`Error::InvalidInput`] if a message
/// has a form that only OpenAI's API takes, with the message's number from 1.
pub fn read<'a>(prompt: &'a Prompt, api: &str) -> Result<Conversation<'a>, Error> {
    match prompt {
        Prompt::Text(text) => Ok(Conversation {
            instructions: Vec::new(),
            turns: vec![Turn { speaker: Speaker::User, parts: vec![Piece::Text(text)] }],
        }),
        Prompt::Messages(messages) => of_messages(messages, api),
        other => Err(Error::InvalidConfig(format!(
            "the dataset gives {}, which {api} does not accept; have the dataset give text or conversations, or name \
             another backend",
            other.kind()
        ))),
    }
}

fn of_messages<'a>(messages: &'a [Message], api: &str) -> Result<Conversation<'a>, Error> {
    let mut conversation = Conversation::default();
    let mut tools: HashMap<String, String> = HashMap::new();
    for (number, message) in (1..).zip(messages) {
        let wrong = |why: String| Error::InvalidInput(format!("message {number}: {why}"));
        let fields = fields(message, api).map_err(wrong)?;
        let parts = pieces(&message.parts).map_err(wrong)?;
        let (speaker, parts) = match message.role {
            Role::System | Role::Developer => {
                if !conversation.turns.is_empty() {
                    return Err(wrong(format!(
                        "instructions stand in the middle of the conversation, and {api} takes them only at its \
                         beginning"
                    )));
                }
                for part in parts {
                    let Piece::Text(text) = part else {
                        return Err(wrong(format!("{api} takes only text as instructions")));
                    };
                    conversation.instructions.push(text);
                }
                continue;
            }
            Role::User => (Speaker::User, parts),
            Role::Assistant => {
                let mut parts = parts;
                for call in fields.tool_calls.unwrap_or_default() {
                    let call = call.read().map_err(wrong)?;
                    tools.insert(call.id.clone(), call.name.clone());
                    parts.push(Piece::Call(call));
                }
                (Speaker::Model, parts)
            }
            Role::Tool => {
                let id = fields.tool_call_id.unwrap_or_default();
                let name = fields.name.or_else(|| tools.get(&id).cloned());
                let returned = ToolResult { id, name, parts };
                (Speaker::User, vec![Piece::ToolResult(returned)])
            }
        };
        match conversation.turns.last_mut() {
            Some(turn) if turn.speaker == speaker => turn.parts.extend(parts),
            _ => conversation.turns.push(Turn { speaker, parts }),
        }
    }
    for turn in &mut conversation.turns {
        tidy(&mut turn.parts);
    }
    Ok(conversation)
}

/// Drops empty texts beside other parts, which APIs refuse, and leaves at least one part.
fn tidy(parts: &mut Vec<Piece<'_>>) {
    let silent = |part: &Piece<'_>| matches!(part, Piece::Text(""));
    if !parts.iter().all(silent) {
        parts.retain(|part| !silent(part));
    }
    if parts.is_empty() {
        parts.push(Piece::Text(""));
    }
}

fn pieces(parts: &[Part]) -> Result<Vec<Piece<'_>>, String> {
    parts.iter().map(piece).collect()
}

fn piece(part: &Part) -> Result<Piece<'_>, String> {
    match part {
        Part::Text(text) => Ok(Piece::Text(text)),
        Part::Image(media) => Ok(Piece::Image(media)),
        Part::Audio(media) => Ok(Piece::Audio(media)),
        Part::Video(media) => Ok(Piece::Video(media)),
        Part::Answer(of) => {
            Err(format!("the placeholder for the answer of sample `{of}` was not replaced"))
        }
    }
}

/// A message's further fields; a field that has no place in the API is refused, not lost.
fn fields(message: &Message, api: &str) -> Result<Fields, String> {
    let Some(extra) = &message.extra else { return Ok(Fields::default()) };
    let fields: Fields = serde_json::from_str(extra).map_err(|error| {
        format!("expected its further fields as in a message of OpenAI's API: {error}")
    })?;
    let lost = fields
        .others
        .iter()
        .find(|(key, value)| !value.is_null() && !REASONING.contains(&key.as_str()));
    let misplaced = [
        ("tool_calls", fields.tool_calls.is_some() && message.role != Role::Assistant),
        ("tool_call_id", fields.tool_call_id.is_some() && message.role != Role::Tool),
        ("name", fields.name.is_some() && message.role != Role::Tool),
    ];
    let misplaced = misplaced.iter().find(|(_, is)| *is).map(|(key, _)| *key);
    match lost.map(|(key, _)| key.as_str()).or(misplaced) {
        Some(key) => Err(format!(
            "{api} has no place for its field `{key}`; remove the field from the dataset, or name another backend"
        )),
        None => Ok(fields),
    }
}

impl CallFields {
    fn read(self) -> Result<Call, String> {
        let FunctionFields { name, arguments } = self.function;
        let arguments = match arguments {
            Value::Null => Map::new(),
            Value::Object(arguments) => arguments,
            Value::String(text) if text.trim().is_empty() => Map::new(),
            Value::String(text) => serde_json::from_str(&text).map_err(|error| {
                format!("the arguments of the call of `{name}` are no JSON object: {error}")
            })?,
            other => {
                return Err(format!(
                    "the arguments of the call of `{name}` are no JSON object, but `{other}`"
                ));
            }
        };
        Ok(Call { id: self.id, name, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, text: &str, extra: Option<&str>) -> Message {
        Message { extra: extra.map(str::to_owned), ..Message::text(role, text) }
    }

    #[test]
    fn content_without_a_field_is_refused_with_its_place() {
        let refusal = |role, extra| {
            let prompt =
                Prompt::Messages(vec![message(Role::User, "a", None), message(role, "b", extra)]);
            match read(&prompt, "this API") {
                Err(Error::InvalidInput(text)) => text,
                other => panic!("{other:?}"),
            }
        };
        assert!(
            refusal(Role::System, None).starts_with("message 2: instructions stand in the middle")
        );
        assert!(refusal(Role::Assistant, Some(r#"{"audio":{"id":"x"}}"#)).contains("`audio`"));
        assert!(refusal(Role::User, Some(r#"{"name":"ann"}"#)).contains("`name`"));
        let calls = r#"{"tool_calls":[{"function":{"name":"f","arguments":"{"}}]}"#;
        assert!(refusal(Role::Assistant, Some(calls)).contains("the call of `f`"));
        let tokens = Prompt::Tokens(vec![1]);
        assert!(
            matches!(read(&tokens, "this API"), Err(Error::InvalidConfig(text)) if text.contains("token ids"))
        );
    }

    #[test]
    fn an_empty_answer_keeps_its_turn() {
        let prompt = Prompt::Messages(vec![
            message(Role::User, "a", None),
            message(Role::Assistant, "", None),
            message(Role::User, "b", None),
        ]);
        let read = read(&prompt, "this API").unwrap();
        assert_eq!(read.turns[1].parts, [Piece::Text("")]);
    }
}
