//! The contents of `sweep.json` and `search.json`: the progress of a sweep or a search, and its
//! scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use search::{Answer, Search};

/// A file of a sweep or a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Saved<T> {
    /// SHA-256 of the scenario with its flags, as `runner scenario show` prints it.
    pub scenario: String,
    /// The name that people use, but for the load, which is varied.
    pub title: String,
    /// Its progress.
    pub state: T,
}

/// A search, as far as it is.
#[model::apply(model::document!)]
pub struct Searched {
    /// The folder of each run in the search's, by the number of its probe.
    pub runs: Vec<(u32, String)>,
    /// The search.
    pub search: Search,
    /// Its answer, when it has one.
    pub answer: Option<Answer>,
}

impl Searched {
    /// The folders of its runs, in the order in which they were made.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|(_, folder)| &**folder)
    }
}
