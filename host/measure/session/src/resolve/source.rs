//! The input of a run: the scenario, and the places of the files and plugins that it names.

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use plugins::load::Shipped;
use reader::Located;
use result::summary::Rules;
use scenario::Scenario;
use scenario::plan::Slice;

/// The source, in messages, of a plugin that nobody named.
pub const BY_DEFAULT: &str = "default";

#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The scenario, with flags laid over it.
    pub scenario: Scenario,
    /// The name of its file, if the scenario sets no name. Empty without a file.
    pub name: String,
    /// The folder that its relative paths start from, if it came from a file.
    pub folder: Option<PathBuf>,
    /// Plugins named on the command line; each replaces the scenario's own plugin of its kind.
    pub plugins: Vec<Located<String>>,
    pub plugin_path: Vec<PathBuf>,
    pub shipped: Shipped,
    /// The source of the variables that the scenario names, such as the API key's.
    pub variables: Variables,
    /// The server's names for its model, if it was asked; they may name its tokenizer.
    pub served: Vec<String>,
    /// The rules of a published benchmark that the scenario was laid under, if it was.
    pub rules: Option<Rules>,
    /// The part of the plan to run; absent for the whole.
    pub slice: Option<Slice>,
}

#[derive(Clone, Default)]
pub enum Variables {
    #[default]
    None,
    Process,
    Given(BTreeMap<String, String>),
}

impl std::fmt::Debug for Variables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Variables::None => f.write_str("None"),
            Variables::Process => f.write_str("Process"),
            Variables::Given(values) => f.debug_set().entries(values.keys()).finish(),
        }
    }
}

impl Variables {
    pub(crate) fn only(&self, names: &[&str]) -> Variables {
        let values = names.iter().filter_map(|name| Some(((*name).to_owned(), self.get(name)?)));
        Variables::Given(values.collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<String> {
        match self {
            Variables::None => None,
            Variables::Process => std::env::var(name).ok(),
            Variables::Given(values) => values.get(name).cloned(),
        }
    }
}
