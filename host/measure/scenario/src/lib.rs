//! The scenario: a run as its author described it, in TOML, with flags, or both.
//!
//! This crate owns its format: it reads a scenario (reporting every mistake at once, each with its
//! place), lays flags over it ([`Scenario::overlay`]) and finds contradictions
//! ([`Scenario::validate`]). It also owns the format of a [`plan`]. It leaves making one to
//! `session`: an absent value means that nothing was set. The configuration of plugins is carried
//! in free form and compared with a plugin's own schema by [`check_config`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and read clocks"))]
// A number that the user wrote must not change on its way.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

use reader::{Located, Place, Problem, ScenarioError, parse_assignment, parse_table};

use field::{Field, Table};
use key::aliases;

mod check;
mod devices;
mod expect;
mod field;
mod key;
mod load;
mod overlay;
pub mod plan;
mod plugin;
mod report;
mod request;
mod scenario;
mod schema;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod value;

pub use devices::{Cost, DeviceMetrics, Machines, Run};
pub use expect::{AcceptanceLength, Expect};
pub use field::Entry;
pub use key::{Flag, Key, heading, keys};
pub use load::{Arrival, Lanes, Load, Ramp, Stage, Trace};
pub use plugin::{Backend, Dataset, Sandbox, Scorer};
pub use report::{Goodput, Report, ServerSeries, Thresholds};
pub use request::{Ids, RequestOptions};
pub use scenario::{About, Scenario};
pub use schema::check_config;
pub use target::{Connection, Headers, Paired, Side, Target, Timeouts, Tokenizer};

impl Scenario {
    /// Reads a scenario's text; `name` is its path in messages. Errors: all faults within it. A
    /// missing key may still come from flags: see [`Scenario::validate`].
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let (scenario, problems) = Scenario::read(name, text);
        ScenarioError::unless_empty(problems)?;
        Ok(scenario)
    }

    /// The readable part of a scenario's text, and all of its faults. If its syntax is broken, only
    /// that is reported, since the intent is unknown.
    pub fn read(name: &str, text: &str) -> (Scenario, Vec<Problem>) {
        let (scenario, mut problems) =
            parse_table(name, text, &aliases(), |root, _| Scenario::read_keys(root));
        let scenario = scenario.unwrap_or_default();
        problems.extend(check::values(&scenario));
        let is_misread = problems.iter().any(|it| it.message().starts_with("`load.arrival`"));
        problems.extend(check::contradictions(&scenario));
        if !is_misread {
            check::load::missing_arrival(&scenario.load, &mut problems);
        }
        (scenario, problems)
    }

    /// Checks a complete scenario, including its flags. Errors: values out of range, pairs that
    /// contradict each other, and an arrival that lacks its rate or concurrency.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let mut problems = check::values(self);
        problems.extend(check::contradictions(self));
        check::load::missing_arrival(&self.load, &mut problems);
        problems.extend(check::gaps(self));
        ScenarioError::unless_empty(problems)
    }

    /// The scenario of assignments such as `load.requests=50`, as `--set` takes them, and their
    /// faults; of several of one key the last counts.
    pub fn assigned(texts: &[String]) -> (Scenario, Vec<Problem>) {
        let (mut scenario, mut problems) = (Scenario::default(), Vec::new());
        for text in texts {
            let Some((key, value)) = text.split_once('=') else {
                let problem = Problem::new(format!("--set takes KEY=VALUE, found `{text}`"));
                problems.push(problem.at(Place::Flag("--set".to_owned()), "here"));
                continue;
            };
            let key = key.trim();
            let (over, wrong) = Scenario::assigned_by(&format!("--set {key}"), key, value.trim());
            problems.extend(wrong);
            scenario = scenario.merged(over);
        }
        (scenario, problems)
    }

    /// The scenario of one assignment, by a flag that other tools have, and its faults. `key` may
    /// lie in a plugin's configuration, and `value` is read as by [`Scenario::assigned`].
    pub fn assigned_by(flag: &str, key: &str, value: &str) -> (Scenario, Vec<Problem>) {
        let (scenario, problems) =
            parse_assignment(flag, [key, value], &aliases(), |root, _| Scenario::read_keys(root));
        (scenario.unwrap_or_default(), problems)
    }

    /// Stores the texts of a flag at a key's path. Errors: the fault, as a message for people.
    pub fn say(&mut self, path: &str, flag: &str, texts: &[String]) -> Result<(), String> {
        let path: Vec<&str> = path.split('.').collect();
        Field::say(self, &path, flag, texts)
    }

    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        Field::entries(self, "", &mut entries);
        entries
    }

    /// This scenario with every default that can be written beside its own values; the defaults
    /// have the place `default`. A default that another key rules out, or that holds only together
    /// with another key, is left out.
    pub fn settled(&self) -> Scenario {
        let mut settled = self.clone();
        let decided_at = check::load::decided_at(&self.load).cloned();
        settled.load.arrival = self
            .load
            .meant_arrival()
            .zip(decided_at)
            .map(|(arrival, place)| Located::new(arrival, place));
        for key in keys().iter().filter(|key| key.otherwise.is_none()) {
            let Some(default) = &key.default else { continue };
            let entries = settled.entries();
            if key.path.contains("[]") || entries.iter().any(|entry| entry.path == key.path) {
                continue;
            }
            let (default, _) = Scenario::assigned_by("default", &key.path, default);
            let with = settled.clone().merged(default);
            if with.validate().is_ok() {
                settled = with;
            }
        }
        settled
    }
}

// The effect of a difference between two runs on their comparison.

model::words! {
    /// The parts of a plan that must agree, under the names that `--allow` takes.
    pub enum Kind {
        /// The prompts: dataset, its settings and files, the seed, the requests themselves.
        Prompts = "prompts",
        /// The requested token counts.
        Lengths = "lengths",
        /// The number of requests, or the duration.
        Count = "count",
        /// The load: arrival, rate, cap, warm-up, cache.
        Load = "load",
        /// Options of every request: streaming, ignore-eos, sampling.
        Request = "request",
        /// The model.
        Model = "model",
        /// The tokenizer of the client.
        Tokenizer = "tokenizer",
        /// The definition of a figure.
        Definition = "definition",
        /// The client: connections, time stamps, timeouts.
        Client = "client",
        /// An invalid run.
        Verdict = "verdict",
        /// The engine and its version, where `--must-agree` asks for it.
        Engine = "engine",
        /// The engine's stated hardware, where `--must-agree` asks for it.
        Hardware = "hardware",
        /// The machine of the client: processor and cores, where `--must-agree` asks for it.
        Machine = "machine",
    }
}

impl Kind {
    /// The kinds that people compare on purpose, and that `--must-agree` takes.
    pub const ON_PURPOSE: [Kind; 3] = [Kind::Engine, Kind::Hardware, Kind::Machine];
}

/// The treatment of a key of the plan that differs between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It must agree: without `--allow` of its kind, the runs are not compared.
    Must(Kind),
    /// It may differ: people compare it, or it is good to know.
    May,
    /// It does not affect the measurement, or another key covers it.
    Silent,
}
