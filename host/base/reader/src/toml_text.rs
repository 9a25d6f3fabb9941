//! Values as TOML writes them, on one line.

use serde_json::Value;

use crate::config::Config;

pub fn string(text: &str) -> String {
    // TOML's escapes are JSON's, but JSON does not escape U+007F.
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// A number with a decimal point.
pub fn number(number: f64) -> String {
    if number.is_nan() { "nan".to_owned() } else { format!("{number:?}") }
}

/// A name as a key: in quotes where it needs them.
pub fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { string(name) }
}

pub fn config(value: &Config) -> String {
    match value {
        Config::Scalar(Value::String(text)) => string(text),
        Config::Scalar(Value::Number(float)) if float.is_f64() => {
            float.as_f64().map_or_else(|| float.to_string(), number)
        }
        Config::Scalar(scalar) => scalar.to_string(),
        Config::List(items) => {
            let items: Vec<String> = items.iter().map(|item| config(&item.value)).collect();
            format!("[{}]", items.join(", "))
        }
        Config::Table(table) => {
            let entries: Vec<String> = table
                .iter()
                .map(|entry| format!("{} = {}", key(&entry.key.value), config(&entry.value.value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConfigTable, Place};
    use serde_json::json;

    #[test]
    fn written_values_are_read_back() {
        let value = json!({
            "plain": 1, "float": 2.0, "a b": "q\"uote\n\u{7f}", "list": [true, {"x": -1}], "none": {},
        });
        let Value::Object(fields) = value.clone() else { panic!("it is an object") };
        let table = ConfigTable::from_json(fields, &Place::Flag("--flag".to_owned()));
        let text = format!("x = {}", config(&Config::Table(table)));
        let read: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(serde_json::to_value(&read["x"]).unwrap(), value);
        assert_eq!(number(f64::INFINITY), "inf");
        assert_eq!(number(1e300), "1e300");
    }
}
