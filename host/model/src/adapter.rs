//! Which adapter (LoRA) a request asks for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which adapter a request gets.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// Any, from the plan's seed and the request's number.
    #[default]
    Random,
    /// Each in turn, by the request's number.
    RoundRobin,
}
