//! The subject of a result, in the words of whoever made it: engine, hardware, how the server was
//! started. The runner cannot see any of it, so it is passed on as said and never read as a figure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The subject of a result. Anything that was not said is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct About {
    /// The engine under test: `vllm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Its version: `0.10.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// Hardware that it ran on: `8x H800`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// The command that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_command: Option<String>,
    /// Whatever else is worth knowing, by names of the author's choice.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
}

impl About {
    /// True if nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == About::default()
    }
}
