//! The look of lists, values and text from others in messages.

use serde_json::Value;

use crate::config::Config;

/// `a`, `b` and `c`, as keys are quoted.
pub fn list(names: &[impl AsRef<str>]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    joined(&names, "and")
}

/// Several things with commas, the last one after `conjunction`.
pub fn joined(things: &[String], conjunction: &str) -> String {
    match things {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} {conjunction} {last}", others.join(", ")),
    }
}

/// Describes a value; short values are repeated.
pub fn found(value: &Config) -> String {
    match value {
        Config::Scalar(Value::String(text)) if text.chars().count() > 40 => {
            "a long string".to_owned()
        }
        Config::Scalar(Value::String(text)) => {
            format!("the string {}", written(&text.as_str().into()))
        }
        Config::Scalar(scalar) => written(scalar),
        Config::List(_) => "a list".to_owned(),
        Config::Table(_) => "a table".to_owned(),
    }
}

pub fn written(constant: &Value) -> String {
    plain(&constant.to_string())
}

/// A plugin's text, shortened to a reasonable length.
pub fn plain(text: &str) -> String {
    let mut text = text.chars();
    let mut short: String = text.by_ref().take(200).collect();
    if text.next().is_some() {
        short.push('…');
    }
    short
}
