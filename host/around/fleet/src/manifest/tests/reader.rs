//! Reads the part of YAML that manifests use: blocks by indentation, and scalars of which those in
//! quotes are JSON's. It shares no code with the writer. What is not in quotes must be text to
//! every version of YAML.

use serde_json::{Map, Value};

/// All documents of a text.
pub(super) fn documents(text: &str) -> Vec<Value> {
    let mut documents = Vec::new();
    for document in text.split("---\n").skip(1) {
        let lines: Vec<(usize, String)> = document
            .lines()
            .map(|line| (line.len() - line.trim_start().len(), line.trim_start().to_owned()))
            .collect();
        let mut at = 0;
        documents.push(block(&lines, &mut at, 0));
        assert_eq!(at, lines.len(), "{:?}", lines.get(at));
    }
    documents
}

fn block(lines: &[(usize, String)], at: &mut usize, indent: usize) -> Value {
    if lines[*at].1.starts_with("- ") {
        let mut items = Vec::new();
        while *at < lines.len() && lines[*at].0 == indent && lines[*at].1.starts_with("- ") {
            // The item as if it stood on a line of its own.
            let mut inner = lines.to_vec();
            inner[*at] = (indent + 2, lines[*at].1[2..].to_owned());
            items.push(if key(&inner[*at].1).is_some() || inner[*at].1.starts_with("- ") {
                block(&inner, at, indent + 2)
            } else {
                *at += 1;
                scalar(&inner[*at - 1].1)
            });
        }
        return Value::Array(items);
    }
    let mut fields = Map::new();
    while *at < lines.len() && lines[*at].0 == indent {
        let (name, rest) = key(&lines[*at].1).expect("a name and a colon");
        *at += 1;
        let value = if rest.is_empty() { block(lines, at, lines[*at].0) } else { scalar(rest) };
        assert!(fields.insert(name, value).is_none());
    }
    Value::Object(fields)
}

/// The name before a line's colon, and what follows.
fn key(line: &str) -> Option<(String, &str)> {
    let end = if line.starts_with('"') {
        let mut stream = serde_json::Deserializer::from_str(line).into_iter::<String>();
        stream.next()?.ok()?;
        stream.byte_offset()
    } else {
        line.find(':')?
    };
    let (name, rest) = line.split_at(end);
    let rest = rest.strip_prefix(':')?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let name =
        if name.starts_with('"') { serde_json::from_str(name).unwrap() } else { name.to_owned() };
    Some((name, rest))
}

fn scalar(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let first = text.chars().next().unwrap();
    assert!(first.is_ascii_alphabetic(), "{text}");
    assert!(!text.contains([' ', ':', '#', '"', '\'', '[', '{']), "{text}");
    let lower = text.to_lowercase();
    assert!(!["yes", "no", "on", "off", "y", "n", "true", "false", "null"].contains(&&*lower));
    Value::from(text)
}
