//! `runner trend`: a step between versions is suspected, a lab of both versions confirms it, and
//! only then the command fails.

use std::path::Path;

use serde_json::Value;

use crate::support::process::{Exit, Mock, run, runner, words};

const CHAT: &str = "name = 'chat'\n[backend]\nplugin = 'backends/vllm.wasm'\n\
    [dataset]\nplugin = 'datasets/random.wasm'\nconfig = { input-len = 8, output-len = 8 }\n\
    [load]\nconcurrency = 10\nrequests = 10\n";

/// Runs a command in a folder, with the index there.
fn runner_in(folder: &Path, line: &str) -> Exit {
    let mut command = runner();
    command.args(words(line)).env("RUNNER_STORE", "runs.db");
    run(command.current_dir(folder))
}

#[track_caller]
fn series(folder: &Path, line: &str) -> Value {
    let shown = runner_in(folder, &format!("trend --metric tpot.mean {line} --format json"));
    shown.with_code(0).json()["series"][0].clone()
}

/// Eight versions, the last four times slower, on engines that run already.
#[test]
fn a_step_is_suspected_and_then_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let old = Mock::start(&["--ttft", "1ms", "--itl", "5ms"]);
    let new = Mock::start(&["--ttft", "1ms", "--itl", "20ms"]);
    std::fs::write(folder.path().join("chat.toml"), CHAT).unwrap();
    let nothing = runner_in(folder.path(), "trend").with_code(3);
    assert!(nothing.stderr.contains("`runner store add runs`"), "{nothing:#?}");
    for version in 0..8 {
        let url = if version < 7 { &old.url } else { &new.url };
        let line = format!(
            "run chat.toml --allow-invalid --no-progress --base-url {url} --output-dir v{version}"
        );
        runner_in(folder.path(), &line).with_code(0);
        let line = format!("store add v{version} --tag version=v{version}");
        runner_in(folder.path(), &line).with_code(0);
        if version == 5 {
            let early = series(folder.path(), "");
            assert_eq!((&early["class"], &early["more"]), (&"not-enough-data".into(), &1.into()));
        }
    }
    let suspected = series(folder.path(), "");
    assert_eq!(suspected["class"], "suspected", "{suspected:#}");
    let step = &suspected["step"];
    assert_eq!((&step["first-bad"], &step["is-worse"]), (&"v7".into(), &true.into()), "{step:#}");
    let failed = runner_in(folder.path(), "trend --metric tpot.mean --fail-on suspected");
    let failed = failed.with_code(6);
    assert!(failed.stderr.contains("suspected step for the worse: tpot.mean"), "{failed:#?}");

    // The lab has an engine for each version of the step, or nothing is measured.
    let lab = |last_good: &str| {
        let engine =
            |name: &str, url: &str| format!("[[engines]]\nname = '{name}'\nbase-url = '{url}'\n");
        let engines = engine(last_good, &old.url) + &engine("v7", &new.url);
        let head = "name = 'versions'\nstrategy = 'matrix'\nrepeats = 5\nconfirm = 0\n\
            scenarios = ['chat.toml']\n";
        std::fs::write(folder.path().join("versions.toml"), head.to_owned() + &engines).unwrap();
    };
    lab("another");
    let confirm = "trend --metric tpot.mean --confirm versions.toml";
    let refused = runner_in(folder.path(), confirm).with_code(3);
    assert!(refused.stderr.contains("has no engine named `v"), "{refused:#?}");
    assert!(!folder.path().join("runs").exists());
    lab(step["last-good"].as_str().unwrap());
    let confirmed = runner_in(folder.path(), confirm).with_code(6);
    assert!(confirmed.stdout.contains("1 series: 1 confirmed."), "{confirmed:#?}");
    assert!(confirmed.stderr.contains("tpot.mean, mock"), "{confirmed:#?}");
    assert!(confirmed.stderr.contains("confirmed by 5 and 5 runs, p "), "{confirmed:#?}");
    // The result stays, for a later process and for the page.
    let page = runner_in(folder.path(), "trend --metric tpot.mean --format html").with_code(6);
    assert!(page.stdout.contains("confirmed") && page.stdout.contains("<svg"), "{page:#?}");
    // An invalid run is no point: here most requests fail.
    let fault = ["--ttft", "1ms", "--itl", "5ms", "--fault", "kind = \"http-error\", share = 0.8"];
    let failing = Mock::start(&fault);
    let broken = "run chat.toml --allow-invalid --no-progress --num-prompts 10 --output-dir broken";
    runner_in(folder.path(), &format!("{broken} --base-url {}", failing.url));
    runner_in(folder.path(), "store add broken --tag version=broken").with_code(0);
    let left_out = runner_in(folder.path(), "trend --metric tpot.mean --format json");
    let left_out = left_out.with_stderr(6, "note: 1 invalid run left out").json();
    assert_eq!(left_out["series"][0]["points"].as_array().unwrap().len(), 8, "{left_out:#}");
    // A run by another method is never compared: here with a time limit for each request.
    let other = "run chat.toml --allow-invalid --no-progress --output-dir v8 --request-timeout 9s";
    runner_in(folder.path(), &format!("{other} --base-url {}", old.url)).with_code(0);
    runner_in(folder.path(), "store add v8 --tag version=v8").with_code(0);
    let changed = series(folder.path(), "");
    assert_eq!(changed["class"], "method-changed", "{changed:#}");
    assert_eq!(changed["points"][8]["changed"][0]["part"], "plan", "{changed:#}");
}
