//! The tokens of a prompt on the server, estimated with the run's tokenizer and the model's chat
//! template, if there is one. [`result::prefix`] finds their repetitions.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use load::transport::Request;
use model::identity::{self, ROUTING_CHARS, ROUTING_TOKENS};
use plugins::backend::{Message, Part, Prompt, Sample};
use plugins::chat;
use tokenizer::Tokenizer;

/// A prompt as tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokenized {
    pub tokens: Vec<u32>,
    /// True for a conversation without the model's template: the tokens of its texts in order.
    pub is_bare: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Form {
    /// A text that is completed.
    Text(String),
    Tokens(Vec<u32>),
    /// A conversation that a chat template makes a text of, with the tools it may call.
    Chat(Vec<Value>, Option<Value>),
}

impl Form {
    /// Returns the form of a sample that is sent to a path; `None` if it is not text alone.
    pub fn new(sample: &Sample, path: &str) -> Option<Self> {
        match &sample.prompt {
            Prompt::Tokens(tokens) => Some(Form::Tokens(tokens.clone())),
            Prompt::Text(text) if takes_chats(path) => {
                let message = serde_json::json!({ "role": "user", "content": text });
                Some(Form::Chat(vec![message], None))
            }
            Prompt::Text(text) => Some(Form::Text(text.clone())),
            Prompt::Messages(messages) => {
                let messages = messages.iter().map(chat::message);
                let messages = messages.collect::<Option<Vec<Value>>>()?;
                let parameters = sample.parameters.as_deref();
                let parameters = parameters.and_then(|json| serde_json::from_str(json).ok());
                let tools = parameters.and_then(|mut fields: Map<_, _>| fields.remove("tools"));
                Some(Form::Chat(messages, tools))
            }
            Prompt::Continuation(_) | Prompt::Embedding(_) | Prompt::Ranking(_) => None,
        }
    }
}

/// A number for the beginning of a prompt of text or tokens; equal beginnings have the same.
pub fn beginning(prompt: &Prompt) -> Option<u64> {
    let of_text = |text: &str| {
        let chars = text.chars().take(ROUTING_CHARS).map(char::len_utf8);
        let bytes = text.bytes().take(chars.sum());
        identity::beginning(bytes)
    };
    match prompt {
        Prompt::Text(text) => Some(of_text(text)),
        Prompt::Tokens(tokens) => {
            let tokens = tokens.iter().take(ROUTING_TOKENS);
            Some(identity::beginning(tokens.flat_map(|token| token.to_le_bytes())))
        }
        Prompt::Messages(messages) => {
            let parts = messages.iter().flat_map(|message| &message.parts);
            let mut texts = parts.filter_map(|part| match part {
                Part::Text(text) => Some(of_text(text)),
                _ => None,
            });
            texts.next()
        }
        Prompt::Continuation(_) | Prompt::Embedding(_) | Prompt::Ranking(_) => None,
    }
}

/// The end of the last text of a prompt, of at most this many characters. `None` without a text.
pub fn end(prompt: &Prompt, chars: usize) -> Option<&str> {
    let text = match prompt {
        Prompt::Text(text) => Some(text.as_str()),
        Prompt::Messages(messages) => last_text(messages),
        Prompt::Continuation(continuation) => last_text(&continuation.messages),
        Prompt::Embedding(texts) => texts.last().map(String::as_str),
        Prompt::Ranking(candidates) => Some(candidates.query.as_str()),
        Prompt::Tokens(_) => None,
    };
    text.map(|text| tail(text, chars))
}

fn last_text(messages: &[Message]) -> Option<&str> {
    let mut parts = messages.iter().rev().flat_map(|message| message.parts.iter().rev());
    parts.find_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image(_) | Part::Audio(_) | Part::Video(_) | Part::Answer(_) => None,
    })
}

pub fn tail(text: &str, chars: usize) -> &str {
    let from = text.char_indices().rev().nth(chars.saturating_sub(1));
    &text[from.map_or(0, |(at, _)| at)..]
}

/// The tokens of a sample that is sent to a path, if it is text alone and can be tokenized.
pub fn tokenize(tokenizer: &Tokenizer, sample: &Sample, path: &str) -> Option<Tokenized> {
    encode_form(tokenizer, Form::new(sample, path)?)
}

pub fn encode_form(tokenizer: &Tokenizer, form: Form) -> Option<Tokenized> {
    match form {
        Form::Tokens(tokens) => Some(whole(tokens)),
        Form::Text(text) => encode(tokenizer, text, true).map(whole),
        Form::Chat(messages, tools) => chat_tokens(tokenizer, &messages, tools.as_ref()),
    }
}

pub fn path(request: &Request) -> &str {
    match request {
        Request::Http1 { head, .. } => {
            let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
            let mut words = line.split(|byte| *byte == b' ').skip(1);
            let path = words.next().unwrap_or_default();
            std::str::from_utf8(path).unwrap_or_default()
        }
        Request::Http2(request) => request.uri().path(),
    }
}

/// True if a server applies its chat template there: the paths of the OpenAI and Anthropic APIs.
fn takes_chats(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.ends_with("/chat/completions") || path.ends_with("/messages")
}

fn whole(tokens: Vec<u32>) -> Tokenized {
    Tokenized { tokens, is_bare: false }
}

fn chat_tokens(
    tokenizer: &Tokenizer,
    messages: &[Value],
    tools: Option<&Value>,
) -> Option<Tokenized> {
    if let Ok(text) = tokenizer.render_chat(messages, tools, &Map::new()) {
        return encode(tokenizer, text, false).map(whole);
    }
    let contents = messages.iter().filter_map(|message| message["content"].as_str());
    let tokens = encode(tokenizer, contents.collect(), false)?;
    Some(Tokenized { tokens, is_bare: true })
}

/// Tokens that the model's chat template puts around one message. `None` without a template.
pub fn template_tokens(tokenizer: &Tokenizer) -> Option<u32> {
    const TEXT: &str = "Hello";
    let message = serde_json::json!({ "role": "user", "content": TEXT });
    let around = chat_tokens(tokenizer, &[message], None).filter(|made| !made.is_bare)?;
    let bare = encode(tokenizer, TEXT.to_owned(), false)?;
    u32::try_from(around.tokens.len().saturating_sub(bare.len())).ok()
}

fn encode(tokenizer: &Tokenizer, text: String, special: bool) -> Option<Vec<u32>> {
    tokenizer.encode(&[text], special).ok()?.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chat_paths_are_recognised() {
        for path in ["/v1/chat/completions", "/base/v1/chat/completions?x=1", "/v1/messages"] {
            assert!(takes_chats(path), "{path}");
        }
        for path in ["/v1/completions", "/generate", "/v1/embeddings", ""] {
            assert!(!takes_chats(path), "{path}");
        }
    }
}
