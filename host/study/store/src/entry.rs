//! A run as the index has it: the facts by which runs are found and compared over time, and every
//! figure.
//!
//! Two digests identify a run. The *scenario* is its work: dataset, load and request options. The
//! *plan* is its method: everything else that decides figures too. Neither has a seed, a server, a
//! path or a secret, so repeats on another day and another machine have the same digests.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::{Row, StoreError, Stored};
use model::hex;
use result::figure::Figure;
use result::summary::Summary;
use runs::environment::Environment;
use runs::folder::{RunFolder, without_secrets};
use scenario::plan::Plan;
use trend::Key;

/// A run to add.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its row, without a number.
    pub row: Row,
    pub figures: Vec<Stored>,
}

/// Percentiles that every run gets beside its own, so that runs can be compared.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

/// The form of a start; texts of it sort as the instants do.
const START: &str = "%Y-%m-%dT%H:%M:%S.%3fZ";

/// Keys of a plan that name the run, its servers and machines, or judge its figures.
const OF_NO_METHOD: [&str; 11] = [
    "name",
    "runner",
    "about",
    "target",
    "device-metrics",
    "cost",
    "machines",
    "percentiles",
    "time-slice",
    "thresholds",
    "expect",
];

/// Keys of a plugin that a column of its own has, or that name files.
const OF_PLUGINS: [&str; 4] = ["plugin", "version", "digest", "secret-keys"];

impl Entry {
    /// Reads a run's folder. Returns `None` if the run has not ended, or was killed: its figures
    /// would be of a part. Fails if the folder cannot be read.
    pub fn read(folder: &RunFolder) -> Result<Option<Self>, StoreError> {
        let Some(status) = folder.status()? else { return Ok(None) };
        let plan = folder.plan()?;
        let mut facts = folder.facts()?;
        facts.run.percentiles.extend(PERCENTILES);
        let summary = folder.summarize(&facts)?;
        let environment = folder.environment()?;
        Ok(Some(Entry {
            row: Row {
                path: absolute(folder)?,
                started: start(&status.started),
                verdict: Some(summary.verdict.to_string()),
                requests: Some(summary.requests.total),
                successful: Some(summary.requests.successful),
                machine: environment.as_ref().map(machine),
                ..described(&plan)
            },
            figures: figures(&summary),
        }))
    }
}

/// The absolute path of a run, without links.
fn absolute(folder: &RunFolder) -> Result<String, StoreError> {
    let path = folder.path();
    let cannot = |cause| StoreError::System { path: path.to_owned(), cause };
    let path = path.canonicalize().map_err(cannot)?;
    path.into_os_string().into_string().map_err(|path| StoreError::Path { path: path.into() })
}

/// An instant in the form of the index, in UTC.
fn start(text: &str) -> String {
    let parsed = text.parse::<jiff::Timestamp>();
    parsed.map_or_else(|_| text.to_owned(), |at| at.strftime(START).to_string())
}

/// The machine in a line: what changes its speed, and nothing that changes by the day.
fn machine(environment: &Environment) -> String {
    let cores = environment.cores.map(|cores| format!("{cores} cores"));
    let parts = [Some(environment.platform.clone()), environment.cpu.clone(), cores];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The part of a row that the plan has.
pub(crate) fn described(plan: &Plan) -> Row {
    let about = &plan.about;
    let plugin = |plugin: result::summary::Used| format!("{} {}", plugin.name, plugin.digest);
    let [scenario, method] = digests(plan);
    Row {
        name: plan.name.clone(),
        key: Key {
            model: plan.target.model().map(str::to_owned),
            engine: about.engine.clone(),
            hardware: about.hardware.clone(),
            scenario,
        },
        engine_version: about.engine_version.clone(),
        plan: Some(method),
        plugins: Some(plan.plugins().into_iter().map(plugin).collect::<Vec<_>>().join(", ")),
        program: Some(format!("runner {}", plan.runner)),
        ..Row::default()
    }
}

/// The digests of the scenario and of the method.
fn digests(plan: &Plan) -> [String; 2] {
    let shared = Plan { slice: plan.slice, ..plan.shared() };
    let Value::Object(mut method) = without_secrets(&shared) else { return Default::default() };
    method.retain(|key, _| !OF_NO_METHOD.contains(&key.as_str()));
    for plugin in ["backend", "dataset"] {
        method.get_mut(plugin).map(reduce);
    }
    let scorers = method.get_mut("scorers").and_then(Value::as_array_mut);
    scorers.into_iter().flatten().for_each(reduce);
    let mut scenario = method.clone();
    scenario.retain(|key, _| ["dataset", "load", "request", "slice"].contains(&key.as_str()));
    [scenario, method].map(|part| digest(Value::Object(part)))
}

fn reduce(plugin: &mut Value) {
    if let Some(plugin) = plugin.as_object_mut() {
        plugin.retain(|key, _| !OF_PLUGINS.contains(&key.as_str()));
    }
}

/// The digest of a value without seeds. Neither the order of its keys nor an absent key that other
/// programs write as `null` changes it.
fn digest(value: Value) -> String {
    hex(&Sha256::digest(canonical(value).to_string()))
}

fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_seed =
                |key: &str| key == "seed" || key.ends_with("-seed") || key.ends_with("_seed");
            let kept = fields.into_iter().filter(|(key, value)| !is_seed(key) && !value.is_null());
            let mut kept: Vec<(String, Value)> =
                kept.map(|(key, value)| (key, canonical(value))).collect();
            kept.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(Map::from_iter(kept))
        }
        Value::Array(values) => Value::Array(values.into_iter().map(canonical).collect()),
        other => other,
    }
}

/// Every finite figure of a summary; an infinite one was not measured.
fn figures(summary: &Summary) -> Vec<Stored> {
    let stored = |figure: Figure| {
        let value = figure.read(summary).filter(|value| value.is_finite())?;
        let interval = figure.interval(summary);
        Some(Stored {
            name: figure.to_string(),
            value,
            low: interval.and_then(|interval| interval.low),
            high: interval.and_then(|interval| interval.high),
            unit: figure.unit().to_owned(),
        })
    };
    Figure::all(summary).into_iter().filter_map(stored).collect()
}
