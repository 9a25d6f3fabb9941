//! Values as Python compares them: numbers and truth values by their size, tables without an order.

use serde_json::{Map, Value};

/// The types that BFCL tells apart, which are Python's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `None`.
    Null,
    /// `bool`.
    Boolean,
    /// `int`.
    Integer,
    /// `float`.
    Float,
    /// `str`.
    Text,
    /// `list`.
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
pub fn equal(one: &Value, other: &Value) -> bool {
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
pub fn plain(text: &str) -> String {
    text.replace([' ', ',', '.', '/', '-', '_', '*', '^'], "").to_lowercase().replace('\'', "\"")
}

/// Makes a value's own text plain, but no text inside it.
pub fn plain_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain(text)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equality_is_pythons() {
        assert!(equal(&json!([1, {"a": 1.0}]), &json!([true, {"a": 1}])));
        assert!(!equal(&json!("1"), &json!(1)));
        assert!(!equal(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!equal(&json!(null), &json!(0)));
        assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
    }

    #[test]
    fn texts_are_compared_without_marks() {
        assert_eq!(plain("April 1st, 'New-York'"), "april1st\"newyork\"");
    }
}
