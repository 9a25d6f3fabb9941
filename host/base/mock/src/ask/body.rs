//! The bodies of requests as they are written, with summaries of their prompts.

use serde::Deserialize;

use super::types::Refusal;
use crate::prefix::BLOCK;

/// The body of a request in any of the dialects; fields that a dialect does not know are ignored,
/// as in engines.
#[derive(Deserialize)]
pub(super) struct Body {
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
pub(crate) enum Prompt {
    Text(String),
    Ids(Vec<u32>),
    Several(Vec<Prompt>),
}

#[derive(Deserialize)]
pub(crate) struct Message {
    pub content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
pub(crate) struct Part {
    #[serde(default)]
    pub text: String,
}

#[derive(Deserialize, Default)]
pub(super) struct StreamOptions {
    pub include_usage: Option<bool>,
    pub continuous_usage_stats: Option<bool>,
}

#[derive(Deserialize, Default)]
pub(super) struct SamplingParams {
    pub max_new_tokens: Option<i64>,
    pub min_new_tokens: Option<i64>,
    pub ignore_eos: Option<bool>,
    pub n: Option<u32>,
}

/// The size of a prompt, its hashes and its end.
#[derive(Default)]
pub(crate) struct PromptSummary {
    pub tokens: usize,
    pub hash: Hash,
    /// The hash of each of its beginnings that is a whole number of blocks long.
    pub prefixes: Vec<u64>,
    /// The last piece of it.
    pub last: String,
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
pub(crate) struct Hash(pub u64);

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
pub(crate) fn prompt(value: Option<Prompt>, param: &str) -> Result<PromptSummary, Refusal> {
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
pub(crate) fn chat_prompt(messages: Option<Vec<Message>>) -> Result<PromptSummary, Refusal> {
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
