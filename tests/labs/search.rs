//! Searches and sweeps against the mock engine.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::process::{Exit, Mock, Process, run_patiently, runner, words};
use crate::support::results::follows;

/// Four slots, each taken for 15 ms: at most 267 requests a second.
pub(super) const ENGINE: [&str; 6] = ["--ttft", "5ms", "--itl", "1ms", "--max-concurrency", "4"];
const ASKED: &str =
    "--backend vllm --random-input-len 16 --random-output-len 11 --warmup-requests 1 --no-progress";

pub(super) fn command(
    what: &str,
    mock: &Mock,
    folder: &TempDir,
    flags: &str,
) -> std::process::Command {
    let mut command = runner();
    command
        .arg(what)
        .args(words(ASKED))
        .args(["--port", mock.port(), "--host", "127.0.0.1"])
        .args(words(flags))
        .current_dir(folder.path());
    command
}

fn json(ended: &Exit) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:#?}"))
}

/// The folder in which it was saved, as it says at its end.
pub(super) fn saved(ended: &Exit, what: &str, folder: &TempDir) -> std::path::PathBuf {
    let lines = ended.stderr.lines().rev();
    let place = lines.filter_map(|line| line.strip_prefix(&format!("{what}: "))).next();
    folder.path().join(place.unwrap_or_else(|| panic!("{ended:#?}")))
}

/// Its page is drawn again as it was, its charts are pictures too, and its file follows its schema.
fn is_drawn(ended: &Exit, what: &str, folder: &TempDir, chart: &str) {
    let kept = saved(ended, what, folder);
    let page = std::fs::read_to_string(kept.join(format!("{what}.html"))).unwrap();
    assert!(page.contains(&format!("id=\"{chart}\"")), "{chart}");
    let report = |flags: &str| {
        run_patiently(runner().arg("report").arg(&kept).args(words(flags))).with_code(0).stdout
    };
    assert!(report("--format html") == page);
    let markdown = report("--format markdown");
    assert!(markdown.contains("## Runs"));
    // Its title is about all runs, not about the first run's load.
    let title = markdown.lines().find(|line| line.starts_with("# ")).unwrap_or_default();
    assert!(title.contains("random 16/11"), "{title}");
    assert!(!title.contains("random 16/11, "), "{title}");
    let picture = report(&format!("--format svg --chart {chart}"));
    assert!(picture.starts_with("<svg"), "{picture}");
    let text = std::fs::read_to_string(kept.join(format!("{what}.json"))).unwrap();
    follows(&format!("{what}-file"), &serde_json::from_str(&text).unwrap());
}

pub(super) const SEARCH: &str = "--slo ttft.p80<400ms --start 64 --width 90% --run-for 1s --requests-each 1500 --loads 4 --no-confirm --json";

#[test]
fn the_highest_rate_lies_below_the_engines_capacity() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&ENGINE));
    let ended = run_patiently(&mut command("search", &mock, &folder, SEARCH)).with_code(0);
    is_drawn(&ended, "search", &folder, "tier-1-objective-1");
    let answer = json(&ended);
    follows("search", &answer);
    let found = &answer["tiers"][0];
    let passed = found["passed"].as_f64().unwrap();
    assert!((8.0..=267.0).contains(&passed), "{answer:#}");
    if let Some(failed) = found["failed"].as_f64() {
        assert!(failed > passed, "{answer:#}");
    }
    assert!(answer["probes"].as_u64().unwrap() >= 2, "{answer:#}");
}

/// The folder that the message of an interrupt names.
fn resumable(stderr: &str) -> &str {
    let (_, folder) = stderr.split_once("--resume ").unwrap();
    folder.split('`').next().unwrap()
}

#[test]
fn a_search_that_is_interrupted_goes_on() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&ENGINE));
    let mut process = Process::start(&mut command("search", &mock, &folder, SEARCH));
    process.until("a load is measured", |process| process.stderr().contains("== run 2"));
    process.signal("INT");
    let ended = process.end().with_code(130);
    let kept = resumable(&ended.stderr);
    let flags = format!("{SEARCH} --resume {kept}");
    let ended = run_patiently(&mut command("search", &mock, &folder, &flags)).with_code(0);
    assert!(!ended.stderr.contains("== run 1:"), "{ended:#?}");
    json(&ended);
    let flags = flags.replace("400ms", "300ms");
    run_patiently(&mut command("search", &mock, &folder, &flags))
        .with_stderr(2, "other objectives");
}

#[test]
fn a_wrong_objective_gets_an_explanation() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&ENGINE));
    let flags = "--slo ttft.p99>5ms --slo nonsense.p99<5ms";
    let ended = run_patiently(&mut command("search", &mock, &folder, flags)).with_code(2);
    for part in ["ttft.p99>5ms", "nonsense"] {
        assert!(ended.stderr.contains(part), "{part}: {ended:#?}");
    }
}

pub(super) const SWEEP: &str = "--concurrencies 1..8x2 --num-prompts 40";

#[test]
fn a_sweep_measures_every_load_in_order() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&ENGINE));
    let flags = format!("{SWEEP} --json");
    let ended = run_patiently(&mut command("sweep", &mock, &folder, &flags)).with_code(0);
    is_drawn(&ended, "sweep", &folder, "throughput-latency");
    let swept = json(&ended);
    follows("sweep", &swept);
    let loads: Vec<f64> =
        (swept["runs"].as_array().unwrap().iter()).map(|run| run["at"].as_f64().unwrap()).collect();
    assert_eq!(loads, [1.0, 2.0, 4.0, 8.0], "{swept:#}");
    let places = swept["curve"]["places"].as_array().unwrap();
    let speed = |place: usize| places[place]["throughput"]["mean"].as_f64().unwrap();
    // Four slots: no more than that are answered at a time.
    assert!(speed(2) > 2.0 * speed(0), "{swept:#}");
    assert!(speed(3) < 1.5 * speed(2), "{swept:#}");
}

#[test]
fn a_sweep_that_is_interrupted_goes_on() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&ENGINE));
    let mut process = Process::start(&mut command("sweep", &mock, &folder, SWEEP));
    process.until("a load is measured", |process| process.stderr().contains("== run 2 of 4"));
    process.signal("INT");
    let ended = process.end().with_code(130);
    let kept = resumable(&ended.stderr);
    let flags = format!("{SWEEP} --resume {kept}");
    let ended = run_patiently(&mut command("sweep", &mock, &folder, &flags)).with_code(0);
    assert!(!ended.stderr.contains("== run 1 of 4"), "{ended:#?}");
    assert!(ended.stdout.contains("Pareto front"), "{ended:#?}");
}

/// The folder has the scenario and all flags, also the environment's, except possible secrets.
#[test]
fn a_folder_is_all_that_is_needed_to_go_on() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&ENGINE));
    let elsewhere = TempDir::new().unwrap();
    let text = "[dataset]\nplugin = \"datasets/custom.wasm\"\nfiles.data = \"rows.jsonl\"\n\
                config = { repeat = true }\n";
    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/chat.toml"), text).unwrap();
    std::fs::write(folder.path().join("mine/rows.jsonl"), "{\"prompt\": \"hello\"}\n").unwrap();
    let url = mock.url.clone();
    let arguments = format!("--output-tokens 4 --backend vllm --base-url {url} --no-progress");
    for (what, flags, header) in [
        ("sweep", "--concurrencies 1..8x2 --num-prompts 40", ""),
        ("search", SEARCH, "--header 'x-key: sesame'"),
    ] {
        let mut begun = runner();
        begun
            .args([what, "mine/chat.toml"])
            .args(words(&arguments))
            .args(words(flags))
            .env("RUNNER_SEED", "7")
            .current_dir(folder.path());
        if !header.is_empty() {
            begun.args(["--header", "x-key: sesame"]);
        }
        let mut process = Process::start(&mut begun);
        process.until("a load is measured", |process| process.stderr().contains("== run 2"));
        process.signal("INT");
        let ended = process.end().with_code(130);
        let kept = folder.path().join(resumable(&ended.stderr));
        let command = std::fs::read_to_string(kept.join("command.json")).unwrap();
        assert!(!command.contains("sesame"), "{command}");
        // The text was kept.
        std::fs::rename(folder.path().join("mine/chat.toml"), folder.path().join("mine/gone.toml"))
            .unwrap();
        let mut again = runner();
        again.arg(what).arg("--resume").arg(&kept);
        again.current_dir(elsewhere.path());
        if !header.is_empty() {
            run_patiently(&mut again).with_stderr(2, "has --header");
            again.args(["--header", "x-key: sesame"]);
        }
        let ended = run_patiently(&mut again).with_code(0);
        assert!(!ended.stderr.contains("== run 1 "), "{ended:#?}");
        assert!(!ended.stderr.contains("== run 1:"), "{ended:#?}");
        std::fs::rename(folder.path().join("mine/gone.toml"), folder.path().join("mine/chat.toml"))
            .unwrap();
    }
}

#[test]
fn presets_are_of_searches_or_of_sweeps() {
    let (folder, mock) = (TempDir::new().unwrap(), Mock::start(&ENGINE));
    let refusal = |what: &str, flags: &str, code: i32| {
        let ended = run_patiently(&mut command(what, &mock, &folder, flags)).with_code(code);
        ended.stderr.replace('\n', " ")
    };
    let curve = refusal("search", "--preset agentx", 2);
    assert!(curve.contains("use `runner sweep --preset agentx`"), "{curve}");
    let objective = refusal("sweep", "--preset mlperf-server --rates 1,2", 2);
    assert!(objective.contains("use `runner search --preset mlperf-server`"), "{objective}");
    let load = refusal("sweep", "--preset agentx --rates 1,2", 2);
    assert!(load.contains("give --session-counts"), "{load}");
    let short = "--preset agentx --session-counts 1,2 --duration 60s --disable-stream";
    let both = refusal("sweep", short, 3);
    assert!(both.contains("`load.duration` contradicts"), "{both}");
    assert!(both.contains("`request.stream` contradicts"), "{both}");
}
