//! What is asked of every request, and what a backend is told of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Plan;
use model::adapter::Assignment;

/// What is asked of every request. What is absent is left to the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RequestOptions {
    /// Whether replies are streamed.
    pub stream: bool,
    /// Tokens to ask for where the sample does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    /// Tokens that an answer must have at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_output_tokens: Option<u32>,
    /// Whether answers are made as long as asked.
    pub ignore_eos: bool,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Choose among the likeliest tokens that together have this probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Choose among so many of the likeliest tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Choose among tokens that have at least this share of the likeliest one's probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
    /// Subtracted for each time that a token came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Subtracted once where a token came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Divides the score of tokens that came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f64>,
    /// The seed of the server's choice among tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_seed: Option<u64>,
    /// Texts that end an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Adapters to answer with, where the sample names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapters: Vec<String>,
    /// Which of them a request gets.
    #[serde(default, skip_serializing_if = "is_random")]
    pub adapter_assignment: Assignment,
    /// Fields added to every request's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_body: Option<serde_json::Value>,
}

fn is_random(assignment: &Assignment) -> bool {
    *assignment == Assignment::Random
}

impl Plan {
    /// The adapter for the request of that number, where its sample names none. It depends on nothing but
    /// the plan, so that each slice of it gives the same.
    pub fn adapter(&self, index: u64) -> Option<&str> {
        let adapters = &self.request.adapters;
        let count = adapters.len() as u64;
        let number = match self.request.adapter_assignment {
            Assignment::RoundRobin => index,
            Assignment::Random => mixed(mixed(self.load.seed).wrapping_add(index)),
        };
        Some(&adapters[number.checked_rem(count)? as usize])
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014).
fn mixed(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
