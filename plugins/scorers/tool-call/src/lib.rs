//! Scorer that checks if an answer calls the right tools with the right arguments: the AST check of
//! the Berkeley Function Calling Leaderboard for Python, as in `bfcl-eval` 2026.3.23
//! (ShishirPatil/gorilla,
//! `berkeley-function-call-leaderboard/bfcl_eval/eval_checker/ast_eval/ast_checker.py`).
//!
//! The reference is a table of two keys, which are BFCL's own:
//!
//! - `function`: the tools, each with `name` and `parameters` (`properties`, `required`); a list,
//!   or one alone. Tools of OpenAI's API, `{"type": "function", "function": {…}}`, are read as
//!   well.
//! - `ground_truth`: the calls, each a table of one name and its arguments, and of each argument
//!   the list of values that are right; `""` in such a list says that the argument may be left out.
//!
//! An answer is right if its number of calls equals the number in `ground_truth`, and each right
//! call is matched by a call that no earlier one took, in any order. A call matches if the name is
//! equal, no required argument is missing, none is unknown, each has the declared type, and each
//! value is among the right ones. Texts are compared in lower case and without spaces and
//! `,./-_*^`; integers pass as `float`. Types are `string`, `integer`, `float`, `boolean`, `array`,
//! `tuple`, `dict`, `any`; and, beyond BFCL's check, `number` for `float` and `object` for `dict`.
//! Two rules of BFCL look odd and stay: the type of an array's items is checked one level deep. An
//! argument whose right values differ from the declared type may have their type.
//!
//! Without `ground_truth`, or with an empty one, an answer without calls is right. A sample without
//! a reference is not judged. `tool-call-unparsed` is 1 if there is no call although one is wanted,
//! or if arguments are no JSON object; `tool-call` is 0 then.
#![deny(unsafe_code)]

mod check;
#[cfg(test)]
mod tests;

use judging::{reference, truth, unusable};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// Expect `_` where a tool's name has a dot, as BFCL does for models whose API allows no dots
    /// in names.
    pub underscore_to_dot: bool,
    /// The key of the tools in a reference.
    pub functions_key: String,
    /// The key of the right calls in a reference.
    pub answers_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            underscore_to_dot: true,
            functions_key: "function".to_owned(),
            answers_key: "ground_truth".to_owned(),
        }
    }
}

pub struct ToolCall {
    config: Config,
}

runner_plugin::export_scorer!(ToolCall);

impl Scorer for ToolCall {
    type Config = Config;

    fn open(config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        Ok(Self { config })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
        let wrong = |expected: &str| unusable(exchange, &reference, expected);
        let table = reference.as_object().ok_or_else(|| {
            let Config { functions_key, answers_key, .. } = &self.config;
            wrong(&format!("a table with `{functions_key}` and `{answers_key}`"))
        })?;
        let functions: Vec<&Value> = match table.get(&self.config.functions_key) {
            Some(Value::Array(functions)) => functions.iter().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        let answers = match table.get(&self.config.answers_key) {
            Some(Value::Array(answers)) => answers.as_slice(),
            None | Some(Value::Null) => &[],
            Some(_) => {
                return Err(wrong(&format!("a list under `{}`", self.config.answers_key)));
            }
        };
        let answers: Vec<check::RightCall<'_>> = (answers.iter())
            .map(|answer| check::RightCall::new(answer, &functions, self.config.underscore_to_dot))
            .collect::<Result<_, String>>()
            .map_err(|expected| wrong(&expected))?;
        let calls = judging::read(&exchange.tool_calls);
        let unparsed =
            calls.as_ref().is_none_or(Vec::is_empty) && !answers.is_empty() || calls.is_none();
        let right = calls.is_some_and(|calls| check::all_match(&answers, &calls));
        Ok(vec![truth("tool-call", right), truth("tool-call-unparsed", unparsed)])
    }
}

/// The types that BFCL tells apart, which are Python's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    /// `None`.
    Null,
    /// `bool`.
    Boolean,
    /// `int`.
    Integer,
    Float,
    /// `str`.
    Text,
    List,
    /// `dict`.
    Table,
}

impl Type {
    pub fn from_value(value: &Value) -> Type {
        match value {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Boolean,
            Value::Number(number) if number.is_f64() => Type::Float,
            Value::Number(_) => Type::Integer,
            Value::String(_) => Type::Text,
            Value::Array(_) => Type::List,
            Value::Object(_) => Type::Table,
        }
    }

    /// The type that a tool declares, in BFCL's words and JSON Schema's.
    pub fn declared(name: &str) -> Option<Type> {
        Some(match name {
            "string" | "any" => Type::Text,
            "integer" => Type::Integer,
            "float" | "number" => Type::Float,
            "boolean" => Type::Boolean,
            "array" | "tuple" => Type::List,
            "dict" | "object" => Type::Table,
            _ => return None,
        })
    }
}

/// Python's `==`.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => tables_are_equal(one, other),
        (Value::Bool(_) | Value::Number(_), Value::Bool(_) | Value::Number(_)) => {
            match (integer(one), integer(other)) {
                (Some(one), Some(other)) => one == other,
                _ => float(one) == float(other),
            }
        }
        _ => one == other,
    }
}

fn tables_are_equal(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len()
        && (one.iter()).all(|(key, value)| other.get(key).is_some_and(|other| equal(value, other)))
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Bool(truth) => Some(i128::from(*truth)),
        Value::Number(number) => {
            number.as_i64().map(i128::from).or(number.as_u64().map(i128::from))
        }
        _ => None,
    }
}

fn float(value: &Value) -> f64 {
    match integer(value) {
        Some(integer) => integer as f64,
        None => value.as_f64().unwrap_or(f64::NAN),
    }
}

/// A text as it is compared: without spaces and `,./-_*^`, in lower case, with double quotes.
fn plain(text: &str) -> String {
    text.replace([' ', ',', '.', '/', '-', '_', '*', '^'], "").to_lowercase().replace('\'', "\"")
}

/// Makes a value's own text plain, but no text inside it.
fn plain_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain(text)),
        other => other.clone(),
    }
}
