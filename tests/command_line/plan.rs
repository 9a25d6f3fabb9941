//! `runner plan`: its output agrees with a run's behaviour.

use std::io::Write as _;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::transcript;
use crate::hostile_guests::fixture::components;
use crate::support::process::{Exit, Mock, Process, run, runner, words};
use crate::support::results::{follows, json_lines, report, run_file, run_folder};

/// A workload whose every request stands alone.
const RANDOM: &str = "--backend openai-chat --dataset-name random --num-prompts 40 --random-input-len 60 \
    --random-range-ratio 0.5 --random-output-len 4 --model mock --seed 3 --line-of runner";

fn planned(flags: &str) -> Value {
    run(runner().arg("plan").args(words(flags)).args(["--format", "json"])).with_code(0).json()
}

/// Runs against an engine, and gives the printed text and its folder's records in the order of
/// their numbers.
fn measured(mock: &Mock, folder: &Path, flags: &str) -> (Exit, Vec<Value>) {
    let mut command = runner();
    command.arg("run").args(words(flags)).args(["--base-url", &mock.url]).current_dir(folder);
    let ended = run(&mut command).with_code(0);
    let lines = report(&run_folder(folder), "--format jsonl").stdout;
    let mut records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|record: &Value| record["phase"] == "measure")
        .collect();
    records.sort_by_key(|record| record["index"].as_u64());
    (ended, records)
}

/// The digest that a plan states, of records.
fn digest(records: &[Value]) -> String {
    let mut hash = Sha256::new();
    for record in records {
        hash.update(record["sample"]["request-digest"].as_str().unwrap());
        hash.update("\n");
    }
    model::hex(&hash.finalize())
}

/// A backend that reads no setting at all.
const DEAF: &str = "guests/unsteady-backend.wasm";

#[test]
fn counts_and_digest_equal_the_runs() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    for flags in ["", "--request-rate 200", "--system-prompt Shortly."] {
        let flags = format!("{RANDOM} {flags}");
        let plan = planned(&flags);
        let folder = tempfile::tempdir().unwrap();
        let (_, records) = measured(&mock, folder.path(), &flags);
        assert_eq!(plan["requests"], records.len(), "{flags}");
        assert_eq!(plan["digest"], digest(&records), "{flags}");
        let sum = |key: &str| -> f64 {
            records.iter().map(|record| record["sample"][key].as_f64().unwrap()).sum()
        };
        let mean = |what: &str| plan[what]["tokens"]["mean"].as_f64().unwrap();
        let count = records.len() as f64;
        assert!((mean("input") * count - sum("input-tokens")).abs() < 1e-6, "{flags}");
        assert!((mean("output") * count - sum("output-tokens")).abs() < 1e-6, "{flags}");
        assert_eq!(plan["warmup"], 1);
        assert_eq!(plan["end"], "whole");
    }
    // Another seed is another digest, and a run from another one differs.
    let other = planned(&RANDOM.replace("--seed 3", "--seed 4"));
    assert_ne!(other["digest"], planned(RANDOM)["digest"]);
}

#[test]
fn a_plan_needs_no_server_and_says_which_name_is_a_placeholder() {
    let flags =
        RANDOM.replace("--model mock", "--base-url http://127.0.0.1:9 --show 2 --request-rate 20");
    let ended = run(runner().arg("plan").args(words(&flags))).with_code(0);
    let expected = "note: --random-range-ratio 0.5 is read as SGLang's client reads it";
    assert!(ended.stderr.starts_with(expected), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 2, "{}", ended.stderr);
    let shown = ended.stdout.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    transcript("plan", &shown);
    let plan = planned(&flags);
    assert_eq!(plan["model"], "MODEL");
    assert_eq!(plan["model-is-placeholder"], true);
    let due = &plan["due"]["seconds"];
    assert_eq!(due["count"], 40);
    assert_eq!(due["min"], 0.0);
}

#[test]
fn an_endless_plan_stops_at_a_limit_that_it_states() {
    let endless = RANDOM.replace("--num-prompts 40", "--duration 10s --concurrency 2");
    let plan = planned(&format!("{endless} --at-most 30"));
    assert_eq!((&plan["requests"], &plan["end"]), (&30.into(), &"limit".into()));
    assert_eq!(plan["users"]["count"], 2);
    assert!(plan.get("due").is_none());
    let plan = planned(&endless);
    assert_eq!((&plan["requests"], &plan["end"]), (&10_000.into(), &"limit".into()));
    // If due times are known, so is the number.
    let open =
        RANDOM.replace("--num-prompts 40", "--duration 2s --request-rate 10 --arrival constant");
    let plan = planned(&open);
    assert_eq!((&plan["requests"], &plan["end"]), (&20.into(), &"whole".into()));
}

#[test]
fn exports_hold_every_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let export = |format: &str| -> Vec<Value> {
        let mut command = runner();
        command.arg("plan").args(words(RANDOM)).args(words("--request-rate 20 --export rows"));
        command.args(["--export-format", format]).current_dir(folder.path());
        run(&mut command).with_code(0);
        json_lines(folder.path().join("rows"))
    };
    let shown = planned(&format!("{RANDOM} --show 40 --full"));
    let prompts: Vec<&Value> = (shown["shown"].as_array().unwrap().iter())
        .map(|shown| &shown["prompt"][0]["text"])
        .collect();
    for (format, text, tokens) in [
        ("runner", "prompt", "output_tokens"),
        ("vllm", "prompt", "output_tokens"),
        ("aiperf", "text", "output_length"),
    ] {
        let rows = export(format);
        let written: Vec<&Value> = rows.iter().map(|row| &row[text]).collect();
        assert_eq!(written, prompts, "{format}");
        assert!(rows.iter().all(|row| row[tokens].is_u64()), "{format}");
        assert_eq!(rows[1].get("timestamp").is_some(), format != "vllm");
    }
}

fn are_built_in(plugins: &[&str]) -> bool {
    let missing = plugins.iter().find(|name| !shipped::has_plugin(name));
    if let Some(missing) = missing {
        eprintln!("skipped: {missing} is not built in");
    }
    missing.is_none()
}

/// Only where the dataset that reads them is built in.
#[test]
fn an_export_that_is_replayed_sends_the_same() {
    if !are_built_in(&["datasets/custom.wasm"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.jsonl");
    let flags = format!("{RANDOM} --request-rate 20 --warmup-requests 0");
    run(runner().arg("plan").args(words(&flags)).arg("--export").arg(&rows)).with_code(0);
    let again = format!(
        "--line-of runner --backend openai-chat --dataset-name custom --num-prompts 40 --model mock --arrival dataset --warmup-requests 0 --dataset-path {}",
        rows.display()
    );
    let (first, second) = (planned(&flags), planned(&again));
    assert_eq!(first["digest"], second["digest"]);
    assert_eq!(first["due"], second["due"]);
}

/// With the flags that the export names, and nothing but the model and the backend beside them.
#[test]
fn the_flags_that_an_export_names_send_the_same() {
    if !are_built_in(&["datasets/custom.wasm", "datasets/conversation.wasm"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("given.jsonl");
    let tool = r#"{"type": "function", "function": {"name": "f"}}"#;
    let rows = [
        // Parts, and tools after another parameter.
        format!(
            r#"{{"messages": [{{"role": "user", "content": [{{"type": "text", "text": "a"}}, {{"type": "text", "text": "b"}}]}}],
            "parameters": {{"temperature": 0.5, "tools": [{tool}]}}, "max_tokens": 5}}"#
        ),
        r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}], "max_tokens": 6}"#
            .to_owned(),
        r#"{"prompt": "p", "max_tokens": 7}"#.to_owned(),
    ];
    let talks = [
        r#"{"id": "one", "messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]}"#,
        r#"{"id": "two", "messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"},
            {"role": "user", "content": "v"}, {"role": "assistant", "content": "b"}]}"#,
    ];
    for (dataset, rows) in
        [("custom", rows.to_vec()), ("conversation", talks.map(str::to_owned).to_vec())]
    {
        let rows: Vec<_> = rows.iter().map(|row| row.replace('\n', " ")).collect();
        std::fs::write(&file, rows.join("\n")).unwrap();
        let run_of =
            "--backend openai --model mock --num-prompts 10 --set backend.config.route=chat";
        let flags = format!(
            "{run_of} --dataset-name {dataset} --dataset-path {} --warmup-requests 0",
            file.display()
        );
        let ended = run(runner()
            .arg("plan")
            .args(words(&flags))
            .args(["--format", "json", "--export", "rows.jsonl"])
            .current_dir(folder.path()))
        .with_code(0);
        let first = ended.json();
        let (_, again) =
            ended.stderr.split_once("replace the flags of the dataset with: ").unwrap();
        let ended = run(runner()
            .arg("plan")
            .args(words(&format!("{run_of} {again} --format json")))
            .current_dir(folder.path()))
        .with_code(0);
        let second = ended.json();
        assert_eq!(first["digest"], second["digest"], "{dataset}: {again}");
        assert!(first["requests"].as_u64() >= Some(3), "{dataset}");
    }
}

#[test]
fn charts_are_files_and_json_follows_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["svg", "png"] {
        let mut command = runner();
        command.arg("plan").args(words(RANDOM)).args(["--format", format, "--output", format]);
        command.current_dir(folder.path());
        run(&mut command).with_code(0);
        let chart =
            std::fs::read(folder.path().join(format!("{format}/input-tokens.{format}"))).unwrap();
        let begins: &[u8] = if format == "svg" { b"<svg" } else { b"\x89PNG" };
        assert!(chart.starts_with(begins), "{format}");
    }
    run(runner().arg("plan").args(words(RANDOM)).args(words("--format svg --chart input-token")))
        .with_stderr(2, "did you mean `input-tokens`?");
    follows("outlook", &planned(&format!("{RANDOM} --show 2")));
}

#[test]
fn an_interrupt_shows_the_drawn_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = runner();
    let endless = RANDOM.replace("--num-prompts 40", "--num-prompts 2000000 --max-concurrency 8");
    command.arg("plan").args(words(&endless)).args(["--export", "rows"]);
    command.current_dir(folder.path());
    let mut going = Process::start(&mut command);
    let part = folder.path().to_owned();
    going.until("rows are written", |_| {
        let files = std::fs::read_dir(&part).unwrap().flatten();
        let mut sizes = files.filter_map(|file| file.metadata().ok());
        sizes.any(|file| file.len() > 0)
    });
    going.signal("INT");
    going
        .end()
        .with_stdout(130, "interrupted here; a run goes on")
        .with_stderr(130, "nothing was exported");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A run's summary, and the names of its findings.
fn cached(mock: &Mock, flags: &str) -> (Value, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    measured(mock, folder.path(), &format!("{RANDOM} --cache-report {flags}"));
    let summary = run_file(folder.path(), "summary.json");
    let findings = summary["findings"].as_array().unwrap().iter();
    let names = findings.map(|finding| finding["id"].as_str().unwrap().to_owned());
    let names = names.collect();
    (summary["cache"].clone(), names)
}

#[test]
fn a_warm_cache_is_distinguished_from_repeated_prompts() {
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--prefix-cache"]);
    // One system prompt of 80 characters, five pages, before all prompts.
    let system = "x".repeat(80);
    let shared = format!("--system-prompt {system} --concurrency 1");
    let (cache, findings) = cached(&mock, &shared);
    assert_eq!(cache["requests"], 40);
    // The warm-up left the pages, so every measured request finds them.
    assert_eq!(cache["reusable"], 40 * 80);
    assert_eq!(cache["reported"]["cached"], cache["reusable"]);
    assert_eq!(cache["policy"], "keep");
    assert!(!findings.iter().any(|name| name.contains("cache")), "{findings:?}");
    // The same again: now the server has everything.
    let (cache, findings) = cached(&mock, &shared);
    assert!(cache["reported"]["cached"].as_u64() > cache["reusable"].as_u64());
    assert!(findings.contains(&"warm-by-accident".to_owned()), "{findings:?}");
    // With a salt, no tokens of earlier runs are found in the cache, but tokens that the run shares
    // are.
    let (cache, findings) = cached(&mock, &format!("{shared} --cache salt"));
    assert_eq!(cache["policy"], "salt");
    assert_eq!(cache["reported"]["cached"], cache["reusable"]);
    assert!(cache["reusable"].as_u64() >= Some(40 * 80));
    assert!(!findings.iter().any(|name| name.contains("cache")), "{findings:?}");
}

#[test]
fn a_salt_is_in_the_plan_and_the_requests_follow_from_it() {
    let mock = Mock::logging(&["--ttft", "1ms", "--itl", "1ms"]);
    let folder = tempfile::tempdir().unwrap();
    let (_, records) = measured(&mock, folder.path(), &format!("{RANDOM} --cache salt"));
    let plan = run_file(folder.path(), "plan.json");
    let salt = plan["load"]["salt"]["text"].as_str().unwrap();
    assert!(salt.starts_with("Run ") && plan["load"]["salted"] == true, "{salt}");
    // The dataset counts its own tokens; the server also gets the salt's tokens.
    for record in &records {
        let own = record["sample"]["input-tokens"].as_u64().unwrap();
        let seen = record["usage"]["input-tokens"].as_u64().unwrap();
        assert_eq!(seen, own + salt.len() as u64);
    }
    assert_ne!(digest(&records), planned(RANDOM)["digest"]);
}

/// Only where the dataset of conversations is built in.
#[test]
fn recorded_histories_are_known_and_live_ones_have_stand_ins() {
    if !are_built_in(&["datasets/conversation.wasm"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("talks.jsonl");
    let message = |role: &str, text: String| serde_json::json!({ "role": role, "content": text });
    let talk = |number: u32| {
        let turns = (0..3).flat_map(|turn| {
            let question = format!("Question {turn} of {number}: {}", "why ".repeat(20));
            [message("user", question), message("assistant", "so ".repeat(15))]
        });
        serde_json::json!({ "messages": turns.collect::<Vec<_>>() }).to_string() + "\n"
    };
    std::fs::write(&file, (0..6).map(talk).collect::<String>()).unwrap();
    let flags = format!(
        "--backend openai --dataset-name conversation --num-prompts 15 --set backend.config.route=chat \
         --set dataset.config.format=messages --model mock --concurrency 1 --dataset-path {}",
        file.display()
    );
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--prefix-cache"]);
    let recorded = format!("{flags} --history recorded");
    let plan = planned(&recorded);
    let (_, records) = measured(&mock, folder.path(), &format!("{recorded} --cache-report"));
    assert_eq!(plan["digest"], digest(&records));
    assert_eq!(plan["sessions"]["requests"]["mean"], 3.0);
    assert!(plan["sessions"].get("stand-ins").is_none());
    let summary = run_file(folder.path(), "summary.json");
    // One user sends in the order of the numbers, so plan, run and server count the same.
    assert_eq!(summary["cache"]["reusable"], plan["cache"]["cached"]);
    assert_eq!(summary["cache"]["reported"]["cached"], plan["cache"]["cached"]);
    let live = planned(&flags);
    let stand_ins = &live["sessions"]["stand-ins"];
    assert_eq!((&stand_ins["requests"], &stand_ins["recorded"]), (&10.into(), &10.into()));
}

/// A trace of any length is read in a memory that its rows hardly need: a place and a time of each.
#[test]
fn a_long_trace_is_read_in_little_memory() {
    const ROWS: u64 = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    for row in 0..ROWS {
        let (first, second) = (row % 700, 1_000 + row % 9_000);
        let line = format!(
            r#"{{"timestamp": {}, "input_length": 7, "output_length": 4, "hash_ids": [{first}, {second}]}}"#,
            row * 20
        );
        writeln!(file, "{line}").unwrap();
    }
    file.into_inner().unwrap();
    let flags = format!(
        "--backend openai --dataset-name trace --dataset-path {} --arrival dataset --warmup-requests 0 \
         --num-prompts {ROWS} --set dataset.config.block-size=4 --set sandbox.memory=7MiB",
        path.display()
    );
    let plan = planned(&flags);
    assert_eq!(plan["requests"], ROWS, "{plan:#}");
}

/// A small workload, for a backend that reads nothing but the sample's id among others.
const FEW: &str = "--dataset-name random --num-prompts 3 --random-input-len 4 --random-output-len 4 --model m \
    --warmup-requests 0";

#[test]
fn ignored_options_are_shown_before_the_run_and_in_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let backend = components().join(DEAF);
    let backend = backend.to_str().unwrap();
    let flags = [
        "--temperature=0.7",
        "--top-k=3",
        "--stop=x",
        "--min-output-tokens=2",
        "--output-tokens=5",
        "--extra-body={\"a\":1}",
    ];
    let keys = [
        "request.temperature",
        "request.top-k",
        "request.min-output-tokens",
        "request.stop",
        "request.extra-body",
        "request.output-tokens",
    ];
    let mut plan = runner();
    plan.args(["plan", "--plugin", backend]).args(words(FEW)).args(flags);
    let named = keys.map(|key| format!("`{key}`"));
    let [others @ .., last] = &named;
    let says = format!(
        "warning: the backend `{backend}` ignores {} and {last}: its requests are the same with and without",
        others.join(", ")
    );
    run(&mut plan).with_stderr(0, &says);

    // Its requests have a path that no engine serves; remarks on the options need no answers.
    let mock = Mock::start(&[]);
    let ended = run(runner()
        .args(["run", "--plugin", backend, "--base-url", &mock.url])
        .args(words(FEW))
        .args(flags)
        .args(["--allow-invalid", "--json"])
        .current_dir(folder.path()));
    assert!(ended.stderr.contains(&says), "{}", ended.stderr);
    let ignored = &run_file(folder.path(), "plan.json")["request"]["ignored"];
    assert_eq!(*ignored, serde_json::json!(keys));
    let findings = run_file(folder.path(), "summary.json")["findings"].clone();
    let found = findings.as_array().unwrap().iter();
    let found: Vec<&Value> = found.filter(|found| found["id"] == "options-ignored").collect();
    assert_eq!(found.len(), 1, "{findings:#}");
    let seen = found[0]["seen"].as_str().unwrap();
    assert!(named.iter().all(|key| seen.contains(key)), "{seen}");
}

#[test]
fn options_that_a_backend_reads_are_not_called_ignored() {
    // Values that backends write of their own accord too, or leave out beside a temperature of 0.
    let flags = "--temperature 0 --top-p 1 --top-k 3 --stop x --output-tokens 16 --sampling-seed 0 --extra-body {\"a\":1}";
    for (backend, more) in [
        ("vllm", "--min-output-tokens 16 --lora-modules a"),
        ("vllm-chat", "--min-output-tokens 16 --lora-modules a"),
        ("sglang", "--min-output-tokens 16 --lora-modules a"),
        ("llamacpp", "--lora-modules 0"),
        ("tgi", ""),
    ] {
        let mut plan = runner();
        plan.args(["plan", "--backend", backend])
            .args(words(FEW))
            .args(words(flags))
            .args(words(more));
        let ended = run(&mut plan).with_code(0);
        assert!(!ended.stderr.contains("ignores"), "{backend}: {}", ended.stderr);
    }
}

#[test]
fn a_default_that_a_backend_ignores_is_not_stated() {
    let backend = components().join(DEAF);
    let mut plan = runner();
    plan.args(["plan", "--plugin", backend.to_str().unwrap()]).args(words(FEW));
    let ended = run(&mut plan).with_code(0);
    assert!(
        ended.stderr.contains("cannot express a temperature, so the server's own is used")
            && !ended.stderr.contains("ignores"),
        "{ended:#?}"
    );
}
