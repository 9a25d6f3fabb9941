//! The flags that say how long answers are to be, how the server chooses their tokens, and with which adapters.

use super::said;
use model::adapter::Assignment;
use reader::Said;
use scenario::RequestOptions;

/// What is asked of the server's choice.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Sampling {
    /// Output tokens to ask for where the dataset does not say
    #[arg(
        long,
        value_name = "TOKENS",
        env = "RUNNER_OUTPUT_TOKENS",
        help_heading = "Requests"
    )]
    output_tokens: Option<u64>,
    /// Output tokens that an answer must have at least, where the engine can be told so
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
    /// Choose among the likeliest tokens that together have this probability
    #[arg(
        long,
        value_name = "PROBABILITY",
        env = "RUNNER_TOP_P",
        help_heading = "Requests"
    )]
    top_p: Option<f64>,
    /// Choose among so many of the likeliest tokens
    #[arg(
        long,
        value_name = "TOKENS",
        env = "RUNNER_TOP_K",
        help_heading = "Requests"
    )]
    top_k: Option<u64>,
    /// Choose among tokens with at least this share of the likeliest one's probability
    #[arg(
        long,
        value_name = "SHARE",
        env = "RUNNER_MIN_P",
        help_heading = "Requests"
    )]
    min_p: Option<f64>,
    /// Subtracted for each time that a token came before
    #[arg(
        long,
        value_name = "PENALTY",
        env = "RUNNER_FREQUENCY_PENALTY",
        allow_negative_numbers = true,
        help_heading = "Requests"
    )]
    frequency_penalty: Option<f64>,
    /// Subtracted once where a token came before
    #[arg(
        long,
        value_name = "PENALTY",
        env = "RUNNER_PRESENCE_PENALTY",
        allow_negative_numbers = true,
        help_heading = "Requests"
    )]
    presence_penalty: Option<f64>,
    /// Divides the score of tokens that came before
    #[arg(
        long,
        value_name = "PENALTY",
        env = "RUNNER_REPETITION_PENALTY",
        help_heading = "Requests"
    )]
    repetition_penalty: Option<f64>,
    /// The seed of the server's choice among tokens
    #[arg(
        long,
        value_name = "SEED",
        env = "RUNNER_SAMPLING_SEED",
        help_heading = "Requests"
    )]
    sampling_seed: Option<u64>,
    /// A text that ends an answer; repeatable
    #[arg(
        long,
        value_name = "TEXT",
        env = "RUNNER_STOP",
        help_heading = "Requests"
    )]
    stop: Vec<String>,
    /// Adapters (LoRA) to answer with, where the dataset names none
    ///
    /// Takes every word that follows it, so scenarios come first.
    #[arg(long, value_name = "NAME", env = "RUNNER_LORA_MODULES", num_args = 1.., value_delimiter = ',', help_heading = "Requests")]
    lora_modules: Vec<String>,
    /// Which of them a request gets: random (from the seed), or round-robin
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
    /// Lays the flags that are given over what is asked of requests.
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
