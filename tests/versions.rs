//! Components that were built for an earlier version of the contract and kept unchanged: they must continue to work.
//! Those of 0.1.0 were built from `tests/guests/frozen-*`; those of 0.2.0 are the plugins `openai`, `random` and
//! `output-length` that shipped then.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use model::plugin::{Kind, Limits};
use plugins::backend::{Backend, Candidates, Head, Message, Part, Prompt, Role, Sample, Settings};
use plugins::load::{SearchPath, load};
use plugins::sandbox::{Grants, LogBook};
use plugins::{Contract, PluginError};
use serde_json::json;
use tokenizer::Tokenizer;

use crate::support::process::{run, runner};
use crate::support::trial::Trial;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/versions/0.1.0");

/// The components of 0.2.0.
const KEPT_0_2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/versions/0.2.0");

/// A scenario with only kept components.
fn trial() -> Trial {
    let data = Path::new(KEPT).join("lines.txt");
    Trial::of(&format!(
        r#"
[target]
model = "mock"
[backend]
plugin = "{KEPT}/backend.wasm"
[dataset]
plugin = "{KEPT}/dataset.wasm"
[load]
requests = 5
arrival = "constant"
rate = 10.0
warmup = 1
[[scorers]]
plugin = "{KEPT}/scorer.wasm"
"#
    ))
    .dataset_file(&data)
}

#[tokio::test(start_paused = true)]
async fn a_run_of_components_of_0_1_0() {
    let ran = trial().run().await;
    assert!(ran.ended.is_ok());
    assert!(ran.exchanges.iter().all(model::exchange::Exchange::is_ok));
    let measured: Vec<_> = ran.measured().collect();
    assert_eq!(measured.len(), 5);
    let first = measured[0];
    assert_eq!(first.sample.id, "line-1");
    assert_eq!(first.sample.turn.as_ref().unwrap().session, "session-1");
    assert_eq!(first.usage.and_then(|usage| usage.output_tokens), Some(8));
    assert_eq!(ran.summary.scores["share"].mean, 1.0);
    assert_eq!(ran.summary.run_scores["judged"], 5.0);
}

#[tokio::test(start_paused = true)]
async fn a_run_of_components_of_0_2_0() {
    let trial = Trial::of(&format!(
        r#"
[target]
model = "mock"
[backend]
plugin = "{KEPT_0_2}/backend.wasm"
config.route = "completions"
[dataset]
plugin = "{KEPT_0_2}/dataset.wasm"
config = {{ like = "vllm", input-len = 20, output-len = 5 }}
[load]
requests = 5
arrival = "constant"
rate = 10.0
warmup = 1
[[scorers]]
plugin = "{KEPT_0_2}/scorer.wasm"
"#
    ));
    let ran = trial.run().await;
    assert!(ran.ended.is_ok());
    assert!(ran.exchanges.iter().all(model::exchange::Exchange::is_ok));
    let measured: Vec<_> = ran.measured().collect();
    assert_eq!(measured.len(), 5);
    for exchange in measured {
        let counted = exchange.usage.and_then(|usage| usage.output_tokens);
        assert_eq!(counted, Some(5));
    }
    assert_eq!(ran.summary.scores["output-length"].count, 5);
    assert_eq!(ran.summary.scores["output-length"].mean, 1.0);
}

#[test]
fn which_version_a_component_is_of_is_known() {
    for (folder, contract) in [(KEPT, Contract::V0_1), (KEPT_0_2, Contract::V0_2)] {
        for (file, kind) in [
            ("backend.wasm", Kind::Backend),
            ("dataset.wasm", Kind::Dataset),
            ("scorer.wasm", Kind::Scorer),
        ] {
            let plugin = load(&format!("{folder}/{file}"), &SearchPath::default()).unwrap();
            assert_eq!((plugin.kind, plugin.contract), (kind, contract));
        }
    }
}

/// A sample with this prompt, and settings.
fn asked(prompt: Prompt) -> (Sample, Settings) {
    let sample = Sample {
        id: "s".to_owned(),
        prompt,
        after: Vec::new(),
        recorded_answer: None,
        input_tokens: None,
        output_tokens: Some(4),
        reference: None,
        turn: None,
        class: None,
        arrival: None,
        adapter: None,
        parameters: None,
    };
    let settings = Settings {
        model: "m".to_owned(),
        streaming: true,
        output_tokens: None,
        min_output_tokens: None,
        ignore_eos: false,
        sampling: plugins::backend::Sampling::default(),
        extra_body: None,
    };
    (sample, settings)
}

#[test]
fn what_0_2_0_cannot_be_told_is_told_instead() {
    let path = format!("{KEPT_0_2}/backend.wasm");
    let plugin = load(&path, &SearchPath::default()).unwrap();
    let grants = Grants {
        limits: Limits::default(),
        log: LogBook::default(),
        files: Arc::new(BTreeMap::new()),
        tokenizer: Arc::new(Tokenizer::bytes()),
        seed: 1,
    };
    let backend = Backend::new(plugin, &json!({}), grants).unwrap();
    let mut dialect = backend.open().unwrap();
    let ranking = Candidates {
        query: "Which is a river?".to_owned(),
        documents: vec!["The Rhine".to_owned()],
    };
    let joined = Message {
        role: Role::User,
        parts: vec![Part::Answer("a".to_owned())],
        extra: None,
    };
    for (prompt, what) in [
        (Prompt::Embedding(vec!["x".to_owned()]), "texts to embed"),
        (Prompt::Ranking(ranking), "texts to rank"),
        (Prompt::Messages(vec![joined]), "answers within prompts"),
    ] {
        let (sample, settings) = asked(prompt);
        let error = dialect.encode(&sample, &settings, None).unwrap_err();
        assert!(matches!(error, PluginError::Config { .. }), "{error:?}");
        let text = error.to_string();
        let says = format!(
            "it was built for runner:plugin 0.2.0, which has no {what}; ask its author for a build against 0.3.0"
        );
        assert!(text.ends_with(&says), "{text}");
    }
    // What it has no call for is as most servers have it.
    let credentials = dialect.credentials().unwrap();
    assert!(
        matches!(credentials.scheme, plugins::backend::Authentication::Bearer)
            && credentials.variable.is_none(),
        "{credentials:?}"
    );
    let head = Head {
        status: 200,
        headers: Vec::new(),
        streaming: true,
    };
    assert!(dialect.begin(&head).unwrap().is_empty());
    let served = dialect.read_models(br#"{"data": [{"id": "m", "root": "r"}]}"#);
    let served = served.unwrap();
    assert_eq!((served[0].name.as_str(), &served[0].root), ("m", &None));
}

#[test]
fn an_option_that_it_cannot_express_is_a_wrong_flag() {
    let backend = format!("{KEPT}/backend.wasm");
    let scenario = tempfile::tempdir().unwrap();
    for (flag, key) in [
        ("--top-k=5", "request.top-k"),
        ("--stop=x", "request.stop"),
        ("--min-output-tokens=2", "request.min-output-tokens"),
        ("--lora-modules=a", "request.adapters"),
    ] {
        // Nothing listens there: it is refused before anything is asked.
        let words = [
            "--base-url",
            "http://127.0.0.1:9",
            "--model",
            "m",
            "--dataset-name",
            "random",
        ];
        let mut command = runner();
        command
            .current_dir(scenario.path())
            .args(["run", "--plugin", &backend, "--temperature=0", flag])
            .args(words);
        let ended = run(&mut command).with_code(3);
        let says = format!("the backend cannot express `{key}`: plugin `{backend}`");
        assert!(ended.stderr.contains(&says), "{}", ended.stderr);
        let built = "was built for runner:plugin 0.1.0, which has no ";
        assert!(ended.stderr.contains(built), "{}", ended.stderr);
        let flag = flag.split_once('=').unwrap().0;
        assert!(
            ended.stderr.contains(&format!("given by {flag}")),
            "{}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("temperature`:"), "{}", ended.stderr);
    }
}
