//! `--progress-file`: each line is a whole one, and the last is of the end.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::process::{Mock, Process, run, runner, words};

const FLAGS: &str = "--backend vllm --dataset-name random --random-input-len 20 \
                     --random-output-len 10 --no-progress --progress-every 50ms \
                     --progress-file progress.jsonl";

fn lines(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("progress.jsonl")).unwrap_or_default();
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn lines_of_several_runs() {
    let (folder, mock) =
        (TempDir::new().unwrap(), Mock::start(&["--ttft", "10ms", "--itl", "2ms"]));
    let mut command = runner();
    let flags = format!("{FLAGS} --num-prompts 20 --request-rate 100 --repeat 2");
    command.args(words(&flags)).args(["--base-url", &mock.url]).current_dir(folder.path());
    let ended = run(&mut command).with_code(0);
    assert!(!ended.stderr.contains("done, "), "{}", ended.stderr);
    let lines = lines(folder.path());
    let mut runs: Vec<&str> = lines.iter().map(|line| line["run"].as_str().unwrap()).collect();
    runs.dedup();
    assert_eq!(runs.len(), 2, "{runs:?}");
    for folder in runs {
        assert!(Path::new(folder).join("summary.json").is_absolute());
        assert!(Path::new(folder).join("summary.json").exists());
        let last = lines.iter().rfind(|line| line["run"] == folder).unwrap();
        let seen = ["phase", "requests", "answered", "failed", "in-flight", "share"];
        let seen = seen.map(|key| last[key].to_string()).join(" ");
        assert_eq!(seen, "\"over\" 20 20 0 0 1.0");
        assert!(last["ttft-p50-ms"].as_f64().unwrap() >= 10.0, "{last}");
        assert!(last.get("left-s").is_none(), "{last}");
    }
}

#[test]
fn a_line_while_requests_are_sent() {
    let (folder, mock) =
        (TempDir::new().unwrap(), Mock::start(&["--ttft", "10ms", "--itl", "2ms"]));
    let mut command = runner();
    let flags = format!("{FLAGS} --num-prompts 100000 --request-rate 50");
    command.args(words(&flags)).args(["--base-url", &mock.url]).current_dir(folder.path());
    let mut process = Process::start(&mut command);
    process.until("a line says that requests were answered", |_| {
        let seen = lines(folder.path());
        seen.iter().any(|line| line["answered"].as_u64().unwrap() > 5)
    });
    process.signal("INT");
    process.end().with_code(130);
    let lines = lines(folder.path());
    let middle = lines.iter().find(|line| line["answered"].as_u64().unwrap() > 5).unwrap();
    assert_eq!(middle["phase"], "measuring", "{middle}");
    assert_eq!(middle["requests"], 100_000);
    assert!(middle["elapsed-s"].as_f64().unwrap() > 0.0, "{middle}");
    assert_eq!(lines.last().unwrap()["phase"], "over");
}

#[test]
fn a_file_that_cannot_be_written() {
    let folder = TempDir::new().unwrap();
    let ended = run(runner()
        .args(words("--backend vllm --num-prompts 1 --progress-file nothing/here.jsonl"))
        .current_dir(folder.path()))
    .with_code(3);
    let why = "error: cannot write `nothing/here.jsonl`: No such file or directory (os error 2); \
               give --progress-file a file that can be written";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    assert!(!folder.path().join("runs").exists());
}
