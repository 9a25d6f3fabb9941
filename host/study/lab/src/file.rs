//! The lab file as it is read: engines and their options, models, scenarios, the objective and the
//! budget.
//!
//! Each value is checked by itself. [`read`](crate::read) makes a lab of a text,
//! [`expand`](crate::expand) makes trials of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::condition::Condition;
use crate::objective::Objective;
use reader::{ConfigTable, Located, Place};

model::words! {
    /// The choice of the trials that are run, and of their order.
    pub enum Strategy {
        /// Every combination of values.
        Matrix = "matrix",
        /// Each option alone, from the baseline; then the best of each together.
        OneAtATime = "one-at-a-time",
    }
    default OneAtATime
}

model::words! {
    /// The way in which an option is written.
    pub enum Flags {
        /// `--name value`
        Space = "space",
        /// `--name=value`
        Equals = "equals",
    }
    default Space
}

#[derive(Clone, Debug)]
pub struct Lab {
    pub name: String,
    /// Its purpose.
    pub about: Option<String>,
    pub strategy: Strategy,
    /// The number of runs of each trial on each scenario.
    pub repeats: u32,
    /// The number of fresh repeats that confirm the gain at the end.
    pub confirm: u32,
    /// The number of times that an invalid or failed run is tried again.
    pub retries: u32,
    /// The scenarios as they are written: files, folders or names.
    pub scenarios: Vec<Located<String>>,
    /// Keys that are laid over every scenario.
    pub set: ConfigTable,
    /// Keys that are laid over one scenario, by its file's name without its ending.
    pub set_for: ConfigTable,
    /// The objective of the best trial; nothing is chosen without it.
    pub objective: Option<Objective>,
    pub budget: Budget,
    /// The cost of an hour of the machine.
    pub per_hour: Option<f64>,
    /// The models; at least one.
    pub models: Vec<Model>,
    /// The engines; at least one.
    pub engines: Vec<Engine>,
    /// Secrets that the file holds itself.
    pub secrets: Vec<String>,
    /// The file's text without them.
    pub(crate) kept: String,
    /// The same lab without them, if there are any.
    pub(crate) hidden: Option<Box<Lab>>,
}

impl Lab {
    /// The file's text without its secrets and comments: a lab file with the same ids of trials.
    pub fn kept(&self) -> &str {
        &self.kept
    }

    /// The lab as it may be shown: the same trials, with marks in the places of secrets.
    pub fn shown(&self) -> &Lab {
        self.hidden.as_deref().unwrap_or(self)
    }

    pub(crate) fn is_maximized(&self) -> bool {
        self.objective.as_ref().is_none_or(|objective| objective.is_maximized)
    }

    /// Keys that are laid over the scenario with that file name, such as `sharegpt`, after the keys
    /// for all. They are a part of the scenario's content, so they belong into its digest.
    pub fn set_for(&self, scenario: &str) -> Option<Value> {
        let entry = self.set_for.get(scenario)?;
        Some(entry.value.value.to_json())
    }
}

/// The most time and money that a lab may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// The time of engines and runs together.
    pub time: Option<Duration>,
    /// Their cost together.
    pub cost: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct Model {
    /// Its name; empty for the model of a file without models.
    pub name: String,
    /// Its placeholders without `model.`: `path`, `served-name`, `tp`.
    pub values: BTreeMap<String, String>,
}

impl Model {
    /// The name that requests use.
    pub fn served_name(&self) -> Option<&str> {
        self.values.get("served-name").map(String::as_str)
    }
}

#[derive(Clone, Debug)]
pub struct Engine {
    pub name: String,
    pub place: Place,
    /// The backend plugin; the scenario's if absent.
    pub backend: Option<String>,
    /// Configuration of the backend plugin.
    pub config: ConfigTable,
    /// The command that starts it, with placeholders; it runs already if absent.
    pub launch: Option<Vec<String>>,
    /// Its environment variables, with references to ours.
    pub env: Vec<(String, String)>,
    /// The folder that it is started in.
    pub dir: Option<String>,
    /// The address that it listens on.
    pub host: String,
    pub port: u16,
    pub base_url: String,
    pub ready_timeout: Duration,
    pub stop_timeout: Duration,
    pub version_command: Option<Vec<String>>,
    pub flags: Flags,
    /// Options that are varied, and options that always have one value.
    pub dimensions: Vec<Dimension>,
    /// Trials that are left out.
    pub exclude: Vec<Located<Condition>>,
    /// The models, by position, that it is tried with.
    pub models: Vec<usize>,
}

/// An option, or several whose values change together.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// Its name in tables: the option's or the group's.
    pub name: String,
    pub options: Vec<OptionKind>,
    /// The values of each option, a row for each combination.
    pub rows: Vec<Vec<Value>>,
    /// The row that the baseline has.
    pub baseline: usize,
    pub when: Option<Condition>,
    pub place: Place,
}

/// The name of an option, and the way in which it is written.
#[derive(Clone, Debug)]
pub struct OptionKind {
    pub name: String,
    pub is_env: bool,
    /// The value for which nothing is written.
    pub omit: Option<Value>,
    /// The text that is written for `false`.
    pub off: Option<String>,
}

impl Dimension {
    pub fn is_varied(&self) -> bool {
        self.rows.len() > 1
    }
}
