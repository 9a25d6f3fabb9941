//! Which adapter (LoRA) a request asks for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How adapters are assigned to requests.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// At random, from the plan's seed and the request's number.
    #[default]
    Random,
    /// Each in turn, by the request's number.
    RoundRobin,
}
