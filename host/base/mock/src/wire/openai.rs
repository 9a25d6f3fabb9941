//! OpenAI's completions and chat completions as vLLM 0.32 writes them. Counts of the script's own
//! have the names of OpenAI and SGLang.

use std::cell::Cell;

use super::bytes::{put, put_string};
use super::{Head, Piece, Wire};
use crate::answer::Answer;
use crate::ask::types::{Ask, Route};
use crate::script::{Counts, ReasoningField, Script, UsageIn};
use crate::truth::Timings;

/// The fingerprint in replies, where vLLM puts its version.
const FINGERPRINT: &str = "runner-mock";

pub(super) struct OpenAi {
    chat: bool,
    prompt_tokens: u32,
    /// Further counts of the prompt: cached tokens, where the script has a cache, and the script's
    /// own.
    of_prompt: Vec<(&'static str, u32)>,
    of_answer: Vec<(&'static str, u32)>,
    /// From `data: {` to the opening of `choices`.
    event_head: String,
    whole_head: String,
    reasoning_key: &'static str,
    /// Usage in every event that holds a choice.
    in_every: bool,
    /// Usage in the last event that holds a choice.
    in_last: bool,
    /// An event of its own for usage.
    own_event: bool,
    /// Usage in a whole reply.
    in_whole: bool,
    /// The facts that vLLM reports beside usage, if it was started to: the steps of speculative
    /// decoding, and its own timings, which are known with the last token.
    counts: Counts,
    timed: bool,
    timings: Cell<Option<Timings>>,
}

impl OpenAi {
    pub fn new(script: &Script, ask: &Ask, head: &Head<'_>) -> Self {
        let chat = ask.route == Route::Chat;
        let prefix = if chat { "chatcmpl" } else { "cmpl" };
        let model = super::bytes::json(&ask.model.as_deref().unwrap_or(head.model));
        let common = |object: &str| {
            let (id, created) = (head.id(), head.created);
            format!(
                r#"{{"id":"{prefix}-{id}","object":"{object}","created":{created},"model":{model},"choices":["#
            )
        };
        let (streamed, whole) = if chat {
            ("chat.completion.chunk", "chat.completion")
        } else {
            ("text_completion", "text_completion")
        };
        let usage = script.usage;
        let counts = &script.counts;
        let both = counts.draft_tokens.zip(counts.accepted_draft_tokens);
        let rejected = both.map(|(drafted, accepted)| drafted.saturating_sub(accepted));
        let requested = ask.include_usage && usage == UsageIn::Final;
        OpenAi {
            chat,
            prompt_tokens: ask.prompt_tokens,
            of_prompt: known([
                ("cached_tokens", script.prefix_cache.then_some(head.cached_tokens)),
                ("image_tokens", counts.input_image_tokens),
                ("video_tokens", counts.input_video_tokens),
                ("audio_tokens", counts.input_audio_tokens),
            ]),
            of_answer: known([
                ("accepted_prediction_tokens", counts.accepted_draft_tokens),
                ("rejected_prediction_tokens", rejected),
                ("audio_tokens", counts.output_audio_tokens),
            ]),
            event_head: format!("data: {}", common(streamed)),
            whole_head: common(whole),
            reasoning_key: match script.reasoning_field {
                ReasoningField::Reasoning => "reasoning",
                ReasoningField::ReasoningContent => "reasoning_content",
            },
            in_every: usage == UsageIn::Continuous || (requested && ask.continuous_usage),
            in_last: usage == UsageIn::LastChunk,
            own_event: requested || matches!(usage, UsageIn::Always | UsageIn::Continuous),
            in_whole: usage != UsageIn::None,
            counts: counts.clone(),
            timed: script.server_timings.is_some(),
            timings: Cell::new(None),
        }
    }

    fn counts(&self, completion: u32, out: &mut Vec<u8>) {
        let prompt = self.prompt_tokens;
        let total = u64::from(prompt) + u64::from(completion);
        put!(
            out,
            r#""usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{completion}"#
        );
    }

    fn prompt_details(&self, out: &mut Vec<u8>) {
        out.extend(br#","prompt_tokens_details":"#);
        put_details(&self.of_prompt, out);
    }

    /// Usage as it stands beside a choice, with `tokens` sent so far.
    fn running_usage(&self, answer: &Answer, tokens: u32, last: bool, out: &mut Vec<u8>) {
        out.push(b',');
        self.counts(tokens, out);
        if last && !self.of_prompt.is_empty() {
            self.prompt_details(out);
        }
        if self.chat || (last && !self.of_answer.is_empty()) {
            out.extend(br#","completion_tokens_details":"#);
            self.answer_details(answer, tokens, last, out);
        }
        out.push(b'}');
    }

    /// `completion_tokens_details`: reasoning tokens among the first `tokens`, if there are any at
    /// all, and in the end the script's own counts.
    fn answer_details(&self, answer: &Answer, tokens: u32, last: bool, out: &mut Vec<u8>) {
        let reasoning = (answer.reasoning > 0).then(|| answer.reasoning.min(tokens));
        let mut details = known([("reasoning_tokens", reasoning)]);
        if last {
            details.extend(&self.of_answer);
        }
        put_details(&details, out);
    }

    /// `metrics` as vLLM reports it; null if there is nothing in it.
    fn put_metrics(&self, answer: &Answer, out: &mut Vec<u8>) {
        let (timings, steps) = (self.timings.get(), self.counts.steps());
        if timings.is_none() && steps.is_none() {
            out.extend(b"null");
            return;
        }
        let mut metrics = serde_json::Map::new();
        if let Some(Timings { queue, prefill, decode }) = timings {
            let milliseconds = |span: std::time::Duration| span.as_secs_f64() * 1e3;
            let further = answer.tokens.saturating_sub(1);
            let inference = (prefill + decode).as_secs_f64();
            for (name, value) in [
                ("time_to_first_token_ms", Some(milliseconds(prefill))),
                ("generation_time_ms", Some(milliseconds(decode))),
                ("queue_time_ms", Some(milliseconds(queue))),
                ("mean_itl_ms", (further > 0).then(|| milliseconds(decode) / f64::from(further))),
                (
                    "tokens_per_second",
                    (inference > 0.0).then(|| f64::from(answer.tokens) / inference),
                ),
            ] {
                if let Some(value) = value {
                    metrics.insert(name.to_owned(), value.into());
                }
            }
        }
        if let Some(did) = steps {
            let share = |part: u64, whole: u64| match whole {
                0 => 0.0,
                whole => part as f64 / whole as f64,
            };
            let drafts = serde_json::json!({
                "mean_acceptance_length": 1.0 + share(did.accepted, did.steps),
                "draft_acceptance_rate": share(did.accepted, did.drafted),
                "acceptance_histogram": self.counts.steps_by_accepted,
                "num_spec_steps": did.steps,
                "num_accepted_draft_tokens": did.accepted,
                "num_draft_tokens": did.drafted,
                "num_spec_tokens": did.most,
            });
            metrics.insert("speculative_decoding".to_owned(), drafts);
        }
        // Numbers and memory have no way to fail.
        let _ = serde_json::to_writer(out, &metrics);
    }

    fn put_finish(&self, answer: &Answer, last: bool, out: &mut Vec<u8>) {
        out.extend(br#","logprobs":null,"finish_reason":"#);
        if last {
            put!(out, r#""{}""#, answer.finish.name());
        } else {
            out.extend(b"null");
        }
    }
}

fn known<const N: usize>(counts: [(&'static str, Option<u32>); N]) -> Vec<(&'static str, u32)> {
    let known = counts.into_iter();
    known.filter_map(|(name, count)| Some((name, count?))).collect()
}

fn put_details(counts: &[(&'static str, u32)], out: &mut Vec<u8>) {
    let object =
        counts.iter().map(|(name, count)| ((*name).to_owned(), serde_json::Value::from(*count)));
    let object =
        Some(object.collect::<serde_json::Map<_, _>>()).filter(|object| !object.is_empty());
    // Numbers and memory have no way to fail.
    let _ = serde_json::to_writer(out, &object);
}

impl Wire for OpenAi {
    fn role(&self, out: &mut Vec<u8>) {
        if !self.chat {
            return;
        }
        out.extend(self.event_head.as_bytes());
        out.extend(
            br#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]"#,
        );
        if self.in_every {
            out.push(b',');
            self.counts(0, out);
            out.extend(br#","completion_tokens_details":null}"#);
        }
        out.extend(b",\"prompt_token_ids\":null,\"prompt_text\":null}\n\n");
    }

    fn piece(&self, answer: &Answer, piece: Piece, out: &mut Vec<u8>) {
        self.timings.set(piece.timings.filter(|_| self.timed));
        out.extend(self.event_head.as_bytes());
        let text = answer.piece(piece.from, piece.to);
        if self.chat {
            let key = if piece.to <= answer.reasoning && piece.from < piece.to {
                self.reasoning_key
            } else {
                "content"
            };
            put!(out, r#"{{"index":0,"delta":{{"{key}":"#);
            put_string(out, text);
            out.push(b'}');
        } else {
            out.extend(br#"{"index":0,"text":"#);
            put_string(out, text);
        }
        self.put_finish(answer, piece.last, out);
        match (self.chat, piece.last) {
            (true, false) => out.extend(br#","token_ids":null}]"#),
            (true, true) => out.extend(br#","stop_reason":null,"token_ids":null}]"#),
            (false, _) => {
                out.extend(br#","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]"#);
            }
        }
        if self.in_every || (self.in_last && piece.last) {
            self.running_usage(answer, piece.to, piece.last, out);
        }
        if piece.last && !self.own_event {
            put!(out, r#","system_fingerprint":"{FINGERPRINT}""#);
        }
        out.extend(b"}\n\n");
    }

    fn usage(&self, answer: &Answer, out: &mut Vec<u8>) {
        if !self.own_event {
            return;
        }
        out.extend(self.event_head.as_bytes());
        out.extend(b"],");
        self.counts(answer.tokens, out);
        if !self.of_prompt.is_empty() {
            self.prompt_details(out);
        }
        if answer.reasoning > 0 || !self.of_answer.is_empty() {
            out.extend(br#","completion_tokens_details":"#);
            self.answer_details(answer, answer.tokens, true, out);
        }
        put!(out, "}},\"system_fingerprint\":\"{FINGERPRINT}\"");
        // Null is left out of events.
        if self.timings.get().is_some() || self.counts.steps().is_some() {
            out.extend(br#","metrics":"#);
            self.put_metrics(answer, out);
        }
        out.extend(b"}\n\n");
    }

    fn whole(&self, answer: &Answer, all: Piece, out: &mut Vec<u8>) {
        self.timings.set(all.timings.filter(|_| self.timed));
        out.extend(self.whole_head.as_bytes());
        if self.chat {
            out.extend(br#"{"index":0,"message":{"role":"assistant","content":"#);
            put_string(out, answer.content());
            out.extend(
                br#","refusal":null,"annotations":null,"audio":null,"function_call":null,""#,
            );
            out.extend(self.reasoning_key.as_bytes());
            out.extend(b"\":");
            match answer.reasoning {
                0 => out.extend(b"null"),
                _ => put_string(out, answer.reasoning_text()),
            }
            out.push(b'}');
        } else {
            out.extend(br#"{"index":0,"text":"#);
            put_string(out, answer.content());
        }
        self.put_finish(answer, true, out);
        out.extend(br#","stop_reason":null,"token_ids":null"#);
        if !self.chat {
            out.extend(br#","prompt_logprobs":null,"prompt_token_ids":null"#);
        }
        out.extend(br#","routed_experts":null}],"service_tier":null"#);
        put!(out, r#","system_fingerprint":"{FINGERPRINT}""#);
        if self.in_whole {
            out.push(b',');
            self.counts(answer.tokens, out);
            self.prompt_details(out);
            out.extend(br#","completion_tokens_details":"#);
            self.answer_details(answer, answer.tokens, true, out);
            out.push(b'}');
        }
        if self.chat {
            out.extend(br#","prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null"#);
        }
        out.extend(br#","kv_transfer_params":null,"ec_transfer_params":null,"metrics":"#);
        self.put_metrics(answer, out);
        out.push(b'}');
    }
}
