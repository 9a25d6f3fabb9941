//! Scenarios on the command line: any key with `--set`, from stdin, and `runner scenario`.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use runs::folder::RunFolder;

use super::transcript;
use crate::support::process::{Exit, Mock, run, runner, words};
use crate::support::results::run_folder;

const INPUTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/command_line/inputs");

fn run_with(stdin: &str, folder: &Path, line: &str) -> Exit {
    let mut command = runner();
    let child = command
        .current_dir(folder)
        .args(words(line))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Exit {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn any_key_can_be_set() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let line = "--backend vllm --dataset-name random --num-prompts 9 --seed 1 \
                --set backend.config.route=chat --set load.requests=3 \
                --set dataset.config.input-len=8 --set dataset.config.output-len=4";
    let mut command = runner();
    command.current_dir(folder.path()).args(words(line));
    command.args(["--set", &format!("target.base-url={}", mock.url)]);
    run(&mut command).with_code(0);
    let plan = RunFolder::at(&run_folder(folder.path())).plan().unwrap();
    assert_eq!(plan.requests(), Some(3));
    assert_eq!(plan.backend.config["route"], "chat");
    assert_eq!(plan.dataset.plugin.config["input-len"], 8);
}

#[test]
fn a_scenario_can_come_from_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms"]);
    let text = "[backend]\nplugin = \"backends/vllm.wasm\"\n\
                [dataset]\nplugin = \"datasets/random.wasm\"\nconfig = { input-len = 8, output-len = 4 }\n";
    for line in ["-", "run -"] {
        let line = format!("{line} --num-prompts 3 --output-dir runs --base-url {}", mock.url);
        run_with(text, folder.path(), &line).with_code(0);
    }
    let wrong = run_with("[load]\nreqests = 5\n", folder.path(), "- --set load.sed=1");
    transcript("scenario-stdin-wrong", &wrong.with_code(3).stderr);
    run_with("", folder.path(), "- -").with_stderr(2, "`-` is given twice");
}

#[test]
fn keys_are_listed() {
    let listed = run(runner().args(["scenario", "keys", "timeouts"])).with_code(0);
    transcript("scenario-keys", &listed.stdout);
    let all = run(runner().args(["scenario", "keys", "--json"])).with_code(0);
    let all = all.json();
    assert_eq!(all.as_array().unwrap().len(), scenario::keys().len());
    run(runner().args(["scenario", "keys", "timeout"])).with_stderr(2, "did you mean `timeouts`?");
}

#[test]
fn scenarios_are_checked() {
    let fine = run(runner().args(["scenario", "check", "scenarios/lmdeploy"])).with_code(0);
    assert_eq!(fine.stdout.lines().count(), 4);
    let folder = Path::new(INPUTS);
    let line = "scenario check three-mistakes.toml - scenarios/quickstart.toml unknown-plugin-key.toml missing-plugin.toml";
    let wrong = run_with("[load]\nconcurency = 1\n", folder, line).with_code(3);
    assert_eq!(wrong.stdout, "");
    transcript("scenario-check", &wrong.stderr);
}

#[test]
fn shown_values_have_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let text = "name = \"Mine\"\n[load]\narrival = \"poisson\"\nrate = 5\nrequests = 10\n\
                [target]\nheaders = { X-Key = \"hush\" }\n[thresholds]\nttft.p99 = \"<= 1s\"\n";
    std::fs::write(folder.path().join("mine.toml"), text).unwrap();
    let mut command = runner();
    let line = "scenario show mine.toml --backend vllm --request-rate 8 --set load.seed=7 \
                --set backend.config.route=chat";
    command.current_dir(folder.path()).args(words(line));
    let shown = run(&mut command).with_code(0).stdout;
    assert!(!shown.contains("hush"), "{shown}");
    transcript("scenario-show", &shown);
    // The output is a scenario, and shows as the same.
    let again = run_with(&shown, folder.path(), "scenario show -").with_code(0);
    let plain = |text: &str| -> toml::Table { text.parse().unwrap() };
    assert_eq!(plain(&again.stdout), plain(&shown));
}
