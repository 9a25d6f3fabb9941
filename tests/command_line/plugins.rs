//! Search for plugins, and runs that flags alone describe.

use std::path::Path;

use runs::folder::RunFolder;
use serde_json::Value;

use crate::support::process::{Exit, Mock, run, runner, words};
use crate::support::results::{random, run_folder};

const QUICK: [&str; 4] = ["--ttft", "1ms", "--itl", "1ms"];

fn measured(folder: &Path, mock: &Mock, line: &str) -> Exit {
    let mut command = runner();
    command.current_dir(folder).args(words(line));
    let short = "--num-prompts 3 --random-input-len 8 --random-output-len 4 --base-url";
    run(command.args(words(short)).arg(&mock.url))
}

fn plan(folder: &Path) -> scenario::plan::Plan {
    RunFolder::at(&run_folder(folder)).plan().unwrap()
}

#[test]
fn flags_alone_describe_a_run() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&QUICK));
    let line =
        "--backend vllm --dataset-name random --request-rate 1000 --max-concurrency 2 --seed 7";
    measured(folder.path(), &mock, line)
        .with_stdout(0, "Successful requests:                     3\n");
    let plan = plan(folder.path());
    assert_eq!((plan.load.seed, plan.load.max_in_flight), (7, Some(2)));
    assert_eq!(plan.load.arrival.rate(), Some(1000.0));
    assert_eq!(plan.backend.plugin, "backends/vllm.wasm");
}

#[test]
fn variables_stand_for_flags() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&QUICK));
    let ended = run(runner().current_dir(folder.path()).envs([
        ("RUNNER_PLUGIN", "backends/vllm.wasm,datasets/random.wasm"),
        ("RUNNER_BASE_URL", &mock.url),
        ("RUNNER_NUM_PROMPTS", "3"),
        ("RUNNER_RANDOM_OUTPUT_LEN", "4"),
        ("RUNNER_DISABLE_STREAM", "1"),
        ("RUNNER_DISABLE_IGNORE_EOS", "0"),
        ("RUNNER_JSON", "1"),
    ]))
    .with_code(0);
    let summary = ended.json();
    assert_eq!(summary["requests"]["successful"], 3);
    let plan = plan(folder.path());
    assert_eq!((plan.request.stream, plan.request.ignore_eos), (false, true));
}

#[test]
fn a_flag_overrides_a_conflicting_variable() {
    let variables = [
        ("RUNNER_BASE_URL", "http://127.0.0.1:1"),
        ("RUNNER_DURATION", "no time"),
        ("RUNNER_SESSIONS", "2"),
        ("RUNNER_REPEAT", "3"),
        ("RUNNER_RATES", "1,2"),
    ];
    let shown_by =
        |line| run(runner().envs(variables).args(words(line)).args(["--num-prompts", "7"]));
    let shown = shown_by("scenario show --port 8000").with_code(0);
    for expected in ["http://127.0.0.1:8000", "requests = 7"] {
        assert!(shown.stdout.contains(expected), "{shown:#?}");
    }
    for (line, expected) in [
        ("--backend vllm --preset none", "there is no preset `none` of a run"),
        ("sweep --concurrencies none", "`none`: expected a number"),
    ] {
        shown_by(line).with_stderr(2, expected);
    }
}

#[test]
fn each_plugin_states_its_kind() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&QUICK));
    let line = "--plugin scorers/output-length.wasm --plugin datasets/random.wasm --plugin backends/openai.wasm";
    measured(folder.path(), &mock, line).with_code(0);
    let plan = plan(folder.path());
    assert_eq!(plan.backend.plugin, "backends/openai.wasm");
    assert_eq!(plan.dataset.plugin.plugin, "datasets/random.wasm");
    assert_eq!(plan.scorers[0].plugin, "scorers/output-length.wasm");
}

#[test]
fn a_folder_of_the_plugin_path_is_searched() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&QUICK));
    let elsewhere = tempfile::tempdir().unwrap();
    let component = shipped::plugin("backends/sglang.wasm").unwrap();
    std::fs::write(elsewhere.path().join("mine.wasm"), component).unwrap();
    let path = format!("/nowhere:{}", elsewhere.path().display());
    let line = format!("--plugin mine.wasm --plugin-path {path} --dataset-name random");
    measured(folder.path(), &mock, &line).with_code(0);
    assert_eq!(plan(folder.path()).backend.plugin, "mine.wasm");
}

#[test]
fn a_file_beside_the_scenario_overrides_the_shipped_file() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&QUICK));
    let beside = tempfile::tempdir().unwrap();
    std::fs::create_dir(beside.path().join("backends")).unwrap();
    let component = shipped::plugin("backends/sglang.wasm").unwrap();
    std::fs::write(beside.path().join("backends/vllm.wasm"), component).unwrap();
    let scenario = beside.path().join("mine.toml");
    let text = "backend.plugin = 'backends/vllm.wasm'\ndataset.plugin = 'datasets/random.wasm'\n";
    std::fs::write(&scenario, text).unwrap();
    measured(folder.path(), &mock, &scenario.display().to_string()).with_code(0);
    let plan = plan(folder.path());
    assert_eq!(plan.backend.plugin, "backends/vllm.wasm");
    assert_eq!(plan.backend.name, "sglang");
    assert_eq!(plan.name, "random 8/4, all at once");
}

#[test]
fn a_shipped_scenario_runs_from_any_folder() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&QUICK));
    measured(folder.path(), &mock, "scenarios/quickstart.toml --request-rate 1000").with_code(0);
    assert_eq!(plan(folder.path()).name, "random 8/4, 1000 req/s");
}

#[test]
fn the_demo_needs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(runner().current_dir(folder.path()).arg("demo"))
        .with_stdout(0, "Successful requests:                     60\n");
    assert!(ended.stdout.contains("output-length (mean of 60):              1.0000\n"));
}

#[test]
fn compiled_plugins_are_kept_and_a_folder_of_no_use_is_no_error() {
    let (folder, mock) = (tempfile::tempdir().unwrap(), Mock::start(&QUICK));
    let kept = folder.path().join("kept");
    let with = |flags: &str, cache: &Path| {
        let flags = format!("--num-prompts 1 --random-input-len 8 {flags}");
        run(random(&mock.url, folder.path(), &flags).env("RUNNER_CACHE_DIR", cache)).with_code(0)
    };
    with("--no-plugin-cache", &kept);
    assert!(!kept.exists());

    with("", &kept);
    let artifacts = || {
        let files = std::fs::read_dir(&kept).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    };
    let compiled = artifacts();
    assert_eq!(compiled.len(), 2, "a backend and a dataset: {compiled:?}");
    with("", &kept);
    assert_eq!(artifacts(), compiled);

    for artifact in &compiled {
        std::fs::write(artifact, "half of it").unwrap();
    }
    let ended = with("", &kept);
    assert_eq!(ended.stderr.matches("is truncated").count(), 2, "{ended:#?}");
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    with("", &file);
}

#[test]
fn check_compiles_anew_and_the_next_command_finds_it_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let check = || {
        let words = ["plugin", "check", "scorers/output-length.wasm", "--json"];
        let checked = run(runner().args(words).env("RUNNER_CACHE_DIR", folder.path()));
        let seconds = checked.with_code(0).json()["measured"]["compile-seconds"].as_f64();
        assert!(seconds > Some(0.0));
        let mut artifacts = std::fs::read_dir(folder.path()).unwrap();
        let artifact = artifacts.next().unwrap().unwrap();
        assert!(artifacts.next().is_none());
        std::fs::read(artifact.path()).unwrap()
    };
    let first = check();
    assert_eq!(first[..16], *b"runner artifact1");
    check();
}

/// Events are counted as the server's `data` fields are, by another reader.
#[test]
fn bench_times_each_event_of_a_case() {
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/backends/vllm/cases/chat.case");
    let text = std::fs::read_to_string(case).unwrap();
    let events = text.lines().filter(|line| line.starts_with("data: ")).count();
    let bench = ["plugin", "bench", case, "--plugin"];
    let ended = run(runner().args(bench).args(["backends/vllm.wasm", "--json"])).with_code(0);
    let bench_of = ended.json();
    let row = &bench_of["cases"][0];
    assert_eq!((&row["case"], &row["events"]), (&Value::from("chat"), &Value::from(events)));
    for time in ["request-us", "event-us"] {
        assert!(row[time].as_f64().unwrap() > 0.0, "{row}");
    }
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/datasets/random/cases");
    let dataset = ["plugin", "bench", cases, "--plugin", "datasets/random.wasm"];
    run(runner().args(dataset)).with_stderr(3, "is a dataset");
}
