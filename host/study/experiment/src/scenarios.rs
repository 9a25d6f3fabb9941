//! The scenarios of a lab, and a trial's changes to them: address, backend, the model's name, the
//! keys of `set`, and a seed for each round.

use std::path::{Path, PathBuf};

use serde_json::Value;

use lab::{Lab, RunKey, Trial, digest};
use model::redact::Known;
use model::session::{Cache, Users};
use reader::{Config, Located, Place, toml_text};
use scenario::plan::Plan;
use session::{Faults, Source, marked_secrets, resolve};

use crate::drive::Order;
use crate::error::Error;
use lab::study::OfLoad;
use scenario::{Arrival, Load, Scenario};
use search::Load as Varied;
use search::sweep::At;

/// Writes a scenario with all its keys.
type Shown = fn(Source) -> String;

#[derive(Default)]
pub struct Scenarios {
    all: Vec<lab::Scenario>,
    sources: Vec<Source>,
    home: Option<PathBuf>,
    notes: Vec<String>,
    /// The secrets that plugins mark in their configurations.
    marked: Known,
}

impl Scenarios {
    /// Takes the scenarios that the lab names, and checks that each can be run. For a plan, missing
    /// needs, such as a file, are only noted. `shown` writes a scenario with all its keys; the lab
    /// file's paths start from `home`. Fails if two have one name, or one cannot be run.
    pub fn new(
        lab: &Lab,
        home: Option<&Path>,
        sources: Vec<Source>,
        shown: Shown,
        for_plan: bool,
    ) -> Result<Self, Error> {
        let mut scenarios = Scenarios { home: home.map(Path::to_owned), ..Scenarios::default() };
        for source in sources {
            let mut name = scenarios.title(&source, lab);
            let is_taken = |name: &str| scenarios.all.iter().any(|other| other.name == name);
            // Files with the same content after the lab's keys keep different names.
            if is_taken(&name) && name != source.name {
                name = format!("{name} ({})", source.name);
            }
            if is_taken(&name) {
                return Err(Error::SameName(name));
            }
            scenarios.all.push(lab::Scenario {
                content: String::new(),
                seconds: (source.scenario.load.duration.as_ref())
                    .map(|duration| duration.value.0.as_secs_f64()),
                name,
                load: None,
            });
            scenarios.sources.push(source);
        }
        let mut secrets = Vec::new();
        for place in 0..scenarios.all.len() {
            let first = scenarios.first(&scenarios.sources[place], lab);
            secrets.extend(first.iter().flat_map(marked_secrets));
            scenarios.all[place].load = first.and_then(of_load);
            let doubt = lab.objective.as_ref().and_then(|own| own.doubt(&scenarios.all[place]));
            scenarios.notes.extend(doubt);
            scenarios.all[place].content = match scenarios.content(lab, place, shown) {
                Ok(content) => content,
                Err(lacking) if for_plan => {
                    let name = &scenarios.all[place].name;
                    let note = format!("{name} cannot be run yet: {lacking}");
                    scenarios.notes.push(note);
                    String::new()
                }
                Err(lacking) => return Err(lacking.into()),
            };
        }
        scenarios.marked = Known::new(secrets);
        Ok(scenarios)
    }

    pub fn all(&self) -> &[lab::Scenario] {
        &self.all
    }

    /// The secrets that plugins mark in their configurations, as the first engine gets them.
    pub fn marked(&self) -> &Known {
        &self.marked
    }

    /// Remarks for the user on missing needs, one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The variables that scenarios name for their keys, which engines must not see.
    pub(crate) fn key_variables(&self) -> Vec<String> {
        let named =
            self.sources.iter().filter_map(|source| source.scenario.target.api_key_env.as_ref());
        named.map(|named| named.value.clone()).collect()
    }

    /// Returns a scenario's title, as the first engine gets it.
    fn title(&self, source: &Source, lab: &Lab) -> String {
        let laid = self.first(source, lab);
        laid.as_ref().unwrap_or(source).title()
    }

    /// A scenario as the first engine gets it, if the lab sets its keys correctly.
    fn first(&self, source: &Source, lab: &Lab) -> Option<Source> {
        self.laid(source, lab, &baselines(lab).next()?).ok()
    }

    /// A digest of a scenario's content, independent of the engine.
    fn content(&self, lab: &Lab, place: usize, shown: Shown) -> Result<String, Faults> {
        let source = &self.sources[place];
        let own = lab.set_for(&source.name).map(|own| own.to_string());
        let mut parts = vec![shown(source.clone()), own.unwrap_or_default()];
        let mut drafts = Vec::new();
        for trial in baselines(lab) {
            let source = self.laid(source, lab, &trial)?;
            drafts.push(resolve(&source)?.draft);
        }
        // The inputs are the same for every engine.
        parts.extend(drafts.first().iter().flat_map(|draft| inputs(draft)));
        Ok(digest(parts.iter().map(String::as_str)))
    }

    /// The scenario of a run. Fails if the lab sets a key wrongly, or has no such scenario.
    pub(crate) fn source(&self, lab: &Lab, trial: &Trial, run: &RunKey) -> Result<Source, Error> {
        let place = (self.all.iter()).position(|known| known.name == run.scenario);
        let place = place.ok_or_else(|| Error::NoScenario(run.scenario.clone()))?;
        let mut source = self.laid(&self.sources[place], lab, trial)?;
        let load = &mut source.scenario.load;
        let seed = load.seed().wrapping_add(u64::from(run.round.saturating_sub(1)));
        load.seed = Some(Located::flag(SETTER, seed));
        // An engine that the lab starts has an empty cache; a running engine's has earlier runs.
        let is_started = trial.launch.is_some();
        if !is_started && load.cache.is_none() && load.flush_cache.is_none() {
            load.cache = Some(Located::flag(SETTER, Cache::Salt));
        }
        Ok(source)
    }

    /// The scenario of a run that another process with this lab file ordered, if the lab has it.
    pub fn ordered(&self, lab: &Lab, order: &Order) -> Result<Source, Error> {
        let (trial, run) = order.read(lab).ok_or(Error::OtherLab)?;
        self.source(lab, &trial, run)
    }

    /// One request of the first scenario, to see whether an engine answers.
    pub(crate) fn question(&self, lab: &Lab, trial: &Trial) -> Result<Source, Error> {
        let mut source = self.laid(&self.sources[0], lab, trial)?;
        let load = &mut source.scenario.load;
        let kept = (load.seed.take(), load.session_memory.take());
        *load = scenario::Load { seed: kept.0, session_memory: kept.1, ..Default::default() };
        for (key, value) in [
            ("load.requests", "1"),
            ("load.warmup", "0"),
            ("load.concurrency", "1"),
            ("timeouts.request", "\"60s\""),
        ] {
            set(&mut source.scenario, key, value)?;
        }
        source.scenario.scorers = None;
        Ok(source)
    }

    /// A scenario with a trial's settings.
    fn laid(&self, source: &Source, lab: &Lab, trial: &Trial) -> Result<Source, Faults> {
        let engine = &lab.engines[trial.engine];
        let mut source = source.clone();
        let scenario = &mut source.scenario;
        set(scenario, "target.base-url", &toml_text::string(&engine.base_url))?;
        if let Some(name) = lab.models[trial.model].served_name() {
            set(scenario, "target.model", &toml_text::string(name))?;
        }
        let (backend, config) = &trial.backend;
        if let Some(backend) = backend {
            let is_file = backend.ends_with(".wasm");
            let file = if is_file { backend.clone() } else { format!("backends/{backend}.wasm") };
            scenario.backend = Default::default();
            set(scenario, "backend.plugin", &toml_text::string(&file))?;
        }
        let home = self.home.as_deref();
        each(scenario, "backend.config", config, home)?;
        each(scenario, "", &trial.set, home)?;
        if let Some(own) = lab.set_for(&source.name) {
            each(scenario, "", &own, home)?;
        }
        if trial.launch.is_some() && scenario.about.launch_command.is_none() {
            let launch = Located::flag(SETTER, lab.shown_command(trial));
            source.scenario.about.launch_command = Some(launch);
        }
        Ok(source)
    }
}

/// The baseline of each engine with its first model.
fn baselines(lab: &Lab) -> impl Iterator<Item = Trial> {
    (lab.engines.iter().enumerate()).filter_map(move |(place, engine)| {
        lab.baseline(place, engine.models.first().copied().unwrap_or(0))
    })
}

/// The digests of a run's inputs.
fn inputs(draft: &Plan) -> Vec<String> {
    let mut parts = vec![format!("{:?}", draft.tokenizer), format!("{:?}", draft.dataset.plugin)];
    parts.extend(draft.scorers.iter().map(|scorer| format!("{scorer:?}")));
    parts.extend(draft.dataset.files.iter().map(|(name, file)| format!("{name} {file:?}")));
    parts
}

/// The name in messages for the source of these keys.
pub(crate) const SETTER: &str = "the lab";

/// Sets every value of a table, below a key.
pub(crate) fn each(
    scenario: &mut Scenario,
    below: &str,
    table: &Value,
    home: Option<&Path>,
) -> Result<(), Faults> {
    let Value::Object(table) = table else { return Ok(()) };
    for (key, value) in table {
        let key = toml_text::key(key);
        let path = match below {
            "" => key,
            below => format!("{below}.{key}"),
        };
        match value {
            Value::Object(_) => each(scenario, &path, value, home)?,
            value => {
                let place = Place::Flag(SETTER.to_owned());
                let value = Config::from_json(beside(&path, value, home), &place);
                set(scenario, &path, &toml_text::config(&value))?;
            }
        }
    }
    Ok(())
}

/// A value, or the path of a file beside the lab file if the value names one.
fn beside(key: &str, value: &Value, home: Option<&Path>) -> Value {
    let is_path = key.starts_with("dataset.files.") || key == "tokenizer.path";
    match (value, home) {
        (Value::String(text), Some(home)) if is_path && home.join(text).exists() => {
            home.join(text).display().to_string().into()
        }
        _ => value.clone(),
    }
}

pub(crate) fn set(scenario: &mut Scenario, key: &str, value: &str) -> Result<(), Faults> {
    let (assigned, problems) = Scenario::assigned_by(SETTER, key, value);
    if !problems.is_empty() {
        let mut faults = Faults::default();
        faults.scenario.extend(problems);
        return Err(faults);
    }
    *scenario = std::mem::take(scenario).overlay(assigned);
    Ok(())
}

/// The load of a scenario, if it is one number, and a digest of the other settings.
pub(crate) fn of_load(mut source: Source) -> Option<OfLoad> {
    let load = std::mem::take(&mut source.scenario.load);
    let (kind, at) = size(&load)?;
    // The rest of the load does not depend on its size.
    source.scenario.load = Load {
        arrival: load.arrival.filter(|arrival| arrival.value.has_rate()),
        burstiness: load.burstiness,
        think_time: load.think_time,
        think_spread: load.think_spread,
        cache: load.cache,
        flush_cache: load.flush_cache,
        ..Load::default()
    };
    source.scenario.name = None;
    // Values without their places: scenarios of one curve are separate files.
    let entries = source.scenario.settled().entries().into_iter();
    let settings = entries.map(|entry| format!("{} = {}", entry.path, entry.value));
    let plugins = source.plugins.into_iter().map(|named| named.value);
    let settings: Vec<String> = settings.chain(plugins).collect();
    Some(OfLoad { kind, at, besides: digest(settings.iter().map(String::as_str)) })
}

/// The size of a load, if it is one number: no changing load, and no trace.
fn size(load: &Load) -> Option<(Varied, At)> {
    let changes = load.stages.is_some() || load.ramp.from.is_some() || load.ramp.to.is_some();
    let arrival = load.arrival.as_ref().map(|arrival| arrival.value);
    let follows = load.trace.file.is_some() || load.trace.time_scale.is_some();
    if changes || follows || matches!(arrival, Some(Arrival::Trace | Arrival::Dataset)) {
        return None;
    }
    let sessions = load.users.as_ref().map(|users| users.value) == Some(Users::Sessions);
    match (&load.concurrency, &load.rate) {
        (Some(users), _) if sessions => Some((Varied::Sessions, At::Load(users.value as f64))),
        (Some(users), _) => Some((Varied::Concurrency, At::Load(users.value as f64))),
        (None, Some(rate)) if rate.value.is_finite() => Some((Varied::Rate, At::Load(rate.value))),
        (None, Some(_)) => Some((Varied::Rate, At::Unlimited)),
        (None, None) => None,
    }
}
