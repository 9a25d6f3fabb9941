//! A row of a recording: a request in Mooncake's format, with a few fields more. Owns the fields,
//! all of them numbers or fixed words; no field can hold a text of the traffic.

use serde::{Deserialize, Serialize};

use crate::chain::BLOCK;

/// A request. Times are from the beginning of the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Arrival, in milliseconds.
    pub(crate) timestamp: f64,
    /// The session's number; for a sub-agent `SESSION.THREAD`.
    pub(crate) session_id: String,
    /// Each row has its whole prompt.
    pub(crate) context_mode: String,
    pub(crate) input_length: u32,
    pub(crate) output_length: u32,
    pub(crate) hash_ids: Vec<u64>,
    pub(crate) block_size: usize,
    /// Time from the end of the thread's previous request, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay: Option<f64>,
    /// Time from arrival to the end of the reply, in seconds.
    pub(crate) api_time: f64,
    /// Time from arrival to the first output, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ttft: Option<f64>,
    /// Tokens of the prompt that the server found in its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached: Option<u32>,
    /// The model, numbered in the order of appearance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    pub(crate) stream: bool,
    /// The reply's status; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// True if the reply ended before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) broken: bool,
    /// Images and sound, by kind and size.
    #[serde(default, skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub(crate) media: Vec<crate::form::Media>,
    /// Sampling options by value, which a replay sends again.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) extra: serde_json::Map<String, serde_json::Value>,
}

pub(crate) const WHOLE_PROMPTS: &str = "message_array_with_responses";

impl Row {
    /// The session and the thread.
    pub(crate) fn place(&self) -> Option<(u64, u32)> {
        match self.session_id.split_once('.') {
            None => Some((self.session_id.parse().ok()?, 0)),
            Some((session, thread)) => Some((session.parse().ok()?, thread.parse().ok()?)),
        }
    }

    /// The ids of whole blocks.
    pub(crate) fn whole_blocks(&self) -> &[u64] {
        let whole = self.input_length as usize / BLOCK;
        &self.hash_ids[..whole.min(self.hash_ids.len())]
    }
}
