//! The rules of a published benchmark, laid over a scenario. The rules set open settings, and
//! settings that contradict them are mistakes. Unmet demands are listed.

use std::time::Duration;

use model::duration::Span;
use model::session::Cache;
use reader::{Located, Place, Problem};
use scenario::{Arrival, Scenario};
use search::Load;
use search::preset::{Preset, Rule, Value};
use serde_json::json;
use session::{Faults, Source};

use super::failure::Failure;
use super::print::tell;
use super::run::accuracy;

/// The source of these values, for messages and records.
const SETTER: &str = "--preset";

/// The scenario under these rules, and the rules that it does not follow, as text; or every place
/// that contradicts the rules.
fn under(preset: &Preset, mut source: Source) -> Result<(Source, Vec<String>), Failure> {
    let mut rules = Rules {
        name: preset.name,
        traced: plays_a_trace(&source),
        open: Vec::new(),
        faults: Faults::default(),
    };
    if preset.load == Load::Sessions {
        rules.last(preset, &mut source.scenario);
    }
    for rule in preset.rules {
        rules.lay(rule, &mut source.scenario);
    }
    Failure::of_faults(rules.faults).map(|()| (source, rules.open))
}

/// Applies the rules, with notes that name them and the unmet rules.
pub(super) fn applied(preset: &Preset, source: Source) -> Result<Source, Failure> {
    let (source, open) = under(preset, source)?;
    tell(format_args!("note: {} ({})", preset.about, preset.source));
    for rule in open {
        tell(format_args!("note: of its rules, {rule}"));
    }
    Ok(source)
}

pub(super) fn named(name: &str) -> Result<&'static Preset, Failure> {
    Preset::find(name).map_err(|words| match name {
        accuracy::NAME => preset_of("run", name),
        _ => Failure::command_line(words),
    })
}

/// The error that a preset belongs to another command.
pub(super) fn preset_of(command: &str, name: &str) -> Failure {
    Failure::command_line(format!(
        "`{name}` is the preset of a {command}: use `runner {command} --preset {name}`"
    ))
}

/// True if the samples come from the shipped dataset for recorded traffic.
fn plays_a_trace(source: &Source) -> bool {
    let named = source.scenario.dataset.plugin.iter().chain(&source.plugins);
    named.into_iter().any(|plugin| {
        let file = plugin.value.rsplit('/').next().unwrap_or_default();
        file.split(['.', '@']).next() == Some("trace")
    })
}

struct Rules {
    name: &'static str,
    traced: bool,
    open: Vec<String>,
    faults: Faults,
}

impl Rules {
    fn contradicted(&mut self, key: &str, place: &Place, rule: &str) {
        let name = self.name;
        let problem = Problem::new(format!("`{key}` contradicts the rules of {name}: {rule}"));
        let problem = problem.at(place.clone(), "here").help(
            "leave the key out, or leave out --preset for a measurement that is not by these rules",
        );
        self.faults.scenario.push(problem);
    }

    fn last(&mut self, preset: &Preset, scenario: &mut Scenario) {
        let load = &mut scenario.load;
        let least = preset.seconds_least;
        let message = format!("each run takes at least {least} s");
        let other = format!("{message}; set load.duration instead");
        for (key, entry) in [("load.requests", &load.requests), ("load.sessions", &load.sessions)] {
            if let Some(entry) = entry {
                self.contradicted(key, &entry.place, &other);
            }
        }
        match &load.duration {
            Some(entry) if entry.value.0.as_secs_f64() < least => {
                self.contradicted("load.duration", &entry.place, &message);
            }
            Some(_) => {}
            None => {
                let usual = Duration::from_secs_f64(preset.seconds_usual);
                load.duration = Some(Located::flag(SETTER, Span(usual)));
            }
        }
    }

    fn lay(&mut self, rule: &Rule, scenario: &mut Scenario) {
        let Scenario { request, load, dataset, .. } = scenario;
        match (rule.name, rule.value) {
            ("streaming", Value::Flag(required)) => {
                self.set(&mut request.stream, "request.stream", required, rule);
            }
            ("ignore-eos", Value::Flag(required)) => {
                self.set(&mut request.ignore_eos, "request.ignore-eos", required, rule);
            }
            ("arrival", _) => match &load.arrival {
                Some(entry) if entry.value != Arrival::Poisson => {
                    self.contradicted("load.arrival", &entry.place, rule.about);
                }
                _ => {}
            },
            ("salt", _) => {
                self.set(&mut load.cache, "load.cache", Cache::Salt, rule);
                self.open.push(
                    "salt is not followed: the text in front of prompts is one of the run, not of each replay of a session, so two replays of the same session in one run share their common text".to_owned(),
                );
            }
            ("delays", _) if self.traced => {
                let fits = |entry: &serde_json::Value| entry == "sessions";
                self.config(&mut dataset.config, "replay", rule, fits, json!("sessions"));
            }
            ("idle-most-s", Value::Number(most)) if self.traced => {
                let fits = |entry: f64| entry <= f64::from(most);
                let fits = |entry: &serde_json::Value| entry.as_f64().is_some_and(fits);
                self.config(&mut dataset.config, "max-idle", rule, fits, json!(most));
            }
            ("cut-prompts", _) if self.traced => {
                if let Some(entry) = dataset.config.get("on-too-long")
                    && entry.value.value.to_json() == json!("truncate")
                {
                    let place = &entry.value.place;
                    self.contradicted("dataset.config.on-too-long", place, rule.about);
                }
            }
            ("start", _) => self.open.push(
                "start is not followed: every session begins at its first request, none within it, so the caches fill during the first minutes".to_owned(),
            ),
            ("equal-issue", _) => self.open.push(
                "equal issue is not followed: how often each sample is sent is up to the dataset; it is not made equal".to_owned(),
            ),
            ("context-overflow-most-percent", _) => self.open.push(
                "context overflow is not checked: replies that say that the context is too long count as failed, however many there are".to_owned(),
            ),
            _ => self.open.push(format!("{} is left to the dataset: {}", rule.name, rule.about)),
        }
    }

    /// Sets a key that may have only this value.
    fn set<T: PartialEq>(
        &mut self,
        setting: &mut Option<Located<T>>,
        key: &str,
        value: T,
        rule: &Rule,
    ) {
        match setting {
            Some(entry) if entry.value != value => {
                self.contradicted(key, &entry.place, rule.about);
            }
            _ => *setting = Some(Located::flag(SETTER, value)),
        }
    }

    /// A key of the dataset's own configuration.
    fn config(
        &mut self,
        config: &mut reader::ConfigTable,
        key: &str,
        rule: &Rule,
        fits: impl Fn(&serde_json::Value) -> bool,
        otherwise: serde_json::Value,
    ) {
        match config.get(key) {
            Some(entry) if !fits(&entry.value.value.to_json()) => {
                let key = format!("dataset.config.{key}");
                self.contradicted(&key, &entry.value.place, rule.about);
            }
            Some(_) => {}
            None => config.set(key, Located::flag(SETTER, otherwise)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "[dataset]\nplugin = \"datasets/trace.wasm\"\n";

    fn source(text: &str) -> Source {
        Source { scenario: Scenario::parse("agents.toml", text).unwrap(), ..Source::default() }
    }

    fn agentx() -> &'static Preset {
        Preset::find("agentx").unwrap()
    }

    #[test]
    fn fills_open_settings() {
        let (ruled, open) = under(agentx(), source(TRACE)).unwrap();
        let Scenario { request, load, dataset, .. } = ruled.scenario;
        assert!(request.stream.unwrap().value && request.ignore_eos.unwrap().value);
        assert_eq!(load.duration.unwrap().value.0.as_secs(), 1800);
        assert_eq!(load.cache.unwrap().value, Cache::Salt);
        let config = serde_json::Value::Object(dataset.config.to_json());
        assert_eq!(config, json!({"replay": "sessions", "max-idle": 10}));
        assert_eq!(open.len(), 3, "{open:?}");
        // Another dataset has no such keys, so it sets its own delays.
        let (other, open) = under(agentx(), source("")).unwrap();
        assert!(other.scenario.dataset.config.is_empty());
        assert!(open.len() > 3, "{open:?}");
    }

    #[test]
    fn reports_every_contradiction_at_once() {
        let text = format!(
            "{TRACE}config = {{ replay = \"timestamps\", max-idle = 60, on-too-long = \"truncate\" }}\n\
             [load]\nduration = \"60s\"\ncache = \"keep\"\n[request]\nstream = false\nignore-eos = false\n"
        );
        let mut rules =
            Rules { name: "agentx", traced: true, open: Vec::new(), faults: Faults::default() };
        let mut written = source(&text).scenario;
        rules.last(agentx(), &mut written);
        for rule in agentx().rules {
            rules.lay(rule, &mut written);
        }
        let found: Vec<&str> = (rules.faults.scenario.iter())
            .map(|problem| problem.message().split('`').nth(1).unwrap())
            .collect();
        let keys = [
            "load.duration",
            "request.stream",
            "request.ignore-eos",
            "dataset.config.replay",
            "dataset.config.max-idle",
            "load.cache",
            "dataset.config.on-too-long",
        ];
        assert_eq!(found, keys);
    }

    #[test]
    fn mlperf_requires_poisson_arrivals() {
        let preset = Preset::find("mlperf-server").unwrap();
        let (ruled, _) =
            under(preset, source("[load]\narrival = \"poisson\"\nrate = 4.0\n")).unwrap();
        assert!(ruled.scenario.load.duration.is_none());
        let even = source("[load]\narrival = \"constant\"\nrate = 4.0\n");
        assert!(under(preset, even).is_err());
    }
}
