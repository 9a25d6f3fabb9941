//! Values of options: how they are written on a command line, compared and shown.

use serde_json::Value;

/// The words of a value on a command line: a list is several words, a table is JSON.
pub fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().map(shown).collect(),
        one => vec![shown(one)],
    }
}

/// A value as one text: strings without quotes, a list with spaces, a table as JSON without spaces.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// True if two values are the same; numbers are compared as numbers, so 1 is 1.0.
pub fn is_same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// A command line as a shell reads it.
pub fn shell(words: &[String]) -> String {
    let quoted = words.iter().map(|word| quoted(word));
    quoted.collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it: in quotes where it needs them.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_words_of_a_command_line() {
        assert_eq!(words(&json!([1, 2, 4])), ["1", "2", "4"]);
        assert_eq!(words(&json!("a b")), ["a b"]);
        assert_eq!(words(&json!(0.9)), ["0.9"]);
        let config = json!({"method": "mtp", "num_speculative_tokens": 4});
        assert_eq!(words(&config), [r#"{"method":"mtp","num_speculative_tokens":4}"#]);
        assert!(is_same(&json!(1), &json!(1.0)) && !is_same(&json!(1), &json!("1")));
        let line = ["serve", "a b", "{\"x\":1}", "it's", ""].map(str::to_owned);
        assert_eq!(shell(&line), r#"serve 'a b' '{"x":1}' 'it'\''s' ''"#);
    }
}
