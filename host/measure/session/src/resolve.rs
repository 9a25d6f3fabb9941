//! The first step of a run: turns a scenario into a plan, and reports all mistakes at once. Fills
//! in defaults, loads plugins, checks their configurations, opens the tokenizer, reads input files.

mod credentials;
mod defaults;
mod expectations;
mod judges;
mod kept;
mod measured;
mod name;
mod options;
mod remarks;
mod source;
mod targets;
pub(crate) mod tokens;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

pub use defaults::limits;
use defaults::{
    controls, cost, device_metrics, goodput, load_of, machines, percentiles, request_options,
    thresholds, timeouts,
};
use measured::{Measurement, measure_all};

pub use judges::{Judges, judges};
pub use source::{BY_DEFAULT, Shipped, Source, Variables};

use crate::lease::Prepared;
use crate::paired::unpaired;
use crate::parts::Parts;
use crate::prepare::Drawing;
use ::load::pace::Signal;
use model::connection::Timeouts;
use model::file::PlannedFile;
use model::identity::RunId;
use model::plugin::Kind;
use model::redact;
use model::target::{Secrets, Target};
use model::timings::{Stage, Timings};
use plugins::backend::Backend;
use plugins::dataset::{Amount, Dataset, Treatment};
use plugins::load::{self, Plugin, SearchPath};
use plugins::sandbox::{Grants, LogBook};
use plugins::scorer::Scorer;
use plugins::{Info, PluginError};
use reader::{ConfigTable, Located, Place, Problem, ScenarioError};
use scenario::check_config;
use scenario::plan::{Plan, PlannedDataset, PlannedPlugin, PlannedTarget, Wiring};
use tokenizer::Tokenizer;
use tokens::Counting;

/// A run whose targets have not been asked yet.
pub struct ResolvedRun {
    /// The plan; its model is empty where the scenario names none.
    pub draft: Plan,
    pub parts: Parts,
    pub scorers: Vec<Scorer>,
    /// The tokenizer that counts tokens on this side.
    pub tokenizer: Arc<Tokenizer>,
    pub log: LogBook,
    /// Remarks for the user on the loading of plugins, one line each.
    pub remarks: Vec<String>,
    pub timings: Arc<Timings>,
    pub(crate) source: Box<Source>,
}

/// The mistakes in a run before it begins.
#[derive(Debug, Default)]
pub struct Faults {
    /// The mistakes in the scenario, the flags or the input.
    pub scenario: Vec<Problem>,
    /// Plugins that did not load.
    pub plugins: Vec<PluginError>,
}

impl Faults {
    pub fn from_scenario(error: &ScenarioError) -> Self {
        Faults { scenario: error.problems().to_vec(), plugins: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.scenario.is_empty() && self.plugins.is_empty()
    }

    /// Sorts a plugin's complaint: about its input, or about the plugin itself.
    fn add(&mut self, error: PluginError, place: Option<&Place>) {
        match error {
            PluginError::Config { .. } | PluginError::Input { .. } | PluginError::Pin { .. } => {
                self.scenario.push(Problem::new(error.to_string()).at(place.cloned(), "here"))
            }
            other => self.plugins.push(other),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems = self.scenario.iter().map(ToString::to_string);
        let errors = self.plugins.iter().map(ToString::to_string);
        f.write_str(&problems.chain(errors).collect::<Vec<_>>().join("; "))
    }
}

pub fn resolve(source: &Source) -> Result<ResolvedRun, Faults> {
    resolve_timed(source, Arc::default())
}

/// The values that the plugins' schemas mark as secret; none of a plugin that does not load.
pub fn marked_secrets(source: &Source) -> Vec<String> {
    let mut resolution = Resolution::new(source, BTreeMap::new());
    let Configuration { backend, dataset, scorers } = resolution.configured_alone();
    let planned = (backend.into_iter().map(|(_, planned)| planned))
        .chain(dataset.into_iter().map(|(_, planned)| planned))
        .chain(scorers.into_iter().map(|(_, planned, _)| planned));
    planned.flat_map(|planned| planned.secrets()).collect()
}

/// Loads the plugins that a scenario names, and checks their configurations. A backend or a dataset
/// that it leaves to flags is no mistake.
pub fn plugins_of(source: &Source) -> Result<(), Faults> {
    let mut resolution = Resolution::new(source, BTreeMap::new());
    resolution.configured_alone();
    if resolution.faults.is_empty() { Ok(()) } else { Err(resolution.faults) }
}

/// The same of a start that has begun already.
fn resolve_timed(source: &Source, timings: Arc<Timings>) -> Result<ResolvedRun, Faults> {
    let Ahead { plugins, tokenizer, files } = read_ahead(source, &timings);
    Resolution::new(source, plugins).run(tokenizer, files, timings)
}

struct Resolution<'s> {
    source: &'s Source,
    faults: Faults,
    /// Plugins that were loaded and not used yet.
    loaded: BTreeMap<String, Result<Plugin, PluginError>>,
    remarks: Vec<String>,
}

/// The plugins of a run, with the place that names each and its configuration.
struct Selection<'s> {
    backend: Option<(Plugin, Option<&'s Place>)>,
    dataset: Option<(Plugin, Option<&'s Place>)>,
    scorers: Vec<(Plugin, Option<&'s Place>, ConfigTable)>,
}

/// The plugins of a run with their configurations, and the plan's record of each.
struct Configuration<'s> {
    backend: Option<(Backend, PlannedPlugin)>,
    dataset: Option<(Dataset, PlannedPlugin)>,
    scorers: Vec<(Scorer, PlannedPlugin, Option<&'s Place>)>,
}

impl<'s> Resolution<'s> {
    fn new(source: &'s Source, loaded: BTreeMap<String, Result<Plugin, PluginError>>) -> Self {
        Resolution { source, faults: Faults::default(), loaded, remarks: Vec::new() }
    }

    /// Loads and configures the plugins that are named, without files and a tokenizer.
    fn configured_alone(&mut self) -> Configuration<'s> {
        let grants = self.grants_alone();
        let chosen = self.plugins(true);
        self.configured(chosen, &grants)
    }

    /// The grants of plugins that read no file and count no token.
    fn grants_alone(&self) -> Grants {
        Grants::bare(limits(&self.source.scenario))
    }

    fn configured(&mut self, chosen: Selection<'s>, grants: &Grants) -> Configuration<'s> {
        let scenario = &self.source.scenario;
        let backend = chosen.backend.and_then(|(plugin, place)| {
            let config = &scenario.backend.config;
            let backend = Backend::new(plugin, &config_json(config), grants.clone());
            self.planned(backend, place, config, Backend::describe, Backend::plugin)
        });
        let dataset = chosen.dataset.and_then(|(plugin, place)| {
            let config = &scenario.dataset.config;
            let dataset = Dataset::new(plugin, &config_json(config), grants.clone());
            self.planned(dataset, place, config, Dataset::describe, Dataset::plugin)
        });
        let scorers = (chosen.scorers.into_iter())
            .filter_map(|(plugin, place, config)| {
                let scorer = Scorer::new(plugin, &config_json(&config), grants.clone());
                let planned =
                    self.planned(scorer, place, &config, Scorer::describe, Scorer::plugin);
                planned.map(|(scorer, planned)| (scorer, planned, place))
            })
            .collect();
        Configuration { backend, dataset, scorers }
    }

    /// The scorers with their records, once each has been opened to find its faults.
    fn opened(
        &mut self,
        scorers: Vec<(Scorer, PlannedPlugin, Option<&Place>)>,
    ) -> (Vec<Scorer>, Vec<PlannedPlugin>) {
        let opened = scorers.into_iter().map(|(scorer, planned, place)| {
            if let Err(error) = scorer.open() {
                self.faults.add(error, place);
            }
            (scorer, planned)
        });
        opened.unzip()
    }

    fn run(
        mut self,
        tokenizer: Result<Counting, String>,
        files: BTreeMap<String, Measurement>,
        timings: Arc<Timings>,
    ) -> Result<ResolvedRun, Faults> {
        let scenario = &self.source.scenario;
        if let Err(error) = scenario.validate() {
            self.faults.scenario.extend(error.problems().iter().cloned());
        }
        self.faults.scenario.extend(unpaired(scenario));
        let chosen = self.plugins(false);
        let Counting { tokenizer, planned: planned_tokenizer, remarks } = self.tokenizer(tokenizer);
        self.remarks.extend(remarks);
        let tokenizer = Arc::new(tokenizer);
        let files = self.files(files);
        let log = LogBook::default();
        let limits = limits(scenario);
        let paths: BTreeMap<String, PathBuf> =
            files.iter().map(|(name, file)| (name.clone(), file.path.clone())).collect();
        let grants = Grants {
            limits: limits.clone(),
            log: log.clone(),
            files: Arc::new(paths),
            tokenizer: Arc::clone(&tokenizer),
            seed: load_of(scenario, None).seed,
        };

        let Configuration { backend, dataset, scorers } = self.configured(chosen, &grants);
        let (scorers, planned_scorers) = self.opened(scorers);
        let own = backend.as_ref().map(|(backend, _)| backend);
        let targets = self.targets(own);
        let to = targets.as_deref().unwrap_or_default();
        let (mut secrets, api_key, header_names) = self.secrets(own, to);
        secrets.fields.extend(backend.iter().flat_map(|(_, planned)| planned.secrets()));
        let mut request = request_options(scenario);
        let http = self.http(own);
        if let Some(backend) = own {
            self.questions(backend);
            request = self.options(backend);
        }
        let expect = expectations::expectations(self.source, &mut self.faults);
        if !planned_scorers.is_empty() {
            expectations::refuse_scorers(self.source, &mut self.faults);
        }
        let trace = self.trace();
        let mut load = load_of(scenario, trace.as_ref());

        let (Some((backend, planned_backend)), Some((dataset, planned_dataset)), Some(targets)) =
            (backend, dataset, targets)
        else {
            return Err(self.faults);
        };
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let trace = match trace {
            Some((_, trace)) => trace,
            None => self.planned_arrivals(&mut load, &dataset),
        };
        let monitored = self.monitored();
        if !self.faults.is_empty() {
            return Err(self.faults);
        }
        let sent = remarks::sent(&api_key, &header_names, &targets);
        self.remarks.extend(sent);
        let hosts = self.hosts();
        let model = scenario.target.model.as_ref().map(|entry| entry.value.clone());
        let draft = Plan {
            name: self.source.title(),
            runner: env!("CARGO_PKG_VERSION").to_owned(),
            about: redact::about(scenario.about.values(), &secrets),
            target: PlannedTarget {
                base_urls: targets.iter().map(Target::to_string).collect(),
                model: model.unwrap_or_default(),
                api_key,
                headers: header_names,
                hosts: hosts.iter().map(ToString::to_string).collect(),
                metrics_urls: monitored.iter().map(Target::to_string).collect(),
                context_tokens: None,
            },
            backend: planned_backend,
            dataset: PlannedDataset { plugin: planned_dataset, files },
            scorers: planned_scorers,
            tokenizer: planned_tokenizer,
            load,
            request,
            connection: self.wiring(http),
            timeouts: timeouts(scenario),
            control: controls(scenario),
            device_metrics: device_metrics(scenario),
            cost: cost(scenario),
            machines: machines(scenario),
            percentiles: percentiles(scenario),
            failures_as_infinite: scenario.report.failures_as_infinite(),
            time_slice: (scenario.report.slice.as_ref()).map(|entry| entry.value.0.into()),
            goodput: goodput(scenario),
            thresholds: thresholds(scenario),
            expect,
            rules: self.source.rules.clone(),
            sandbox: limits,
            slice: self.source.slice,
        };
        Ok(ResolvedRun {
            draft,
            parts: Parts {
                backend,
                dataset,
                targets,
                monitored,
                hosts,
                secrets,
                trace,
                run_id: RunId::default(),
                prompts: None,
                prepared: Prepared::default(),
                tokenizer: Arc::clone(&tokenizer),
            },
            scorers,
            tokenizer,
            log,
            remarks: self.remarks,
            timings,
            source: Box::new(self.source.clone()),
        })
    }

    fn alone(mut self) -> Result<Alone, Faults> {
        let scenario = &self.source.scenario;
        if let Err(error) = scenario.validate() {
            let problems = error.problems().iter().cloned();
            self.faults.scenario.extend(problems);
        }
        let grants = self.grants_alone();
        let backend = self.named(scenario.backend.plugin.as_ref(), Kind::Backend, false);
        let chosen = Selection { backend, dataset: None, scorers: Vec::new() };
        let backend = self.configured(chosen, &grants).backend.map(|(backend, _)| backend);
        let http = self.http(backend.as_ref());
        let targets = self.targets(backend.as_ref());
        let to = targets.as_deref().unwrap_or_default();
        let (secrets, api_key, headers) = self.secrets(backend.as_ref(), to);
        let first = targets.as_ref().and_then(|targets| targets.first().cloned());
        match (backend, first, self.faults.is_empty()) {
            (Some(backend), Some(target), true) => {
                let sent = remarks::sent(&api_key, &headers, to);
                self.remarks.extend(sent);
                Ok(Alone {
                    backend,
                    target,
                    secrets,
                    wiring: self.wiring(http),
                    timeouts: timeouts(scenario),
                    remarks: self.remarks,
                })
            }
            _ => Err(self.faults),
        }
    }

    /// Loads every plugin that is named; plugins from the command line replace the scenario's.
    fn plugins(&mut self, mut may_be_missing: bool) -> Selection<'s> {
        let source = self.source;
        let scenario = &source.scenario;
        let mut chosen = Selection { backend: None, dataset: None, scorers: Vec::new() };
        let mut extra_scorers = Vec::new();
        for entry in &source.plugins {
            let Some(plugin) = self.load(entry) else {
                may_be_missing = true;
                continue;
            };
            let place = Some(&entry.place);
            let slot = match plugin.kind {
                Kind::Backend => &mut chosen.backend,
                Kind::Dataset => &mut chosen.dataset,
                Kind::Scorer => {
                    extra_scorers.push((plugin, place, ConfigTable::default()));
                    continue;
                }
            };
            if let Some((other, _)) = slot {
                let problem = format!(
                    "two {}s are given, `{}` and `{}`; a run has one",
                    plugin.kind.name(),
                    other.name,
                    plugin.name
                );
                self.faults.scenario.push(Problem::new(problem));
            }
            *slot = Some((plugin, place));
        }
        if chosen.backend.is_none() {
            let entry = scenario.backend.plugin.as_ref();
            chosen.backend = self.named(entry, Kind::Backend, may_be_missing);
        }
        if chosen.dataset.is_none() {
            let entry = scenario.dataset.plugin.as_ref();
            chosen.dataset = self.named(entry, Kind::Dataset, may_be_missing);
        }
        chosen.scorers = self.scorers();
        chosen.scorers.extend(extra_scorers);
        chosen
    }

    fn scorers(&mut self) -> Vec<(Plugin, Option<&'s Place>, ConfigTable)> {
        let source = self.source;
        let scorers = source.scenario.scorers.iter().flatten().map(|scorer| &scorer.value);
        let loaded = scorers.filter_map(|scorer| {
            let (plugin, place) = self.named(scorer.plugin.as_ref(), Kind::Scorer, false)?;
            Some((plugin, place, scorer.config.clone()))
        });
        loaded.collect()
    }

    fn load(&mut self, entry: &Located<String>) -> Option<Plugin> {
        let loaded = self.loaded.remove(&entry.value).unwrap_or_else(|| {
            let search = search_path(self.source);
            load::load_within(&entry.value, &search, &limits(&self.source.scenario))
        });
        match loaded {
            Ok(plugin) => {
                self.remarks.extend(remarks::for_plugin(&plugin));
                Some(plugin)
            }
            Err(error) => {
                self.faults.add(error, Some(&entry.place));
                None
            }
        }
    }

    fn named(
        &mut self,
        entry: Option<&'s Located<String>>,
        kind: Kind,
        may_be_missing: bool,
    ) -> Option<(Plugin, Option<&'s Place>)> {
        let Some(entry) = entry else {
            if !may_be_missing {
                let name = kind.name();
                let shipped: Vec<&str> = (self.source.shipped.iter())
                    .map(|(plugin, _)| *plugin)
                    .filter(|plugin| plugin.starts_with(kind.folder()))
                    .collect();
                let short = match kind {
                    Kind::Backend => "--backend NAME or ",
                    Kind::Dataset => "--dataset-name NAME or ",
                    Kind::Scorer => "",
                };
                let problem = Problem::new(format!("no {name} is named")).help(format!(
                    "give one with {short}--plugin FILE, or as `plugin` under [{name}]; the built-in ones are {}",
                    shipped.join(", ")
                ));
                self.faults.scenario.push(problem);
            }
            return None;
        };
        let plugin = self.load(entry)?;
        if plugin.kind != kind {
            self.faults.plugins.push(PluginError::WrongKind {
                plugin: plugin.name,
                found: plugin.kind.name(),
                expected: kind.name(),
                place: entry.place.to_string(),
            });
            return None;
        }
        Some((plugin, Some(&entry.place)))
    }

    /// Returns the plan's record of a plugin, once its configuration agrees with its schema.
    fn planned<P>(
        &mut self,
        instance: Result<P, PluginError>,
        place: Option<&Place>,
        config: &ConfigTable,
        describe: impl FnOnce(&P) -> Result<Info, PluginError>,
        plugin: impl FnOnce(&P) -> &Plugin,
    ) -> Option<(P, PlannedPlugin)> {
        let described =
            instance.and_then(|instance| describe(&instance).map(|info| (instance, info)));
        let (instance, info) = match described {
            Ok(described) => described,
            Err(error) => {
                self.faults.add(error, place);
                return None;
            }
        };
        let problems = check_config(&info.config_schema, config);
        if !problems.is_empty() {
            self.faults.scenario.extend(problems);
            return None;
        }
        let component = plugin(&instance);
        let planned = PlannedPlugin {
            plugin: component.name.clone(),
            name: info.name,
            version: info.version,
            digest: component.digest.clone(),
            config: config_json(config),
            secret_keys: redact::write_only(&info.config_schema),
        };
        Some((instance, planned))
    }

    fn tokenizer(&mut self, opened: Result<Counting, String>) -> Counting {
        opened.unwrap_or_else(|error| {
            if let Some(entry) = &self.source.scenario.tokenizer.path {
                self.problem(&error, &entry.place);
            }
            Counting::bytes(Vec::new())
        })
    }

    /// The place where the scenario names a file, or the folder that it is in.
    fn place_of(&self, name: &str) -> &Place {
        let files = &self.source.scenario.dataset.files;
        let mut named = name;
        while let (None, Some((folder, _))) = (files.get(named), named.rsplit_once('/')) {
            named = folder;
        }
        &files[named].place
    }

    fn problem(&mut self, error: &dyn std::fmt::Display, place: &Place) {
        let problem = Problem::new(error.to_string()).at(place.clone(), "named here");
        self.faults.scenario.push(problem);
    }

    fn files(&mut self, measured: BTreeMap<String, Measurement>) -> BTreeMap<String, PlannedFile> {
        let mut files = BTreeMap::new();
        for (name, (path, measured)) in measured {
            match measured {
                Ok((bytes, digest)) => _ = files.insert(name, PlannedFile { path, bytes, digest }),
                Err(cause) => {
                    let error = format!("cannot read the file `{}`: {cause}", path.display());
                    let place = self.place_of(&name).clone();
                    self.problem(&error, &place);
                }
            }
        }
        files
    }
}

fn config_json(config: &ConfigTable) -> serde_json::Value {
    serde_json::Value::Object(config.to_json())
}

/// Samples after which a dataset is taken to have no end.
pub const MOST: u64 = 200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many, each once.
    Samples(u64),
    /// It gives more than [`MOST`], as one that makes its samples does.
    Endless,
    /// The user stopped the drawing.
    Stopped,
}

impl ResolvedRun {
    /// Counts the samples of the run's dataset, each once however often the dataset would use it.
    pub fn extent(&self, signal: &Signal) -> Result<Extent, PluginError> {
        let samples = (self.parts.dataset).open(self.draft.load.seed, Amount::Unknown)?;
        let mut drawing = Drawing::new(samples, MOST + 1);
        let mut count: u64 = 0;
        while let Some(batch) = drawing.next() {
            if signal.is_stopped() {
                return Ok(Extent::Stopped);
            }
            count += batch?.len() as u64;
            let remarks = drawing.samples.remarks()?;
            let again = remarks.iter().filter(|remark| remark.what == Treatment::Repeated);
            let again: u64 = again.map(|remark| remark.count).sum();
            if again > 0 {
                return Ok(Extent::Samples(count.saturating_sub(again)));
            }
        }
        Ok(if count > MOST { Extent::Endless } else { Extent::Samples(count) })
    }
}

/// A backend, its target, and the means to ask it.
pub(crate) struct Alone {
    pub(crate) backend: Backend,
    pub(crate) target: Target,
    /// Secrets of requests, which nobody else may see.
    pub(crate) secrets: Secrets,
    pub(crate) wiring: Wiring,
    pub(crate) timeouts: Timeouts,
    /// Remarks for the user: the time to load a plugin, and the secrets that the target gets.
    pub(crate) remarks: Vec<String>,
}

/// Resolves a scenario's backend and target, and nothing else of it.
pub(crate) fn alone(source: &Source) -> Result<Alone, Faults> {
    Resolution::new(source, BTreeMap::new()).alone()
}

/// A backend on each route that its key `route` may name, or as it is by default.
pub fn on_all_routes(source: &Source) -> Result<Vec<Backend>, Faults> {
    let first = alone(source)?.backend;
    let schema = first.describe().map(|info| info.config_schema).unwrap_or_default();
    let routes = choices(&schema, &schema["properties"]["route"]);
    let mut backends = vec![first];
    for route in routes {
        let mut source = source.clone();
        let route = Located::flag("--backend", route);
        source.scenario.backend.config.set("route", route);
        backends.push(alone(&source)?.backend);
    }
    Ok(backends)
}

/// The texts that a schema's rules allow.
fn choices(schema: &Value, rules: &Value) -> Vec<Value> {
    let target = rules["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
    if let Some(rules) = target.and_then(|target| schema.pointer(target)) {
        return choices(schema, rules);
    }
    let listed = rules["enum"].as_array().into_iter().flatten().cloned();
    let parts = ["oneOf", "anyOf", "allOf"].iter().filter_map(|keyword| rules[keyword].as_array());
    let parts = parts.flatten().flat_map(|part| choices(schema, part));
    listed.chain(rules.get("const").cloned()).chain(parts).filter(Value::is_string).collect()
}

/// Everything that a scenario names and that takes time, read at the same time.
struct Ahead {
    plugins: BTreeMap<String, Result<Plugin, PluginError>>,
    /// An error if the scenario's cannot be opened.
    tokenizer: Result<Counting, String>,
    /// Path, length and SHA-256, by the scenario's names; of a folder, for each file.
    files: BTreeMap<String, Measurement>,
}

/// The most threads that read input files.
const MOST_THREADS: usize = 16;

/// Reads all of it, each on a thread of its own.
fn read_ahead(source: &Source, timings: &Timings) -> Ahead {
    let scenario = &source.scenario;
    let scorers = scenario.scorers.iter().flatten();
    let of_scenario = [&scenario.backend.plugin, &scenario.dataset.plugin];
    let names: BTreeSet<&str> = (source.plugins.iter())
        .chain(of_scenario.into_iter().flatten())
        .chain(scorers.filter_map(|scorer| scorer.value.plugin.as_ref()))
        .map(|entry| entry.value.as_str())
        .collect();
    let search = search_path(source);
    let limits = limits(scenario);
    // A run over a folder that is drawn again names each of its files.
    let named: Vec<_> = scenario.dataset.files.iter().collect();
    let share = named.len().div_ceil(MOST_THREADS).max(1);
    std::thread::scope(|scope| {
        let tokenizer = scope.spawn(|| {
            let opened = tokens::open(source);
            // The substitute is not loaded.
            if opened.as_ref().is_ok_and(|made| !made.planned.approximate) {
                timings.reach(Stage::TokenizerLoaded);
            }
            opened
        });
        let files: Vec<_> = (named.chunks(share))
            .map(|named| {
                scope.spawn(move || {
                    let measured = (named.iter())
                        .flat_map(|(name, entry)| measure_all(name, &path_of(source, entry)));
                    measured.collect::<Vec<_>>()
                })
            })
            .collect();
        let plugins: Vec<_> = names
            .into_iter()
            .map(|name| {
                let (search, limits) = (&search, &limits);
                let plugin = scope.spawn(move || load::load_within(name, search, limits));
                (name.to_owned(), plugin)
            })
            .collect();
        let plugins = plugins.into_iter().map(|(name, thread)| (name, join(thread))).collect();
        timings.reach(Stage::PluginsLoaded);
        Ahead {
            plugins,
            tokenizer: join(tokenizer),
            files: files.into_iter().flat_map(join).collect(),
        }
    })
}

/// Returns where to search for a scenario's plugins.
fn search_path(source: &Source) -> SearchPath {
    SearchPath {
        scenario: source.folder.clone(),
        folders: source.plugin_path.clone(),
        shipped: source.shipped,
    }
}

/// A path, relative to where it was written.
fn path_of(source: &Source, entry: &Located<PathBuf>) -> PathBuf {
    match &source.folder {
        Some(folder) => entry.seen_from(folder),
        None => entry.value.clone(),
    }
}

/// A panic of a thread is a bug, and is passed on.
fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
