//! The scenarios of a lab, and how a trial changes them: its address, its backend, the model's
//! name, the keys of `set`, and for each round a seed of its own.

use std::path::{Path, PathBuf};

use model::session::Cache;
use reader::{Config, Located, toml_text};
use scenario::Scenario;
use serde_json::Value;
use session::{Draft, Source, resolve};

use super::super::failure::{Exit, Failure};
use super::super::flags::Flags;
use super::super::loads;
use super::super::print::tell;
use super::super::scenario::show;
use super::super::sources::sources;
use lab::study::{OfLoad, WHOLE};
use lab::{Lab, RunKey, Trial, digest};

/// The name in messages for the source of these keys.
const SETTER: &str = "the lab";

/// The scenarios of a lab.
pub(super) struct Scenarios {
    all: Vec<lab::Scenario>,
    sources: Vec<Source>,
    home: Option<PathBuf>,
}

impl Scenarios {
    /// Reads them, and makes sure that each can be run. For a plan alone, what a run lacks, such as
    /// a file that is not here yet, is only told.
    ///
    /// # Errors
    /// Every mistake of every scenario.
    pub(super) fn of(
        lab: &Lab,
        home: &Home,
        flags: &Flags,
        for_plan: bool,
    ) -> Result<Self, Failure> {
        let named = lab.scenarios.iter();
        let names: Vec<String> = named.map(|named| home.scenario(&named.value)).collect();
        let sources = sources(&names, flags)?;
        let mut scenarios = Scenarios {
            all: Vec::new(),
            sources: Vec::new(),
            home: home.folder().map(Path::to_owned),
        };
        for source in sources {
            let mut name = scenarios.title(&source, lab);
            let is_taken = |name: &str| scenarios.all.iter().any(|other| other.name == name);
            // Files that a lab makes alike are still told apart.
            if is_taken(&name) && name != source.name {
                name = format!("{name} ({})", source.name);
            }
            if is_taken(&name) {
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
                load: None,
            });
            scenarios.sources.push(source);
        }
        for place in 0..scenarios.all.len() {
            scenarios.all[place].load = scenarios.load(lab, place);
            scenarios.all[place].content = match scenarios.content(lab, place) {
                Ok(content) => content,
                Err(lacking) if for_plan => {
                    let name = &scenarios.all[place].name;
                    tell(format_args!(
                        "note: {name} cannot be run yet: {}",
                        lacking.words()
                    ));
                    String::new()
                }
                Err(lacking) => return Err(lacking),
            };
        }
        Ok(scenarios)
    }

    /// The variables that scenarios name for their keys: none of an engine's business.
    pub(super) fn key_variables(&self) -> Vec<String> {
        let named = self
            .sources
            .iter()
            .filter_map(|source| source.scenario.target.api_key_env.as_ref());
        named.map(|named| named.value.clone()).collect()
    }

    /// The name of the scenario that is called so, or whose file is.
    pub(super) fn named(&self, name: &str) -> Option<&str> {
        let mut both = self.all.iter().zip(&self.sources);
        let found = both.find(|(own, source)| own.name == name || source.name == name);
        found.map(|(own, _)| own.name.as_str())
    }

    /// A scenario's load, as the first engine gets it.
    fn load(&self, lab: &Lab, place: usize) -> Option<OfLoad> {
        of_load(self.first(&self.sources[place], lab)?)
    }

    /// Returns a scenario's title, as the first engine gets it.
    fn title(&self, source: &Source, lab: &Lab) -> String {
        let laid = self.first(source, lab);
        laid.as_ref().unwrap_or(source).title()
    }

    /// A scenario as the first engine gets it, if the lab sets its keys rightly.
    fn first(&self, source: &Source, lab: &Lab) -> Option<Source> {
        let mut baselines = (0..lab.engines.len()).filter_map(|engine| {
            let model = lab.engines[engine].models.first().copied().unwrap_or(0);
            lab.baseline(engine, model)
        });
        self.laid(source, lab, &baselines.next()?).ok()
    }

    /// Everything that the lab knows of them.
    pub(super) fn all(&self) -> &[lab::Scenario] {
        &self.all
    }

    /// A digest of all that a scenario consists of, whatever engine it is run against.
    fn content(&self, lab: &Lab, place: usize) -> Result<String, Failure> {
        let source = &self.sources[place];
        let own = lab.set_for(&source.name).map(|own| own.to_string());
        let mut parts = vec![show::shown(source.clone()), own.unwrap_or_default()];
        let mut drafts = Vec::new();
        for engine in 0..lab.engines.len() {
            let model = lab.engines[engine].models.first().copied().unwrap_or(0);
            let Some(trial) = lab.baseline(engine, model) else {
                continue;
            };
            let source = self.laid(source, lab, &trial)?;
            drafts.push(resolve(&source)?.draft);
        }
        // The inputs are the same for every engine.
        parts.extend(drafts.first().iter().flat_map(|draft| inputs(draft)));
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
        let mut source = self.laid(&self.sources[place], lab, trial)?;
        let load = &mut source.scenario.load;
        let seed = load
            .seed()
            .wrapping_add(u64::from(run.round.saturating_sub(1)));
        load.seed = Some(Located::flag(SETTER, seed));
        if run.share < WHOLE {
            shorten(load, f64::from(run.share) / f64::from(WHOLE));
        }
        // An engine that the lab starts has an empty cache; one that runs already has that of the
        // runs before.
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
        let mut source = self.laid(&self.sources[0], lab, trial)?;
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

    /// A scenario with what a trial sets.
    fn laid(&self, source: &Source, lab: &Lab, trial: &Trial) -> Result<Source, Failure> {
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
            let file = if backend.ends_with(".wasm") {
                backend.clone()
            } else {
                format!("backends/{backend}.wasm")
            };
            scenario.backend = Default::default();
            set(scenario, "backend.plugin", &toml_text::string(&file))?;
        }
        let home = self.home.as_deref();
        each(scenario, "backend.config", config, home)?;
        each(scenario, "", &trial.set, home)?;
        if let Some(own) = lab.set_for(&source.name) {
            each(scenario, "", &own, home)?;
        }
        Ok(source)
    }
}

/// The place of a lab file, from which its paths start.
pub(super) enum Home {
    /// In this folder.
    Folder(PathBuf),
    /// In the program, by this name.
    Shipped(String),
}

impl Home {
    /// The folder, if it is in one.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Home::Folder(folder) => Some(folder),
            Home::Shipped(_) => None,
        }
    }

    /// The place where a scenario of the lab is: beside the lab, or built in.
    fn scenario(&self, name: &str) -> String {
        match self {
            Home::Folder(folder) => match folder.join(name) {
                path if path.exists() => path.display().to_string(),
                _ => name.to_owned(),
            },
            Home::Shipped(lab) => {
                let mut parts: Vec<&str> = lab.split('/').collect();
                parts.pop();
                for part in name.split('/') {
                    match part {
                        "." => {}
                        ".." => drop(parts.pop()),
                        part => parts.push(part),
                    }
                }
                let beside = parts.join("/");
                let below = format!("{beside}/");
                let known = |known: &str| known == beside || known.starts_with(&below);
                if shipped::scenarios().any(known) {
                    beside
                } else {
                    name.to_owned()
                }
            }
        }
    }
}

/// The load of a scenario, if it is one number, and a digest of all else.
fn of_load(mut source: Source) -> Option<OfLoad> {
    let load = std::mem::take(&mut source.scenario.load);
    let (kind, at) = loads::of(&load)?;
    // What is left of the load has no part in how much of it there is.
    source.scenario.load = scenario::Load {
        arrival: load.arrival.filter(|arrival| arrival.value.has_rate()),
        burstiness: load.burstiness,
        think_time: load.think_time,
        think_spread: load.think_spread,
        cache: load.cache,
        flush_cache: load.flush_cache,
        ..Default::default()
    };
    source.scenario.name = None;
    // What it says, and not where: scenarios of one curve are files of their own.
    let entries = source.scenario.settled().entries().into_iter();
    let said = entries.map(|entry| format!("{} = {}", entry.path, entry.value));
    let plugins = source.plugins.into_iter().map(|named| named.value);
    let said: Vec<String> = said.chain(plugins).collect();
    Some(OfLoad {
        kind,
        at,
        besides: digest(said.iter().map(String::as_str)),
    })
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

/// Sets every value of a table, below a key.
fn each(
    scenario: &mut Scenario,
    below: &str,
    table: &Value,
    home: Option<&Path>,
) -> Result<(), Failure> {
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
            Value::Object(_) => each(scenario, &path, value, home)?,
            value => {
                let place = reader::Place::Flag(SETTER.to_owned());
                let value = Config::from_json(beside(&path, value, home), &place);
                set(scenario, &path, &toml_text::config(&value))?;
            }
        }
    }
    Ok(())
}

/// A value, or, if it is a path to a file beside the lab file, the path to that.
fn beside(key: &str, value: &Value, home: Option<&Path>) -> Value {
    let is_path = key.starts_with("dataset.files.") || key == "tokenizer.path";
    match (value, home) {
        (Value::String(text), Some(home)) if is_path && home.join(text).exists() => {
            home.join(text).display().to_string().into()
        }
        _ => value.clone(),
    }
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
