//! Components that were built for an earlier version of the contract and kept unchanged: they must continue to work.
//! Their sources are `tests/guests/frozen-*`.

use std::path::Path;

use model::plugin::Kind;
use plugins::Contract;
use plugins::load::{SearchPath, load};

use crate::support::process::{run, runner};
use crate::support::trial::Trial;

const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/versions/0.1.0");

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

#[test]
fn which_version_a_component_is_of_is_known() {
    for (file, kind) in [
        ("backend.wasm", Kind::Backend),
        ("dataset.wasm", Kind::Dataset),
        ("scorer.wasm", Kind::Scorer),
    ] {
        let plugin = load(&format!("{KEPT}/{file}"), &SearchPath::default()).unwrap();
        assert_eq!((plugin.kind, plugin.contract), (kind, Contract::V0_1));
    }
}

#[tokio::test(start_paused = true)]
async fn what_0_1_0_cannot_be_told_is_told_instead() {
    let ran = trial().with("[request]\nadapters = ['a']\n").run().await;
    assert_eq!(ran.summary.requests.successful, 0);
    let text = format!("{:?}", ran.exchanges[0].outcome);
    assert!(
        text.contains("was built for runner:plugin 0.1.0, which has no adapters")
            && text.contains("ask its author for a build against 0.2.0"),
        "{text}"
    );
}

#[test]
fn an_option_that_it_cannot_express_is_a_wrong_flag() {
    let backend = format!("{KEPT}/backend.wasm");
    let scenario = tempfile::tempdir().unwrap();
    for (flag, key) in [
        ("--top-k=5", "request.top-k"),
        ("--stop=x", "request.stop"),
        ("--min-output-tokens=2", "request.min-output-tokens"),
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
        let flag = flag.split_once('=').unwrap().0;
        assert!(
            ended.stderr.contains(&format!("given by {flag}")),
            "{}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("temperature`:"), "{}", ended.stderr);
    }
}
