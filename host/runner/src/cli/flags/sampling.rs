//! The flags for the length of answers, the server's sampling, and the adapters.

use super::said;
use model::adapter::Assignment;
use reader::Said;
use scenario::RequestOptions;

/// Sampling options.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Sampling {
    /// Output tokens to ask for if the dataset does not say
    #[arg(
        long,
        value_name = "TOKENS",
        env = "RUNNER_OUTPUT_TOKENS",
        help_heading = "Requests"
    )]
    output_tokens: Option<u64>,
    /// Minimum number of output tokens, if the engine supports it
    #[arg(
        long,
        value_name = "TOKENS",
        env = "RUNNER_MIN_OUTPUT_TOKENS",
        help_heading = "Requests"
    )]
    min_output_tokens: Option<u64>,
    /// Sampling temperature
    #[arg(long, env = "RUNNER_TEMPERATURE", help_heading = "Requests")]
    temperature: Option<f64>,
    /// Sample from the likeliest tokens whose probabilities add up to this
    #[arg(
        long,
        value_name = "PROBABILITY",
        env = "RUNNER_TOP_P",
        help_heading = "Requests"
    )]
    top_p: Option<f64>,
    /// Sample from this many of the likeliest tokens
    #[arg(
        long,
        value_name = "TOKENS",
        env = "RUNNER_TOP_K",
        help_heading = "Requests"
    )]
    top_k: Option<u64>,
    /// Sample from tokens with at least this share of the likeliest token's probability
    #[arg(
        long,
        value_name = "SHARE",
        env = "RUNNER_MIN_P",
        help_heading = "Requests"
    )]
    min_p: Option<f64>,
    /// Subtract this for each earlier occurrence of a token
    #[arg(
        long,
        value_name = "PENALTY",
        env = "RUNNER_FREQUENCY_PENALTY",
        allow_negative_numbers = true,
        help_heading = "Requests"
    )]
    frequency_penalty: Option<f64>,
    /// Subtract this once if a token occurred earlier
    #[arg(
        long,
        value_name = "PENALTY",
        env = "RUNNER_PRESENCE_PENALTY",
        allow_negative_numbers = true,
        help_heading = "Requests"
    )]
    presence_penalty: Option<f64>,
    /// Divide the score of tokens that occurred earlier by this
    #[arg(
        long,
        value_name = "PENALTY",
        env = "RUNNER_REPETITION_PENALTY",
        help_heading = "Requests"
    )]
    repetition_penalty: Option<f64>,
    /// Random seed of the server's sampling
    #[arg(
        long,
        value_name = "SEED",
        env = "RUNNER_SAMPLING_SEED",
        help_heading = "Requests"
    )]
    sampling_seed: Option<u64>,
    /// Text that ends an answer; repeatable
    #[arg(
        long,
        value_name = "TEXT",
        env = "RUNNER_STOP",
        help_heading = "Requests"
    )]
    stop: Vec<String>,
    /// Adapters (LoRA) to use if the dataset names none
    ///
    /// This flag takes every word after it, so put scenarios first.
    #[arg(long, value_name = "NAME", env = "RUNNER_LORA_MODULES", num_args = 1.., value_delimiter = ',', help_heading = "Requests")]
    lora_modules: Vec<String>,
    /// How to assign adapters to requests: random (from the seed) or round-robin
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        env = "RUNNER_LORA_ASSIGNMENT",
        hide_possible_values = true,
        help_heading = "Requests"
    )]
    lora_assignment: Option<Assignment>,
}

impl Sampling {
    /// Lays the given flags over the request options.
    pub fn lay_on(&self, request: &mut RequestOptions) {
        request.output_tokens = said("--output-tokens", &self.output_tokens);
        request.min_output_tokens = said("--min-output-tokens", &self.min_output_tokens);
        request.temperature = said("--temperature", &self.temperature);
        request.top_p = said("--top-p", &self.top_p);
        request.top_k = said("--top-k", &self.top_k);
        request.min_p = said("--min-p", &self.min_p);
        request.frequency_penalty = said("--frequency-penalty", &self.frequency_penalty);
        request.presence_penalty = said("--presence-penalty", &self.presence_penalty);
        request.repetition_penalty = said("--repetition-penalty", &self.repetition_penalty);
        request.sampling_seed = said("--sampling-seed", &self.sampling_seed);
        request.stop = list("--stop", &self.stop);
        request.adapters = list("--lora-modules", &self.lora_modules);
        request.adapter_assignment = said("--lora-assignment", &self.lora_assignment);
    }
}

fn list(flag: &str, texts: &[String]) -> Option<Said<Vec<Said<String>>>> {
    let said = || texts.iter().map(|text| Said::flag(flag, text.clone()));
    (!texts.is_empty()).then(|| Said::flag(flag, said().collect()))
}
