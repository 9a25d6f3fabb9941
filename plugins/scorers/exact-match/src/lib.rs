//! Scorer that checks if an answer equals the sample's reference. Only the answer counts, not the
//! reasoning before it; a sample without a reference is not judged.
#![deny(unsafe_code)]

use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Ignore white space around the answer and the reference.
    pub strip: bool,
    /// Ignore the case of letters.
    pub ignore_case: bool,
    /// The key of the answer if a reference is a table.
    pub reference_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { strip: true, ignore_case: false, reference_key: "answer".to_owned() }
    }
}

pub struct ExactMatch {
    config: Config,
}

runner_plugin::export_scorer!(ExactMatch);

impl Scorer for ExactMatch {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Self { config })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = &exchange.reference else {
            return Ok(Vec::new());
        };
        let reference: Value = serde_json::from_str(reference).map_err(|error| {
            Error::InvalidInput(format!(
                "the reference of sample {} is not JSON: {error}",
                exchange.id
            ))
        })?;
        let accepted = self.accepted(&reference).ok_or_else(|| {
            Error::InvalidInput(format!(
                "the reference of sample {} is {}; expected a string, a number, a truth value, a list of them, or a \
                 table with one of these under `{}`: set `reference-key`, or use another scorer",
                exchange.id,
                kind(&reference),
                self.config.reference_key
            ))
        })?;
        let answer = self.comparable(&exchange.output);
        let right = accepted.iter().any(|accepted| self.comparable(accepted) == answer);
        Ok(vec![Score { name: "exact-match".to_owned(), value: f64::from(u8::from(right)) }])
    }
}

impl ExactMatch {
    /// The answers that a reference accepts; `None` where it is none.
    fn accepted(&self, reference: &Value) -> Option<Vec<String>> {
        match reference {
            Value::Object(table) => {
                let reference = table.get(&self.config.reference_key)?;
                if reference.is_object() { None } else { self.accepted(reference) }
            }
            Value::Array(references) => references.iter().map(text).collect(),
            single => Some(vec![text(single)?]),
        }
    }

    fn comparable(&self, text: &str) -> String {
        let text = if self.config.strip { text.trim() } else { text };
        if self.config.ignore_case { text.to_lowercase() } else { text.to_owned() }
    }
}

fn text(reference: &Value) -> Option<String> {
    match reference {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list with something else in it",
        Value::Object(_) => "a table without one",
    }
}
