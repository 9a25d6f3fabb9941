//! The rules of a published benchmark, laid over a scenario. The rules set open settings, and
//! settings that contradict them are mistakes. Unmet demands are listed.

use std::time::Duration;

use model::duration::Span;
use reader::{Located, Place, Problem};
use result::summary;
use scenario::{Arrival, Scenario, Scorer};
use search::Load;
use search::preset::{Preset, Rule, Value};
use serde_json::json;
use session::{Faults, Source};

use super::failure::Failure;
use super::print::tell;
use super::run::accuracy;

/// The source of these values, for messages and records.
const SETTER: &str = "--preset";

/// The scenario under these rules, and its unmet rules as text. Fails with every place that
/// contradicts the rules; if rules are `loose`, the result names the places instead.
fn under(
    preset: &Preset,
    mut source: Source,
    loose: bool,
) -> Result<(Source, Vec<String>), Failure> {
    let mut rules = Rules {
        name: preset.name,
        traced: plays_a_trace(&source),
        open: Vec::new(),
        loosened: loose.then(Vec::new),
        faults: Faults::default(),
    };
    if preset.load == Load::Sessions && preset.seconds_usual > 0.0 {
        rules.last(preset, &mut source.scenario);
    }
    rules.all(preset, &mut source.scenario);
    Failure::of_faults(rules.faults)?;
    let share = |name: &str| {
        preset.rules.iter().find(|rule| rule.name == name).and_then(|rule| match rule.value {
            Value::Number(percent) => Some(f64::from(percent) / 100.0),
            _ => None,
        })
    };
    let kept = summary::Rules {
        name: preset.name.to_owned(),
        loosened: rules.loosened.unwrap_or_default(),
        context_overflow_most: share("context-overflow-most-percent"),
        failures_most: share("failures-most-percent"),
    };
    source.rules = Some(kept);
    Ok((source, rules.open))
}

/// Applies the rules, with notes that name them and the unmet rules.
pub(super) fn applied(preset: &Preset, source: Source, loose: bool) -> Result<Source, Failure> {
    let (source, open) = under(preset, source, loose)?;
    tell(format_args!("note: {} ({})", preset.about, preset.source));
    for loosened in source.rules.iter().flat_map(|rules| &rules.loosened) {
        tell(format_args!("warning: {loosened}; the runs are invalid under the benchmark's name"));
    }
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
    named.into_iter().any(|plugin| is_component(&plugin.value, "trace"))
}

/// True if a plugin is the component of this name, in any folder and version.
fn is_component(plugin: &str, name: &str) -> bool {
    let file = plugin.rsplit('/').next().unwrap_or_default();
    file.split(['.', '@']).next() == Some(name)
}

struct Rules {
    name: &'static str,
    traced: bool,
    open: Vec<String>,
    /// The rules that the scenario may contradict, with its keys; absent if it may contradict none.
    loosened: Option<Vec<String>>,
    faults: Faults,
}

impl Rules {
    fn contradicted(&mut self, key: &str, place: &Place, rule: &str) {
        let name = self.name;
        if let Some(loosened) = &mut self.loosened {
            return loosened.push(format!("`{key}` contradicts the rule: {rule}"));
        }
        let problem = Problem::new(format!("`{key}` contradicts the rules of {name}: {rule}"));
        let problem = problem.at(place.clone(), "here").help(
            "leave the key out, measure with --loosen-rules, or leave out --preset for a measurement that is not by these rules",
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

    fn all(&mut self, preset: &Preset, scenario: &mut Scenario) {
        for rule in preset.rules {
            self.lay(rule, scenario);
            for setting in rule.settings {
                self.set(setting, rule, scenario);
            }
        }
    }

    /// Makes a setting, unless another value contradicts it.
    fn set(&mut self, setting: &str, rule: &Rule, scenario: &mut Scenario) {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let (demanded, problems) = Scenario::assigned_by(SETTER, key, value);
        self.faults.scenario.extend(problems);
        let own = scenario.entries();
        let values = demanded.entries();
        let differing = values.iter().find_map(|entry| {
            own.iter().find(|own| own.path == entry.path && own.value != entry.value)
        });
        match differing {
            Some(own) => self.contradicted(&own.path, &own.place, rule.about),
            None => *scenario = std::mem::take(scenario).overlay(demanded),
        }
    }

    fn lay(&mut self, rule: &Rule, scenario: &mut Scenario) {
        let Scenario { request, load, dataset, .. } = scenario;
        match (rule.name, rule.value) {
            ("sessions-multiple", Value::Number(multiple)) => {
                let multiple = u64::from(multiple);
                let requests = load.requests.as_ref().map(|entry| ("load.requests", &entry.place));
                let duration = load.duration.as_ref().map(|entry| ("load.duration", &entry.place));
                match (&load.sessions, requests.or(duration)) {
                    (_, Some((key, place))) => self.contradicted(key, place, rule.about),
                    (Some(entry), _) if entry.value % multiple != 0 => {
                        self.contradicted("load.sessions", &entry.place, rule.about);
                    }
                    (Some(_), _) => {}
                    (None, None) => load.sessions = Some(Located::flag(SETTER, multiple)),
                }
            }
            ("arrival", _) => match &load.arrival {
                Some(entry) if entry.value != Arrival::Poisson => {
                    self.contradicted("load.arrival", &entry.place, rule.about);
                }
                _ => {}
            },
            ("delays", _) if self.traced => {
                let fits = |entry: &serde_json::Value| entry == "sessions";
                self.config(&mut dataset.config, "replay", rule, fits, json!("sessions"));
                for (key, recorded) in [
                    ("max-idle", None),
                    ("time-scale", Some(1.0)),
                    ("use-think-time-only", Some(0.0)),
                ] {
                    self.unless_recorded(&dataset.config, key, recorded, rule);
                }
            }
            ("cut-prompts", _) if self.traced => {
                for (key, cuts) in [("on-too-long", Some(json!("truncate"))), ("max-input", None)] {
                    if let Some(entry) = dataset.config.get(key)
                        && cuts.is_none_or(|cuts| entry.value.value.to_json() == cuts)
                    {
                        let key = format!("dataset.config.{key}");
                        self.contradicted(&key, &entry.value.place, rule.about);
                    }
                }
            }
            ("start", Value::Word("within-a-session")) => {
                // The range is the user's choice.
                load.lanes.start_at.get_or_insert_with(|| {
                    let shares = [0.0, 1.0].map(|share| Located::flag(SETTER, share));
                    Located::flag(SETTER, shares.into())
                });
            }
            ("warmup-requests", Value::Number(requests)) => {
                let requests = Located::flag(SETTER, u64::from(requests));
                load.lanes.warmup.get_or_insert(requests);
            }
            ("session-header", Value::Word(name)) => {
                let names = request.ids.session.get_or_insert_with(|| {
                    Located::flag(SETTER, vec![Located::flag(SETTER, name.to_owned())])
                });
                if !names.value.iter().any(|entry| entry.value.eq_ignore_ascii_case(name)) {
                    let place = names.place.clone();
                    self.contradicted("request.ids.session", &place, rule.about);
                }
            }
            ("equal-issue", _) => self.open.push(
                "equal issue is not followed: how often each sample is sent is up to the dataset; it is not made equal".to_owned(),
            ),
            ("inline-accuracy", _) => {
                let scorers = scenario.scorers.get_or_insert_default();
                let mut named = scorers.iter().filter_map(|entry| entry.value.plugin.as_ref());
                if !named.any(|plugin| is_component(&plugin.value, "mlperf-agentic")) {
                    let plugin = "scorers/mlperf-agentic.wasm".to_owned();
                    let plugin = Some(Located::flag(SETTER, plugin));
                    let scorer = Scorer { plugin, ..Scorer::default() };
                    scorers.push(Located::flag(SETTER, scorer));
                }
            }
            ("swe-bench", _) => {
                self.open.push(format!("{} is not measured: {}", rule.name, rule.about));
            }
            // The summary has the shares.
            ("context-overflow-most-percent" | "failures-most-percent", _) => {}
            _ if !rule.settings.is_empty() => {}
            _ => self.open.push(format!("{} is left to the dataset: {}", rule.name, rule.about)),
        }
    }

    /// A key of the dataset that changes recorded delays, unless it has the value without effect.
    fn unless_recorded(
        &mut self,
        config: &reader::ConfigTable,
        key: &str,
        recorded: Option<f64>,
        rule: &Rule,
    ) {
        let Some(entry) = config.get(key) else { return };
        let value = entry.value.value.to_json();
        let value = value.as_f64().or(value.as_bool().map(|flag| f64::from(u8::from(flag))));
        if value.is_none() || value != recorded {
            let key = format!("dataset.config.{key}");
            self.contradicted(&key, &entry.value.place, rule.about);
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
    use model::session::LaneSalt;

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
        let (ruled, open) = under(agentx(), source(TRACE), false).unwrap();
        let rules = ruled.rules.unwrap();
        assert_eq!((rules.context_overflow_most, rules.failures_most), (Some(0.01), Some(0.1)));
        let Scenario { request, load, dataset, .. } = ruled.scenario;
        assert!(request.stream.unwrap().value && request.ignore_eos.unwrap().value);
        assert_eq!(request.ids.session.unwrap().value[0].value, "x-dynamo-session-id");
        assert_eq!(load.duration.unwrap().value.0.as_secs(), 1800);
        let lanes = load.lanes;
        let expected = (Some([0.0, 1.0]), 10, LaneSalt::Session);
        assert_eq!((lanes.shares(), lanes.warmup(), lanes.salt()), expected);
        assert_eq!(lanes.idle_most.unwrap().value.0.as_secs(), 10);
        let config = serde_json::Value::Object(dataset.config.to_json());
        assert_eq!(config, json!({"replay": "sessions"}));
        assert!(open.is_empty(), "{open:?}");
        // Another dataset has no such keys, so it sets its own delays.
        let (other, open) = under(agentx(), source(""), false).unwrap();
        assert!(other.scenario.dataset.config.is_empty());
        assert_eq!(open.len(), 2, "{open:?}");
    }

    const CONTRADICTIONS: &str = "config = { replay = \"timestamps\", max-idle = 60, time-scale = 2, on-too-long = \"truncate\" }\n\
         [load]\nduration = \"60s\"\n[load.lanes]\nidle-most = \"5s\"\nsalt = \"none\"\n\
         [request]\nstream = false\nignore-eos = false\n[request.ids]\nsession = \"x-session-id\"\n";
    const CONTRADICTED: [&str; 10] = [
        "load.duration",
        "request.stream",
        "request.ignore-eos",
        "dataset.config.replay",
        "dataset.config.max-idle",
        "dataset.config.time-scale",
        "load.lanes.idle-most",
        "load.lanes.salt",
        "request.ids.session",
        "dataset.config.on-too-long",
    ];

    #[test]
    fn reports_every_contradiction_at_once() {
        let text = format!("{TRACE}{CONTRADICTIONS}");
        let mut rules = Rules {
            name: "agentx",
            traced: true,
            open: Vec::new(),
            loosened: None,
            faults: Faults::default(),
        };
        let mut written = source(&text).scenario;
        rules.last(agentx(), &mut written);
        rules.all(agentx(), &mut written);
        let found: Vec<&str> = (rules.faults.scenario.iter())
            .map(|problem| problem.message().split('`').nth(1).unwrap())
            .collect();
        assert_eq!(found, CONTRADICTED);
    }

    #[test]
    fn loosened_rules_stay_as_they_are_set_and_are_named() {
        let text = format!("{TRACE}{CONTRADICTIONS}");
        let (ruled, _) = under(agentx(), source(&text), true).unwrap();
        let loosened = ruled.rules.unwrap().loosened;
        let named = loosened.iter().map(|loosened| loosened.split('`').nth(1).unwrap());
        assert_eq!(named.collect::<Vec<_>>(), CONTRADICTED);
        assert!(!ruled.scenario.request.stream.unwrap().value);
    }

    #[test]
    fn mlperf_agentic_sets_its_models_requests() {
        let preset = Preset::find("mlperf-agentic:qwen3.6-35b-a3b").unwrap();
        let (ruled, open) =
            under(preset, source("[load]\nsessions = 1226\n[request]\ntop-k = 20\n"), false)
                .unwrap();
        let Scenario { request, load, thresholds, scorers, .. } = ruled.scenario;
        let scorers = scorers.unwrap_or_default();
        let scorers = scorers.iter().map(|entry| &*entry.value.plugin.as_ref().unwrap().value);
        assert_eq!(scorers.collect::<Vec<_>>(), ["scorers/mlperf-agentic.wasm"]);
        assert_eq!((load.sessions.unwrap().value, load.lanes.salt()), (1226, LaneSalt::Pass));
        assert_eq!(load.lanes.shares(), Some([0.0, 0.0]));
        assert_eq!(request.presence_penalty.unwrap().value, 1.5);
        let limits: Vec<&str> = thresholds.iter().map(|entry| entry.value.as_str()).collect();
        let accuracy = "score.inline-accuracy >= 0.5586";
        assert_eq!(limits, ["output-tokens.mean >= 355", "output-tokens.mean <= 434", accuracy]);
        assert_eq!(open.len(), 2, "{open:?}");
        let wrong = "[load]\nsessions = 600\n[request]\ntop-k = 40\n\
                     [thresholds]\noutput-tokens.mean = \">= 1\"\n";
        let (ruled, _) = under(preset, source(wrong), true).unwrap();
        let loosened = ruled.rules.unwrap().loosened;
        let named = loosened.iter().map(|loosened| loosened.split('`').nth(1).unwrap());
        let keys = ["load.sessions", "request.top-k", "thresholds.output-tokens.mean"];
        assert_eq!(named.collect::<Vec<_>>(), keys);
    }

    #[test]
    fn mlperf_requires_poisson_arrivals() {
        let preset = Preset::find("mlperf-server").unwrap();
        let (ruled, _) =
            under(preset, source("[load]\narrival = \"poisson\"\nrate = 4.0\n"), false).unwrap();
        assert!(ruled.scenario.load.duration.is_none());
        let even = source("[load]\narrival = \"constant\"\nrate = 4.0\n");
        assert!(under(preset, even, false).is_err());
    }
}
