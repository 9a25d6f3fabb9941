//! The options of every request, and the options that a backend gets.

use super::Plan;
use model::adapter::Assignment;
use model::identity::RequestIds;
use model::random::mix;
use model::session::{AfterFailure, History};
use model::units::Nanos;

/// The options of every request. An absent option is left to the server.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct RequestOptions {
    /// True if replies are streamed.
    pub stream: bool,
    /// Output tokens to ask for if the sample does not say.
    pub output_tokens: Option<u32>,
    /// Minimum number of output tokens.
    pub min_output_tokens: Option<u32>,
    /// True if answers reach the requested length.
    pub ignore_eos: bool,
    /// True if answers may end early because the backend has no field against it, and not because
    /// the scenario lets them.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub unforced: bool,
    /// Sampling temperature; absent if requests state none.
    pub temperature: Option<f64>,
    /// Sample from the likeliest tokens whose probabilities add up to this.
    pub top_p: Option<f64>,
    /// Sample from this many of the likeliest tokens.
    pub top_k: Option<u32>,
    /// Sample from tokens with at least this share of the likeliest token's probability.
    pub min_p: Option<f64>,
    /// Subtracted for each earlier occurrence of a token.
    pub frequency_penalty: Option<f64>,
    /// Subtracted once if a token occurred earlier.
    pub presence_penalty: Option<f64>,
    /// Divides the score of tokens that occurred earlier.
    pub repetition_penalty: Option<f64>,
    /// Random seed of the server's sampling.
    pub sampling_seed: Option<u64>,
    /// Texts that end an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Adapters to use if the sample names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapters: Vec<String>,
    /// The assignment of adapters to requests.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub adapter_assignment: Assignment,
    /// Instructions that every conversation begins with.
    pub system_prompt: Option<String>,
    /// The answers in the history of a conversation.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub history: History,
    /// The treatment of requests that depend on a failed request.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub after_failure: AfterFailure,
    /// The requests that are cancelled on purpose; absent if none is.
    pub cancel: Option<Cancel>,
    /// Fields added to every request's body.
    pub extra_body: Option<serde_json::Value>,
    /// The ids that requests carry; none in plans that do not say.
    #[serde(default, skip_serializing_if = "model::is_default")]
    pub ids: RequestIds,
    /// Options that the scenario states and the backend ignores, by their keys, such as
    /// `request.top-k`. No request carries them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// Requests that the client cancels on purpose.
#[model::apply(model::document!)]
#[derive(Copy)]
pub struct Cancel {
    /// Their share of the requests, above 0 and at most 1; the seed decides which.
    pub share: f64,
    /// The time from sending a request to its cancellation, unless its answer has ended.
    pub after: Nanos,
}

impl RequestOptions {
    /// True if requests tell the server to ignore the end of the text.
    pub fn asks_to_go_on(&self) -> bool {
        self.ignore_eos && !self.ignored.iter().any(|key| key == "request.ignore-eos")
    }

    /// True if requests force the length of their answers: they ignore the end of the text, and no
    /// text of theirs ends an answer before.
    pub fn forces_length(&self) -> bool {
        self.ignore_eos && self.stop.is_empty()
    }
}

impl Cancel {
    /// True if the request with this number is one of them.
    fn chooses(&self, seed: u64, index: u64) -> bool {
        let number = mix(mix(seed ^ CANCELLED).wrapping_add(index));
        // 53 bits: the precision of a double, from 0 up to but not including 1.
        let drawn = (number >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < self.share
    }
}

/// Keeps the requests that are cancelled apart from other choices that the seed makes.
const CANCELLED: u64 = 0x63_61_6e_63_65_6c;

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

    /// Returns the time from sending to cancellation, if the measured request with this number is
    /// cancelled on purpose. It depends only on the plan, so each slice of the plan cancels the
    /// same requests.
    pub fn cancelled_after(&self, index: u64) -> Option<Nanos> {
        let cancel = self.request.cancel?;
        let is_chosen = cancel.chooses(self.load.seed, index);
        is_chosen.then_some(cancel.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_chooses_the_cancelled_requests() {
        let chosen = |share, seed, many| {
            let after = Nanos(1);
            let cancel = Cancel { share, after };
            let indexes = (0..many).filter(move |index| cancel.chooses(seed, *index));
            indexes.collect::<Vec<u64>>()
        };
        assert_eq!(chosen(0.4, 0, 20), [1, 3, 4, 12, 13, 16, 18, 19]);
        assert_eq!(chosen(0.4, 1, 20), [0, 2, 3, 4, 5, 7, 8, 9, 12, 13, 14, 15, 17]);
        for seed in 0..4 {
            let share = chosen(0.4, seed, 10_000).len() as f64 / 10_000.0;
            assert!((share - 0.4).abs() < 0.01, "seed {seed}: {share}");
            // A larger share includes every request of a smaller one.
            let few = chosen(0.1, seed, 1_000);
            let more = chosen(0.4, seed, 1_000);
            assert!(few.iter().all(|index| more.contains(index)));
            assert_eq!(chosen(1.0, seed, 1_000).len(), 1_000);
        }
    }
}
