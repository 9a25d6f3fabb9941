//! JSON as YAML that people read: blocks, and quotes only where they are needed.

use serde_json::Value;

/// Words that YAML 1.1 or 1.2 does not take for text.
const NO_TEXT: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// Several documents in one text.
pub(super) fn documents(values: &[Value]) -> String {
    let mut out = String::new();
    for value in values {
        out.push_str("---\n");
        block(value, 0, &mut out);
    }
    out
}

/// A value as lines with this indentation.
fn block(value: &Value, indent: usize, out: &mut String) {
    let space = " ".repeat(indent);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                out.push_str(&format!("{space}{}:", text(name)));
                inner(value, indent + 2, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                // The first line of an item stands behind its dash.
                let mut lines = String::new();
                if is_block(item) {
                    block(item, indent + 2, &mut lines)
                } else {
                    lines = format!("{space}  {}\n", scalar(item))
                }
                out.push_str(&format!("{space}- {}", &lines[indent + 2..]));
            }
        }
        _ => out.push_str(&format!("{space}{}\n", scalar(value))),
    }
}

/// Writes the value of a name.
fn inner(value: &Value, indent: usize, out: &mut String) {
    if is_block(value) {
        out.push('\n');
        block(value, indent, out);
    } else {
        out.push_str(&format!(" {}\n", scalar(value)))
    }
}

/// True if a value takes lines of its own.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(string) => text(string),
        // Numbers, truth values, and what is empty, are written as in JSON.
        other => other.to_string(),
    }
}

/// A text, in quotes if it could be taken for anything else. YAML's double quotes are JSON's.
fn text(string: &str) -> String {
    let plain = string.starts_with(|first: char| first.is_ascii_alphabetic())
        && string.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./_-".contains(&byte))
        && !NO_TEXT.contains(&string.to_ascii_lowercase().as_str());
    if plain { string.to_owned() } else { Value::from(string).to_string() }
}
