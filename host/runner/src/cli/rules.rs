//! The rules of a published benchmark, laid over a scenario. Open settings are set by the rules,
//! and settings that contradict them are mistakes. Demands that no run of this program meets are
//! listed.

use std::time::Duration;

use model::duration::Span;
use model::session::Cache;
use reader::{Located, Place, Problem};
use scenario::{Arrival, Scenario};
use search::Load;
use search::preset::{Preset, Rule, Value};
use serde_json::json;
use session::{Faults, Source};

use super::error::CliError;
use super::failure::Failure;
use super::print::tell;
use super::run::accuracy;

/// The source of these values, for messages and records.
const SETTER: &str = "--preset";

/// The scenario under these rules, and the rules that it does not follow, as text.
///
/// # Errors
/// Where the scenario says otherwise: every place of it.
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
    if rules.faults.scenario.is_empty() {
        Ok((source, rules.open))
    } else {
        Err(rules.faults.into())
    }
}

/// The same, with notes that name the rules, and the unmet rules among them.
///
/// # Errors
/// As [`under`].
pub(super) fn told(preset: &Preset, source: Source) -> Result<Source, Failure> {
    let (source, open) = under(preset, source)?;
    tell(format_args!("note: {} ({})", preset.about, preset.source));
    for rule in open {
        tell(format_args!("note: of its rules, {rule}"));
    }
    Ok(source)
}

/// A preset by its name.
///
/// # Errors
/// That there is none.
pub(super) fn named(name: &str) -> Result<&'static Preset, Failure> {
    Preset::find(name).map_err(|words| {
        if name == accuracy::NAME {
            CliError::PresetOf(name.to_owned(), "run").into()
        } else {
            Failure::command_line(words)
        }
    })
}

/// True if the samples come from the shipped dataset for recorded traffic.
fn plays_a_trace(source: &Source) -> bool {
    let named = source.scenario.dataset.plugin.iter().chain(&source.plugins);
    named.into_iter().any(|said| {
        let file = said.value.rsplit('/').next().unwrap_or_default();
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

    /// The time that each run is.
    fn last(&mut self, preset: &Preset, scenario: &mut Scenario) {
        let load = &mut scenario.load;
        let least = preset.seconds_least;
        let few = [
            ("load.requests", load.requests.as_ref().map(|said| &said.place)),
            ("load.sessions", load.sessions.as_ref().map(|said| &said.place)),
        ];
        let words = format!("each run takes at least {least} s; set load.duration instead");
        let few = few.map(|(key, place)| (key, place.cloned()));
        for (key, place) in few {
            if let Some(place) = place {
                self.contradicted(key, &place, &words);
            }
        }
        match &load.duration {
            Some(said) if said.value.0.as_secs_f64() < least => {
                let place = said.place.clone();
                self.contradicted(
                    "load.duration",
                    &place,
                    &format!("each run takes at least {least} s"),
                );
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
            ("streaming", Value::Flag(asked)) => match &request.stream {
                Some(said) if said.value != asked => {
                    self.contradicted("request.stream", &said.place.clone(), rule.about);
                }
                _ => request.stream = Some(Located::flag(SETTER, asked)),
            },
            ("ignore-eos", Value::Flag(asked)) => match &request.ignore_eos {
                Some(said) if said.value != asked => {
                    self.contradicted("request.ignore-eos", &said.place.clone(), rule.about);
                }
                _ => request.ignore_eos = Some(Located::flag(SETTER, asked)),
            },
            ("arrival", _) => match &load.arrival {
                Some(said) if said.value != Arrival::Poisson => {
                    self.contradicted("load.arrival", &said.place.clone(), rule.about);
                }
                _ => {}
            },
            ("salt", _) => {
                match &load.cache {
                    Some(said) if said.value != Cache::Salt => {
                        self.contradicted("load.cache", &said.place.clone(), rule.about);
                    }
                    _ => load.cache = Some(Located::flag(SETTER, Cache::Salt)),
                }
                self.open.push(
                    "salt is not followed: the text in front of prompts is one of the run, not of each replay of a session, so two replays of the same session in one run share what they have in common".to_owned(),
                );
            }
            ("delays", _) if self.traced => self.config(
                &mut dataset.config,
                "replay",
                rule,
                |said| said == &json!("sessions"),
                json!("sessions"),
            ),
            ("idle-most-s", Value::Number(most)) if self.traced => self.config(
                &mut dataset.config,
                "max-idle",
                rule,
                |said| said.as_f64().is_some_and(|said| said <= f64::from(most)),
                json!(most),
            ),
            ("cut-prompts", _) if self.traced => {
                if let Some(said) = dataset.config.get("on-too-long")
                    && said.value.value.to_json() == json!("truncate")
                {
                    let place = said.value.place.clone();
                    self.contradicted("dataset.config.on-too-long", &place, rule.about);
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
            Some(said) if !fits(&said.value.value.to_json()) => {
                let place = said.value.place.clone();
                self.contradicted(&format!("dataset.config.{key}"), &place, rule.about);
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
    fn what_the_scenario_leaves_open_is_set() {
        let (ruled, open) = under(agentx(), source(TRACE)).unwrap();
        let Scenario { request, load, dataset, .. } = ruled.scenario;
        assert!(request.stream.unwrap().value && request.ignore_eos.unwrap().value);
        assert_eq!(load.duration.unwrap().value.0.as_secs(), 1800);
        assert_eq!(load.cache.unwrap().value, Cache::Salt);
        let config = serde_json::Value::Object(dataset.config.to_json());
        assert_eq!(config, json!({"replay": "sessions", "max-idle": 10}));
        assert_eq!(open.len(), 3, "{open:?}");
        // Another dataset has no such keys, so its delays are its own affair.
        let (other, open) = under(agentx(), source("")).unwrap();
        assert!(other.scenario.dataset.config.is_empty());
        assert!(open.len() > 3, "{open:?}");
    }

    #[test]
    fn every_contradiction_is_said_at_once() {
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
        let said: Vec<&str> = (rules.faults.scenario.iter())
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
        assert_eq!(said, keys);
    }

    #[test]
    fn a_poisson_process_is_what_mlperf_asks_for() {
        let preset = Preset::find("mlperf-server").unwrap();
        let (ruled, _) =
            under(preset, source("[load]\narrival = \"poisson\"\nrate = 4.0\n")).unwrap();
        assert!(ruled.scenario.load.duration.is_none());
        let even = source("[load]\narrival = \"constant\"\nrate = 4.0\n");
        assert!(under(preset, even).is_err());
    }
}
