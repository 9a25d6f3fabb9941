//! The events of `/v1/realtime`: a client's, and the engine's. vLLM's are from its 0.32, OpenAI's
//! from its Realtime API as the package `openai` 3.57 has them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::answer::{Answer, Finish};
use crate::ask::PromptSummary;
use crate::ask::types::{Ask, Route};

/// Samples a second of vLLM's sound, and of OpenAI's.
const RATES: [u32; 2] = [16_000, 24_000];
/// Tokens of a second of sound, as Whisper has them.
const EACH_SECOND: u64 = 50;
/// Samples of sound that the answer has for each token: a 25th of a second.
const SAMPLES_A_TOKEN: usize = 960;
/// The most bytes of a client's events that are kept.
const INPUT_BYTES: usize = 64 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    #[default]
    Vllm,
    OpenAi,
}

#[derive(Default)]
pub(super) struct ClientInput {
    dialect: Dialect,
    model: Option<String>,
    summary: PromptSummary,
    samples: u64,
    answers_with_sound: bool,
    max_tokens: Option<u32>,
    /// True if vLLM's transcription was begun.
    begun: bool,
    complete: bool,
    events: String,
}

impl ClientInput {
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub fn is_complete(&self) -> bool {
        self.complete
    }

    pub fn events(&self) -> &str {
        &self.events
    }

    /// Handles an event, and returns the immediate events; the error is for the client.
    pub fn take(&mut self, text: &str) -> Result<Vec<Value>, String> {
        if self.events.len() + text.len() > INPUT_BYTES {
            return Err("Maximum file size exceeded".to_owned());
        }
        self.events += text;
        self.events.push('\n');
        let event: Value = serde_json::from_str(text).map_err(|_| "Invalid JSON".to_owned())?;
        let field = |name: &str| event.get(name).and_then(Value::as_str);
        match field("type").unwrap_or_default() {
            "session.update" => {
                self.model = field("model").map(str::to_owned);
                if let Some(session) = event.get("session") {
                    self.open(session);
                    return Ok(vec![json!({ "type": "session.updated", "session": session })]);
                }
            }
            "input_audio_buffer.append" => {
                let bytes = BASE64_STANDARD.decode(field("audio").unwrap_or_default());
                let bytes = bytes.map_err(|_| "Invalid audio data".to_owned())?;
                if bytes.is_empty() {
                    return Err("Invalid audio data".to_owned());
                }
                self.summary.add_sound(&bytes);
                self.samples += bytes.len() as u64 / 2;
            }
            "input_audio_buffer.commit" if self.dialect == Dialect::OpenAi => {
                return Ok(vec![json!({ "type": "input_audio_buffer.committed" })]);
            }
            "input_audio_buffer.commit" if self.model.is_none() => {
                return Err(
                    "Model not validated. Make sure to validate the model by sending a session.update event."
                        .to_owned(),
                );
            }
            "input_audio_buffer.commit" => {
                let is_last = event.get("final").and_then(Value::as_bool) == Some(true);
                self.complete = is_last && self.begun;
                self.begun = true;
            }
            "conversation.item.create" => {
                let content = event.pointer("/item/content").and_then(Value::as_array);
                for part in content.into_iter().flatten() {
                    if let Some(text) = part.get("text").and_then(Value::as_str) {
                        self.summary.add_text(text.to_owned());
                    }
                }
                let item = event.get("item");
                return Ok(vec![json!({ "type": "conversation.item.added", "item": item })]);
            }
            "response.create" => self.complete = true,
            other => return Err(format!("Unknown event type: {other}")),
        }
        Ok(Vec::new())
    }

    fn open(&mut self, session: &Value) {
        self.dialect = Dialect::OpenAi;
        let modalities = session.get("output_modalities").and_then(Value::as_array);
        let modalities = modalities.map_or(&[][..], Vec::as_slice);
        self.answers_with_sound = modalities.iter().any(|modality| modality == "audio");
        let most = session.get("max_output_tokens").and_then(Value::as_u64);
        self.max_tokens = most.and_then(|most| u32::try_from(most).ok());
        if let Some(instructions) = session.get("instructions").and_then(Value::as_str) {
            self.summary.add_text(instructions.to_owned());
        }
    }

    fn rate(&self) -> u64 {
        RATES[usize::from(self.dialect == Dialect::OpenAi)].into()
    }

    fn audio_tokens(&self) -> u32 {
        let tokens = (self.samples * EACH_SECOND).div_ceil(self.rate());
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }

    pub fn ask(&mut self) -> Ask {
        let summary = std::mem::take(&mut self.summary);
        let ask = Ask::new(Route::Chat, summary);
        Ask {
            stream: true,
            model: self.model.clone(),
            max_tokens: self.max_tokens,
            prompt_tokens: ask.prompt_tokens.saturating_add(self.audio_tokens()),
            ..ask
        }
    }
}

pub(super) fn created(number: u64) -> Value {
    let id = format!("sess-{:016x}", model::random::mix(number));
    json!({ "type": "session.created", "id": id, "session": { "id": id, "type": "realtime" } })
}

pub(super) fn error(dialect: Dialect, message: &str) -> Value {
    match dialect {
        Dialect::Vllm => json!({ "type": "error", "error": message, "code": "processing_error" }),
        Dialect::OpenAi => {
            let error = json!({ "type": "server_error", "message": message, "code": null });
            json!({ "type": "error", "error": error })
        }
    }
}

pub(super) struct Events {
    pub dialect: Dialect,
    id: String,
    has_sound: bool,
    prompt_tokens: u32,
    audio_tokens: u32,
}

impl Events {
    pub fn new(input: &ClientInput, number: u64, prompt_tokens: u32) -> Self {
        Events {
            dialect: input.dialect,
            id: format!("resp_{:016x}", model::random::mix(number)),
            has_sound: input.answers_with_sound,
            prompt_tokens,
            audio_tokens: input.audio_tokens(),
        }
    }

    /// The event that the answer begins with, if it has one.
    pub fn opening(&self) -> Option<Value> {
        (self.dialect == Dialect::OpenAi).then(|| {
            let response = json!({ "id": self.id, "status": "in_progress" });
            json!({ "type": "response.created", "response": response })
        })
    }

    pub fn piece(&self, text: &str, tokens: u32) -> Vec<Value> {
        let delta = |kind: &str, delta: &str| json!({ "type": kind, "response_id": self.id, "delta": delta });
        match (self.dialect, self.has_sound) {
            (Dialect::Vllm, _) => vec![json!({ "type": "transcription.delta", "delta": text })],
            (Dialect::OpenAi, false) => vec![delta("response.output_text.delta", text)],
            (Dialect::OpenAi, true) => {
                let silence = vec![0; 2 * SAMPLES_A_TOKEN * tokens as usize];
                vec![
                    delta("response.output_audio_transcript.delta", text),
                    delta("response.output_audio.delta", &BASE64_STANDARD.encode(silence)),
                ]
            }
        }
    }

    pub fn done(&self, answer: &Answer) -> Vec<Value> {
        let (prompt, tokens) = (self.prompt_tokens, answer.tokens);
        let total = u64::from(prompt) + u64::from(tokens);
        if self.dialect == Dialect::Vllm {
            let usage = json!({
                "prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": total
            });
            let text = answer.content();
            return vec![json!({ "type": "transcription.done", "text": text, "usage": usage })];
        }
        let (status, details) = match answer.finish {
            Finish::Stop => ("completed", Value::Null),
            Finish::Length => {
                ("incomplete", json!({ "type": "incomplete", "reason": "max_output_tokens" }))
            }
        };
        let of_output = if self.has_sound { tokens } else { 0 };
        let usage = json!({
            "total_tokens": total, "input_tokens": prompt, "output_tokens": tokens,
            "input_token_details": {
                "text_tokens": prompt - self.audio_tokens, "audio_tokens": self.audio_tokens,
                "cached_tokens": 0
            },
            "output_token_details": { "text_tokens": tokens - of_output, "audio_tokens": of_output }
        });
        let response = json!({
            "id": self.id, "status": status, "status_details": details, "usage": usage
        });
        let text = if self.has_sound {
            "response.output_audio_transcript.done"
        } else {
            "response.output_text.done"
        };
        vec![
            json!({ "type": text, "response_id": self.id }),
            json!({ "type": "response.done", "response": response }),
        ]
    }
}
