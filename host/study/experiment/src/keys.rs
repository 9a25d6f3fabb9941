//! Keys that a lab sets in a scenario.

use std::path::Path;

use reader::{Config, Place, toml_text};
use scenario::Scenario;
use serde_json::Value;
use session::Faults;

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
