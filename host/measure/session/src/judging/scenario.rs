//! The scenario of a judging: a file of prompts, a model that answers them greedily, and the scorer
//! that reads its verdicts. Everything else is as in any run, and flags can change all of it.

use std::path::Path;

use reader::{ConfigTable, Located, Place};
use scenario::{Scenario, Scorer};
use serde_json::json;

use super::rubric::{Kind, Scale};

/// The source of these settings in messages.
const SETTER: &str = "the judging";

/// Requests in flight at the same time, where nothing says so.
const IN_FLIGHT: u64 = 8;

/// Tokens that a judge may write, where nothing says so: as many as in FastChat.
const OUTPUT_TOKENS: u64 = 2048;

/// The file of prompts, and what is asked in them.
#[derive(Clone, Copy, Debug)]
pub struct Prompts<'p> {
    pub file: &'p Path,
    /// Number of prompts.
    pub count: u64,
    /// True if any of them has a class.
    pub has_classes: bool,
    /// Subject of the verdicts.
    pub kind: Kind,
    /// The ends of grades.
    pub scale: Scale,
}

/// The scenario that asks for verdicts on these prompts. `name` is what people call it.
pub fn scenario(name: &str, prompts: &Prompts<'_>) -> Scenario {
    let mut scenario = Scenario { name: Some(set(name.to_owned())), ..Scenario::default() };
    scenario.backend.plugin = Some(set("backends/openai.wasm".to_owned()));
    let dataset = &mut scenario.dataset;
    dataset.plugin = Some(set("datasets/custom.wasm".to_owned()));
    let mut columns = json!({ "id": "id", "prompt": "prompt" });
    if prompts.has_classes {
        columns["class"] = json!("class");
    }
    dataset.config = table(json!({ "format": "jsonl", "form": "chat", "columns": columns }));
    (dataset.files).insert("data".to_owned(), set(prompts.file.to_owned()));
    let load = &mut scenario.load;
    load.requests = Some(set(prompts.count));
    load.max_in_flight = Some(set(IN_FLIGHT));
    load.warmup = Some(set(0));
    let request = &mut scenario.request;
    request.ignore_eos = Some(set(false));
    request.output_tokens = Some(set(OUTPUT_TOKENS));
    let config = match prompts.kind {
        Kind::Single => json!({
            "form": "grade",
            "lowest": prompts.scale.lowest,
            "highest": prompts.scale.highest,
        }),
        Kind::Pair => json!({ "form": "choice" }),
    };
    scenario.scorers = Some(vec![set(Scorer {
        plugin: Some(set("scorers/verdict.wasm".to_owned())),
        config: table(config),
    })]);
    scenario
}

/// The names of what the scorer says of an answer of the judge.
pub fn score_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Single => "grade",
        Kind::Pair => "choice",
    }
}

fn set<T>(value: T) -> Located<T> {
    Located::flag(SETTER, value)
}

fn table(config: serde_json::Value) -> ConfigTable {
    match config {
        serde_json::Value::Object(map) => {
            ConfigTable::from_json(map, &Place::Flag(SETTER.to_owned()))
        }
        _ => ConfigTable::default(),
    }
}
