//! From a lab to its trials: an engine, a model and values of the engine's options, as a command
//! line.
//!
//! **A trial's id is a digest of its inputs**: the command line, the variables, the backend and
//! the keys laid over scenarios. Names of engines and models, and ports, are not in it. So after a
//! change of the lab file only the changed trials run again, and two combinations that run the same
//! are one trial. Secrets have no part in it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::condition::Condition;
use crate::file::{Dimension, Engine, Flags, Lab, Model, OptionKind, Strategy};
use crate::template::{self, is_same, shown, words};
use model::{redact, shell};
use reader::Problem;

/// The word of a launch line in whose place the options stand.
pub const OPTIONS: &str = "{options}";

const MOST_TRIALS: usize = 5_000;

/// The id of a trial: the beginning of its digest.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct TrialId(pub String);

impl std::fmt::Display for TrialId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An engine with one value of each option, and a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    pub id: TrialId,
    /// The engine, by its position.
    pub engine: usize,
    /// The model, by its position.
    pub model: usize,
    /// The row of each of the engine's dimensions.
    pub choice: Vec<usize>,
    /// The present options, with their values.
    pub settings: Vec<(String, Value)>,
    /// The command line, whose only placeholders are {port} and {host}; none if it runs already.
    pub launch: Option<Vec<String>>,
    /// Environment variables, with references to ours.
    pub env: Vec<(String, String)>,
    /// The backend plugin, if the lab names one, and its configuration.
    pub backend: (Option<String>, Value),
    /// Keys that are laid over every scenario.
    pub set: Value,
    /// The placeholders that are the same for all words: the engine's and the model's.
    pub placeholders: BTreeMap<String, String>,
}

/// A digest of several texts, as hexadecimal.
pub fn digest<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    model::hex(&digest.finalize())
}

impl Lab {
    /// A trial; none if it is excluded.
    pub fn trial(&self, engine: usize, model: usize, choice: &[usize]) -> Option<Trial> {
        let described = &self.engines[engine];
        let choice = normal(described, choice);
        let settings = settings(described, &choice);
        let named = names(described, &self.models[model], &settings);
        if described.exclude.iter().any(|condition| holds(&condition.value, &named)) {
            return None;
        }
        Some(self.new_trial(engine, model, choice, settings))
    }

    fn new_trial(
        &self,
        place: usize,
        model: usize,
        choice: Vec<usize>,
        settings: Vec<(String, Value)>,
    ) -> Trial {
        let engine = &self.engines[place];
        let with = &self.models[model];
        let fill = |text: &str| template::filled(text, |name| placeholder(engine, with, name));
        let mut options: Vec<String> = Vec::new();
        let mut env: Vec<(String, String)> =
            engine.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        for (option, value) in written(engine, &choice) {
            if option.omit.as_ref().is_some_and(|omit| is_same(omit, value)) {
                continue;
            }
            if option.is_env {
                env.extend(variable(option, value).map(|(name, value)| (name, fill(&value))))
            } else {
                options.extend(flag(engine.flags, option, value).iter().map(|word| fill(word)))
            }
        }
        let launch = engine.launch.as_ref().map(|launch| {
            let mut line: Vec<String> = Vec::new();
            let mut options = Some(options);
            for word in launch {
                if word == OPTIONS {
                    line.extend(options.take().into_iter().flatten())
                } else {
                    line.push(fill(word))
                }
            }
            line.extend(options.into_iter().flatten());
            line
        });
        let set = filled_texts(&Value::Object(self.set.to_json()), &|text| {
            template::finished(text, |name| placeholder(engine, with, name))
        });
        let config = Value::Object(engine.config.to_json());
        let mut placeholders: BTreeMap<String, String> = (with.values.iter())
            .map(|(name, value)| (format!("model.{name}"), value.clone()))
            .collect();
        placeholders.insert("engine".to_owned(), engine.name.clone());
        let identity = json!({
            "launch": launch,
            "running": engine.launch.is_none().then_some(&engine.base_url),
            "env": env,
            "dir": engine.dir,
            "backend": engine.backend,
            "config": config,
            "model": with.served_name(),
            "set": set,
        });
        // A trial's id does not depend on its secrets: a page without them has the same.
        let id = match &self.hidden {
            Some(hidden) => hidden.new_trial(place, model, choice.clone(), Vec::new()).id,
            None => TrialId(digest([identity.to_string().as_str()])[..12].to_owned()),
        };
        Trial {
            id,
            engine: place,
            model,
            choice,
            settings,
            launch,
            env,
            backend: (engine.backend.clone(), config),
            set,
            placeholders,
        }
    }

    pub fn baseline(&self, engine: usize, model: usize) -> Option<Trial> {
        self.trial(engine, model, &rows(&self.engines[engine]))
    }

    /// All combinations of values of every engine with a model, each engine's baseline first.
    pub fn matrix(&self, model: usize) -> Vec<Trial> {
        let mut trials = Vec::new();
        for (place, engine) in self.engines_with(model) {
            let mut choices = vec![rows(engine)];
            for (dimension, varied) in engine.dimensions.iter().enumerate() {
                let values = order(varied);
                choices = (choices.iter())
                    .flat_map(|choice| {
                        values.iter().map(move |row| {
                            let mut choice = choice.clone();
                            choice[dimension] = *row;
                            choice
                        })
                    })
                    .collect();
            }
            trials.extend(choices.iter().filter_map(|choice| self.trial(place, model, choice)));
        }
        merged(trials)
    }

    /// The trials that differ from one in one dimension's value, in the order of the file.
    pub fn variations(&self, from: &Trial, dimension: usize) -> Vec<Trial> {
        let engine = &self.engines[from.engine];
        let own = from.choice[dimension];
        let rows = (0..engine.dimensions[dimension].rows.len()).filter(|row| *row != own);
        let varied = rows.filter_map(|row| {
            let mut choice = from.choice.clone();
            choice[dimension] = row;
            self.trial(from.engine, from.model, &choice)
        });
        merged(varied.filter(|trial| trial.id != from.id).collect())
    }

    /// The engines that are tried with a model, with their positions.
    pub fn engines_with(&self, model: usize) -> impl Iterator<Item = (usize, &Engine)> {
        let engines = self.engines.iter().enumerate();
        engines.filter(move |(_, engine)| engine.models.contains(&model))
    }

    /// Names a trial in tables: its engine among several, and its difference from the baseline.
    pub fn label(&self, trial: &Trial) -> String {
        let engine = &self.shown().engines[trial.engine];
        let baseline = normal(engine, &rows(engine));
        let chosen = engine.dimensions.iter().zip(&trial.choice).zip(&baseline);
        let differing = chosen.filter(|((_, row), usual)| row != usual);
        let parts = differing.flat_map(|((dimension, row), _)| {
            let values = dimension.options.iter().zip(&dimension.rows[*row]);
            values.map(|(option, value)| format!("{} {}", option.name, shown(value)))
        });
        let parts: Vec<String> = parts.collect();
        let differs = if parts.is_empty() { "baseline".to_owned() } else { parts.join(", ") };
        if self.engines.len() == 1 { differs } else { format!("{}: {differs}", engine.name) }
    }

    /// The value that a dimension has in a trial, as text; nothing if it is absent.
    pub fn value_in(&self, trial: &Trial, dimension: usize) -> Option<String> {
        let varied = &self.shown().engines[trial.engine].dimensions[dimension];
        let first = &varied.options[0].name;
        trial.settings.iter().find(|(name, _)| name == first)?;
        let row = &varied.rows[trial.choice[dimension]];
        Some(row.iter().map(shown).collect::<Vec<_>>().join(" / "))
    }
}

/// Finds the value of a placeholder, other than the port and the host.
fn placeholder(engine: &Engine, model: &Model, name: &str) -> Option<String> {
    match name.strip_prefix("model.") {
        Some(name) => model.values.get(name).cloned(),
        None => (name == "engine").then(|| engine.name.clone()),
    }
}

/// A value with every text in it changed.
fn filled_texts(value: &Value, fill: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => fill(text).into(),
        Value::Array(items) => items.iter().map(|item| filled_texts(item, fill)).collect(),
        Value::Object(map) => {
            let filled = map.iter().map(|(key, value)| (key.clone(), filled_texts(value, fill)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

/// The baseline's row of each dimension.
fn rows(engine: &Engine) -> Vec<usize> {
    engine.dimensions.iter().map(|dimension| dimension.baseline).collect()
}

/// A dimension's rows, the baseline first.
fn order(dimension: &Dimension) -> Vec<usize> {
    let others = (0..dimension.rows.len()).filter(|row| *row != dimension.baseline);
    [dimension.baseline].into_iter().chain(others).collect()
}

/// Lists the dimensions whose conditions hold, each with the row chosen.
fn active<'e>(engine: &'e Engine, choice: &[usize]) -> Vec<(&'e Dimension, usize)> {
    let dimensions = engine.dimensions.iter().zip(choice.iter().copied());
    let always = dimensions.clone().filter(|(dimension, _)| dimension.when.is_none());
    let values = always.flat_map(|(dimension, row)| {
        let pairs = dimension.options.iter().zip(&dimension.rows[row]);
        pairs.map(|(option, value)| (option.name.clone(), value.clone()))
    });
    let values: BTreeMap<String, Value> = values.collect();
    let applies =
        |dimension: &Dimension| dimension.when.as_ref().is_none_or(|when| holds(when, &values));
    dimensions.filter(|(dimension, _)| applies(dimension)).collect()
}

/// A choice with the baseline of inapplicable options, so that equal trials have equal choices.
fn normal(engine: &Engine, choice: &[usize]) -> Vec<usize> {
    let active = active(engine, choice);
    let is_active =
        |dimension: &Dimension| active.iter().any(|(known, _)| std::ptr::eq(*known, dimension));
    (engine.dimensions.iter().zip(choice))
        .map(|(dimension, row)| if is_active(dimension) { *row } else { dimension.baseline })
        .collect()
}

/// The present options, with their values.
fn written<'e>(engine: &'e Engine, choice: &[usize]) -> Vec<(&'e OptionKind, &'e Value)> {
    let active = active(engine, choice).into_iter();
    active.flat_map(|(dimension, row)| dimension.options.iter().zip(&dimension.rows[row])).collect()
}

fn settings(engine: &Engine, choice: &[usize]) -> Vec<(String, Value)> {
    let written = written(engine, choice).into_iter();
    written.map(|(option, value)| (option.name.clone(), value.clone())).collect()
}

/// Collects the values that conditions on a trial can name.
fn names(engine: &Engine, model: &Model, settings: &[(String, Value)]) -> BTreeMap<String, Value> {
    let mut names: BTreeMap<String, Value> = settings.iter().cloned().collect();
    names.insert("engine".to_owned(), engine.name.clone().into());
    names.insert("model".to_owned(), model.name.clone().into());
    names
}

/// True if a condition holds for these values.
fn holds(condition: &Condition, values: &BTreeMap<String, Value>) -> bool {
    let values = values.iter().map(|(name, value)| (name.as_str(), value));
    condition.holds(values).unwrap_or(false)
}

/// An option as words of a command line.
fn flag(flags: Flags, option: &OptionKind, value: &Value) -> Vec<String> {
    let dashes = if option.name.starts_with('-') { "" } else { "--" };
    let name = format!("{dashes}{}", option.name);
    match (value, flags) {
        (Value::Bool(true), _) => vec![name],
        (Value::Bool(false), _) => option.off.iter().cloned().collect(),
        (value, Flags::Equals) => vec![format!("{name}={}", words(value).join(","))],
        (value, Flags::Space) => [name].into_iter().chain(words(value)).collect(),
    }
}

fn variable(option: &OptionKind, value: &Value) -> Option<(String, String)> {
    match value {
        Value::Bool(false) => None,
        Value::Bool(true) => Some((option.name.clone(), "1".to_owned())),
        value => Some((option.name.clone(), words(value).join(","))),
    }
}

/// Trials without later ones that run the same as an earlier trial.
pub(crate) fn merged(mut trials: Vec<Trial>) -> Vec<Trial> {
    let mut seen = std::collections::BTreeSet::new();
    trials.retain(|trial| seen.insert(trial.id.clone()));
    trials
}

pub(crate) fn problems(lab: &Lab) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (place, engine) in lab.engines.iter().enumerate() {
        for model in &engine.models {
            if lab.baseline(place, *model).is_none() {
                problems.push(excluded(lab, engine, *model));
            }
        }
        let many = engine.dimensions.iter().map(|dimension| dimension.rows.len());
        let many = many.fold(1_usize, usize::saturating_mul).saturating_mul(engine.models.len());
        if lab.strategy == Strategy::Matrix && many > MOST_TRIALS {
            let message = format!(
                "the engine `{}` has {many} combinations of values; the strategy `{}` takes at most {MOST_TRIALS}",
                engine.name,
                lab.strategy.name()
            );
            let help = "leave values out, or take the strategy `one-at-a-time`";
            problems.push(Problem::new(message).at(engine.place.clone(), "here").help(help));
        }
    }
    for (place, model) in lab.models.iter().enumerate() {
        if lab.engines_with(place).next().is_none() {
            let message = format!("no engine is tried with the model `{}`", model.name);
            problems.push(Problem::new(message));
        }
    }
    problems
}

fn excluded(lab: &Lab, engine: &Engine, model: usize) -> Problem {
    let choice = normal(engine, &rows(engine));
    let settings = settings(engine, &choice);
    let named = names(engine, &lab.models[model], &settings);
    let by = engine.exclude.iter().find(|condition| holds(&condition.value, &named));
    let model = match lab.models[model].name.as_str() {
        "" => String::new(),
        name => format!(" with the model `{name}`"),
    };
    Problem::new(format!("the baseline of the engine `{}`{model} is excluded", engine.name))
        .at(by.map(|condition| condition.place.clone()), "by this")
        .help("every trial is compared with the baseline; choose another one under [engines.baseline], or name the \
               engine's models: `models`")
}

impl Trial {
    /// The command line as it is started; none for an engine that runs already.
    pub fn command(&self, engine: &Engine) -> Option<Vec<String>> {
        let finish = |word: &String| template::finished(word, |name| address(engine, name));
        Some(self.launch.as_ref()?.iter().map(finish).collect())
    }

    /// The filled-in command that prints the engine's version; none if the file names none.
    pub fn version_command(&self, engine: &Engine) -> Option<Vec<String>> {
        let finish = |word: &String| {
            template::finished(word, |name| {
                address(engine, name).or_else(|| self.placeholders.get(name).cloned())
            })
        };
        Some(engine.version_command.as_ref()?.iter().map(finish).collect())
    }

    /// The variables as the engine gets them, with our values. Errors: a name that is not set.
    pub fn environment(
        &self,
        engine: &Engine,
        ours: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<(String, String)>, String> {
        let finish = |(name, text): &(String, String)| {
            // First the placeholders, so that a secret's braces are text.
            let text = template::finished(text, |name| address(engine, name));
            template::with_variables(&text, &ours).map(|value| (name.clone(), value))
        };
        self.env.iter().map(finish).collect()
    }

    /// The command with its variables as a shell reads it, for journals and pages: references to
    /// our variables stay references, and anything like a secret is left out. For an engine that
    /// runs already, a comment with its address.
    pub fn recorded(&self, engine: &Engine) -> String {
        let Some(words) = self.command(engine) else {
            return redact::command(&format!("# runs already at {}", engine.base_url));
        };
        let variables = self.env.iter().map(|(name, value)| {
            let value = template::finished(value, |name| address(engine, name));
            // A reference is for the shell to fill in.
            let value = if value.contains("${") {
                format!("\"{}\"", value.replace(['\\', '"', '`'], ""))
            } else {
                shell::quoted(&value)
            };
            format!("{name}={value} ")
        });
        redact::command(&(variables.collect::<String>() + &shell::line(&words)))
    }
}

impl Lab {
    /// A trial's command as journals and runs show it.
    pub fn shown_command(&self, trial: &Trial) -> String {
        let secrets = redact::Known::new(self.secrets.iter().cloned());
        secrets.redact(&trial.recorded(&self.engines[trial.engine]))
    }
}

/// The placeholders that are known at the start of an engine.
fn address(engine: &Engine, name: &str) -> Option<String> {
    match name {
        "port" => Some(engine.port.to_string()),
        "host" => Some(engine.host.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::Lab;

    #[test]
    fn secrets_go_to_the_engine_and_into_no_file() {
        let text = "name = \"x\"\nstrategy = \"matrix\"\nscenarios = \"a\"\n[[engines]]\nname = \"e\"\n\
                    launch = [\"serve\", \"--api-key\", \"sk-123456789012\", \"--port={port}\"]\n\
                    env = { HF_TOKEN = \"${HF_TOKEN}\", OTHER_TOKEN = \"abc\", URL = \"{host}:${P}\" }\n";
        let lab = Lab::parse("lab.toml", text).unwrap();
        let trial = lab.baseline(0, 0).unwrap();
        let engine = &lab.engines[0];
        let ours = |name: &str| Some(format!("{{port}}{name}"));
        let wanted =
            [("HF_TOKEN", "{port}HF_TOKEN"), ("OTHER_TOKEN", "abc"), ("URL", "127.0.0.1:{port}P")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(trial.environment(engine, ours).unwrap(), wanted);
        let expected = "the variable HF_TOKEN is not set";
        assert_eq!(trial.environment(engine, |_| None).unwrap_err(), expected);
        let expected = "HF_TOKEN=\"${HF_TOKEN}\" OTHER_TOKEN=[redacted] URL=\"127.0.0.1:${P}\" serve --api-key [redacted] --port=8000";
        assert_eq!(trial.recorded(engine), expected);
    }
}
