//! The keys of a plugin's configuration, from its JSON Schema: a table of keys, and an example to
//! copy. Pure. Only the subset of JSON Schema that schemars generates is read; other parts of a
//! key's
//! schema are left out.

use serde_json::Value;

use model::plugin::Kind;

/// Levels of references and alternatives; a plugin's schema may be endless.
const DEPTH: usize = 8;

const LEVELS: usize = 3;

/// The most keys that are listed for tables within a configuration, for the same reason.
const MOST_INNER: usize = 2000;

/// A key of a plugin's configuration.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Key {
    pub key: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The keys of its table, or of its list's tables; JSON has them in the schema.
    #[serde(skip)]
    pub inner: Option<Table>,
}

/// A table that a key takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name by which the schema refers to it, if any: tables with one name are the same.
    pub name: Option<String>,
    pub keys: Vec<Key>,
}

pub fn keys(schema: &Value) -> Vec<Key> {
    let mut left = MOST_INNER;
    of_table(schema, schema, 0, &mut left)
}

/// The keys of a table; `left` is the number of keys that tables within it may still list.
fn of_table(root: &Value, schema: &Value, level: usize, left: &mut usize) -> Vec<Key> {
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let properties = schema["properties"].as_object();
    let properties = properties.into_iter().flatten();
    let keys = properties.map(|(key, rules)| Key {
        key: key.clone(),
        kind: kind(root, rules, 0),
        required: required.iter().any(|required| required == key),
        default: Some(rules["default"].clone()).filter(|value| !value.is_null()),
        description: (rules["description"].as_str())
            .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
        inner: inner(root, rules, None, (level, 0), left),
    });
    keys.collect()
}

/// The table that a schema describes, in a list or in an alternative too. `name` is the reference's
/// name; `level` counts the tables around it and the references to it.
fn inner(
    root: &Value,
    rules: &Value,
    name: Option<&str>,
    level: (usize, usize),
    left: &mut usize,
) -> Option<Table> {
    let (level, depth) = level;
    if level == LEVELS || depth > DEPTH {
        return None;
    }
    if let Some(target) = rules["$ref"].as_str() {
        let found = root.pointer(target.strip_prefix('#')?)?;
        return inner(root, found, Some(target), (level, depth + 1), left);
    }
    if let Some(properties) = rules["properties"].as_object() {
        *left = left.checked_sub(properties.len())?;
        return Some(Table {
            name: name.map(str::to_owned),
            keys: of_table(root, rules, level + 1, left),
        });
    }
    if let Some(items) = rules.get("items") {
        return inner(root, items, name, (level, depth + 1), left);
    }
    let parts = ["oneOf", "anyOf", "allOf"].iter().find_map(|keyword| rules[keyword].as_array())?;
    let mut parts = parts.iter().take(DEPTH);
    parts.find_map(|part| inner(root, part, None, (level, depth + 1), left))
}

fn kind(root: &Value, rules: &Value, depth: usize) -> String {
    if depth > DEPTH {
        return "anything".to_owned();
    }
    if let Some(target) = rules["$ref"].as_str()
        && let Some(target) = (target.strip_prefix('#')).and_then(|path| root.pointer(path))
    {
        return kind(root, target, depth + 1);
    }
    if let Some(value) = rules.get("const") {
        return value.to_string();
    }
    if let Some(values) = rules["enum"].as_array() {
        let values = values.iter().filter(|value| !value.is_null());
        return either(values.map(Value::to_string));
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        if let Some(parts) = rules[keyword].as_array() {
            let parts = parts.iter().filter(|part| part["type"] != "null");
            return either(parts.map(|part| kind(root, part, depth + 1)));
        }
    }
    match &rules["type"] {
        Value::String(one) => simple(root, rules, one, depth),
        Value::Array(several) => either(
            (several.iter().filter_map(Value::as_str))
                .filter(|one| *one != "null")
                .map(|one| simple(root, rules, one, depth)),
        ),
        _ => "anything".to_owned(),
    }
}

fn simple(root: &Value, rules: &Value, name: &str, depth: usize) -> String {
    let bound = |key: &str| rules.get(key).filter(|bound| bound.is_number());
    match name {
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" | "number" => {
            let word = if name == "integer" { "whole number" } else { "number" };
            match (bound("minimum"), bound("maximum")) {
                (Some(least), Some(most)) => format!("{word} from {least} to {most}"),
                (Some(least), None) => format!("{word} from {least}"),
                (None, Some(most)) => format!("{word} up to {most}"),
                (None, None) => word.to_owned(),
            }
        }
        "array" => match rules.get("items") {
            Some(items) => format!("list of {}", kind(root, items, depth + 1)),
            None => "list".to_owned(),
        },
        "object" => "table".to_owned(),
        other => other.to_owned(),
    }
}

fn either(parts: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for part in parts {
        if !seen.contains(&part) {
            seen.push(part);
        }
    }
    if seen.is_empty() { "anything".to_owned() } else { seen.join(" | ") }
}

/// A piece of a scenario that uses a plugin, with the default of every key, to be copied and
/// changed. Apart from required keys, this TOML means the same as just naming the plugin.
pub fn example(kind: Kind, plugin: &str, keys: &[Key]) -> String {
    let (table, config) = match kind {
        Kind::Backend => ("[backend]", "[backend.config]"),
        Kind::Dataset => ("[dataset]", "[dataset.config]"),
        Kind::Scorer => ("[[scorers]]", "[scorers.config]"),
    };
    let mut text = format!("{table}\nplugin = {}\n", toml_text(plugin));
    if !keys.is_empty() {
        text += &format!("\n{config}\n");
    }
    for key in keys {
        if let Some(description) = &key.description {
            text += &wrapped(description, "# ");
        }
        let (name, kind) = (bare(&key.key), &key.kind);
        // TOML has no `null`.
        let value = key.default.as_ref().and_then(|value| toml::Value::try_from(value).ok());
        text += &match (value, key.required) {
            (Some(value), _) => format!("{name} = {value}\n"),
            (None, true) => format!("{name} = {} # required: {kind}\n", placeholder(kind)),
            // A value that a plugin would refuse must not look like a value to take.
            (None, false) => format!("# {name} = … ({kind})\n"),
        };
    }
    text
}

fn placeholder(kind: &str) -> &str {
    match kind.split(" | ").next().unwrap_or(kind) {
        "text" => "\"\"",
        "true or false" => "false",
        "table" => "{}",
        quoted if quoted.starts_with('"') => quoted,
        list if list.starts_with("list") => "[]",
        number if number.starts_with("number") => "0.0",
        whole if whole.starts_with("whole number") => whole
            .strip_prefix("whole number from ")
            .and_then(|rest| rest.split(' ').next())
            .unwrap_or("0"),
        _ => "\"\"",
    }
}

fn bare(key: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !key.is_empty() && key.chars().all(plain) { key.to_owned() } else { toml_text(key) }
}

fn toml_text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// Text in lines of a readable length, each with the prefix.
pub fn wrapped(text: &str, prefix: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && prefix.len() + line.len() + 1 + word.len() > WIDTH {
            lines += &format!("{prefix}{line}\n");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &format!("{prefix}{line}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["must"],
            "$defs": {
                "Route": { "oneOf": [
                    { "type": "string", "const": "chat", "description": "A conversation." },
                    { "type": "string", "const": "completions" },
                ] },
                "Loop": { "$ref": "#/$defs/Loop" },
            },
            "properties": {
                "route": { "description": "Which\n route.", "$ref": "#/$defs/Route", "default": "chat" },
                "limit": { "type": ["integer", "null"], "minimum": 1, "default": null },
                "share": { "type": "number", "minimum": 0, "maximum": 1.5, "default": 0.5 },
                "many": { "type": "array", "items": { "type": "string" }, "default": ["a", "b"] },
                "on": { "type": "boolean", "default": true },
                "nested": { "anyOf": [{ "$ref": "#/$defs/Route" }, { "type": "null" }] },
                "endless": { "$ref": "#/$defs/Loop" },
                "must": { "type": "string" },
                "odd key": { "default": { "a": 1, "b": [true] } },
            }
        })
    }

    #[test]
    fn names_the_types_of_keys() {
        let kinds: Vec<(String, String)> =
            keys(&schema()).into_iter().map(|key| (key.key, key.kind)).collect();
        let wanted = [
            ("route", r#""chat" | "completions""#),
            ("limit", "whole number from 1"),
            ("share", "number from 0 to 1.5"),
            ("many", "list of text"),
            ("on", "true or false"),
            ("nested", r#""chat" | "completions""#),
            ("endless", "anything"),
            ("must", "text"),
            ("odd key", "anything"),
        ];
        assert_eq!(kinds, wanted.map(|(key, kind)| (key.to_owned(), kind.to_owned())));
    }

    #[test]
    fn a_default_of_null_is_none_and_lines_of_a_description_are_joined() {
        let keys = keys(&schema());
        assert_eq!(keys[1].default, None);
        assert_eq!(keys[0].description.as_deref(), Some("Which route."));
        assert!(keys[7].required && !keys[0].required);
    }

    #[test]
    fn tables_have_their_keys() {
        let schema = json!({
            "$defs": {
                "Length": { "anyOf": [{ "type": "number" }, { "$ref": "#/$defs/Table" }] },
                "Table": {
                    "type": "object",
                    "required": ["kind"],
                    "properties": {
                        "kind": { "type": "string" },
                        "bins": { "type": "array", "items": { "$ref": "#/$defs/Bin" } },
                        "again": { "$ref": "#/$defs/Table" },
                    },
                },
                "Bin": { "type": "object", "properties": { "weight": { "type": "number" } } },
            },
            "properties": {
                "length": { "$ref": "#/$defs/Length" },
                "maybe": { "anyOf": [{ "$ref": "#/$defs/Length" }, { "type": "null" }] },
                "plain": { "type": "number" },
            },
        });
        let keys = keys(&schema);
        let table = keys[0].inner.as_ref().expect("a table");
        assert_eq!(table.name.as_deref(), Some("#/$defs/Table"));
        let names: Vec<&str> = table.keys.iter().map(|key| key.key.as_str()).collect();
        assert_eq!(names, ["kind", "bins", "again"]);
        assert!(table.keys[0].required);
        let bins = table.keys[1].inner.as_ref().expect("a table");
        assert_eq!(bins.keys[0].key, "weight");
        assert_eq!(keys[1].inner.as_ref(), Some(table));
        assert_eq!(keys[2].inner, None);
        // A schema that refers to itself ends.
        let mut deep = Some(table);
        let mut levels = 0;
        while let Some(table) = deep {
            levels += 1;
            deep = table.keys.get(2).and_then(|key| key.inner.as_ref());
        }
        assert_eq!(levels, LEVELS);
    }

    #[test]
    fn an_example_is_toml_that_has_the_defaults() {
        let keys = keys(&schema());
        let text = example(Kind::Scorer, "mine \"x\".wasm", &keys);
        let read: toml::Table = text.parse().unwrap();
        let scorer = &read["scorers"][0];
        assert_eq!(scorer["plugin"].as_str(), Some("mine \"x\".wasm"));
        let config = serde_json::to_value(&scorer["config"]).unwrap();
        let wanted = json!({
            "route": "chat",
            "share": 0.5,
            "many": ["a", "b"],
            "on": true,
            "must": "",
            "odd key": { "a": 1, "b": [true] },
        });
        assert_eq!(config, wanted);
        assert!(text.contains("# limit = … (whole number from 1)"), "{text}");
    }

    #[test]
    fn a_plugin_without_keys_has_a_short_example() {
        let text = example(Kind::Backend, "a.wasm", &keys(&json!({ "type": "object" })));
        assert_eq!(text, "[backend]\nplugin = \"a.wasm\"\n");
    }
}
