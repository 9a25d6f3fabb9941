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

pub mod python;

use std::borrow::Cow;

use runner_plugin::report::shortened;
use runner_plugin::{Error, Exchange, Score};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

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
    pub fn text(self, exchange: &Exchange) -> Cow<'_, str> {
        match self {
            Part::Answer => Cow::Borrowed(&exchange.output),
            Part::Reasoning => Cow::Borrowed(&exchange.reasoning),
            Part::Both => Cow::Owned(format!("{}\n{}", exchange.reasoning, exchange.output)),
        }
    }
}

pub fn score(name: &str, value: f64) -> Score {
    Score { name: name.to_owned(), value }
}

/// True if a finish reason, in the server's own word, is the limit of tokens.
pub fn is_cut(finish: &str) -> bool {
    let finish = finish.to_ascii_lowercase();
    CUT.contains(&finish.as_str())
}

/// 1 for true, 0 for false.
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
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A value as JSON, cut after 80 characters.
pub fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 80)
}

// The calls of an answer, from the text of its tool calls: JSON values one after another, which
// are the calls of OpenAI's API as they are streamed. Pieces with the same `index` belong
// together; their `arguments` are joined.

const MOST_CALLS: usize = 1000;

#[derive(Debug, PartialEq)]
pub struct Call {
    pub name: String,
    pub arguments: Map<String, Value>,
}

/// A call whose arguments may still be pieces of text.
#[derive(Default)]
struct Pieces {
    index: Option<u64>,
    name: String,
    text: String,
    table: Option<Map<String, Value>>,
}

/// Reads the calls; `None` if any is malformed.
pub fn read(text: &str) -> Option<Vec<Call>> {
    pieces(text)?.into_iter().map(Pieces::finish).collect()
}

/// Reads the calls that are whole.
pub fn whole(text: &str) -> Vec<Call> {
    pieces(text).into_iter().flatten().filter_map(Pieces::finish).collect()
}

fn pieces(text: &str) -> Option<Vec<Pieces>> {
    let mut calls: Vec<Pieces> = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        match value.ok()? {
            Value::Array(values) => values.iter().try_for_each(|value| add(&mut calls, value))?,
            value => add(&mut calls, &value)?,
        }
    }
    Some(calls)
}

/// Adds a piece to the call that it belongs to, or begins a new one.
fn add(calls: &mut Vec<Pieces>, value: &Value) -> Option<()> {
    let function = value.get("function").unwrap_or(value);
    let index = value.get("index").or_else(|| function.get("index")).and_then(Value::as_u64);
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_new = match index {
        // The same index with another name: some servers number every call 0.
        Some(_) => !calls.iter().any(|call| {
            call.index == index && (name.is_empty() || call.name.is_empty() || !call.is_whole())
        }),
        None => !name.is_empty() || calls.is_empty(),
    };
    if is_new {
        if calls.len() == MOST_CALLS {
            return None;
        }
        calls.push(Pieces { index, ..Pieces::default() });
    }
    let call = match index {
        Some(_) => calls.iter_mut().rfind(|call| call.index == index),
        None => calls.last_mut(),
    }?;
    call.name.push_str(name);
    match function.get("arguments") {
        Some(Value::String(piece)) => call.text.push_str(piece),
        Some(Value::Object(table)) => call.table = Some(table.clone()),
        None | Some(Value::Null) => {}
        Some(_) => return None,
    }
    Some(())
}

impl Pieces {
    fn is_whole(&self) -> bool {
        self.table.is_some() || serde_json::from_str::<Map<String, Value>>(&self.text).is_ok()
    }

    fn finish(self) -> Option<Call> {
        let arguments = match self.table {
            Some(table) => table,
            // A tool without parameters.
            None if self.text.trim().is_empty() => Map::new(),
            None => serde_json::from_str(&self.text).ok()?,
        };
        (!self.name.is_empty()).then_some(Call { name: self.name, arguments })
    }
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
    fn long_values_are_cut_between_characters() {
        let long = shown(&json!("é".repeat(100)));
        assert_eq!(long.chars().count(), 81);
        assert!(long.ends_with('…'));
    }

    fn found(text: &str) -> Option<Vec<(String, Value)>> {
        let calls = read(text)?.into_iter();
        Some(calls.map(|call| (call.name, Value::Object(call.arguments))).collect())
    }

    #[test]
    fn pieces_of_calls_that_are_streamed_are_joined() {
        let text = concat!(
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\":"}}{"index":0,"function":{"arguments":"1}"}}"#,
        );
        let expected = vec![("f".to_owned(), json!({"x": 1})), ("g".to_owned(), json!({}))];
        assert_eq!(found(text), Some(expected));
    }

    #[test]
    fn whole_calls_are_read_alone_and_in_lists() {
        let wanted = || Some(vec![("f".to_owned(), json!({"x": 1})), ("g".to_owned(), json!({}))]);
        let list = r#"[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"function":{"name":"g"}}]"#;
        assert_eq!(found(list), wanted());
        let tables = r#"{"function":{"index":0,"name":"f","arguments":{"x":1}}} {"name":"g","arguments":{}}"#;
        assert_eq!(found(tables), wanted());
        let one_index = r#"{"index":0,"function":{"name":"f","arguments":{"x":1}}}{"index":0,"function":{"name":"g","arguments":"{}"}}"#;
        assert_eq!(found(one_index), wanted());
    }

    #[test]
    fn text_without_a_call_is_not_read() {
        for text in
            ["{", "x", r#"{"function":{}}"#, r#"{"function":{"name":"f","arguments":"[1]"}}"#, "3"]
        {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(found(""), Some(Vec::new()));
        let cut = r#"{"name":"f","arguments":"{"}{"name":"g","arguments":"{}"}"#;
        assert_eq!(found(cut), None);
        assert_eq!(whole(cut), [Call { name: "g".to_owned(), arguments: Map::new() }]);
    }
}
