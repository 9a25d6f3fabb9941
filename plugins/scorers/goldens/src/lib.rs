//! Judges the answers of a `golden.jsonl` natively and compares the scores with the reference
//! implementation's. `make.py` beside this crate writes those files; this crate only reads them.
//!
//! The first line has the implementation that gave the scores, and the number of answers. Each
//! further line has the scorer's `config`, an `exchange` with the keys of `exchanges.json`, and the
//! `scores` by name.
//!
//! For tests only; nothing here becomes part of a component.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use runner_plugin::{Exchange, Scorer, parse};
use runner_plugin_testing::tokenizer::StandIn;
use serde_json::{Value, json};

/// Tolerance between a score and the reference implementation's. Both compute in double precision,
/// so a larger difference is one in the rules.
const TOLERANCE: f64 = 1e-9;

/// Judges every answer of a golden file and returns their number.
///
/// # Panics
/// If a score differs, with the first difference; or if the file is malformed.
pub fn agree<S: Scorer>(golden: &str) -> usize {
    let mut lines = golden.lines();
    let header: Value = serde_json::from_str(lines.next().expect("a header")).expect("JSON");
    let mut opened: BTreeMap<String, S> = BTreeMap::new();
    let mut count = 0;
    let mut different = Vec::new();
    for line in lines {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        let config = line.get("config").unwrap_or(&json!({})).to_string();
        let scorer = opened.entry(config).or_insert_with_key(|config| {
            let config = parse(config).expect("a configuration");
            S::open(config, Box::new(StandIn)).expect("a configuration that opens")
        });
        let exchange = exchange(&line["exchange"]);
        let found = match scorer.score(&exchange) {
            Ok(found) => found,
            Err(error) => {
                different.push(format!("{line}: {error:?}"));
                continue;
            }
        };
        for (name, wanted) in line["scores"].as_object().expect("scores") {
            let wanted = wanted.as_f64().expect("a number");
            let value = found.iter().find(|score| score.name == *name);
            if !value.is_some_and(|score| (score.value - wanted).abs() <= TOLERANCE) {
                different.push(format!("{line}: {name} is {value:?}"));
            }
        }
        count += 1;
    }
    let shown = different[..different.len().min(5)].join("\n");
    assert!(different.is_empty(), "{} differ:\n{shown}", different.len());
    assert_eq!(json!(count), header["count"], "the header has the number of answers");
    count
}

/// An exchange from the keys of `exchanges.json`.
///
/// # Panics
/// If it is not an object.
pub fn exchange(value: &Value) -> Exchange {
    assert!(value.is_object(), "{value}");
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Exchange {
        id: text("id").unwrap_or_default(),
        reference: value.get("reference").map(Value::to_string),
        turn: None,
        class: text("class"),
        requested_tokens: None,
        output: text("output").unwrap_or_default(),
        choices: Vec::new(),
        reasoning: text("reasoning").unwrap_or_default(),
        tool_calls: text("tool-calls").unwrap_or_default(),
        output_tokens: None,
        finish: text("finish"),
    }
}

pub fn open<S: Scorer>(config: &Value) -> Result<S, runner_plugin::Error> {
    S::open(parse(&config.to_string())?, Box::new(StandIn))
}

/// The scores that a configured scorer gives an exchange, by name; or its error, as text.
pub fn scores<S: Scorer>(config: &Value, of: &Value) -> Value {
    let scores = open::<S>(config).and_then(|mut scorer| scorer.score(&exchange(of)));
    match scores {
        Ok(scores) => (scores.into_iter()).map(|score| (score.name, json!(score.value))).collect(),
        Err(error) => json!(format!("{error:?}")),
    }
}
