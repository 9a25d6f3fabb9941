//! `[request]` as written: options for every request.

use serde::Serialize;

use model::adapter::Assignment;
use reader::ConfigTable;
use reader::{Place, Said};

/// `[request]`: options for every request.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RequestOptions {
    /// Whether replies are streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Said<bool>>,
    /// Output tokens to ask for if the dataset does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Said<u64>>,
    /// Minimum number of output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_output_tokens: Option<Said<u64>>,
    /// Whether answers reach the requested length by ignoring the end-of-sequence token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_eos: Option<Said<bool>>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Said<f64>>,
    /// Sample from the likeliest tokens whose probabilities add up to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<Said<f64>>,
    /// How many of the likeliest tokens to sample from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<Said<u64>>,
    /// The minimum share of the likeliest token's probability for tokens to sample from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<Said<f64>>,
    /// Subtracted for each earlier occurrence of a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<Said<f64>>,
    /// Subtracted once if a token occurred earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<Said<f64>>,
    /// Divides the score of tokens that occurred earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<Said<f64>>,
    /// Random seed of the server's sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_seed: Option<Said<u64>>,
    /// Texts that end an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Said<Vec<Said<String>>>>,
    /// Adapters (LoRA) to use if the dataset names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapters: Option<Said<Vec<Said<String>>>>,
    /// How adapters are assigned to requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter_assignment: Option<Said<Assignment>>,
    /// Fields that are added to every request's body.
    #[serde(skip_serializing_if = "ConfigTable::is_empty")]
    pub extra_body: ConfigTable,
}

impl RequestOptions {
    /// These options with `over` laid on them.
    #[must_use]
    pub fn overlay(self, over: RequestOptions) -> Self {
        RequestOptions {
            stream: over.stream.or(self.stream),
            output_tokens: over.output_tokens.or(self.output_tokens),
            min_output_tokens: over.min_output_tokens.or(self.min_output_tokens),
            ignore_eos: over.ignore_eos.or(self.ignore_eos),
            temperature: over.temperature.or(self.temperature),
            top_p: over.top_p.or(self.top_p),
            top_k: over.top_k.or(self.top_k),
            min_p: over.min_p.or(self.min_p),
            frequency_penalty: over.frequency_penalty.or(self.frequency_penalty),
            presence_penalty: over.presence_penalty.or(self.presence_penalty),
            repetition_penalty: over.repetition_penalty.or(self.repetition_penalty),
            sampling_seed: over.sampling_seed.or(self.sampling_seed),
            stop: over.stop.or(self.stop),
            adapters: over.adapters.or(self.adapters),
            adapter_assignment: over.adapter_assignment.or(self.adapter_assignment),
            extra_body: self.extra_body.overlay(over.extra_body),
        }
    }

    /// The place of the key's value, or of something within it.
    pub(super) fn place_of(&self, key: &str, within: &[&str]) -> Option<&Place> {
        match (key, within) {
            ("stream", []) => at(&self.stream),
            ("output-tokens", []) => at(&self.output_tokens),
            ("min-output-tokens", []) => at(&self.min_output_tokens),
            ("ignore-eos", []) => at(&self.ignore_eos),
            ("temperature", []) => at(&self.temperature),
            ("top-p", []) => at(&self.top_p),
            ("top-k", []) => at(&self.top_k),
            ("min-p", []) => at(&self.min_p),
            ("frequency-penalty", []) => at(&self.frequency_penalty),
            ("presence-penalty", []) => at(&self.presence_penalty),
            ("repetition-penalty", []) => at(&self.repetition_penalty),
            ("sampling-seed", []) => at(&self.sampling_seed),
            ("stop", within) => place_in_list(&self.stop, within),
            ("adapters", within) => place_in_list(&self.adapters, within),
            ("adapter-assignment", []) => at(&self.adapter_assignment),
            ("extra-body", within) => self.extra_body.place_of(within),
            _ => None,
        }
    }
}

fn at<T>(said: &Option<Said<T>>) -> Option<&Place> {
    said.as_ref().map(|said| &said.place)
}

fn place_in_list<'a, T>(
    list: &'a Option<Said<Vec<Said<T>>>>,
    within: &[&str],
) -> Option<&'a Place> {
    let list = list.as_ref()?;
    match within {
        [] => Some(&list.place),
        [index] => Some(&list.value.get(index.parse::<usize>().ok()?)?.place),
        _ => None,
    }
}
