//! The scenario: a run as its author described it, in TOML, with flags, or both.
//!
//! This crate owns its format: it reads a scenario (reporting every mistake at once, each with its place), lays flags
//! over it ([`Scenario::overlay`]) and finds contradictions ([`Scenario::validate`]). It also owns the format of a
//! [`plan`]. It leaves making one to `session`: an absent value means that nothing was set. The configuration of
//! plugins is carried in free form and compared with a plugin's own schema by [`check_config`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use miette::SourceSpan;
use reader::{ConfigTable, Place, Said, ScenarioError, Size};
use serde::Serialize;

use model::connection::Reuse;
use model::connection::{Timestamps, Version};
use model::duration::Span;

mod about;
mod check;
mod load;
mod overlay;
mod place;
pub mod plan;
mod read;
mod request;
mod schema;
#[cfg(test)]
mod tests;

pub use about::About;
pub use load::{Arrival, Load, Ramp, SHAPES, Stage, THINK_SPREADS, Trace};
pub use request::RequestOptions;
pub use schema::check_config;

/// A run as it was described, with nothing resolved.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Scenario {
    /// The name of the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Said<String>>,
    /// Its position when a folder of scenarios is run; scenarios without one come after, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Said<u64>>,
    /// What is measured, for readers of the result.
    pub about: About,
    /// The server under test.
    pub target: Target,
    /// The model's tokenizer.
    pub tokenizer: Tokenizer,
    /// The backend, which speaks the server's dialect.
    pub backend: Plugin,
    /// Where the requests' contents come from.
    pub dataset: Dataset,
    /// How many requests, and when.
    pub load: Load,
    /// Options for every request.
    pub request: RequestOptions,
    /// How to connect to the server.
    pub connection: Connection,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// The scorers that judge the answers; if the list is empty, nothing judges them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scorers: Option<Vec<Plugin>>,
    /// What is reported.
    pub report: Report,
    /// `[goodput]`: SLOs, the upper limits of request metrics in milliseconds, by the names of the metrics.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub goodput: BTreeMap<String, Said<f64>>,
    /// Thresholds of the run, such as `ttft.p99 <= 200ms`; see [`result::threshold`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Said<String>>,
    /// The resource limits of plugins.
    pub sandbox: Sandbox,
    /// Where the tables of the text begin.
    #[serde(skip)]
    sections: BTreeMap<String, Place>,
}

/// `[target]`: the server under test.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Target {
    /// Where it listens, such as `http://127.0.0.1:8000`; if there are several, requests go to each in turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<Said<Vec<Said<String>>>>,
    /// The model's name as the server knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Said<String>>,
    /// The environment variable that holds the API key. The key itself does not belong in a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<Said<String>>,
    /// How long to wait for a server that is not ready yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ready: Option<Said<Span>>,
    /// Further header fields of every request, by lower-case name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Said<String>>,
}

/// `[tokenizer]`: the model's tokenizer.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tokenizer {
    /// `tokenizer.json`, or the folder that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Said<PathBuf>>,
}

/// `[backend]` or one of `[[scorers]]`: a plugin and its configuration.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plugin {
    /// Which component, such as `backends/openai.wasm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Said<String>>,
    /// Its configuration, in its own terms.
    #[serde(skip_serializing_if = "ConfigTable::is_empty")]
    pub config: ConfigTable,
}

/// `[dataset]`: a plugin, its configuration and the files it may read.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Dataset {
    /// Which component, such as `datasets/random.wasm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Said<String>>,
    /// Its configuration, in its own terms.
    #[serde(skip_serializing_if = "ConfigTable::is_empty")]
    pub config: ConfigTable,
    /// The files it may read, by the names that the plugin uses for them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Said<PathBuf>>,
}

/// `[connection]`: how to connect to the server.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Connection {
    /// The HTTP version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Said<Version>>,
    /// Which connection a request uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse: Option<Said<Reuse>>,
    /// A file of certificates to trust in addition to the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<Said<PathBuf>>,
    /// Whether to accept any certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insecure: Option<Said<bool>>,
    /// Which timestamps of received bytes to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<Said<Timestamps>>,
}

/// `[timeouts]`: when to give up.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Timeouts {
    /// Timeout for opening a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Said<Span>>,
    /// Timeout for the first token of an answer, from when its request was sent; without it, only the
    /// whole request has a timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token: Option<Said<Span>>,
    /// Timeout for the next token of an answer that began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_gap: Option<Said<Span>>,
    /// Timeout for a whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Said<Span>>,
}

/// `[report]`: what is reported.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Report {
    /// Which percentiles, each above 0 and at most 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Said<Vec<Said<f64>>>>,
    /// Whether to compare the results with the server's own metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_metrics: Option<Said<bool>>,
}

/// `[sandbox]`: the resource limits of plugins.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sandbox {
    /// Size of a component's file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<Said<Size>>,
    /// Functions of a component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub functions: Option<Said<u64>>,
    /// Elements of all tables of one instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Said<u64>>,
    /// How deeply modules and components may be nested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nesting: Option<Said<u64>>,
    /// Time to compile a component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compile: Option<Said<Span>>,
    /// Memory of one instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Said<Size>>,
    /// Time of one call of a backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_call: Option<Said<Span>>,
    /// Time of one call of a dataset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset_call: Option<Said<Span>>,
    /// Time of one call of a scorer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scorer_call: Option<Said<Span>>,
    /// The maximum size of what one call may return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<Said<Size>>,
}

impl Scenario {
    /// Reads a scenario's text. `name` is its name in messages: its path.
    ///
    /// # Errors
    /// Everything that is wrong within it: syntax, keys, types, values, and pairs that
    /// contradict each other. What is still missing may come from flags: see [`Scenario::validate`].
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let (scenario, mut problems) = read::read(name, text);
        problems.extend(check::values(&scenario));
        problems.extend(check::contradictions(&scenario));
        ScenarioError::unless_empty(problems)?;
        Ok(scenario)
    }

    /// Checks a complete scenario, including its flags.
    ///
    /// # Errors
    /// Values out of range, pairs that contradict each other, and an arrival that lacks its rate or concurrency.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let mut problems = check::values(self);
        problems.extend(check::contradictions(self));
        problems.extend(check::gaps(self));
        ScenarioError::unless_empty(problems)
    }

    /// The part of the scenario's text that sets the value at the path, such as
    /// `["backend", "config", "route"]`; list items are named by their position, and a table's place is its
    /// header. Absent if a flag sets it, or nothing does.
    pub fn span_of(&self, path: &[&str]) -> Option<SourceSpan> {
        self.place_of(path)?.span()
    }
}
