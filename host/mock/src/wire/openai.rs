//! OpenAI's completions and chat completions as vLLM 0.32 writes them.

use super::{FINGERPRINT, Head, Piece, Wire, put, put_string};
use crate::answer::Answer;
use crate::ask::{Ask, Route};
use crate::script::{ReasoningField, Script, UsageIn};

/// Writes one reply of either OpenAI route.
pub(super) struct OpenAi {
    chat: bool,
    prompt_tokens: u32,
    /// Tokens of the prompt that were cached, where the script has a cache.
    cached_tokens: Option<u32>,
    /// From `data: {` to the opening of `choices`.
    event_head: String,
    /// The same of a whole reply.
    whole_head: String,
    reasoning_key: &'static str,
    /// Usage in every event that holds a choice.
    in_every: bool,
    /// Usage in the last of them.
    in_last: bool,
    /// An event of its own for usage.
    own_event: bool,
    /// Usage in a whole reply.
    in_whole: bool,
}

impl OpenAi {
    pub fn new(script: &Script, ask: &Ask, head: &Head<'_>) -> Self {
        let chat = ask.route == Route::Chat;
        let prefix = if chat { "chatcmpl" } else { "cmpl" };
        let model = super::json(&ask.model.as_deref().unwrap_or(head.model));
        let common = |object: &str| {
            let (id, created) = (head.id(), head.created);
            format!(
                r#"{{"id":"{prefix}-{id}","object":"{object}","created":{created},"model":{model},"choices":["#
            )
        };
        let (streamed, whole) = match chat {
            true => ("chat.completion.chunk", "chat.completion"),
            false => ("text_completion", "text_completion"),
        };
        let usage = script.usage;
        let asked = ask.include_usage && usage == UsageIn::Final;
        OpenAi {
            chat,
            prompt_tokens: ask.prompt_tokens,
            cached_tokens: script.prefix_cache.then_some(head.cached_tokens),
            event_head: format!("data: {}", common(streamed)),
            whole_head: common(whole),
            reasoning_key: match script.reasoning_field {
                ReasoningField::Reasoning => "reasoning",
                ReasoningField::ReasoningContent => "reasoning_content",
            },
            in_every: usage == UsageIn::Continuous || (asked && ask.continuous_usage),
            in_last: usage == UsageIn::LastChunk,
            own_event: asked || matches!(usage, UsageIn::Always | UsageIn::Continuous),
            in_whole: usage != UsageIn::None,
        }
    }

    fn counts(&self, completion: u32, out: &mut Vec<u8>) {
        let prompt = self.prompt_tokens;
        let total = u64::from(prompt) + u64::from(completion);
        put(
            out,
            format_args!(
                r#""usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{completion}"#
            ),
        );
    }

    fn prompt_details(&self, out: &mut Vec<u8>) {
        match self.cached_tokens {
            None => out.extend_from_slice(br#","prompt_tokens_details":null"#),
            Some(cached) => put(
                out,
                format_args!(r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#),
            ),
        }
    }

    /// Usage as it stands beside a choice, with `tokens` sent so far.
    fn running_usage(&self, answer: &Answer, tokens: u32, out: &mut Vec<u8>) {
        out.push(b',');
        self.counts(tokens, out);
        if self.chat {
            out.extend_from_slice(br#","completion_tokens_details":"#);
            details(answer, tokens, out);
        }
        out.push(b'}');
    }

    fn put_finish(&self, answer: &Answer, last: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(br#","logprobs":null,"finish_reason":"#);
        if last {
            put(out, format_args!(r#""{}""#, answer.finish.name()));
        } else {
            out.extend_from_slice(b"null");
        }
    }
}

/// `completion_tokens_details`: reasoning tokens among the first `tokens`, null where there are none at all.
fn details(answer: &Answer, tokens: u32, out: &mut Vec<u8>) {
    match answer.reasoning {
        0 => out.extend_from_slice(b"null"),
        reasoning => put(
            out,
            format_args!(r#"{{"reasoning_tokens":{}}}"#, reasoning.min(tokens)),
        ),
    }
}

impl Wire for OpenAi {
    fn role(&self, out: &mut Vec<u8>) {
        if !self.chat {
            return;
        }
        out.extend_from_slice(self.event_head.as_bytes());
        out.extend_from_slice(
            br#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]"#,
        );
        if self.in_every {
            out.push(b',');
            self.counts(0, out);
            out.extend_from_slice(br#","completion_tokens_details":null}"#);
        }
        out.extend_from_slice(b",\"prompt_token_ids\":null,\"prompt_text\":null}\n\n");
    }

    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        out.extend_from_slice(self.event_head.as_bytes());
        let text = answer.piece(piece.from, piece.to);
        if self.chat {
            let key = if piece.to <= answer.reasoning && piece.from < piece.to {
                self.reasoning_key
            } else {
                "content"
            };
            put(out, format_args!(r#"{{"index":0,"delta":{{"{key}":"#));
            put_string(out, text);
            out.push(b'}');
        } else {
            out.extend_from_slice(br#"{"index":0,"text":"#);
            put_string(out, text);
        }
        self.put_finish(answer, piece.last, out);
        match (self.chat, piece.last) {
            (true, false) => out.extend_from_slice(br#","token_ids":null}]"#),
            (true, true) => out.extend_from_slice(br#","stop_reason":null,"token_ids":null}]"#),
            (false, _) => {
                out.extend_from_slice(
                    br#","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]"#,
                );
            }
        }
        if self.in_every || (self.in_last && piece.last) {
            self.running_usage(answer, piece.to, out);
        }
        if piece.last && !self.own_event {
            put(
                out,
                format_args!(r#","system_fingerprint":"{FINGERPRINT}""#),
            );
        }
        out.extend_from_slice(b"}\n\n");
    }

    fn usage(&self, answer: &Answer, out: &mut Vec<u8>) {
        if !self.own_event {
            return;
        }
        out.extend_from_slice(self.event_head.as_bytes());
        out.extend_from_slice(b"],");
        self.counts(answer.tokens, out);
        if self.cached_tokens.is_some() {
            self.prompt_details(out);
        }
        if answer.reasoning > 0 {
            out.extend_from_slice(br#","completion_tokens_details":"#);
            details(answer, answer.tokens, out);
        }
        put(
            out,
            format_args!("}},\"system_fingerprint\":\"{FINGERPRINT}\"}}\n\n"),
        );
    }

    fn whole(&self, answer: &Answer, _: f64, out: &mut Vec<u8>) {
        out.extend_from_slice(self.whole_head.as_bytes());
        if self.chat {
            out.extend_from_slice(br#"{"index":0,"message":{"role":"assistant","content":"#);
            put_string(out, answer.content());
            out.extend_from_slice(
                br#","refusal":null,"annotations":null,"audio":null,"function_call":null,""#,
            );
            out.extend_from_slice(self.reasoning_key.as_bytes());
            out.extend_from_slice(b"\":");
            match answer.reasoning {
                0 => out.extend_from_slice(b"null"),
                _ => put_string(out, answer.reasoning_text()),
            }
            out.push(b'}');
        } else {
            out.extend_from_slice(br#"{"index":0,"text":"#);
            put_string(out, answer.content());
        }
        self.put_finish(answer, true, out);
        out.extend_from_slice(br#","stop_reason":null,"token_ids":null"#);
        if !self.chat {
            out.extend_from_slice(br#","prompt_logprobs":null,"prompt_token_ids":null"#);
        }
        out.extend_from_slice(br#","routed_experts":null}],"service_tier":null"#);
        put(
            out,
            format_args!(r#","system_fingerprint":"{FINGERPRINT}""#),
        );
        if self.in_whole {
            out.push(b',');
            self.counts(answer.tokens, out);
            self.prompt_details(out);
            out.extend_from_slice(br#","completion_tokens_details":"#);
            details(answer, answer.tokens, out);
            out.push(b'}');
        }
        if self.chat {
            out.extend_from_slice(
                br#","prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null"#,
            );
        }
        out.extend_from_slice(
            br#","kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}"#,
        );
    }
}
