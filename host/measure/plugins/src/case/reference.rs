//! For tests: the page of the guide about the files of a case. Its prose is `reference.md`; tables
//! of the types that read the files replace the markers `{{table KIND TYPE}}`.

use std::collections::BTreeSet;

use schemars::schema_for;
use serde_json::{Map, Value};

use super::format::{ExchangeFile, HeadFile, SampleFile, SettingsFile};
use super::given::DrawFile;
use model::plugin::Kind;

pub(crate) const PROSE: &str = include_str!("reference.md");

/// The page's statement about itself, below its title.
const GENERATED: &str = "This page is generated; do not edit it. Its tables of keys come from the types that read \
                         the files.\n";

/// A type that has a table on the page.
struct Table {
    /// The plugins in whose cases it occurs.
    kind: Kind,
    name: String,
    schema: Value,
}

/// The types of the files, and the types below them that need a table of their own.
fn tables() -> Vec<Table> {
    let files = [
        (Kind::Backend, "sample", schema_for!(SampleFile)),
        (Kind::Backend, "settings", schema_for!(SettingsFile)),
        (Kind::Backend, "head", schema_for!(HeadFile)),
        (Kind::Dataset, "case", schema_for!(DrawFile)),
        (Kind::Scorer, "exchange", schema_for!(ExchangeFile)),
    ];
    let mut tables = Vec::new();
    for (kind, name, schema) in files {
        let schema = schema.to_value();
        for (name, schema) in schema["$defs"].as_object().into_iter().flatten() {
            if has_table(name, schema) {
                tables.push(Table { kind, name: called(name), schema: schema.clone() });
            }
        }
        let name = name.to_owned();
        tables.push(Table { kind, name, schema });
    }
    tables
}

/// The page, in Markdown. Panics if a marker names no type, or a type has no marker.
pub fn page() -> String {
    let tables = tables();
    let mut shown = BTreeSet::new();
    let mut page = String::new();
    for (number, line) in PROSE.lines().enumerate() {
        match line.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) {
            None if number == 0 => page += &format!("{line}\n\n{GENERATED}"),
            None => page += &format!("{line}\n"),
            Some(marker) => {
                let is = |table: &&Table| {
                    marker == format!("table {} {}", table.kind.name(), table.name)
                };
                let table = tables.iter().find(is);
                let table = table.unwrap_or_else(|| panic!("`{marker}` is no table"));
                shown.insert(marker.to_owned());
                page += &written(&table.schema);
            }
        }
    }
    for table in &tables {
        let marker = format!("table {} {}", table.kind.name(), table.name);
        assert!(shown.contains(&marker), "the page lacks {{{{{marker}}}}}");
    }
    page
}

/// The table of a type: its keys, or its alternatives.
fn written(schema: &Value) -> String {
    let mut rows = Vec::new();
    if let Some(alternatives) = alternatives(schema) {
        rows.push("| key | type | meaning |\n| --- | --- | --- |\n".to_owned());
        for alternative in alternatives {
            for (key, rules) in properties(alternative) {
                // The comment of an alternative is next to its only key.
                let (kind, meaning) = (type_of(rules), meaning(key, alternative));
                rows.push(format!("| `{key}` | {kind} | {meaning} |\n"));
            }
        }
    } else {
        rows.push("| key | type | default | meaning |\n| --- | --- | --- | --- |\n".to_owned());
        for (key, rules) in properties(schema) {
            let (kind, default) = (type_of(rules), default(schema, key, rules));
            let meaning = meaning(key, rules);
            rows.push(format!("| `{key}` | {kind} | {default} | {meaning} |\n"));
        }
    }
    assert!(rows.len() > 1, "a table without rows: {schema}");
    rows.concat()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// The alternatives of an enum whose variants hold something.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    let alternatives = schema["oneOf"].as_array()?;
    let hold = |one: &Value| one.get("properties").is_some();
    alternatives.iter().all(hold).then_some(alternatives)
}

fn called(name: &str) -> String {
    name.trim_end_matches("File").to_lowercase()
}

/// True if a type below a file's type has a table, and does not stand in the place of its type.
fn has_table(name: &str, schema: &Value) -> bool {
    const INLINE: [&str; 4] = ["TurnFile", "CountFile", "MediaFile", "EarlierFile"];
    let has_keys = schema.get("properties").is_some() || alternatives(schema).is_some();
    has_keys && !INLINE.contains(&name)
}

/// The comment, as a part of a table.
fn meaning(key: &str, rules: &Value) -> String {
    let text = rules["description"].as_str();
    let text = text.unwrap_or_else(|| panic!("`{key}` has no comment"));
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace('|', "\\|");
    let text = text.strip_suffix('.').unwrap_or(&text);
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The type of a key: one with a table of its own stands below.
fn type_of(rules: &Value) -> String {
    let kind = kind(rules);
    if tables().iter().any(|table| table.name == kind) {
        "object, see below".to_owned()
    } else {
        kind
    }
}

fn default(schema: &Value, key: &str, rules: &Value) -> String {
    let mut required = schema["required"].as_array().into_iter().flatten();
    if required.any(|required| required == key) {
        return "required".to_owned();
    }
    match rules.get("default") {
        // Only an optional value may be absent without a default that the schema states.
        None => {
            assert!(is_optional(rules), "the default of `{key}` is not known");
            "none".to_owned()
        }
        Some(Value::Null) => "none".to_owned(),
        Some(value) if is_empty(value) && !value.is_string() => "empty".to_owned(),
        Some(value) => format!("`{value}`"),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(values) => values.values().all(is_empty),
        _ => false,
    }
}

fn is_optional(rules: &Value) -> bool {
    let is_null = |one: &Value| one == "null" || one["type"] == "null";
    match (rules.get("type"), rules.get("anyOf")) {
        (Some(Value::Array(several)), _) | (None, Some(Value::Array(several))) => {
            several.iter().any(is_null)
        }
        (None, None) => rules.get("$ref").is_none(),
        _ => false,
    }
}

fn kind(rules: &Value) -> String {
    let either = |parts: &mut dyn Iterator<Item = String>| {
        let parts: Vec<String> = parts.filter(|part| part != "null").collect();
        parts.join(" or ")
    };
    if let Some(target) = rules["$ref"].as_str() {
        return named(target.trim_start_matches("#/$defs/"));
    }
    if let Some(values) = enum_values(rules) {
        return values;
    }
    if let Some(parts) = rules["anyOf"].as_array() {
        return either(&mut parts.iter().map(kind));
    }
    match &rules["type"] {
        Value::String(one) => simple(one, rules),
        Value::Array(several) => {
            let several = several.iter().filter_map(Value::as_str);
            either(&mut several.map(|one| simple(one, rules)))
        }
        _ => "any JSON".to_owned(),
    }
}

/// The words of an enum without values.
fn enum_values(rules: &Value) -> Option<String> {
    let alternatives: Vec<&Value> = match (rules["enum"].as_array(), rules["oneOf"].as_array()) {
        (Some(alternatives), _) => alternatives.iter().collect(),
        (_, Some(parts)) => parts.iter().map(|part| part.get("const")).collect::<Option<_>>()?,
        _ => return None,
    };
    let alternatives: Vec<String> = alternatives.iter().map(|word| format!("`{word}`")).collect();
    Some(alternatives.join(", "))
}

fn simple(name: &str, rules: &Value) -> String {
    match name {
        "array" => format!("list of {}", several(&kind(&rules["items"]))),
        "object" => match rules.get("additionalProperties") {
            Some(values @ Value::Object(_)) => format!("table of {}", several(&kind(values))),
            _ => "object".to_owned(),
        },
        "integer" => match rules.get("minimum") {
            Some(least) => format!("integer from {least}"),
            None => "integer".to_owned(),
        },
        other => other.to_owned(),
    }
}

fn several(kind: &str) -> String {
    match kind.split_once(' ') {
        Some((first, rest)) => format!("{first}s {rest}"),
        None => format!("{kind}s"),
    }
}

/// A type below a file's type.
fn named(name: &str) -> String {
    let schemas = [schema_for!(SampleFile), schema_for!(SettingsFile), schema_for!(ExchangeFile)];
    let schemas = schemas.map(schemars::Schema::to_value);
    let mut found = schemas.iter().filter_map(|schema| schema["$defs"].get(name));
    let schema = found.next().unwrap_or_else(|| panic!("no type `{name}`"));
    if has_table(name, schema) {
        return called(name);
    }
    match schema.get("properties") {
        Some(Value::Object(keys)) => inline(keys),
        _ => kind(schema),
    }
}

/// A small object, with its types for values.
fn inline(keys: &Map<String, Value>) -> String {
    let keys = keys.iter().map(|(key, rules)| {
        let kind = kind(rules).replace('`', "").replace(", ", " or ");
        format!("\"{key}\": {kind}")
    });
    format!("`{{{}}}`", keys.collect::<Vec<_>>().join(", "))
}

mod tests;
