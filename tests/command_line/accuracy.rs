//! The accuracy mode from the command line: the whole dataset once, judged, and then the speed of
//! the same plan.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use runs::folder::RunFolder;
use serde_json::Value;

use crate::support::process::{Exit, Mock, run, runner, words};
use crate::support::results::{json_file, run_folders};

/// Seven questions; `yes` answers five of them rightly.
const QUESTIONS: &str = r#"{"name": "q0", "question": "Is 0 a number?", "right": "yes"}
{"name": "q1", "question": "Is 1 a number?", "right": "yes"}
{"name": "q2", "question": "Is 2 a letter?", "right": "nay"}
{"name": "q3", "question": "Is 3 a number?", "right": "yes"}
{"name": "q4", "question": "Is 4 a number?", "right": "yes"}
{"name": "q5", "question": "Is 5 a letter?", "right": "nay"}
{"name": "q6", "question": "Is 6 a number?", "right": "yes"}
"#;

/// The speed run repeats the file, which is shorter.
const SCENARIO: &str = r#"[backend]
plugin = "backends/vllm.wasm"
[dataset]
plugin = "datasets/custom.wasm"
config = { columns = { id = "name", prompt = "question", reference = "right" }, output-len = 3, repeat = true }
files = { data = "questions.jsonl" }
[[scorers]]
plugin = "scorers/exact-match.wasm"
[request]
temperature = 0
[load]
requests = 20
"#;

fn in_folder(folder: &Path, flags: &[&str], mock: Option<&Mock>) -> Exit {
    std::fs::write(folder.join("questions.jsonl"), QUESTIONS).unwrap();
    let mut command = runner();
    command.args(["run", "asked.toml", "--preset", "mlperf-accuracy"]);
    command.args(flags).current_dir(folder);
    if let Some(mock) = mock {
        command.args(["--base-url", &mock.url]);
    }
    run(&mut command)
}

fn results(folder: &Path) -> Vec<(PathBuf, Value)> {
    let summary = |run: PathBuf| (run.clone(), json_file(run.join("summary.json")));
    run_folders(folder).into_iter().map(summary).collect()
}

#[test]
fn the_whole_set_is_sent_once_and_then_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("asked.toml"), SCENARIO).unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--answer", "yes"]);
    let ended = in_folder(folder.path(), &[], Some(&mock)).with_code(0);
    for part in ["== asked, accuracy: 7 samples once ==", "== asked, speed =="] {
        assert!(ended.stderr.contains(part), "no {part} in {ended:#?}");
    }
    assert!(!ended.stderr.contains("warning"), "{ended:#?}");
    let [(judged_folder, accuracy), (speed_folder, speed)] = &results(folder.path())[..] else {
        panic!("{ended:#?}")
    };
    assert_eq!(accuracy["requests"]["successful"], 7, "{accuracy:#}");
    assert_eq!(speed["requests"]["successful"], 20, "{speed:#}");
    let exchanges = RunFolder::at(judged_folder).exchanges().unwrap();
    let ids: BTreeSet<&str> = exchanges.iter().map(|own| own.sample.id.as_str()).collect();
    let all: BTreeSet<String> = (0..7).map(|number| format!("q{number}")).collect();
    assert!(ids.iter().copied().eq(all.iter().map(String::as_str)), "{ids:?}");
    assert_eq!(exchanges.len(), 7);
    let score = accuracy["scores"]["exact-match"]["mean"].as_f64().unwrap();
    assert!((score - 5.0 / 7.0).abs() < 1e-9, "{accuracy:#}");
    // The second run records that the answers equal the first run's.
    let agreed = json_file(speed_folder.join("agreement.json"));
    // The warm-up of the second took one.
    assert_eq!(agreed["answers"]["samples"], 6, "{agreed:#}");
    assert_eq!(agreed["answers"]["identical"], 6, "{agreed:#}");
    assert!(ended.stdout.contains("Identical answers (%):                   100.00"));
}

#[test]
fn answers_to_other_questions_of_one_name_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let unnamed = SCENARIO.replace("id = \"name\", ", "");
    std::fs::write(folder.path().join("asked.toml"), unnamed).unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--answer", "yes"]);
    let ended = in_folder(folder.path(), &[], Some(&mock)).with_code(0);
    let expected = "samples with the same name were different requests";
    assert!(ended.stderr.contains(expected), "{ended:#?}");
    let [_, (speed_folder, _)] = &results(folder.path())[..] else { panic!("{ended:#?}") };
    assert!(!speed_folder.join("agreement.json").exists());
}

#[test]
fn a_partly_answered_set_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("asked.toml"), SCENARIO).unwrap();
    let fault = "kind = \"http-error\", status = 500, every = 3";
    let mock = Mock::start(&["--itl", "1ms", "--answer", "yes", "--fault", fault]);
    let ended = in_folder(folder.path(), &["--strict"], Some(&mock));
    assert!(
        ended
            .stderr
            .contains("samples were answered, so the scores do not cover the whole dataset"),
        "{ended:#?}"
    );
    assert_eq!(ended.code, Some(7), "{ended:#?}");
}

#[test]
fn runs_without_accuracy_are_refused_before_a_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("asked.toml");
    let unscored = SCENARIO.replace("[[scorers]]\nplugin = \"scorers/exact-match.wasm\"\n", "");
    std::fs::write(&path, unscored).unwrap();
    let url = ["--base-url", "http://127.0.0.1:9"];
    in_folder(folder.path(), &url, None).with_stderr(3, "the accuracy mode needs a scorer");
    let endless = "[backend]\nplugin = \"backends/vllm.wasm\"\n[dataset]\nplugin = \"datasets/random.wasm\"\n\
        [[scorers]]\nplugin = \"scorers/sanity.wasm\"\n";
    std::fs::write(&path, endless).unwrap();
    in_folder(folder.path(), &url, None).with_stderr(3, "so it has no whole");
    for (preset, expected) in [
        ("agentx", "runner sweep --preset agentx"),
        ("mlperf-server", "runner search --preset mlperf-server"),
        ("mlperf", "there is `mlperf-accuracy`"),
    ] {
        let ended = run(runner()
            .args(["run", "asked.toml", "--preset", preset])
            .current_dir(folder.path()));
        ended.with_stderr(2, expected);
    }
    let searched = words("search asked.toml --preset mlperf-accuracy --start 1");
    run(runner().args(searched).current_dir(folder.path()))
        .with_stderr(2, "runner run --preset mlperf-accuracy");
    assert!(!folder.path().join("runs").exists());
}
