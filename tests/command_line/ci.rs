//! `runner ci`: the failures of a build, the passes with a remark, and the files that it writes.

use std::path::Path;
use std::process::Command;

use crate::support::process::{Exit, Mock, run, runner, words};

/// Measures three times, into a folder.
fn measured(folder: &Path, mock: &Mock, flags: &[&str]) {
    let line = "run --backend vllm --dataset-name random --num-prompts 30 --random-output-len 4 --request-rate 200 --repeat 3 --same-requests --seed 3";
    run(runner().args(words(line)).args(["--base-url", &mock.url]).args(flags).current_dir(folder));
}

fn ci(folder: &Path, flags: &[&str]) -> Exit {
    run(runner().arg("ci").args(flags).current_dir(folder))
}

/// Copies a folder, with a change to the file of that name in each run.
fn changed(folder: &Path, to: &str, name: &str, change: impl Fn(&str) -> String) {
    let copied = Command::new("cp").args(["-R", "new", to]).current_dir(folder).status();
    assert!(copied.unwrap().success());
    for run in std::fs::read_dir(folder.join(to)).unwrap() {
        let file = run.unwrap().path().join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, change(&text)).unwrap();
    }
}

#[test]
fn incomparable_runs_pass_with_a_warning_unless_forbidden() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "2ms"]);
    measured(folder, &mock, &["--output-dir", "new"]);
    ci(folder, &["new"]).with_stdout(0, "No baseline was requested");
    let line = ["new", "--baseline", "main", "--fail-if", "ttft.mean +500%"];
    ci(folder, &line).with_stdout(0, "There is no baseline yet");

    let has_processor =
        std::fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains("model name"));
    changed(folder, "main", "environment.json", |text| {
        let other = text.lines().map(|line| {
            if line.contains("\"cpu\"") { "  \"cpu\": \"another one\"," } else { line }
        });
        other.collect::<Vec<_>>().join("\n")
    });
    ci(folder, &line).with_stdout(0, "3 runs against 3");
    let machine = [&line[..], &["--must-agree", "machine", "--format", "github"]].concat();
    if has_processor {
        let ended = ci(folder, &machine).with_code(0);
        let words = ended.stdout.lines().find(|line| line.contains("NOTHING WAS COMPARED"));
        let words = words.unwrap_or_else(|| panic!("{ended:#?}"));
        assert!(words.starts_with("::warning ") && words.contains("another one in A"), "{words}");
        ci(folder, &[&machine[..], &["--strict"]].concat())
            .with_stderr(3, "the baseline is comparable: NOTHING");
        ci(folder, &[&machine[..], &["--strict", "--allow", "machine"]].concat()).with_code(0);
    }

    // A baseline that is damaged is none to compare with, and no fault of the build.
    changed(folder, "damaged", "plan.json", |text| text[..text.len() / 2].to_owned());
    let damaged = ["new", "--baseline", "damaged"];
    ci(folder, &damaged).with_stdout(0, "NOTHING WAS COMPARED");
    ci(folder, &[&damaged[..], &["--strict"]].concat()).with_code(3);

    // A requested check that cannot be made does not pass.
    let absent = ["new", "--baseline", "main", "--fail-if", "score.exact-match -1%"];
    ci(folder, &absent).with_stderr(3, "name a figure that both sides have");
    ci(folder, &["new", "--fail-if", "ttft.mean +5%"])
        .with_stderr(2, "name the folder of its runs with --baseline");
    ci(folder, &["nowhere"]).with_code(3);
}

#[test]
fn a_broken_threshold_and_a_slower_engine_fail_the_build() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mock = Mock::start(&["--ttft", "20ms", "--itl", "2ms"]);
    let flags = ["--threshold", "ttft.median <= 1ms", "--output-dir"];
    measured(folder, &mock, &[&flags[..], &["new"]].concat());
    ci(folder, &["new", "--output-dir", "a/report", "--format", "github"])
        .with_stdout(6, "::error title=")
        .with_stderr(6, "error: ttft.median <= 1 ms: ");
    let read = |name: &str| std::fs::read_to_string(folder.join("a/report").join(name)).unwrap();
    assert!(read("summary.md").contains("❌"), "{}", read("summary.md"));
    let junit = quick_junit::Report::deserialize_from_str(&read("junit.xml")).unwrap();
    assert_eq!(junit.test_suites[0].failures, 1, "{junit:#?}");

    let slower = Mock::start(&["--ttft", "200ms", "--itl", "2ms"]);
    measured(folder, &slower, &["--output-dir", "slower"]);
    let condition = ["--baseline", "new", "--fail-if", "ttft.median +50%"];
    ci(folder, &[&["slower"], &condition[..]].concat())
        .with_stderr(6, "error: ttft.median +50%: +");
}
