//! A plan that may still lack the name of the model: all that a scenario, its files and its plugins
//! decide.
//!
//! A [`Plan`] has a model. If the scenario names no model, the server is asked for its only one. So
//! the plan is complete once the target is checked.

use std::collections::BTreeMap;

use model::about::About;
use model::connection::Timeouts;
use model::file::PlannedFile;
use model::plugin::Limits;
use model::units::Nanos;
use result::metric::Objective;
use result::summary::Price;
use result::threshold::Threshold;
use scenario::plan::{
    ApiKey, Controls, Load, Plan, PlannedDataset, PlannedPlugin, PlannedTarget, PlannedTokenizer,
    RequestOptions, Slice, WatchedDevices, Wiring,
};

/// A plan, but for the model where the scenario names none.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Name of the run, for people.
    pub name: String,
    /// Subject of the run, in its author's words.
    pub about: About,
    pub target: DraftTarget,
    /// The server's dialect.
    pub backend: PlannedPlugin,
    /// Source of the requests' contents.
    pub dataset: PlannedPlugin,
    /// The files that the dataset may read, by the names it knows them by.
    pub files: BTreeMap<String, PlannedFile>,
    /// Judges of the answers.
    pub scorers: Vec<PlannedPlugin>,
    /// Tokenizer that counts tokens on this side.
    pub tokenizer: PlannedTokenizer,
    /// Number of requests, and when they are due.
    pub load: Load,
    /// Options of every request.
    pub request: RequestOptions,
    /// Connections to the targets.
    pub connection: Wiring,
    pub timeouts: Timeouts,
    /// Requests to the targets beside those for answers.
    pub control: Controls,
    /// Devices that are sampled, if any is.
    pub device_metrics: Option<WatchedDevices>,
    /// Cost of the machines, if that is known.
    pub cost: Option<Price>,
    /// Percentiles to report, in percent.
    pub percentiles: Vec<f64>,
    /// True if means and percentiles include requests that failed, as infinitely late.
    pub failures_as_infinite: bool,
    /// Length of the time slices that figures are also given by, if they are.
    pub time_slice: Option<Nanos>,
    /// Objectives that a good request meets.
    pub goodput: Vec<Objective>,
    /// Thresholds that the run must keep.
    pub thresholds: Vec<Threshold>,
    /// Limits on plugins.
    pub sandbox: Limits,
    /// The part of the plan that this process runs; absent where it runs the whole.
    pub slice: Option<Slice>,
}

/// The target of requests, as far as the scenario names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftTarget {
    /// The engine's base URLs; requests go to them in turn.
    pub base_urls: Vec<String>,
    /// The model that the scenario names, if it names one.
    pub model: Option<String>,
    /// The API key that requests carry, if they do.
    pub api_key: ApiKey,
    /// Names of the further header fields that the user gave; values may be secret.
    pub headers: Vec<String>,
    /// The hosts beside the targets' where exchanges may continue.
    pub hosts: Vec<String>,
    /// The engines behind them whose metrics pages are read instead of theirs.
    pub metrics_urls: Vec<String>,
    /// The most tokens of a prompt and its answer, once the server has stated it.
    pub context_tokens: Option<u32>,
}

impl Draft {
    /// The plan, with this model.
    pub fn complete(self, model: String) -> Plan {
        let DraftTarget {
            base_urls,
            model: _,
            api_key,
            headers,
            hosts,
            metrics_urls,
            context_tokens,
        } = self.target;
        Plan {
            name: self.name,
            runner: env!("CARGO_PKG_VERSION").to_owned(),
            about: self.about,
            target: PlannedTarget {
                base_urls,
                model,
                api_key,
                headers,
                hosts,
                metrics_urls,
                context_tokens,
            },
            backend: self.backend,
            dataset: PlannedDataset { plugin: self.dataset, files: self.files },
            scorers: self.scorers,
            tokenizer: self.tokenizer,
            load: self.load,
            request: self.request,
            connection: self.connection,
            timeouts: self.timeouts,
            control: self.control,
            device_metrics: self.device_metrics,
            cost: self.cost,
            percentiles: self.percentiles,
            failures_as_infinite: self.failures_as_infinite,
            time_slice: self.time_slice,
            goodput: self.goodput,
            thresholds: self.thresholds,
            sandbox: self.sandbox,
            slice: self.slice,
        }
    }
}
