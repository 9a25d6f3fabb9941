//! Code that scorers share: the sample's reference, the part of an answer that counts, its calls of
//! tools ([`calls`]), and scores. [`python`] has Python's notions of text, because most rules come
//! from tools in Python. Each scorer decides by itself which answers are right.
//!
//! # One rule for all scorers
//!
//! - Without a needed reference, the sample has no score, and no mean counts the sample.
//! - A reference that the scorer cannot use is an error, which the host counts as the scorer's.
//! - A wrong answer has the score 0.
//! - An answer in which the scorer finds nothing to compare has 0, and `NAME-unparsed` is 1.
//!
//! A scorer that extracts something gives `NAME-unparsed` for every judged answer, so that its mean
//! is the share of answers without a find.
#![forbid(unsafe_code)]

pub mod calls;
pub mod python;

use std::borrow::Cow;

use runner_plugin::report::shortened;
use runner_plugin::{Error, Exchange, Score};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Words of servers for an answer that the limit of tokens ended.
const CUT: [&str; 6] = [
    "length",
    "limit",
    "max_tokens",
    "model_length",
    "max_output_tokens",
    "model_context_window_exceeded",
];

/// The part of a reply that is judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The answer, without the reasoning before it.
    #[default]
    Answer,
    /// The reasoning alone.
    Reasoning,
    /// The reasoning, a line break, and the answer.
    Both,
}

impl Part {
    #[must_use]
    pub fn text(self, exchange: &Exchange) -> Cow<'_, str> {
        match self {
            Part::Answer => Cow::Borrowed(&exchange.output),
            Part::Reasoning => Cow::Borrowed(&exchange.reasoning),
            Part::Both => Cow::Owned(format!("{}\n{}", exchange.reasoning, exchange.output)),
        }
    }
}

#[must_use]
pub fn score(name: &str, value: f64) -> Score {
    Score { name: name.to_owned(), value }
}

/// True if a finish reason, in the server's own word, is the limit of tokens.
#[must_use]
pub fn is_cut(finish: &str) -> bool {
    let finish = finish.to_ascii_lowercase();
    CUT.contains(&finish.as_str())
}

/// 1 for true, 0 for false.
#[must_use]
pub fn truth(name: &str, value: bool) -> Score {
    score(name, f64::from(u8::from(value)))
}

pub fn reference(exchange: &Exchange) -> Result<Option<Value>, Error> {
    let Some(reference) = &exchange.reference else { return Ok(None) };
    serde_json::from_str(reference).map(Some).map_err(|error| {
        Error::InvalidInput(format!("the reference of sample {} is not JSON: {error}", exchange.id))
    })
}

/// The error for a reference that the scorer cannot use. `expected` is the end of "expected …".
#[must_use]
pub fn unusable(exchange: &Exchange, reference: &Value, expected: &str) -> Error {
    Error::InvalidInput(format!(
        "the reference of sample {} is `{}`; expected {expected}",
        exchange.id,
        shown(reference)
    ))
}

/// The texts of a reference: a string, a number, a truth value, a list of them, or a table with one
/// of these under `key`. A list has at least one.
pub fn texts(exchange: &Exchange, reference: &Value, key: &str) -> Result<Vec<String>, Error> {
    let inner = match reference {
        Value::Object(table) => table.get(key),
        other => Some(other),
    };
    let texts = inner.and_then(|inner| match inner {
        Value::Array(list) => list.iter().map(text).collect(),
        single => Some(vec![text(single)?]),
    });
    texts.filter(|texts| !texts.is_empty()).ok_or_else(|| {
        let expected = format!(
            "a string, a number, a truth value, a list of them, or a table with one of these under `{key}`: set \
             `reference-key`, or use another scorer"
        );
        unusable(exchange, reference, &expected)
    })
}

/// A single value as the text that an answer would have.
#[must_use]
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A value as JSON, cut after 80 characters.
#[must_use]
pub fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 80)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn exchange(reference: Option<&str>) -> Exchange {
        Exchange {
            id: "7".to_owned(),
            reference: reference.map(str::to_owned),
            turn: None,
            class: None,
            requested_tokens: None,
            output: "so 4".to_owned(),
            choices: Vec::new(),
            reasoning: "2 + 2".to_owned(),
            tool_calls: String::new(),
            output_tokens: None,
            finish: None,
        }
    }

    #[test]
    fn references_are_single_values_lists_or_tables() {
        let exchange = exchange(None);
        let texts = |reference| texts(&exchange, &reference, "answer");
        assert_eq!(texts(json!("a")).unwrap(), ["a"]);
        assert_eq!(texts(json!([4, true])).unwrap(), ["4", "true"]);
        assert_eq!(texts(json!({"answer": ["a", "b"]})).unwrap(), ["a", "b"]);
        for wrong in [json!(null), json!([]), json!([[1]]), json!({"gold": 1})] {
            let error = texts(wrong).unwrap_err();
            assert!(matches!(error, Error::InvalidInput(_)), "{error:?}");
        }
    }

    #[test]
    fn a_reference_that_is_not_json_names_the_sample() {
        assert_eq!(reference(&exchange(None)).unwrap(), None);
        let Err(Error::InvalidInput(message)) = reference(&exchange(Some("{"))) else {
            panic!("expected an error");
        };
        assert!(message.starts_with("the reference of sample 7 is not JSON"), "{message}");
    }

    #[test]
    fn parts_of_a_reply() {
        let exchange = exchange(None);
        assert_eq!(Part::Answer.text(&exchange), "so 4");
        assert_eq!(Part::Reasoning.text(&exchange), "2 + 2");
        assert_eq!(Part::Both.text(&exchange), "2 + 2\nso 4");
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = shown(&json!("é".repeat(100)));
        assert_eq!(long.chars().count(), 81);
        assert!(long.ends_with('…'));
    }
}
