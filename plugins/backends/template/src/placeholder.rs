//! Placeholders: their names, where they stand in texts, and filling a body with their values.

use runner_plugin::Request;
use serde_json::{Map, Value};

macro_rules! names {
    ($($name:ident = $text:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Name {
            $(#[doc = concat!("`{", $text, "}`.")] $name,)*
        }

        pub const NAMES: &[(Name, &str)] = &[$((Name::$name, $text),)*];
    };
}

names! {
    Model = "model",
    Adapter = "adapter",
    Prompt = "prompt",
    Messages = "messages",
    TokenIds = "token-ids",
    MaxTokens = "max-tokens",
    MinTokens = "min-tokens",
    Temperature = "temperature",
    TopP = "top-p",
    TopK = "top-k",
    MinP = "min-p",
    FrequencyPenalty = "frequency-penalty",
    PresencePenalty = "presence-penalty",
    RepetitionPenalty = "repetition-penalty",
    Seed = "seed",
    Stop = "stop",
    IgnoreEos = "ignore-eos",
    Stream = "stream",
}

impl Name {
    /// True if its value is a list, which cannot stand within a text.
    pub fn is_list(self) -> bool {
        matches!(self, Name::Messages | Name::TokenIds | Name::Stop)
    }
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    Text(&'t str),
    Value(Name),
    /// A text that looks like a placeholder, but is none.
    Unknown(&'t str),
}

/// The pieces of a text. `{name}` of lower-case letters and hyphens is a placeholder, `{{name}}` is
/// that text with single braces, and all other braces are text.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find('{').map(|at| from + at) {
        let doubled = rest[at + 1..].starts_with('{');
        let begin = at + 1 + usize::from(doubled);
        let inner = &rest[begin..];
        let length =
            inner.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(inner.len());
        let close = if doubled { "}}" } else { "}" };
        if length == 0 || !inner[length..].starts_with(close) {
            from = begin;
            continue;
        }
        let end = begin + length + close.len();
        let before = &rest[..at];
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let name = &inner[..length];
        pieces.push(if doubled {
            Piece::Text(&rest[at + 1..end - 1])
        } else {
            let known = NAMES.iter().find(|(_, known)| *known == name);
            known.map_or(Piece::Unknown(name), |(name, _)| Piece::Value(*name))
        });
        (rest, from) = (&rest[end..], 0);
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// A text with its placeholders filled, or a lone placeholder's own value; `None` without a value.
fn fill_text(text: &str, value: &impl Fn(Name) -> Option<Value>) -> Option<Value> {
    let pieces = pieces(text);
    if let [Piece::Value(name)] = pieces[..] {
        return value(name);
    }
    let mut filled = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) | Piece::Unknown(text) => filled.push_str(text),
            Piece::Value(name) => match value(name)? {
                Value::String(text) => filled.push_str(&text),
                other => filled.push_str(&other.to_string()),
            },
        }
    }
    Some(Value::String(filled))
}

/// A text as it stands in a path or a header; `None` if a placeholder has no value.
pub fn fill_path(path: &str, value: &impl Fn(Name) -> Option<Value>) -> Option<String> {
    let escaped = |name| match value(name)? {
        Value::String(text) => Some(Value::String(Request::segment(&text))),
        other => Some(other),
    };
    match fill_text(path, &escaped)? {
        Value::String(path) => Some(path),
        other => Some(other.to_string()),
    }
}

/// Fills the placeholders of a value, without absent parts and objects and lists left empty.
pub fn fill(template: &Value, value: &impl Fn(Name) -> Option<Value>) -> Option<Value> {
    Some(match template {
        Value::String(text) => fill_text(text, value)?,
        Value::Array(items) => {
            let filled: Vec<Value> = items.iter().filter_map(|item| fill(item, value)).collect();
            if filled.is_empty() && !items.is_empty() {
                return None;
            }
            Value::Array(filled)
        }
        Value::Object(fields) => {
            let filled = fill_object(fields, value);
            if filled.is_empty() && !fields.is_empty() {
                return None;
            }
            Value::Object(filled)
        }
        other => other.clone(),
    })
}

/// The fields of an object that have a value, filled.
pub fn fill_object(
    template: &Map<String, Value>,
    value: &impl Fn(Name) -> Option<Value>,
) -> Map<String, Value> {
    let filled = template.iter().filter_map(|(key, item)| Some((key.clone(), fill(item, value)?)));
    filled.collect()
}

/// Lays `over` over `under`; where both have an object, the two are merged.
pub fn lay_over(under: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => lay_over(under, over),
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(name: Name) -> Option<Value> {
        match name {
            Name::Model => Some(json!("org/model 1")),
            Name::MaxTokens => Some(json!(8)),
            Name::TokenIds => Some(json!([1, 2])),
            Name::Temperature => Some(json!(0.0)),
            _ => None,
        }
    }

    #[test]
    fn braces_that_are_no_placeholder_stay() {
        let text = |text| fill_text(text, &value).unwrap();
        for same in ["", "{", "}", "{}", "{ model }", "{\"a\": {\"b\": 1}}", "{model", "{Model}"] {
            assert_eq!(text(same), json!(same));
        }
        assert_eq!(text("{{model}}"), json!("{model}"));
        assert_eq!(text("{{model}"), json!("{{model}"));
        assert_eq!(text("<{model}|{max-tokens}>"), json!("<org/model 1|8>"));
        assert_eq!(pieces("a{colour}"), [Piece::Text("a"), Piece::Unknown("colour")]);
    }

    #[test]
    fn values_keep_their_types_and_absent_values_drop_their_keys() {
        let template = json!({
            "ids": "{token-ids}", "n": "{max-tokens}", "t": "{temperature}", "seed": "{seed}",
            "text": "seed {seed}", "deep": {"seed": "{seed}"}, "list": ["{seed}"], "mixed": ["{seed}", 1],
            "empty": {}, "none": [], "null": null,
        });
        let Value::Object(template) = template else { unreachable!() };
        assert_eq!(
            Value::Object(fill_object(&template, &value)).to_string(),
            r#"{"ids":[1,2],"n":8,"t":0.0,"mixed":[1],"empty":{},"none":[],"null":null}"#
        );
    }

    #[test]
    fn names_in_paths_are_escaped() {
        let path = |path| fill_path(path, &value);
        assert_eq!(path("/m/{model}/go").as_deref(), Some("/m/org%2Fmodel%201/go"));
        assert_eq!(path("/m/{adapter}"), None);
    }

    #[test]
    fn objects_are_merged() {
        let mut under = json!({"a": {"b": 1, "c": 2}, "d": 3});
        let over = json!({"a": {"c": 4}, "d": {"e": 5}});
        lay_over(under.as_object_mut().unwrap(), over.as_object().unwrap());
        assert_eq!(under, json!({"a": {"b": 1, "c": 4}, "d": {"e": 5}}));
    }
}
