//! Paired runs from the command line: several servers, the same requests, and the differences.

use std::path::{Path, PathBuf};

use runs::folder::{RunFolder, runs};
use serde_json::Value;

use crate::support::process::{Exit, Mock, Process, run, runner, words};

const SCENARIO: &str = "name = 'pair'\n[target]\nbase-url = 'A'\n\
    [paired]\nbaseline = 'engine'\nturns = 5\n\
    [[sides]]\nname = 'gateway'\nbase-url = 'B'\n\
    [backend]\nplugin = 'backends/vllm.wasm'\n[dataset]\nplugin = 'datasets/random.wasm'\n\
    config = { input-len = 20, output-len = 5 }\n[load]\nrequests = 63\nconcurrency = 3\n\
    [thresholds]\ndifference.itl.mean = '<= 3ms'\ndifference.requests.failed = '<= 0'\n";

/// Measures a scenario, whatever the verdicts of the runs on a busy machine.
fn pair(folder: &Path, flags: &str) -> Exit {
    let mut command = runner();
    command.args(words("run pair.toml --allow-invalid --no-progress")).args(words(flags));
    run(command.current_dir(folder))
}

fn scenario(folder: &Path, text: &str, urls: [&str; 2]) {
    let text = text.replace("'A'", &format!("'{}'", urls[0]));
    let text = text.replace("'B'", &format!("'{}'", urls[1]));
    std::fs::write(folder.join("pair.toml"), text).unwrap();
}

fn only(folder: &Path) -> PathBuf {
    let runs: Vec<_> = std::fs::read_dir(folder.join("runs")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    runs[0].as_ref().unwrap().path()
}

fn plan(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("plan.json")).unwrap()).unwrap()
}

#[test]
fn sides_take_turns_with_the_same_requests() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Mock::start(&["--ttft", "5ms", "--itl", "2ms", "--spread", "0.1"]);
    let gateway = Mock::start(&["--ttft", "5ms", "--itl", "12ms", "--spread", "0.1"]);
    scenario(folder.path(), SCENARIO, [&engine.url, &gateway.url]);
    let ended = pair(folder.path(), "--json").with_code(6);
    let shown = ended.stderr.lines().filter_map(|line| line.split_once(": 1"));
    let turns: Vec<&str> = shown.map(|(turn, _)| turn).collect();
    // 63 requests in five turns; another side begins each.
    let (a, b) = ("engine", "gateway");
    let expected: Vec<String> = [(a, b), (b, a), (a, b), (b, a), (a, b)]
        .iter()
        .zip(1..)
        .flat_map(|((first, then), turn)| [format!("{first} {turn}"), format!("{then} {turn}")])
        .collect();
    assert_eq!(turns, expected, "{ended:#?}");
    assert!(ended.stderr.contains("difference.itl.mean <= 3ms of gateway"), "{ended:#?}");
    let compared = ended.json();
    assert_eq!(compared["pairs"][0]["method"]["by"], "turns", "{compared:#}");
    assert_eq!(compared["conditions"][1]["fails"], false, "{compared:#}");
    let paired = only(folder.path());
    let amounts = |side: &str| {
        let runs = runs(&paired.join(side)).unwrap();
        let load = runs.iter().map(|run| plan(run.path())["load"].clone());
        load.map(|load| {
            [&load["amount"]["requests"], &load["seed"], &load["warmup"]].map(Value::as_u64)
        })
        .collect::<Vec<_>>()
    };
    let seed = amounts(a)[0][1].unwrap();
    let warmup = amounts(a)[0][2];
    for (turn, own) in (0..).zip(amounts(a)) {
        let requests = if turn < 3 { 13 } else { 12 };
        let warmup = if turn == 0 { warmup } else { Some(0) };
        assert_eq!(own, [Some(requests), Some(seed + turn), warmup]);
    }
    assert_eq!(amounts(a), amounts(b));
    // The folder alone is enough to compare again, with a figure that was not shown before.
    let mut again = runner();
    again.arg("compare").arg(&paired).args(words("--force --format json --metric itl.p75"));
    let again = run(&mut again).with_code(6).json();
    assert_eq!(again["pairs"][0]["figures"][0]["figure"], "itl.p75", "{again:#}");
    assert_eq!(again["conditions"], compared["conditions"]);
    assert!(paired.join("comparison.html").exists());
}

#[test]
fn sides_are_measured_together_at_the_same_instants() {
    let folder = tempfile::tempdir().unwrap();
    let mocks = [(); 3].map(|()| Mock::start(&["--ttft", "5ms", "--itl", "1ms"]));
    let text = SCENARIO.replace("concurrency = 3", "arrival = 'poisson'\nrate = 200.0");
    let text = text.replace("turns = 5", "order = 'together'");
    scenario(folder.path(), &text, [&mocks[0].url, &mocks[1].url]);
    let flags = format!("--versus third={}", mocks[2].url);
    let ended = pair(folder.path(), &flags).with_code(0);
    assert!(ended.stdout.contains("third against engine"), "{ended:#?}");
    assert!(ended.stdout.contains("measured at the same time"), "{ended:#?}");
    let runs = runs(&only(folder.path())).unwrap();
    assert_eq!(runs.len(), 3);
    // One clock and one start: the due times are the same to the nanosecond.
    let due = |run: &RunFolder| {
        (run.read().unwrap())
            .map(|exchange| exchange.unwrap())
            .filter(|exchange| exchange.phase == model::exchange::Phase::Measure)
            .map(|exchange| (exchange.index, exchange.due, exchange.sample.request_digest))
            .collect::<std::collections::BTreeSet<_>>()
    };
    let all: Vec<_> = runs.iter().map(due).collect();
    assert_eq!(all[0].len(), 63);
    assert!(all[0] == all[1] && all[1] == all[2]);
}

#[test]
fn interrupted_pair_compares_its_finished_turns() {
    let folder = tempfile::tempdir().unwrap();
    let [engine, gateway] = [(); 2].map(|()| Mock::start(&["--ttft", "5ms", "--itl", "2ms"]));
    let text = SCENARIO.replace("turns = 5", "turns = 100").replace("= 63", "= 2000");
    scenario(folder.path(), &text, [&engine.url, &gateway.url]);
    let mut command = runner();
    command.args(words("run pair.toml --allow-invalid --no-progress")).current_dir(folder.path());
    let mut process = Process::start(&mut command);
    process.until("three turns", |process| process.stderr().contains("engine 3: "));
    process.signal("INT");
    let ended = process.end().with_code(130);
    assert!(ended.stdout.contains("gateway against engine"), "{ended:#?}");
    let paired = std::fs::read_to_string(only(folder.path()).join("paired.json")).unwrap();
    assert!(paired.matches("gateway/").count() >= 2, "{paired}");
}

/// A server that is gone in the second turn ends the pair. Every measured run is listed, and the
/// whole turn is compared.
#[test]
fn a_side_that_goes_leaves_the_measured_runs() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Mock::start(&["--ttft", "5ms", "--itl", "2ms"]);
    let gateway = Mock::start(&["--ttft", "5ms", "--itl", "2ms"]);
    let text = SCENARIO.replace("turns = 5", "turns = 100").replace("= 63", "= 2000");
    scenario(folder.path(), &text, [&engine.url, &gateway.url]);
    let mut command = runner();
    command.args(words("run pair.toml --allow-invalid --no-progress")).current_dir(folder.path());
    let mut process = Process::start(&mut command);
    process.until("a turn", |process| process.stderr().contains("gateway 1: "));
    drop(gateway);
    let ended = process.end().with_code(5);
    let paired = only(folder.path());
    let listed = std::fs::read_to_string(paired.join("paired.json")).unwrap();
    let on_disk = |side: &str| runs(&paired.join(side)).map_or(0, |runs| runs.len());
    for side in ["engine", "gateway"] {
        assert_eq!(listed.matches(&format!("\"{side}/")).count(), on_disk(side), "{listed}");
    }
    assert!(ended.stdout.contains("gateway against engine"), "{ended:#?}");
}
