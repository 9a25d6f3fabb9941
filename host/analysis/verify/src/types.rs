//! The types that cases, cards and definitions share: a case's task, and the verdict on a figure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most requests of a run, and tokens of a prompt or an answer.
const MOST: u64 = 1_000_000_000;

model::words! {
    /// The part that a case belongs to.
    pub enum Part {
        /// The load that the client offers.
        Load = "load",
        /// Streams whose truth is known.
        Streams = "streams",
        /// Faults, and which replies count as successes.
        Faults = "faults",
    }
}

/// The work that a client is asked to do.
#[model::apply(model::document!)]
pub struct Asks {
    /// The number of requests to measure.
    pub requests: u64,
    /// The number in flight of a closed loop.
    pub concurrency: Option<u64>,
    /// Requests a second of an open loop.
    pub rate: Option<f64>,
    /// The distribution of the times between requests.
    pub arrivals: Option<Arrivals>,
    /// Tokens of each prompt.
    pub input_len: u64,
    /// Tokens of each answer.
    pub output_len: u64,
    /// Tokens that all prompts begin with.
    pub prefix_len: Option<u64>,
    /// Requests before the measured ones.
    #[serde(default)]
    pub warm_up: u64,
    /// The seeds of its runs, one run for each.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
}

impl Asks {
    /// True if requests wait for others instead of a time.
    pub fn is_closed(&self) -> bool {
        self.rate.is_none()
    }
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// A distribution of the times between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// All the same.
    Constant,
    /// Exponential.
    Poisson,
}

impl std::fmt::Display for Arrivals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Arrivals::Constant => "constant",
            Arrivals::Poisson => "Poisson",
        })
    }
}

model::words! {
    /// A property of the load.
    pub enum Property {
        /// The requested number of requests, beside the requests that the client says it adds.
        Requests = "requests",
        /// Requests come at the requested rate and with the requested distribution.
        Arrivals = "arrivals",
        /// The requested number of requests is in flight.
        InFlight = "in-flight",
        /// Prompts have the requested length, by the tokenizer.
        PromptTokens = "prompt-tokens",
        /// Every prompt differs from the others, from its beginning.
        Prompts = "prompts",
        /// All prompts share a prefix of the requested length, and nothing more.
        Prefix = "prefix",
        /// No request is sent again after a failure.
        Retries = "retries",
        /// The same seed gives the same prompts, and another seed others.
        Seeds = "seeds",
    }
}

model::words! {
    /// The verdict on a figure.
    pub enum Verdict {
        /// Within the case's tolerance of its own definition.
        Exact = "exact",
        /// Further off, but within the error that the client states.
        WithinStatedError = "within-stated-error",
        /// Exact by another definition than the client claims.
        AnotherDefinition = "another-definition",
        /// Exact by no definition.
        Wrong = "wrong",
    }
    default Exact
}

impl Verdict {
    pub fn label(self) -> &'static str {
        match self {
            Verdict::Exact => "exact",
            Verdict::WithinStatedError => "within error",
            Verdict::AnotherDefinition => "other",
            Verdict::Wrong => "wrong",
        }
    }
}

/// One figure, or one property of the load, against the truth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Check {
    /// The figure, or the property: `ttft.mean`, `load.rate`.
    pub figure: String,
    /// The definition that the client claims; of a property, the task.
    pub claimed: String,
    /// Its true value by that definition; absent if there was nothing to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
    /// The client's own value; of a property, the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The definition that fits the client's value, where the client claims another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fits: Option<String>,
    /// The true values by each definition of the quantity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_definition: Vec<ByDefinition>,
    /// The verdict as text.
    pub words: String,
}

/// The true value of a figure by one definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ByDefinition {
    /// The definition.
    pub definition: String,
    /// Its value.
    pub value: f64,
}

/// Checks a number of requests or tokens, so that sums are bounded. Errors: the expected number.
pub(crate) fn few(number: u64) -> Result<(), String> {
    let fits = (number <= MOST).then_some(());
    fits.ok_or_else(|| format!("expected at most {MOST}, found {number}"))
}

impl Part {
    pub fn title(self) -> &'static str {
        match self {
            Part::Load => "Offered load",
            Part::Streams => "Streams of known truth",
            Part::Faults => "Faults",
        }
    }
}

impl Check {
    /// True if it is about times.
    pub(crate) fn is_timed(&self) -> bool {
        let counted = ["requests.", "tokens."];
        let of_load = ["requests", "prompt-tokens", "prompts", "prefix", "retries", "seeds"];
        !counted.iter().any(|beginning| self.figure.starts_with(beginning))
            && !self.figure.strip_prefix("load.").is_some_and(|name| of_load.contains(&name))
    }
}
