//! The mark of a run that is one of several repeats.

use serde::{Deserialize, Serialize};

/// The place of a run among several repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Repeat {
    /// The name that the repeats of one scenario have in common, and nothing else has.
    pub group: String,
    /// The number of this one, from 1.
    pub number: u32,
    /// The planned number of repeats, or the most if they stop themselves.
    pub of: u32,
}
