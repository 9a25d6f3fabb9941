//! The options of every request, and what a backend learns of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Plan;
use model::adapter::Assignment;
use model::random::mix;
use model::session::{AfterFailure, History};

/// The options of every request. What is absent is left to the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequestOptions {
    /// Whether replies are streamed.
    pub stream: bool,
    /// Output tokens to ask for if the sample does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    /// Minimum number of output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_output_tokens: Option<u32>,
    /// Whether answers reach the requested length.
    pub ignore_eos: bool,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Sample from the likeliest tokens whose probabilities add up to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Sample from this many of the likeliest tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Sample from tokens with at least this share of the likeliest token's probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
    /// Subtracted for each earlier occurrence of a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Subtracted once if a token occurred earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Divides the score of tokens that occurred earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f64>,
    /// Random seed of the server's sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_seed: Option<u64>,
    /// Texts that end an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Adapters to use if the sample names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapters: Vec<String>,
    /// How adapters are assigned to requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub adapter_assignment: Assignment,
    /// Instructions that every conversation begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which answers stand in the history of a conversation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub history: History,
    /// What becomes of requests that depend on one that failed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub after_failure: AfterFailure,
    /// Fields added to every request's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<serde_json::Value>,
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Plan {
    /// The adapter for the request with this number, if its sample names none. It depends only on
    /// the plan, so that each slice of the plan assigns the same.
    pub fn adapter(&self, index: u64) -> Option<&str> {
        let adapters = &self.request.adapters;
        let count = adapters.len() as u64;
        let number = match self.request.adapter_assignment {
            Assignment::RoundRobin => index,
            Assignment::Random => mix(mix(self.load.seed).wrapping_add(index)),
        };
        let place = usize::try_from(number.checked_rem(count)?).ok()?;
        adapters.get(place).map(String::as_str)
    }
}
