//! The memory that prompts take.

use plugins::backend::{Message, Part, Prompt};

/// The size of a prompt.
pub(crate) fn prompt_bytes(prompt: &Prompt) -> usize {
    match prompt {
        Prompt::Text(text) => text.len(),
        Prompt::Tokens(tokens) => size_of_val(&**tokens),
        Prompt::Messages(messages) => message_bytes(messages),
        Prompt::Continuation(next) => message_bytes(&next.messages),
        Prompt::Embedding(texts) => texts.iter().map(String::len).sum(),
        Prompt::Ranking(texts) => {
            texts.query.len() + texts.documents.iter().map(String::len).sum::<usize>()
        }
    }
}

/// The size of messages.
pub(crate) fn message_bytes(messages: &[Message]) -> usize {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let bytes = parts.map(|part| match part {
        Part::Text(text) | Part::Answer(text) => text.len(),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) => media.bytes.len(),
    });
    bytes.sum()
}
