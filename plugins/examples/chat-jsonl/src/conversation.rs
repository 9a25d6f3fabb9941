//! A line of the file: a conversation and its other fields.

use runner_plugin::{Media, Message, Part, Role};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::media;

/// A conversation as recorded.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conversation {
    /// Its name, unique in the file.
    pub id: Option<String>,
    messages: Vec<Recorded>,
    /// The kind of conversation.
    pub class: Option<String>,
    /// The adapter to use.
    pub adapter: Option<String>,
    /// Extra fields for its requests.
    pub parameters: Option<Map<String, Value>>,
    /// What a scorer compares the last answer with.
    pub reference: Option<Value>,
    /// Its arrival time.
    pub timestamp: Option<f64>,
}

#[derive(Deserialize)]
struct Recorded {
    role: Speaker,
    content: Option<Content>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Speaker {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`content`: expected a text or a list of parts")]
enum Content {
    Text(String),
    Parts(Vec<Value>),
}

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

/// A turn to send.
pub struct Asked {
    /// The conversation so far; the question comes last.
    pub messages: Vec<Message>,
    /// The text of the recorded answer; absent if it has none, such as a tool call.
    pub answer: Option<String>,
}

impl Conversation {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        let conversation: Conversation = serde_json::from_slice(line).map_err(|error| {
            let said = error.to_string();
            // The caller adds the line number within the file.
            let said = said
                .rsplit_once(" at line ")
                .map_or(&*said, |(said, _)| said);
            format!("{said} (at byte {})", error.column())
        })?;
        if conversation
            .timestamp
            .is_some_and(|timestamp| !timestamp.is_finite())
        {
            return Err("`timestamp`: expected a finite number".to_owned());
        }
        for (index, message) in conversation.messages.iter().enumerate() {
            message
                .parts()
                .map_err(|what| format!("`messages[{index}]`: {what}"))?;
        }
        if conversation.asked().is_empty() {
            return Err("`messages`: nothing to ask; expected the message of a user".to_owned());
        }
        Ok(conversation)
    }

    /// The turns: wherever a user or tool message is followed by an assistant message, or by nothing.
    pub fn asked(&self) -> Vec<Asked> {
        let mut asked = Vec::new();
        let mut said = Vec::new();
        for (index, message) in self.messages.iter().enumerate() {
            said.push(message.message());
            let next = self.messages.get(index + 1);
            let asks = matches!(message.role, Speaker::User | Speaker::Tool);
            if asks && next.is_none_or(|next| next.role == Speaker::Assistant) {
                asked.push(Asked {
                    messages: said.clone(),
                    answer: next.map(Recorded::text).filter(|text| !text.is_empty()),
                });
            }
        }
        asked
    }
}

impl Recorded {
    fn parts(&self) -> Result<Vec<Part>, String> {
        match &self.content {
            None => Ok(vec![Part::Text(String::new())]),
            Some(Content::Text(text)) => Ok(vec![Part::Text(text.clone())]),
            Some(Content::Parts(pieces)) => pieces.iter().map(part).collect(),
        }
    }

    fn message(&self) -> Message {
        Message {
            role: match self.role {
                Speaker::System => Role::System,
                Speaker::Developer => Role::Developer,
                Speaker::User => Role::User,
                Speaker::Assistant => Role::Assistant,
                Speaker::Tool => Role::Tool,
            },
            // Checked when the line was read.
            parts: self.parts().unwrap_or_default(),
            extra: (!self.extra.is_empty()).then(|| Value::Object(self.extra.clone()).to_string()),
        }
    }

    fn text(&self) -> String {
        let parts = self.parts().unwrap_or_default();
        let texts: Vec<_> = parts
            .into_iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }
}

fn part(piece: &Value) -> Result<Part, String> {
    let piece = Piece::deserialize(piece).map_err(|error| {
        format!("expected parts of type `text`, `image_url` or `input_audio`: {error}")
    })?;
    Ok(match piece {
        Piece::Text { text } => Part::Text(text),
        Piece::ImageUrl { image_url } => Part::Image(media::from_data_url(&image_url.url)?),
        Piece::InputAudio { input_audio } => Part::Audio(Media {
            media_type: match input_audio.format.as_str() {
                "mp3" => "audio/mpeg".to_owned(),
                format => format!("audio/{format}"),
            },
            bytes: media::from_base64(&input_audio.data)?,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(line: &str) -> String {
        match Conversation::read(line.as_bytes()) {
            Ok(_) => panic!("{line} was taken"),
            Err(what) => what,
        }
    }

    #[test]
    fn each_turn_is_asked_with_what_was_said_before() {
        let line = br#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":"b"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"tool","content":"t","tool_call_id":"1"},
            {"role":"assistant","content":"c"},{"role":"user","content":[{"type":"text","text":"d"}]}]}"#;
        let conversation = Conversation::read(line).unwrap();
        let asked = conversation.asked();
        let shown: Vec<_> = asked
            .iter()
            .map(|turn| (turn.messages.len(), turn.answer.as_deref()))
            .collect();
        assert_eq!(shown, [(3, None), (5, Some("c")), (7, None)]);
        let extras: Vec<_> = asked[2]
            .messages
            .iter()
            .map(|message| message.extra.as_deref())
            .collect();
        let calls = Some(r#"{"tool_calls":[{"id":"1"}]}"#);
        let id = Some(r#"{"tool_call_id":"1"}"#);
        assert_eq!(extras, [None, None, None, calls, id, None, None]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (line, expected) in [
            ("{}", "missing field `messages`"),
            (r#"{"messages":[],"clas":"a"}"#, "unknown field `clas`"),
            (r#"{"messages":[]}"#, "nothing to ask"),
            (
                r#"{"messages":[{"role":"assistant","content":"a"}]}"#,
                "nothing to ask",
            ),
            (
                r#"{"messages":[{"role":"human","content":"a"}]}"#,
                "unknown variant `human`",
            ),
            (
                r#"{"messages":[{"role":"user","content":5}]}"#,
                "a text or a list of parts",
            ),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"video"}]}]}"#,
                "`messages[0]`: expected parts of type",
            ),
            (
                r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://a/b"}}]}]}"#,
                "nothing is fetched",
            ),
        ] {
            let what = mistake(line);
            assert!(what.contains(expected), "{line}: {what}");
        }
    }
}
