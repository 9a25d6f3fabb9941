//! Placeholders in launch lines, `{port}` and `{model.path}`, and references to variables,
//! `${KEY}`.
//!
//! A placeholder is a name in braces: lower-case letters, digits, `-`, `_` and dots. Other braces
//! are text, so JSON stands in an argument as it is. `{{port}}` is the text `{port}`.

use serde_json::Value;

/// A text, or a placeholder in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'t> {
    Text(&'t str),
    /// A placeholder's name.
    Name(&'t str),
    /// The name of an escaped placeholder.
    Escaped(&'t str),
}

/// The names of the placeholders in a text.
pub fn names(text: &str) -> Vec<&str> {
    let parts = parts(text).into_iter();
    parts.filter_map(|part| if let Part::Name(name) = part { Some(name) } else { None }).collect()
}

/// Fills in the placeholders that `value` knows. Unknown and escaped placeholders stay unchanged.
pub fn filled(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let known = |name: &str| value(name).map(|value| with(&value, escape, escape));
    with(text, |name| known(name).unwrap_or_else(|| format!("{{{name}}}")), escape)
}

/// Fills in the placeholders that `value` knows, and writes escaped ones as text, for use.
pub fn finished(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let plain = |name: &str| format!("{{{name}}}");
    with(text, |name| value(name).unwrap_or_else(|| plain(name)), plain)
}

fn escape(name: &str) -> String {
    format!("{{{{{name}}}}}")
}

/// A text with other texts in place of its placeholders, and of its escaped placeholders.
fn with(text: &str, filled: impl Fn(&str) -> String, escaped: impl Fn(&str) -> String) -> String {
    let part = |part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Name(name) => filled(name),
        Part::Escaped(name) => escaped(name),
    };
    parts(text).into_iter().map(part).collect()
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find('{').map(|at| at + from) {
        let here = &rest[at..];
        let escaped = here.strip_prefix("{{").and_then(name);
        let escaped = escaped.filter(|name| here[name.len() + 3..].starts_with('}'));
        // `${NAME}` names a variable.
        let is_variable = rest[..at].ends_with('$');
        let (part, length) = match (escaped, name(&here[1..])) {
            (Some(name), _) if !is_variable => (Part::Escaped(name), name.len() + 4),
            (None, Some(name)) if !is_variable => (Part::Name(name), name.len() + 2),
            _ => {
                from = at + 1;
                continue;
            }
        };
        if at > 0 {
            parts.push(Part::Text(&rest[..at]));
        }
        parts.push(part);
        rest = &rest[at + length..];
        from = 0;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    parts
}

/// The name that a text begins with, if a closing brace follows it.
fn name(text: &str) -> Option<&str> {
    let is_in_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let end = text.find(|c| !is_in_name(c))?;
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase());
    (begins && text[end..].starts_with('}')).then(|| &text[..end])
}

/// The variables that a text refers to, as `${NAME}`. Errors: the mistake in a reference, as text.
pub fn variables(text: &str) -> Result<Vec<&str>, String> {
    let references = references(text)?;
    Ok(references.into_iter().filter_map(|(_, name)| name).collect())
}

/// A text with its variables' values. Errors: the first variable without a value.
pub fn with_variables(
    text: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut filled = String::new();
    for (before, name) in references(text)? {
        filled.push_str(before);
        if let Some(name) = name {
            let value = value(name).ok_or_else(|| format!("the variable {name} is not set"))?;
            filled.push_str(&value);
        }
    }
    Ok(filled)
}

/// A text cut after each reference: the text before it, and its name. The last part has no name.
fn references(text: &str) -> Result<Vec<(&str, Option<&str>)>, String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) =
            after.split_once('}').ok_or_else(|| "`${` is not closed by `}`".to_owned())?;
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_in_name) {
            return Err(format!("`${{{name}}}` does not name a variable"));
        }
        found.push((before, Some(name)));
        rest = after;
    }
    found.push((rest, None));
    Ok(found)
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn known(name: &str) -> Option<String> {
        match name {
            "port" => Some("8000".to_owned()),
            "model.path" => Some("/m/{port}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn placeholders_are_names_in_braces_and_json_is_text() {
        for (text, wanted, found) in [
            ("--port={port}", "--port=8000", vec!["port"]),
            ("{model.path}", "/m/{port}", vec!["model.path"]),
            ("{prt} {port}", "{prt} 8000", vec!["prt", "port"]),
            ("{{port}}", "{port}", vec![]),
            (r#"{"a":{"b":{}}}"#, r#"{"a":{"b":{}}}"#, vec![]),
            ("{ port } {", "{ port } {", vec![]),
            ("${port}", "${port}", vec![]),
            ("{é}{port}é", "{é}8000é", vec!["port"]),
        ] {
            assert_eq!(finished(text, known), wanted, "{text}");
            assert_eq!(names(text), found, "{text}");
            // Filling in two steps gives the same.
            let first = filled(text, |name| known(name).filter(|_| name != "port"));
            assert_eq!(finished(&first, known), wanted, "{text}");
        }
    }

    #[test]
    fn variables_are_filled_in_once() {
        let value = |name: &str| match name {
            "A" => Some("${B}".to_owned()),
            "B" => Some("b".to_owned()),
            _ => None,
        };
        assert_eq!(with_variables("x${A}y${B}z", value).unwrap(), "x${B}ybz");
        assert_eq!(with_variables("plain {x} $", value).unwrap(), "plain {x} $");
        assert_eq!(with_variables("${C}", value).unwrap_err(), "the variable C is not set");
        assert!(variables("${").is_err() && variables("${}").is_err());
        assert_eq!(variables("${A}${A}").unwrap(), ["A", "A"]);
    }

    #[test]
    fn values_are_words_of_a_command_line() {
        assert_eq!(words(&json!([1, 2, 4])), ["1", "2", "4"]);
        assert_eq!(words(&json!("a b")), ["a b"]);
        assert_eq!(words(&json!(0.9)), ["0.9"]);
        let config = json!({"method": "mtp", "num_speculative_tokens": 4});
        assert_eq!(words(&config), [r#"{"method":"mtp","num_speculative_tokens":4}"#]);
        assert!(is_same(&json!(1), &json!(1.0)) && !is_same(&json!(1), &json!("1")));
        let line = ["serve", "a b", "{\"x\":1}", "it's", ""].map(str::to_owned);
        assert_eq!(model::shell::line(&line), r#"serve 'a b' '{"x":1}' 'it'\''s' ''"#);
    }
}
