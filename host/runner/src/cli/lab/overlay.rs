//! The scenarios of a lab, and how a trial changes them: its address, its backend, the model's name, the keys of `set`,
//! and for each round a seed of its own.

use std::path::Path;

use model::session::Cache;
use reader::{Config, Located, toml_text};
use scenario::Scenario;
use serde_json::Value;
use session::{Draft, Source, resolve};

use super::super::failure::{Exit, Failure};
use super::super::flags::Flags;
use super::super::scenario::show;
use super::super::sources::sources;
use lab::walk::WHOLE;
use lab::{Lab, RunKey, Trial, digest};

/// What messages say that sets these keys.
const SETTER: &str = "the lab";

/// The scenarios of a lab.
pub(super) struct Scenarios {
    all: Vec<lab::Scenario>,
    sources: Vec<Source>,
}

impl Scenarios {
    /// Reads them, and makes sure that each can be run with the first trial of each engine.
    ///
    /// # Errors
    /// Every mistake of every scenario.
    pub(super) fn of(lab: &Lab, home: Option<&Path>, flags: &Flags) -> Result<Self, Failure> {
        let names: Vec<String> = lab
            .scenarios
            .iter()
            .map(|named| located(&named.value, home))
            .collect();
        let sources = sources(&names, flags)?;
        let mut scenarios = Scenarios {
            all: Vec::new(),
            sources: Vec::new(),
        };
        for source in sources {
            let name = name_of(&source);
            if scenarios.all.iter().any(|other| other.name == name) {
                return Err(Failure::new(
                    Exit::Input,
                    format!(
                        "two scenarios of the lab are called `{name}`; give them different names"
                    ),
                ));
            }
            scenarios.all.push(lab::Scenario {
                content: String::new(),
                seconds: (source.scenario.load.duration.as_ref())
                    .map(|duration| duration.value.0.as_secs_f64()),
                name,
            });
            scenarios.sources.push(source);
        }
        for place in 0..scenarios.all.len() {
            scenarios.all[place].content = scenarios.content(lab, place)?;
        }
        Ok(scenarios)
    }

    /// What the lab knows of them.
    pub(super) fn all(&self) -> &[lab::Scenario] {
        &self.all
    }

    /// A digest of all that a scenario consists of, whatever engine it is run against.
    fn content(&self, lab: &Lab, place: usize) -> Result<String, Failure> {
        let source = &self.sources[place];
        let mut parts = vec![show::shown(source.clone())];
        let mut resolved = None;
        for engine in 0..lab.engines.len() {
            let model = lab.engines[engine].models.first().copied().unwrap_or(0);
            let Some(trial) = lab.baseline(engine, model) else {
                continue;
            };
            let source = laid(source, lab, &trial)?;
            resolved.get_or_insert(resolve(&source)?.draft);
        }
        parts.extend(resolved.iter().flat_map(inputs));
        Ok(digest(parts.iter().map(String::as_str)))
    }

    /// The scenario of a run.
    ///
    /// # Errors
    /// If the lab sets a key wrongly.
    pub(super) fn source(&self, lab: &Lab, trial: &Trial, run: &RunKey) -> Result<Source, Failure> {
        let place = (self.all.iter()).position(|known| known.name == run.scenario);
        let place = place.ok_or_else(|| {
            Failure::new(
                Exit::Bug,
                format!("there is no scenario `{}`", run.scenario),
            )
        })?;
        let mut source = laid(&self.sources[place], lab, trial)?;
        let load = &mut source.scenario.load;
        let seed = load
            .seed()
            .wrapping_add(u64::from(run.round.saturating_sub(1)));
        load.seed = Some(Located::flag(SETTER, seed));
        if run.share < WHOLE {
            shorten(load, f64::from(run.share) / f64::from(WHOLE));
        }
        // An engine that the lab starts has an empty cache; one that runs already has that of the runs before.
        let is_started = trial.launch.is_some();
        if !is_started && load.cache.is_none() && load.flush_cache.is_none() {
            load.cache = Some(Located::flag(SETTER, Cache::Salt));
        }
        Ok(source)
    }

    /// One request of the first scenario, to see whether an engine answers.
    ///
    /// # Errors
    /// If the lab sets a key wrongly.
    pub(super) fn question(&self, lab: &Lab, trial: &Trial) -> Result<Source, Failure> {
        let mut source = laid(&self.sources[0], lab, trial)?;
        let load = &mut source.scenario.load;
        let kept = (load.seed.take(), load.session_memory.take());
        *load = scenario::Load {
            seed: kept.0,
            session_memory: kept.1,
            ..Default::default()
        };
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
}

/// Where a scenario of a lab file is: beside that file, or built in.
fn located(name: &str, home: Option<&Path>) -> String {
    let beside = home.map(|home| home.join(name));
    match beside.filter(|path| path.exists()) {
        Some(path) => path.display().to_string(),
        None => name.to_owned(),
    }
}

fn name_of(source: &Source) -> String {
    let named = source.scenario.name.as_ref();
    named.map_or_else(|| source.name.clone(), |name| name.value.clone())
}

/// The digests of a run's inputs.
fn inputs(draft: &Draft) -> Vec<String> {
    let mut parts = vec![
        format!("{:?}", draft.tokenizer),
        format!("{:?}", draft.dataset),
    ];
    parts.extend(draft.scorers.iter().map(|scorer| format!("{scorer:?}")));
    parts.extend(
        draft
            .files
            .iter()
            .map(|(name, file)| format!("{name} {file:?}")),
    );
    parts
}

/// Fewer requests, or less time.
fn shorten(load: &mut scenario::Load, share: f64) {
    if let Some(duration) = &mut load.duration {
        duration.value.0 = duration.value.0.mul_f64(share);
    } else if let Some(sessions) = &mut load.sessions {
        sessions.value = fewer(sessions.value, share);
    } else {
        let requests = fewer(load.requests(), share);
        load.requests = Some(Located::flag(SETTER, requests));
    }
}

fn fewer(number: u64, share: f64) -> u64 {
    ((number as f64 * share).ceil() as u64).max(1)
}

/// A scenario with what a trial sets.
fn laid(source: &Source, lab: &Lab, trial: &Trial) -> Result<Source, Failure> {
    let engine = &lab.engines[trial.engine];
    let mut source = source.clone();
    let scenario = &mut source.scenario;
    set(
        scenario,
        "target.base-url",
        &toml_text::string(&engine.base_url),
    )?;
    if let Some(name) = lab.models[trial.model].served_name() {
        set(scenario, "target.model", &toml_text::string(name))?;
    }
    let (backend, config) = &trial.backend;
    if let Some(backend) = backend {
        let file = match backend.ends_with(".wasm") {
            true => backend.clone(),
            false => format!("backends/{backend}.wasm"),
        };
        scenario.backend = Default::default();
        set(scenario, "backend.plugin", &toml_text::string(&file))?;
    }
    each(scenario, "backend.config", config)?;
    each(scenario, "", &trial.set)?;
    Ok(source)
}

/// Sets every value of a table, below a key.
fn each(scenario: &mut Scenario, below: &str, table: &Value) -> Result<(), Failure> {
    let Value::Object(table) = table else {
        return Ok(());
    };
    for (key, value) in table {
        let key = toml_text::key(key);
        let path = match below {
            "" => key,
            below => format!("{below}.{key}"),
        };
        match value {
            Value::Object(_) => each(scenario, &path, value)?,
            value => {
                let place = reader::Place::Flag(SETTER.to_owned());
                let value = Config::from_json(value.clone(), &place);
                set(scenario, &path, &toml_text::config(&value))?;
            }
        }
    }
    Ok(())
}

fn set(scenario: &mut Scenario, key: &str, value: &str) -> Result<(), Failure> {
    let (said, problems) = Scenario::assigned_by(SETTER, key, value);
    if !problems.is_empty() {
        let mut faults = session::Faults::default();
        faults.scenario.extend(problems);
        return Err(faults.into());
    }
    *scenario = std::mem::take(scenario).overlay(said);
    Ok(())
}
