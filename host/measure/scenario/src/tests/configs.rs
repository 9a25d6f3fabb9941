//! A plugin's configuration against its schema, by cases: tables with their faults.

#![allow(dead_code, reason = "the types are there for their schema")]

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::*;
use reader::ConfigTable;

/// A configuration with everything that plugins are likely to have.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Knobs {
    /// Tokens of each prompt.
    #[schemars(range(min = 1))]
    input_len: u32,
    #[serde(default)]
    output_len: Option<u32>,
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(default)]
    share: f64,
    #[serde(default)]
    range_ratio: Option<Ratio>,
    #[serde(default)]
    like: Like,
    #[serde(default)]
    route: Option<Route>,
    #[serde(default)]
    retries: u8,
    #[serde(default)]
    #[schemars(length(min = 1))]
    label: String,
    #[serde(default)]
    stops: Vec<String>,
    #[serde(default)]
    pair: Option<(u32, String)>,
    #[serde(default)]
    weights: BTreeMap<String, f64>,
    #[serde(default)]
    source: Option<Origin>,
    #[serde(default)]
    shape: Option<Shape>,
    #[serde(default)]
    anything: Option<serde_json::Value>,
}

/// A number, or a table of two.
#[derive(JsonSchema)]
#[serde(untagged)]
enum Ratio {
    Both(f64),
    Each { input: f64, output: f64 },
}

/// Plain names.
#[derive(Default, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Like {
    #[default]
    Sglang,
    Vllm,
    Lmdeploy,
}

/// Names with their documentation, which schemars writes differently.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Route {
    /// `/v1/completions`
    Completions,
    /// `/v1/chat/completions`
    Chat,
}

/// A table whose key `kind` names its type.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
enum Origin {
    File { path: String },
    Inline { text: String, repeat: u32 },
}

/// A name, or a table with a name.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    Flat,
    Normal { mean: f64, deviation: f64 },
}

fn knobs() -> Value {
    schemars::schema_for!(Knobs).to_value()
}

fn config(text: &str) -> ConfigTable {
    Scenario::parse("scenario.toml", text).unwrap_or_else(|error| panic!("{error}")).dataset.config
}

#[test]
fn wrong_configurations_get_their_messages() {
    let schema = knobs();
    let mut failures = Vec::new();
    let cases = folders(&folder("config-cases"));
    assert!(cases.len() >= 10, "the cases are gone");
    for case in cases {
        let config = config(&fs::read_to_string(case.join("scenario.toml")).unwrap());
        let problems = check_config(&schema, &config);
        if problems.is_empty() {
            failures.push(format!("{}: nothing is found wrong", case.display()));
        } else {
            failures.extend(compare(&case.join("error.txt"), &rendered(problems)).err());
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn right_configurations_are_left_alone() {
    let schema = knobs();
    let config = config(
        "[dataset.config]\ninput-len = 64\noutput-len = 32\nrange-ratio = 1\nshare = 1\nlike = \"vllm\"\n\
         route = \"chat\"\nretries = 255\nlabel = \"x\"\nstops = [\"a\", \"b\"]\npair = [1, \"b\"]\n\
         weights = { a = 1, b = 0.5 }\nsource = { kind = \"inline\", text = \"t\", repeat = 3 }\n\
         shape.normal = { mean = 1.0, deviation = 2 }\nanything = [{ deep = [1, 2] }]\n",
    );
    assert!(
        check_config(&schema, &config).is_empty(),
        "{}",
        rendered(check_config(&schema, &config))
    );
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&Value::Object(config.to_json())));
}

#[test]
fn messages_name_the_flag_of_a_configuration() {
    let mut config = ConfigTable::default();
    config.set("input-len", Located::flag("--random-input-len", json!(0)));
    let error = ScenarioError::new(check_config(&knobs(), &config));
    assert_eq!(error.to_string(), "--random-input-len: `input-len`: expected at least 1, found 0");
}

#[test]
fn an_endless_schema_ends() {
    let config = config("[dataset.config]\nx = 1\ny = { z = 2 }\n");
    let itself = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    assert!(check_config(&itself, &config).is_empty());

    // Each schema asks for the next one twice: 2^60 ways through.
    let mut defs = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        let rules = json!({"allOf": [next, next], "additionalProperties": false});
        defs.insert(level.to_string(), rules);
    }
    let wide = json!({"$defs": defs, "$ref": "#/$defs/0"});
    let _ = check_config(&wide, &config);
    let nothing_fits =
        json!({"anyOf": [wide["$defs"]["0"], {"type": "null"}], "$defs": wide["$defs"]});
    let _ = check_config(&nothing_fits, &config);
}

#[test]
fn a_schema_cannot_smuggle_terminal_codes() {
    let config = config("[dataset.config]\nx = 1\n");
    let schema = json!({
        "properties": {"a": {"description": "\u{1b}[2Jhello\nworld"}, "x": {"const": "\u{1b}[31m"}},
        "required": ["a"],
    });
    let text = ScenarioError::new(check_config(&schema, &config)).to_string();
    assert!(text.contains("hello world"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
}

const KEYS: [&str; 16] = [
    "input-len",
    "output-len",
    "share",
    "range-ratio",
    "like",
    "route",
    "retries",
    "label",
    "stops",
    "pair",
    "weights",
    "source",
    "shape",
    "anything",
    "output_len",
    "nonsense",
];

proptest! {
    /// Finds any configuration wrong exactly where a full validator does.
    #[test]
    fn agrees_with_a_full_validator(
        entries in prop::collection::vec((0..KEYS.len(), 0..15_usize), 0..6)
    ) {
        let values = [json!(1), json!(0), json!(-1), json!(300), json!(0.5), json!("vllm"), json!("chat"),
            json!(""), json!(true), json!(["a"]), json!([1, "b"]), json!({"a": 1}),
            json!({"kind": "file", "path": "p"}), json!({"normal": {"mean": 1, "deviation": 1}}),
            json!({"input": 1, "output": 0.5})];
        let mut config = ConfigTable::default();
        config.set("input-len", Located::flag("--input", json!(64)));
        for (key, value) in entries {
            config.set(KEYS[key], Located::flag("--flag", values[value].clone()));
        }
        let schema = knobs();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let problems = check_config(&schema, &config);
        let json = Value::Object(config.to_json());
        prop_assert_eq!(problems.is_empty(), validator.is_valid(&json), "{}: {}", json, rendered(problems));
    }
}
