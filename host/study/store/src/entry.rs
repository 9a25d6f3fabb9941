//! A run as the index has it: the facts by which runs are found and compared over time, and every
//! figure.
//!
//! Two digests identify a run. The *scenario* is its work: dataset, load and request options. The
//! *plan* is its method: everything else that decides figures too. Neither has a seed, a server, a
//! path or a secret, so repeats on another day and another machine have the same digests.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{Origin, Row, StoreError, Stored};
use audit::claim::{self, Claim};
use model::about::About;
use model::hex;
use result::figure::Figure;
use result::summary::Summary;
use runs::environment::Environment;
use runs::folder::{self, RunFolder, without_secrets};
use scenario::plan::Plan;
use trend::Key;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its row, without a number.
    pub row: Row,
    pub figures: Vec<Stored>,
}

/// Percentiles that every run gets beside its own, so that runs can be compared.
const PERCENTILES: [f64; 4] = [50.0, 90.0, 95.0, 99.0];

/// The form of a start; texts of it sort as the instants do.
pub(crate) const START: &str = "%Y-%m-%dT%H:%M:%S.%3fZ";

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

/// Results that are read one by one. A run that has not ended is `None`.
pub type Results = Box<dyn Iterator<Item = Result<Option<Entry>, StoreError>>>;

/// Reads the results at a path, one by one: the run in a folder, every run below it, or the results
/// of other tools in a file. Fails if there is no result.
pub fn read(path: &Path) -> Result<Results, StoreError> {
    if path.is_file() {
        let imported = imported(path)?;
        return Ok(Box::new(imported.into_iter().map(|entry| Ok(Some(entry)))));
    }
    let runs = folder::runs(path)?;
    Ok(Box::new(runs.into_iter().map(|run| Entry::read(&run))))
}

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
                path: absolute(folder.path())?,
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

/// The results of other tools in a file. They start when their file was written, unless they state
/// a date. Only figures that equal a figure of ours by definition are kept.
fn imported(path: &Path) -> Result<Vec<Entry>, StoreError> {
    let own = absolute(path)?;
    let (written, content) = content(path)
        .map_err(|cause| StoreError::Import(format!("cannot read `{own}`: {cause}")))?;
    let document = claim::read(&own, &content).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        StoreError::Import(errors.join("; "))
    })?;
    let several = document.claims.len() > 1;
    let place = |number: usize| if several { format!("{own}#{number}") } else { own.clone() };
    let audited = audit::claims(&document.claims).into_iter().zip(1..);
    let entries = audited.map(|(audited, number)| {
        let (claim, verdict) = (&audited.claim, Some(audited.verdict.to_string()));
        let started = claim.date.as_deref().map_or_else(|| written.clone(), start);
        let row = Row { path: place(number), started, verdict, ..stated(claim) };
        Entry { row, figures: equal_figures(claim) }
    });
    Ok(entries.collect())
}

/// The time when a file was written, and its bytes: up to a byte more than the reader takes.
fn content(path: &Path) -> io::Result<(String, Vec<u8>)> {
    let file = fs::File::open(path)?;
    let written = jiff::Timestamp::try_from(file.metadata()?.modified()?);
    let written = written.map_err(io::Error::other)?.strftime(START).to_string();
    let mut content = Vec::new();
    file.take(claim::MOST_BYTES as u64 + 1).read_to_end(&mut content)?;
    Ok((written, content))
}

/// The part of a row that a claim states.
fn stated(claim: &Claim) -> Row {
    let mut asked = claim.asked.clone();
    asked.seed = None;
    let scenario = json!({ "tool": claim.tool, "scenario": claim.scenario, "asked": asked });
    let successful = claim.value("requests.successful");
    Row {
        origin: Origin::Import,
        name: claim.scenario.clone().unwrap_or_else(|| claim.tool.label().to_owned()),
        key: key(claim.model.clone(), &claim.about, digest(scenario)),
        engine_version: claim.about.engine_version.clone(),
        program: Some(claim.tool.name().to_owned()),
        requests: claim.requests(),
        successful: successful.map(|count| count as u64),
        ..Row::default()
    }
}

fn key(model: Option<String>, about: &About, scenario: String) -> Key {
    let (engine, hardware) = (about.engine.clone(), about.hardware.clone());
    Key { model, engine, hardware, scenario }
}

fn equal_figures(claim: &Claim) -> Vec<Stored> {
    let equal = |name: &String| match name.parse().ok()? {
        Figure::Of(..) => {
            let (theirs, statistic) = name.split_once('.')?;
            let ours = claim.definitions.get(theirs)?.metric.as_deref()?;
            format!("{ours}.{statistic}").parse().ok()
        }
        whole => Some(whole),
    };
    let stored = claim.figures.iter().filter_map(|(name, stated)| {
        let figure: Figure = equal(name)?;
        let value = Some(stated.value).filter(|value| value.is_finite())?;
        let [name, unit] = [figure.to_string(), figure.unit().to_owned()];
        Some(Stored { name, value, low: None, high: None, unit })
    });
    stored.collect()
}

/// An absolute path without links.
fn absolute(path: &Path) -> Result<String, StoreError> {
    let cannot = |cause| StoreError::System { path: path.to_owned(), cause };
    let path = path.canonicalize().map_err(cannot)?;
    path.into_os_string().into_string().map_err(|path| StoreError::Path { path: path.into() })
}

impl Row {
    /// The folder or the file that has the result: a result of several in a file has a number.
    pub fn source(&self) -> &Path {
        file_of(&self.path)
    }

    /// True if its folder or file is gone, or if another run is in its folder.
    pub fn is_gone(&self) -> bool {
        match self.origin {
            Origin::Run => match RunFolder::at(self.source()).status() {
                Ok(status) => status.is_none_or(|status| start(&status.started) != self.started),
                // It may be readable to its owner.
                Err(_) => false,
            },
            Origin::Import => !self.source().is_file(),
        }
    }
}

/// The file of `result.json#2`, if the text is no path itself.
pub fn file_of(path: &str) -> &Path {
    match path.rsplit_once('#') {
        Some((file, _)) if !Path::new(path).exists() && Path::new(file).is_file() => {
            Path::new(file)
        }
        _ => Path::new(path),
    }
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
    let plugin = |plugin: result::summary::Used| format!("{} {}", plugin.name, plugin.digest);
    let [scenario, method] = digests(plan);
    Row {
        name: plan.name.clone(),
        key: key(plan.target.model().map(str::to_owned), &plan.about, scenario),
        engine_version: plan.about.engine_version.clone(),
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
    // A lab begins the prompts of each round with words of its own: another method, the same work.
    if let Some(load) = scenario.get_mut("load").and_then(Value::as_object_mut) {
        load.remove("salted");
    }
    [scenario, method].map(|part| digest(Value::Object(part)))
}

fn reduce(plugin: &mut Value) {
    if let Some(plugin) = plugin.as_object_mut() {
        plugin.retain(|key, _| !OF_PLUGINS.contains(&key.as_str()));
    }
}

/// The digest of a value without seeds and salts, whatever the order of keys and `null` values.
fn digest(value: Value) -> String {
    hex(&Sha256::digest(canonical(value).to_string()))
}

fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_seed = |key: &str| {
                ["seed", "salt"].contains(&key) || key.ends_with("-seed") || key.ends_with("_seed")
            };
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
