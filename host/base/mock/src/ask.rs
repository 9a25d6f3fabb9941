//! Requests in any of the dialects, as the engine understands them.
//!
//! Responsible for parsing request bodies and for refusing bodies that an engine refuses; the
//! refusals' texts are vLLM 0.32's. A token is a byte of text or one id.

mod form;
mod sound;
mod speech;
mod triton;
pub(super) mod types;

use serde::Deserialize;

use types::{Ask, Refusal, Route, TritonForm};

use super::dialect::ask as scripted;
use super::prediction;
use super::script::{Generate, Script};
use super::triton::STREAM;
use crate::prefix::BLOCK;

/// Reads a body as the built-in route of this path does; the error is the text of the refusal.
pub fn understand(path: &str, content_type: &str, body: &[u8]) -> Result<(), String> {
    let triton = (path == STREAM).then(|| Route::Triton(TritonForm::default()));
    let route = triton.or_else(|| Route::built_in(path, Generate::Sglang));
    let route = route.ok_or_else(|| format!("no route `{path}` is built in"))?;
    let read = Ask::read_as(route, content_type, body);
    read.map(drop).map_err(|refusal| refusal.message)
}

impl Ask {
    pub fn read_as(route: Route, content_type: &str, body: &[u8]) -> Result<Self, Refusal> {
        match route {
            Route::Transcriptions => sound::read(content_type, body),
            Route::Speech(_) => speech::read(body),
            Route::Triton(_) => triton::read(body),
            other => Ask::read(other, body),
        }
    }

    pub fn read(route: Route, body: &[u8]) -> Result<Self, Refusal> {
        match &route {
            Route::Scripted(dialect) => return scripted::read(dialect, body),
            Route::Prediction(request) => return prediction::read(request, body),
            _ => {}
        }
        let body: Body =
            serde_json::from_slice(body).map_err(|error| Refusal::invalid(&error, "body"))?;
        let sampling = body.sampling_params.unwrap_or_default();
        let prompt = match route {
            Route::Chat => chat_prompt(body.messages)?,
            Route::Generate(Generate::Sglang) => prompt(body.text.or(body.input_ids), "text")?,
            Route::Generate(Generate::Lmdeploy) => {
                prompt(body.prompt.or(body.input_ids), "prompt")?
            }
            _ => prompt(body.prompt, "prompt")?,
        };
        let (limit_key, limit) = match route {
            Route::Generate(Generate::Sglang) => {
                ("max_new_tokens", sampling.max_new_tokens.or(Some(128)))
            }
            Route::Generate(Generate::Lmdeploy) => ("max_tokens", body.max_tokens.or(Some(128))),
            _ if body.max_completion_tokens.is_some() => {
                ("max_completion_tokens", body.max_completion_tokens)
            }
            _ => ("max_tokens", body.max_tokens),
        };
        let max_tokens = match limit {
            Some(limit) if limit < 1 => {
                let message = format!(
                    "{limit_key} must be at least 1, got {limit}. (parameter={limit_key}, value={limit})"
                );
                return Err(Refusal::bad(message, Some(limit_key)));
            }
            limit => limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)),
        };
        let least =
            body.min_tokens.or(body.min_new_tokens).or(sampling.min_new_tokens).unwrap_or(0);
        if body.n.or(sampling.n).is_some_and(|n| n != 1) {
            return Err(Refusal::bad(
                "this engine gives one answer to a request: n must be 1",
                Some("n"),
            ));
        }
        let options = body.stream_options.unwrap_or_default();
        let ignore_eos = match route {
            Route::Generate(Generate::Sglang) => sampling.ignore_eos,
            _ => body.ignore_eos,
        };
        Ok(Ask {
            stream: body.stream.unwrap_or(false),
            model: body.model,
            max_tokens,
            min_tokens: u32::try_from(least.max(0)).unwrap_or(u32::MAX),
            ignore_eos: ignore_eos.unwrap_or(false),
            include_usage: options.include_usage.unwrap_or(false),
            continuous_usage: options.continuous_usage_stats.unwrap_or(false),
            ..Ask::new(route, prompt)
        })
    }

    /// Refuses a request for which the script's engine has no model or no room.
    pub fn check(&self, script: &Script) -> Result<(), Refusal> {
        if let Some(model) = self.model.as_deref().filter(|model| !script.serves(model)) {
            let models = script.models.join(", ");
            let message = format!("The model `{model}` does not exist. Valid aliases: {models}.");
            return Err(Refusal::new(404, "NotFoundError", message, Some("model")));
        }
        let room = script.context_limit.get();
        let prompt = self.prompt_tokens;
        if prompt >= room {
            let message = format!(
                "This model's maximum context length is {room} tokens. However, your prompt contains at least \
                 {prompt} input tokens, which exceeds this limit even without any output tokens. Please reduce \
                 the length of the input prompt. (parameter=input_tokens, value={prompt})"
            );
            return Err(Refusal::bad(message, Some("input_tokens")));
        }
        match self.max_tokens {
            Some(max) if max > room => {
                let message = format!(
                    "max_tokens={max} cannot be greater than max_model_len={room}. Please request fewer output \
                     tokens. (parameter=max_tokens, value={max})"
                );
                Err(Refusal::bad(message, Some("max_tokens")))
            }
            Some(max) if max > room - prompt => {
                let message = format!(
                    "This model's maximum context length is {room} tokens. However, you requested {max} output \
                     tokens and your prompt contains {prompt} input tokens, for a total of {} tokens. Please \
                     reduce the length of the input prompt or the number of requested output tokens. \
                     (parameter=max_tokens, value={max})",
                    u64::from(prompt) + u64::from(max)
                );
                Err(Refusal::bad(message, Some("max_tokens")))
            }
            _ => Ok(()),
        }
    }
}

/// The body of a request in any of the dialects; unknown fields are ignored, as in engines.
#[derive(Deserialize)]
struct Body {
    pub model: Option<String>,
    pub prompt: Option<Prompt>,
    pub text: Option<Prompt>,
    pub input_ids: Option<Prompt>,
    pub messages: Option<Vec<Message>>,
    pub max_tokens: Option<i64>,
    pub max_completion_tokens: Option<i64>,
    pub min_tokens: Option<i64>,
    pub min_new_tokens: Option<i64>,
    pub ignore_eos: Option<bool>,
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    pub sampling_params: Option<SamplingParams>,
    pub n: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Several(Vec<Prompt>),
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
pub(super) struct Part {
    #[serde(default)]
    pub text: String,
}

#[derive(Deserialize, Default)]
struct StreamOptions {
    pub include_usage: Option<bool>,
    pub continuous_usage_stats: Option<bool>,
}

#[derive(Deserialize, Default)]
struct SamplingParams {
    pub max_new_tokens: Option<i64>,
    pub min_new_tokens: Option<i64>,
    pub ignore_eos: Option<bool>,
    pub n: Option<u32>,
}

#[derive(Default)]
pub(super) struct PromptSummary {
    pub tokens: usize,
    pub hash: Hash,
    /// The hash of each of its beginnings that is a whole number of blocks long.
    pub prefixes: Vec<u64>,
    /// The last piece of it.
    pub last: String,
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
pub(super) struct Hash(pub u64);

impl Default for Hash {
    fn default() -> Self {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl PromptSummary {
    fn add_token(&mut self, token: &[u8]) {
        self.hash.add(token);
        self.tokens += 1;
        if self.tokens.is_multiple_of(BLOCK) {
            self.prefixes.push(self.hash.0);
        }
    }

    /// Has the hash depend on a sound, which is no text and has its own tokens.
    pub fn add_sound(&mut self, bytes: &[u8]) {
        self.hash.add(bytes);
    }

    pub fn add_text(&mut self, text: String) {
        for byte in text.as_bytes() {
            self.add_token(std::slice::from_ref(byte));
        }
        self.last = text;
    }

    fn add_ids(&mut self, ids: &[u32]) {
        for id in ids {
            self.add_token(&id.to_le_bytes());
        }
        let bytes: Vec<u8> = ids.iter().map(|id| u8::try_from(*id).unwrap_or(b'?')).collect();
        self.last = String::from_utf8_lossy(&bytes).into_owned();
    }
}

/// Counts a prompt that is a text or a list of ids, alone or as a list with one item.
pub(super) fn prompt(value: Option<Prompt>, param: &str) -> Result<PromptSummary, Refusal> {
    let mut summary = PromptSummary::default();
    match value {
        Some(Prompt::Several(mut prompts)) if prompts.len() == 1 => {
            return prompt(prompts.pop(), param);
        }
        Some(Prompt::Text(text)) => summary.add_text(text),
        Some(Prompt::Ids(ids)) => summary.add_ids(&ids),
        Some(Prompt::Several(prompts)) if !prompts.is_empty() => {
            let message = "this engine answers one prompt a request: a text or a list of token ids";
            return Err(Refusal::bad(message, Some(param)));
        }
        Some(Prompt::Several(_)) | None => {}
    }
    if summary.tokens == 0 {
        let message =
            "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)";
        return Err(Refusal::bad(message, Some(param)));
    }
    Ok(summary)
}

/// A chat's prompt is the contents of its messages, one after the other, without a template.
pub(super) fn chat_prompt(messages: Option<Vec<Message>>) -> Result<PromptSummary, Refusal> {
    let mut summary = PromptSummary::default();
    let messages = messages.unwrap_or_default();
    if messages.is_empty() {
        return Err(Refusal::bad("messages must be provided and non-empty.", Some("messages")));
    }
    for message in messages {
        match message.content {
            Some(Content::Text(text)) => summary.add_text(text),
            Some(Content::Parts(parts)) => {
                summary.add_text(parts.into_iter().map(|part| part.text).collect());
            }
            None => {}
        }
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERATE: Route = Route::Generate(Generate::Sglang);

    fn read(route: Route, body: &str) -> Ask {
        Ask::read(route, body.as_bytes()).expect(body)
    }

    fn refused(route: Route, body: &str) -> Refusal {
        Ask::read(route, body.as_bytes()).expect_err(body)
    }

    #[test]
    fn prompts_are_counted_in_bytes_or_ids() {
        assert_eq!(read(Route::Completions, r#"{"prompt":"héllo"}"#).prompt_tokens, 6);
        assert_eq!(read(Route::Completions, r#"{"prompt":[104, 105, 300]}"#).prompt_tokens, 3);
        assert_eq!(read(Route::Completions, r#"{"prompt":[104, 105, 300]}"#).echo, "hi?");
        let chat = r#"{"messages":[{"role":"system","content":"ab"},
            {"role":"user","content":[{"type":"text","text":"cde"},{"type":"image_url","image_url":{}}]}]}"#;
        let chat = read(Route::Chat, chat);
        assert_eq!((chat.prompt_tokens, chat.echo.as_str()), (5, "cde"));
        assert_eq!(read(GENERATE, r#"{"input_ids":[1,2]}"#).prompt_tokens, 2);
    }

    #[test]
    fn every_dialect_has_its_names() {
        let body = r#"{"prompt":"a","max_tokens":7,"min_tokens":3,"ignore_eos":true}"#;
        let ask = read(Route::Completions, body);
        assert_eq!((ask.max_tokens, ask.min_tokens, ask.ignore_eos), (Some(7), 3, true));
        let body = r#"{"messages":[{"content":"a"}],"max_completion_tokens":8,"min_new_tokens":2}"#;
        let ask = read(Route::Chat, body);
        assert_eq!((ask.max_tokens, ask.min_tokens, ask.stream), (Some(8), 2, false));
        let body = r#"{"text":"a","sampling_params":{"max_new_tokens":9,"ignore_eos":true},"stream":true}"#;
        let ask = read(GENERATE, body);
        assert_eq!((ask.max_tokens, ask.ignore_eos, ask.stream), (Some(9), true, true));
        assert_eq!(read(GENERATE, r#"{"text":"a"}"#).max_tokens, Some(128));
        let lmdeploy = Route::Generate(Generate::Lmdeploy);
        let ask = read(lmdeploy, r#"{"prompt":"a","max_tokens":5,"ignore_eos":true}"#);
        assert_eq!((ask.max_tokens, ask.ignore_eos), (Some(5), true));
        let usage = r#"{"prompt":"a","stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#;
        let ask = read(Route::Completions, usage);
        assert!(ask.include_usage && ask.continuous_usage);
    }

    #[test]
    fn refuses_the_requests_that_engines_refuse() {
        assert!(refused(Route::Completions, "{").message.contains("EOF"));
        for (route, body, param) in [
            (Route::Completions, r#"{"prompt":""}"#, "prompt"),
            (Route::Chat, r#"{"prompt":"a"}"#, "messages"),
            (Route::Completions, r#"{"prompt":["a","b"]}"#, "prompt"),
            (Route::Completions, r#"{"prompt":"a","n":2}"#, "n"),
        ] {
            assert_eq!(refused(route, body).param.as_deref(), Some(param), "{body}");
        }
        let zero = refused(Route::Completions, r#"{"prompt":"a","max_tokens":0}"#);
        assert!(zero.message.starts_with("max_tokens must be at least 1, got 0."));
        let script = Script { context_limit: 10.try_into().unwrap(), ..Script::default() };
        let check = |body: &str| read(Route::Completions, body).check(&script);
        assert_eq!(check(r#"{"prompt":"abcdef","max_tokens":4}"#), Ok(()));
        let much = check(r#"{"prompt":"abcdef","max_tokens":5}"#).unwrap_err();
        assert!(much.message.contains("a total of 11"));
    }
}
