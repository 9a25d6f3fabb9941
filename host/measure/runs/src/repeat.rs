//! The mark of a run that is one of several repeats.

use serde::{Deserialize, Serialize};

/// That a run is one of several repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Repeat {
    /// What the repeats of one scenario have in common, and nothing else has.
    pub group: String,
    /// Which of them this is, from 1.
    pub number: u32,
    /// How many there were to be, or could be at most if they stop themselves.
    pub of: u32,
}
