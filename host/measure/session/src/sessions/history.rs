//! The history in front of a request that continues a conversation. Forks share common messages.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::pending::{ComposedSample, message_bytes};
use model::exchange::{self, Exchange};
use plugins::backend::{Earlier, Message, Part, Prompt, Role, Sample};

pub struct Conversation {
    pub before: Option<Arc<Conversation>>,
    pub messages: Vec<Message>,
    pub answer: Message,
    pub is_recorded: bool,
    pub index: u64,
    pub answers: u32,
    /// Of these, answers on record in place of given ones.
    pub recorded: u32,
    /// The state that the last reply left for the next request.
    pub carry: Option<Vec<u8>>,
}

pub struct ReplyContent {
    pub answer: Message,
    pub carry: Option<Vec<u8>>,
}

impl ReplyContent {
    /// An answer on record: its text, and its tool calls as pieces one after the other.
    pub(crate) fn saying(output: &str, tool_calls: &str) -> Self {
        ReplyContent { answer: answer(output, tool_calls), carry: None }
    }

    pub fn from_exchange(exchange: &Exchange, carry: Option<Vec<u8>>) -> Option<Self> {
        let answer = || answer(&exchange.output, &exchange.tool_calls);
        exchange.has_answer().then(|| ReplyContent { answer: answer(), carry })
    }

    /// The size of its texts, more or less.
    pub fn bytes(&self) -> usize {
        let extra = self.answer.extra.as_ref().map_or(0, String::len);
        let carry = self.carry.as_ref().map_or(0, Vec::len);
        message_bytes(std::slice::from_ref(&self.answer)) + extra + carry
    }
}

impl ComposedSample {
    /// A sample with its own messages after this history.
    pub(super) fn new(
        mut sample: Sample,
        own: Vec<Message>,
        before: Option<&Conversation>,
    ) -> Self {
        let Some(before) = before else {
            if matches!(sample.prompt, Prompt::Continuation(_)) {
                sample.prompt = Prompt::Messages(own);
            }
            return ComposedSample::alone(sample);
        };
        let mut messages = before.whole();
        let earlier = before.carry.as_ref().map(|carry| Earlier {
            carry: carry.clone(),
            messages: u32::try_from(messages.len()).unwrap_or(u32::MAX),
        });
        messages.extend(own);
        sample.prompt = Prompt::Messages(messages);
        // The dataset counted only the sample's own tokens.
        sample.input_tokens = None;
        ComposedSample {
            earlier,
            history: Some(exchange::History {
                continues: before.index,
                answers: before.answers,
                recorded: before.recorded,
            }),
            ..ComposedSample::alone(sample)
        }
    }
}

impl Conversation {
    fn whole(&self) -> Vec<Message> {
        let mut conversations = vec![self];
        while let Some(before) =
            conversations.last().and_then(|conversation| conversation.before.as_deref())
        {
            conversations.push(before);
        }
        let mut messages = Vec::new();
        for conversation in conversations.into_iter().rev() {
            messages.extend(conversation.messages.iter().cloned());
            messages.push(conversation.answer.clone());
        }
        messages
    }

    pub fn text(&self) -> String {
        let parts = self.answer.parts.iter();
        let texts = parts.filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

impl Drop for Conversation {
    /// A conversation of many turns is a long chain, which must not be taken down turn within turn.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(conversation) = next {
            next = Arc::into_inner(conversation)
                .and_then(|mut conversation| conversation.before.take());
        }
    }
}

/// A request's messages for a conversation; results of tools name the calls of a live answer.
pub(super) fn first_messages(prompt: &Prompt, before: Option<&Conversation>) -> Vec<Message> {
    let mut messages = match prompt {
        Prompt::Text(text) => return vec![text_message(Role::User, text)],
        Prompt::Messages(messages) => messages.clone(),
        Prompt::Continuation(next) => next.messages.clone(),
        Prompt::Tokens(_) | Prompt::Embedding(_) | Prompt::Ranking(_) => return Vec::new(),
    };
    if let Some(before) = before.filter(|before| !before.is_recorded) {
        let ids = call_ids(&before.answer);
        let results = messages.iter_mut().take_while(|message| message.role == Role::Tool);
        for (message, id) in results.zip(ids) {
            let extra = message.extra.as_deref();
            let mut fields = extra
                .and_then(|extra| serde_json::from_str::<Map<String, Value>>(extra).ok())
                .unwrap_or_default();
            fields.insert("tool_call_id".to_owned(), json!(id));
            message.extra = Some(Value::Object(fields).to_string());
        }
    }
    messages
}

/// Returns the number of tool results at the beginning of these messages.
pub(super) fn result_count(messages: &[Message]) -> usize {
    messages.iter().take_while(|message| message.role == Role::Tool).count()
}

/// Keeps the first calls of tools of an answer, this many, and takes the others out.
pub(super) fn keep_calls(answer: &mut Message, most: usize) {
    let fields = (answer.extra.as_deref())
        .and_then(|extra| serde_json::from_str::<Map<String, Value>>(extra).ok());
    let Some(mut fields) = fields else { return };
    let Some(Value::Array(calls)) = fields.get_mut("tool_calls") else { return };
    if calls.len() <= most {
        return;
    }
    calls.truncate(most);
    if calls.is_empty() {
        fields.remove("tool_calls");
    }
    answer.extra = (!fields.is_empty()).then(|| Value::Object(fields).to_string());
}

pub(super) fn call_ids(answer: &Message) -> Vec<String> {
    let extra = answer.extra.as_deref();
    let fields = extra.and_then(|extra| serde_json::from_str::<Value>(extra).ok());
    let calls = fields.as_ref().and_then(|fields| fields["tool_calls"].as_array());
    let ids = calls.into_iter().flatten().filter_map(|call| call["id"].as_str());
    ids.map(str::to_owned).collect()
}

/// An answer as a message. Reasoning is not part of a history: chat templates leave it out.
fn answer(output: &str, tool_calls: &str) -> Message {
    let calls = joined_calls(tool_calls);
    let extra = (!calls.is_empty()).then(|| json!({ "tool_calls": calls }).to_string());
    Message { extra, ..text_message(Role::Assistant, output) }
}

pub(crate) fn text_message(role: Role, text: &str) -> Message {
    Message { role, parts: vec![Part::Text(text.to_owned())], extra: None }
}

/// The tool calls of a reply, in pieces one after the other. In a stream, the first piece of a call
/// has its id and name, further pieces of the same index more of its arguments.
fn joined_calls(text: &str) -> Vec<Value> {
    let mut calls: Vec<(u64, Value)> = Vec::new();
    for piece in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let Ok(piece) = piece else { break };
        let begins = piece["id"].as_str().is_some_and(|id| !id.is_empty());
        let index = piece["index"].as_u64();
        let known = calls.iter_mut().rev().find(|(at, _)| index.is_none_or(|index| *at == index));
        match known {
            Some((_, call)) if !begins || index.is_some() => {
                let more = piece["function"]["arguments"].as_str().unwrap_or_default();
                let so_far = call["function"]["arguments"].as_str().unwrap_or_default();
                call["function"]["arguments"] = json!(format!("{so_far}{more}"));
            }
            _ => {
                let number = index.unwrap_or(calls.len() as u64);
                let function = &piece["function"];
                calls.push((
                    number,
                    json!({
                        "id": piece["id"].as_str().unwrap_or_default(),
                        "type": "function",
                        "function": {
                            "name": function["name"].as_str().unwrap_or_default(),
                            "arguments": function["arguments"].as_str().unwrap_or_default(),
                        },
                    }),
                ));
            }
        }
    }
    calls.into_iter().map(|(_, call)| call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_call_pieces_are_joined_by_index() {
        let text = concat!(
            r#"{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\":"}}{"index":0,"function":{"arguments":"1}"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"say","arguments":"{}"}}"#,
        );
        let calls = joined_calls(text);
        assert_eq!(calls[0]["function"]["arguments"], "{\"x\":1}");
        assert_eq!(call_ids(&answer("", text)), ["a", "b"]);
        // Whole calls, as in a reply that is not streamed, have no index.
        let whole = r#"{"id":"c","function":{"name":"f","arguments":"1"}}{"id":"d","function":{"name":"g","arguments":"2"}}"#;
        assert_eq!(call_ids(&answer("", whole)), ["c", "d"]);
        assert!(joined_calls("not json").is_empty());
    }

    #[test]
    fn long_conversation_drops_without_recursion() {
        let mut conversation = None;
        for index in 0..200_000 {
            conversation = Some(Arc::new(Conversation {
                before: conversation,
                messages: Vec::new(),
                answer: answer("", ""),
                is_recorded: false,
                index,
                answers: 0,
                recorded: 0,
                carry: None,
            }));
        }
        drop(conversation);
    }
}
