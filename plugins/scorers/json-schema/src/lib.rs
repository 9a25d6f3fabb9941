//! Scorer that checks if an answer is JSON and valid by a schema: the key `schema`, or each
//! sample's reference.
//!
//! An answer's JSON is the whole answer, or else the first block between lines of three backquotes
//! that is JSON.
//!
//! Schemas are read as JSON Schema 2020-12. A keyword that is not in this list is an error when
//! the scorer opens, and for a sample's schema an error for that sample. An unchecked rule makes
//! answers look valid:
//!
//! - any value: `type`, `enum`, `const`, `allOf`, `anyOf`, `oneOf`, `not`, `if`, `then`, `else`,
//!   `$ref`
//! - numbers: `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`
//! - texts: `minLength`, `maxLength`, `pattern`
//! - lists: `items` (one schema), `prefixItems`, `contains`, `minContains`, `maxContains`,
//!   `minItems`, `maxItems`, `uniqueItems`
//! - tables: `properties`, `required`, `additionalProperties`, `patternProperties`,
//!   `propertyNames`, `minProperties`, `maxProperties`, `dependentRequired`, `dependentSchemas`
//! - definitions: `$defs`, `definitions`
//! - read, without effect: `$schema`, `$id` at the root, `$comment`, `title`, `description`,
//!   `default`, `examples`, `deprecated`, `readOnly`, `writeOnly`, `format`
//!
//! So `unevaluatedProperties`, `unevaluatedItems`, `$anchor`, `$dynamicRef`, and the older
//! `dependencies`, `additionalItems` and lists of `items` are errors. `$ref` is `#` or a JSON
//! pointer into the same schema (`#/$defs/x`). Patterns have the syntax of the crate `regex-lite`:
//! no look-around, and classes mean ASCII.
//!
//! A sample without a reference is not judged if there is no `schema`. `json-schema-unparsed` is 1
//! if there is no JSON in the answer; `json-schema` is 0 then.
#![deny(unsafe_code)]

mod schema;
#[cfg(test)]
mod tests;
mod valid;

use std::cmp::Ordering;

use judging::{Part, reference, truth, unusable};
use runner_plugin::{Error, Exchange, Score, Scorer, Tokenizer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use crate::schema::Schema;

/// The user's configuration.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Config {
    /// The schema for every answer. Default: the sample's reference.
    pub schema: Option<Map<String, Value>>,
    /// Look for JSON in a block between lines of three backquotes if the whole answer is none.
    pub fenced: bool,
    /// The part of the reply that is judged.
    pub part: Part,
    /// The key of the schema if a reference is a table that has it; otherwise the reference is the
    /// schema.
    pub reference_key: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { schema: None, fenced: true, part: Part::Answer, reference_key: "schema".to_owned() }
    }
}

/// Scores `json-schema` and `json-schema-unparsed`.
pub struct ByJsonSchema {
    config: Config,
    schema: Option<Schema>,
}

runner_plugin::export_scorer!(ByJsonSchema);

impl Scorer for ByJsonSchema {
    type Config = Config;

    fn open(mut config: Config, _tokenizer: Box<dyn Tokenizer>) -> Result<Self, Error> {
        let schema = (config.schema.take())
            .map(|schema| Schema::new(Value::Object(schema)))
            .transpose()
            .map_err(|wrong| Error::InvalidConfig(format!("key `schema`: {}", wrong.join("\n"))))?;
        Ok(Self { config, schema })
    }

    fn score(&mut self, exchange: &Exchange) -> Result<Vec<Score>, Error> {
        let of_sample;
        let schema = if let Some(schema) = &self.schema {
            schema
        } else {
            let Some(reference) = reference(exchange)? else { return Ok(Vec::new()) };
            of_sample = self.schema_of(exchange, &reference)?;
            &of_sample
        };
        let text = self.config.part.text(exchange);
        let found = find_json(&text, self.config.fenced);
        let valid = match &found {
            Some(json) => valid::valid(schema, json).map_err(|error| {
                Error::InvalidInput(format!("the answer to sample {}: {error}", exchange.id))
            })?,
            None => false,
        };
        Ok(vec![truth("json-schema", valid), truth("json-schema-unparsed", found.is_none())])
    }
}

impl ByJsonSchema {
    /// The schema of a sample: a table, `true` or `false`, or a text of JSON with one of these.
    fn schema_of(&self, exchange: &Exchange, reference: &Value) -> Result<Schema, Error> {
        let inner = reference.get(&self.config.reference_key).unwrap_or(reference);
        let schema = match inner {
            Value::String(text) => serde_json::from_str(text).map_err(|error| {
                unusable(
                    exchange,
                    reference,
                    &format!("a JSON Schema, but the text is not JSON: {error}"),
                )
            })?,
            other => other.clone(),
        };
        Schema::new(schema).map_err(|wrong| {
            let expected = format!("a JSON Schema that this scorer reads: {}", wrong.join("; "));
            unusable(exchange, reference, &expected)
        })
    }
}

/// The JSON that an answer is, or the first one between lines of three backquotes.
fn find_json(answer: &str, fenced: bool) -> Option<Value> {
    serde_json::from_str(answer).ok().or_else(|| if fenced { in_a_fence(answer) } else { None })
}

fn in_a_fence(answer: &str) -> Option<Value> {
    // The start of the block whose end is not yet found.
    let mut begin = None;
    let mut at = 0;
    for line in answer.split_inclusive('\n') {
        let is_fence = line.trim().starts_with("```");
        match begin {
            None if is_fence => begin = Some(at + line.len()),
            Some(start) if is_fence => {
                if let Ok(value) = serde_json::from_str(&answer[start..at]) {
                    return Some(value);
                }
                begin = None;
            }
            _ => {}
        }
        at += line.len();
    }
    // An answer may end before its block does.
    serde_json::from_str(&answer[begin?..]).ok()
}

// Numbers and equality of JSON Schema: `1.0` is the integer 1, and a truth value is no number.

fn integer(number: &Number) -> Option<i128> {
    (number.as_i64().map(i128::from)).or_else(|| number.as_u64().map(i128::from)).or_else(|| {
        // Below 2^100 the conversion is exact.
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30);
        float.map(|float| float as i128)
    })
}

fn compare(one: &Number, other: &Number) -> Ordering {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => float(one).total_cmp(&float(other)),
    }
}

/// True if a number is a multiple of another, which is larger than 0.
fn is_multiple(number: &Number, of: &Number) -> bool {
    match (integer(number), integer(of)) {
        (Some(number), Some(of)) => number % of == 0,
        (_, Some(_)) => float(number) % float(of) == 0.0,
        (_, None) => {
            let quotient = float(number) / float(of);
            quotient.is_finite() && quotient.fract() == 0.0
        }
    }
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && (one.iter())
                    .all(|(key, value)| other.get(key).is_some_and(|other| equal(value, other)))
        }
        _ => one == other,
    }
}
