//! Prompts for people to look at.

use super::Request;
use plugins::backend::{Message, Part, Prompt, Sample};
use plugins::chat;
use runs::outlook::{Said, Shown};

/// A request's prompt, each message cut to this many characters.
pub(super) fn shown(request: &Request, cut: Option<usize>) -> Shown {
    Shown {
        index: request.index,
        id: request.given.id.clone(),
        input_tokens: request.input_tokens,
        output_tokens: request.output_tokens,
        prompt: messages(&request.sent, cut),
    }
}

/// The messages of a prompt, each cut to this many characters.
pub(super) fn messages(sample: &Sample, cut: Option<usize>) -> Vec<Said> {
    let one = |role: Option<&str>, text: String| {
        let cut = cut.and_then(|most| text.char_indices().nth(most));
        let (text, left_out) = match cut {
            None => (text, 0),
            Some((at, _)) => (text[..at].to_owned(), text[at..].chars().count() as u64),
        };
        Said { role: role.map(str::to_owned), text, left_out }
    };
    match &sample.prompt {
        Prompt::Text(text) => vec![one(None, text.clone())],
        Prompt::Tokens(tokens) => {
            let ids: Vec<String> = tokens.iter().map(u32::to_string).collect();
            vec![one(Some("tokens"), ids.join(" "))]
        }
        Prompt::Embedding(texts) => texts.iter().map(|text| one(None, text.clone())).collect(),
        Prompt::Ranking(texts) => {
            let documents = texts.documents.iter();
            let documents = documents.map(|text| one(Some("document"), text.clone()));
            let query = one(Some("query"), texts.query.clone());
            std::iter::once(query).chain(documents).collect()
        }
        Prompt::Messages(messages) => messages.iter().map(|of| message(of, &one)).collect(),
        Prompt::Continuation(next) => next.messages.iter().map(|of| message(of, &one)).collect(),
    }
}

fn message(message: &Message, one: &impl Fn(Option<&str>, String) -> Said) -> Said {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.clone(),
        Part::Image(media) | Part::Audio(media) | Part::Video(media) => {
            format!("[{}, {} bytes]", media.media_type, media.bytes.len())
        }
        Part::Answer(of) => format!("[the answer to {of}]"),
    });
    let mut text: String = parts.collect();
    if let Some(extra) = &message.extra {
        text.push_str(extra);
    }
    one(Some(chat::role(message.role)), text)
}
