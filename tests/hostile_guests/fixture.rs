//! The hostile guests, loaded, with limits small enough for quick tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use model::frame::{Framer, Frames, Framing};
use model::plugin::Limits;
use model::units::Nanos;
use plugins::backend::{Backend, Dialect, Prompt, Sample, Sampling, Settings};
use plugins::dataset::{Amount, Dataset, Samples};
use plugins::load::{SearchPath, load, load_within};
use plugins::sandbox::{Grants, LogBook};
use plugins::scorer::{Exchange, Judge, Scorer};
use plugins::{Plugin, PluginError};
use serde_json::Value;
use tokenizer::Tokenizer;

pub const BACKEND: &str = "guests/hostile-backend.wasm";
pub const DATASET: &str = "guests/hostile-dataset.wasm";
pub const SCORER: &str = "guests/hostile-scorer.wasm";
/// The name of the scorer that asks WASI for things.
pub const CURIOUS: &str = "guests/wasi-scorer.wasm";

/// The name of the scorer that asks WASI 0.3.
pub const THIRD: &str = "third-wasi-scorer.wasm";

/// The deeds that a guest can do to itself, and the name of each in the error.
pub const DEEDS: [(&str, &str); 7] = [
    (
        "loop",
        "it ran longer than the 200 ms allowed for a call (fix the endless loop, or raise the limit under [sandbox])",
    ),
    (
        "memory",
        "it asked for more memory than the 32 MiB allowed (raise `memory` under [sandbox] if it really needs more)",
    ),
    ("recursion", "its stack overflowed (endless recursion)"),
    (
        "out-of-bounds",
        "it trapped: wasm trap: out of bounds memory access (a wrong pointer, or endless recursion)",
    ),
    ("abort", "it aborted without a message"),
    ("panic", "a panic on purpose"),
    ("flood-log-and-panic", "a panic on purpose"),
];

pub fn components() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/components"))
}

pub fn bytes(name: &str) -> Vec<u8> {
    let path = components().join(name);
    std::fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; run `cargo xtask plugins` first", path.display())
    })
}

/// The component with every occurrence of a name changed.
pub fn patched(component: &str, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes(component);
    let mut found = 0;
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from.as_bytes()) {
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            found += 1;
        }
    }
    assert!(found > 0, "{component} does not hold {from}");
    bytes
}

/// Loads a file of these bytes; its name is `plugin.wasm`.
pub fn load_bytes(folder: &Path, bytes: &[u8]) -> Result<Plugin, PluginError> {
    load_bytes_within(folder, bytes, &Limits::default())
}

pub fn load_bytes_within(
    folder: &Path,
    bytes: &[u8],
    limits: &Limits,
) -> Result<Plugin, PluginError> {
    std::fs::write(folder.join("plugin.wasm"), bytes).unwrap();
    let search = SearchPath {
        scenario: Some(folder.to_owned()),
        folders: Vec::new(),
        shipped: shipped::PLUGINS,
    };
    load_within("plugin.wasm", &search, limits)
}

fn loaded(name: &'static str, slot: &'static OnceLock<Plugin>) -> Plugin {
    slot.get_or_init(|| {
        bytes(name);
        let search =
            SearchPath { scenario: None, folders: vec![components()], shipped: shipped::PLUGINS };
        load(name, &search).unwrap()
    })
    .clone()
}

/// Returns the grants of the guests. Only endless loops have short calls: machines are busy.
pub fn grants(config: &Value) -> Grants {
    let call_ms = if config["misbehave"] == "loop" { 200 } else { 60_000 };
    Grants {
        limits: Limits {
            memory_bytes: 32 << 20,
            returned_bytes: 4 << 20,
            backend_call_ms: call_ms,
            dataset_call_ms: call_ms,
            scorer_call_ms: call_ms,
            ..Limits::default()
        },
        log: LogBook::default(),
        files: Arc::new(BTreeMap::new()),
        tokenizer: Arc::new(Tokenizer::bytes()),
        seed: 1,
    }
}

/// Memory enough to make answers of 100 MB, so that only the limit on returned bytes stops them.
pub fn roomy(config: &Value) -> Grants {
    let mut grants = grants(config);
    grants.limits.memory_bytes = 1 << 30;
    grants
}

pub fn backend(config: &Value, grants: Grants) -> Backend {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    Backend::new(loaded(BACKEND, &PLUGIN), config, grants).unwrap()
}

/// The hostile backend, opened with the usual grants.
#[track_caller]
pub fn dialect(config: &Value) -> Dialect {
    backend(config, grants(config)).open().unwrap()
}

pub fn dataset(config: &Value, grants: Grants) -> Dataset {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    Dataset::new(loaded(DATASET, &PLUGIN), config, grants).unwrap()
}

/// The hostile dataset, opened with the usual grants.
#[track_caller]
pub fn samples(config: &Value) -> Samples {
    dataset(config, grants(config)).open(1, Amount::Unknown).unwrap()
}

pub fn scorer(config: &Value, grants: Grants) -> Scorer {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    Scorer::new(loaded(SCORER, &PLUGIN), config, grants).unwrap()
}

/// The hostile scorer, opened with the usual grants.
#[track_caller]
pub fn judge(config: &Value) -> Judge {
    scorer(config, grants(config)).open().unwrap()
}

/// The scorer that asks WASI for things.
pub fn curious(config: &Value, grants: Grants) -> Scorer {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    Scorer::new(loaded(CURIOUS, &PLUGIN), config, grants).unwrap()
}

/// The scorer that asks WASI 0.3 for things; `tests/wasi3` has its source and its recipe.
pub fn third(config: &Value, grants: Grants) -> Scorer {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    let plugin = PLUGIN.get_or_init(|| {
        let search = SearchPath {
            scenario: None,
            folders: vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/wasi3")],
            shipped: shipped::PLUGINS,
        };
        load(THIRD, &search).unwrap()
    });
    Scorer::new(plugin.clone(), config, grants).unwrap()
}

pub fn sample(prompt: &str) -> Sample {
    Sample {
        id: "s".to_owned(),
        prompt: Prompt::Text(prompt.to_owned()),
        after: Vec::new(),
        recorded_answer: None,
        audio_duration: None,
        recorded_duration: None,
        further: None,
        input_tokens: None,
        output_tokens: Some(4),
        reference: None,
        turn: None,
        class: None,
        arrival: None,
        adapter: None,
        parameters: None,
    }
}

pub fn settings() -> Settings {
    Settings {
        model: "m".to_owned(),
        streaming: true,
        output_tokens: None,
        min_output_tokens: None,
        ignore_eos: false,
        sampling: Sampling::default(),
        extra_body: None,
        prepared: Vec::new(),
        further: None,
    }
}

/// Frames of a reply that add these texts.
pub fn frames(texts: &[&str]) -> Frames {
    let mut frames = Frames::default();
    let mut framer = Framer::new(Framing::Lines);
    for text in texts {
        let line = serde_json::json!({"choices": [{"text": text}]}).to_string() + "\n";
        framer.push(Nanos::ZERO, line.as_bytes(), &mut frames).unwrap();
    }
    frames
}

pub fn exchange(output: &str) -> Exchange {
    Exchange {
        id: "s".to_owned(),
        reference: None,
        turn: None,
        class: None,
        requested_tokens: None,
        output: output.to_owned(),
        choices: Vec::new(),
        reasoning: String::new(),
        tool_calls: String::new(),
        output_tokens: None,
        finish: None,
    }
}

/// The error of a call that must not succeed.
#[track_caller]
pub fn fails<T>(result: Result<T, PluginError>) -> PluginError {
    result.err().expect("it succeeded")
}

/// Asserts that the plugin trapped in that call, of that cause. A panic's message has its place.
#[track_caller]
pub fn trapped(error: &PluginError, name: &str, in_call: &str, of: &str) {
    let PluginError::Trapped { plugin, call, cause } = error else {
        panic!("expected a trap, got {error:?}");
    };
    assert_eq!((plugin.as_str(), *call), (name, in_call));
    if of.starts_with("a panic") {
        assert!(cause.starts_with("it panicked: panicked at ") && cause.ends_with(of), "{cause}");
    } else {
        assert_eq!(cause, of);
    }
}

/// Asserts that the plugin broke its contract in that call, and checks the message.
#[track_caller]
pub fn contract(error: &PluginError, name: &str, in_call: &str, says: &str) {
    let PluginError::Contract { plugin, call, what } = error else {
        panic!("expected a breach of contract, got {error:?}");
    };
    assert_eq!((plugin.as_str(), *call), (name, in_call));
    assert_eq!(what, says);
}
