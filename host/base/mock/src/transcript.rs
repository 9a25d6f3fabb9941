//! A transcript: the events of a reply, word by word, each at its time.
//!
//! Responsible for the contents of a transcript and for the bytes of its events. Engines differ in
//! details that a generated answer has no settings for: chunks without text, comments, usage in odd
//! places, several choices, characters cut in two. A transcript writes them down. The time at which
//! its bytes go out is up to `stream`, as for every reply.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use model::duration::Span;

use super::serve::possible_span;

/// The events of every streamed reply of OpenAI's routes, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub moments: Vec<Moment>,
}

/// One event of a transcript. In TOML it is a table `[[transcript]]` with `at` and the written
/// event: a chunk (`delta`, `usage` or both), `comment`, `raw`, `done` or `cut`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Moment {
    /// The time since the request was complete.
    pub at: Span,
    /// The `delta` of a chunk's choice. On the completions route its `content` is the text.
    pub delta: Option<Map<String, Value>>,
    #[serde(default)]
    pub index: u32,
    pub finish: Option<String>,
    /// Output tokens that the chunk's `usage` reports; without `delta` the chunk has no choice.
    pub usage: Option<u32>,
    pub comment: Option<String>,
    /// Bytes as they stand here.
    pub raw: Option<String>,
    #[serde(default)]
    pub done: bool,
    pub cut: Option<Breaks>,
    #[serde(default)]
    pub tokens: u32,
    /// The time of its second half: the event is cut in two.
    pub rest_at: Option<Span>,
    /// The text after whose first byte it is cut; without it, in the middle.
    pub cut_in: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Breaks {
    Close,
    Reset,
}

pub(super) struct ReplyFacts<'a> {
    pub id: String,
    pub created: u64,
    pub model: &'a str,
    pub prompt_tokens: u32,
    pub chat: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub at: Duration,
    pub action: PartAction,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PartAction {
    Write { bytes: Vec<u8>, tokens: u32 },
    Cut { reset: bool },
}

impl Transcript {
    pub fn tokens(&self) -> u32 {
        let tokens = self.moments.iter().map(|moment| moment.tokens);
        tokens.fold(0, u32::saturating_add)
    }

    /// True if nothing is missing at its end.
    pub fn is_whole(&self) -> bool {
        self.moments.iter().any(|moment| moment.done)
    }

    /// The parts of a reply, in order; `change` may change the bytes of an event.
    pub(super) fn parts(
        &self,
        facts: &ReplyFacts<'_>,
        change: impl Fn(Vec<u8>) -> Vec<u8>,
    ) -> Vec<Part> {
        let mut parts = Vec::with_capacity(self.moments.len());
        for moment in &self.moments {
            let at = moment.at.0;
            if let Some(how) = moment.cut {
                parts.push(Part { at, action: PartAction::Cut { reset: how == Breaks::Reset } });
                break;
            }
            let mut bytes = change(moment.bytes(facts));
            let tokens = moment.tokens;
            let Some(rest_at) = moment.rest_at else {
                parts.push(Part { at, action: PartAction::Write { bytes, tokens } });
                continue;
            };
            let rest = bytes.split_off(moment.cut_at(&bytes));
            parts.push(Part { at, action: PartAction::Write { bytes, tokens: 0 } });
            let action = PartAction::Write { bytes: rest, tokens };
            parts.push(Part { at: rest_at.0, action });
        }
        parts
    }
}

impl Moment {
    pub(super) fn mistake(&self) -> Option<String> {
        let is_chunk = self.delta.is_some() || self.usage.is_some();
        let kinds =
            [is_chunk, self.comment.is_some(), self.raw.is_some(), self.done, self.cut.is_some()];
        if kinds.into_iter().filter(|is| *is).count() != 1 {
            let expected = "expected exactly one of a chunk (`delta`, `usage` or both), `comment`, \
                            `raw`, `done` and `cut`";
            return Some(expected.to_owned());
        }
        if self.delta.is_none() && (self.finish.is_some() || self.index > 0) {
            return Some("`finish` and `index` belong to a choice; add `delta`".to_owned());
        }
        for span in [Some(self.at), self.rest_at].into_iter().flatten() {
            if let Err(message) = possible_span(span) {
                return Some(message);
            }
        }
        if self.rest_at.is_some_and(|rest| rest.0 < self.at.0) {
            return Some("`rest-at` is before `at`".to_owned());
        }
        (self.cut_in.is_some() && self.rest_at.is_none())
            .then(|| "`cut-in` needs `rest-at`, the time of the second half".to_owned())
    }

    fn bytes(&self, facts: &ReplyFacts<'_>) -> Vec<u8> {
        if let Some(comment) = &self.comment {
            return format!(": {comment}\n\n").into_bytes();
        }
        if let Some(raw) = &self.raw {
            return raw.clone().into_bytes();
        }
        if self.done {
            return b"data: [DONE]\n\n".to_vec();
        }
        format!("data: {}\n\n", self.chunk(facts)).into_bytes()
    }

    fn chunk(&self, facts: &ReplyFacts<'_>) -> Value {
        let (prefix, object, key) = if facts.chat {
            ("chatcmpl", "chat.completion.chunk", "delta")
        } else {
            ("cmpl", "text_completion", "text")
        };
        let choice = self.delta.as_ref().map(|delta| {
            let text = || delta.get("content").and_then(Value::as_str).unwrap_or_default();
            let brought = if facts.chat { json!(delta) } else { json!(text()) };
            json!({
                "index": self.index, key: brought, "logprobs": null, "finish_reason": self.finish,
            })
        });
        let mut chunk = json!({
            "id": format!("{prefix}-{}", facts.id), "object": object,
            "created": facts.created, "model": facts.model,
            "choices": choice.into_iter().collect::<Vec<_>>(),
        });
        if let Some(tokens) = self.usage {
            let prompt = facts.prompt_tokens;
            chunk["usage"] = json!({
                "prompt_tokens": prompt, "completion_tokens": tokens,
                "total_tokens": u64::from(prompt) + u64::from(tokens),
            });
        }
        chunk
    }

    fn cut_at(&self, bytes: &[u8]) -> usize {
        let within = self.cut_in.as_deref().map(str::as_bytes);
        let found = within.and_then(|text| {
            let mut windows = bytes.windows(text.len().max(1));
            windows.position(|window| window == text)
        });
        found.map_or(bytes.len() / 2, |start| start + 1)
    }
}

/// A pause of the whole server: events due in it go out at its end, and requests that arrive in it
/// are begun then. In TOML: `pause = { after = "500ms", for = "1s" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pause {
    /// The time from the first request to its beginning.
    pub after: Span,
    #[serde(rename = "for")]
    pub lasting: Span,
}

impl Pause {
    pub(super) fn mistake(&self) -> Option<String> {
        [self.after, self.lasting].into_iter().find_map(|span| possible_span(span).err())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    fn facts(chat: bool) -> ReplyFacts<'static> {
        ReplyFacts { id: "1".to_owned(), created: 5, model: "mock", prompt_tokens: 3, chat }
    }

    fn transcript(text: &str) -> Transcript {
        text.parse::<Script>().unwrap().transcript.unwrap()
    }

    fn written(transcript: &Transcript, chat: bool) -> Vec<(u64, String)> {
        let parts = transcript.parts(&facts(chat), |bytes| bytes);
        let text = |part: Part| match part.action {
            PartAction::Write { bytes, .. } => String::from_utf8_lossy(&bytes).into_owned(),
            PartAction::Cut { reset } => format!("cut {reset}"),
        };
        let millis = |part: &Part| u64::try_from(part.at.as_millis()).unwrap();
        parts.into_iter().map(|part| (millis(&part), text(part))).collect()
    }

    #[test]
    fn events_are_written_as_they_stand() {
        let transcript = transcript(
            r#"
            [[transcript]]
            at = "5ms"
            comment = "hello"
            [[transcript]]
            at = "10ms"
            delta = { content = "né" }
            usage = 2
            tokens = 2
            rest-at = "30ms"
            cut-in = "é"
            [[transcript]]
            at = "40ms"
            usage = 2
            [[transcript]]
            at = "40ms"
            done = true
            "#,
        );
        assert_eq!((transcript.tokens(), transcript.is_whole()), (2, true));
        let written = written(&transcript, true);
        assert_eq!(written[0], (5, ": hello\n\n".to_owned()));
        assert!(written[1].1.ends_with("\"content\":\"n\u{fffd}"), "{written:?}");
        assert!(written[2].1.starts_with("\u{fffd}\"}"), "{written:?}");
        assert_eq!((written[1].0, written[2].0), (10, 30));
        let usage: Value =
            serde_json::from_str(written[3].1.trim().strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(usage["choices"], json!([]));
        assert_eq!(usage["usage"]["total_tokens"], json!(5));
        assert_eq!(written[4], (40, "data: [DONE]\n\n".to_owned()));
    }

    #[test]
    fn completions_have_text() {
        let transcript = transcript(
            "[[transcript]]\nat = '1ms'\ndelta = { content = 'x' }\nfinish = 'stop'\n\
             [[transcript]]\nat = '2ms'\ncut = 'reset'",
        );
        assert!(!transcript.is_whole());
        let written = written(&transcript, false);
        assert!(written[0].1.contains(r#""text":"x","#), "{written:?}");
        assert_eq!(written[1], (2, "cut true".to_owned()));
    }

    #[test]
    fn mistakes_have_messages() {
        for (moment, expected) in [
            ("comment = 'x'\ndone = true", "exactly one of"),
            ("", "exactly one of"),
            ("usage = 1\nfinish = 'stop'", "belong to a choice"),
            ("done = true\ncut-in = 'x'", "needs `rest-at`"),
            ("done = true\nrest-at = '1ms'", "before `at`"),
        ] {
            let text = format!("[[transcript]]\nat = '5ms'\n{moment}");
            let error = text.parse::<Script>().unwrap_err().to_string();
            assert!(error.contains(expected), "{moment}: {error}");
        }
        let error = "pause = { after = '1ms' }".parse::<Script>().unwrap_err();
        assert!(error.to_string().contains("for"), "{error}");
    }
}
