//! Scores from the command line: intervals, groups and examples, thresholds, comparisons on the
//! same samples, judging again, and agreement with a baseline. The mock engine answers everything
//! with one text, so the right answers are known.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::process::{Exit, Mock, only_run, run, runner, words};
use crate::support::results::{json_file, report, run_folders};

const SAMPLES: usize = 40;

/// Forty questions of two classes; the answer to three of four is yes, and the last has no
/// reference.
fn questions(folder: &Path) {
    let mut rows = String::new();
    for index in 0..SAMPLES {
        let answer = ["nay", "yes", "yes", "yes"][index % 4];
        let kind = ["easy", "hard"][index % 2];
        let mut row = json!({"question": format!("Is {index} a number?"), "right": answer, "kind": kind, "len": 3});
        if index == SAMPLES - 1 {
            row["right"] = Value::Null;
        }
        writeln!(rows, "{row}").unwrap();
    }
    std::fs::write(folder.join("questions.jsonl"), rows).unwrap();
}

/// A run of the questions against an engine with this answer, and the flags of its scorers.
fn answered(folder: &Path, answer: &str, flags: &[&str]) -> Exit {
    questions(folder);
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--answer", answer]);
    let mut command = runner();
    command.args(words(
        "run --backend vllm --dataset-name custom --dataset-path questions.jsonl --num-prompts 40 --warmup-requests 0 --temperature 0",
    ));
    for column in ["prompt=question", "reference=right", "class=kind", "output-tokens=len"] {
        command.args(["--set", &format!("dataset.config.columns.{column}")]);
    }
    command.args(flags).args(["--base-url", &mock.url]);
    run(command.current_dir(folder))
}

const SCORED: [&str; 2] = ["--plugin", "scorers/exact-match.wasm"];

fn in_folder(folder: &Path, line: &[&str]) -> Exit {
    run(runner().args(line).current_dir(folder))
}

fn summary(run: &Path) -> Value {
    json_file(run.join("summary.json"))
}

#[test]
fn scores_have_intervals_groups_and_examples() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [
        &SCORED[..],
        &["--threshold", "score.exact-match >= 0.7", "--threshold", "score.exact-match >= 80%"],
    ];
    let ended = answered(folder.path(), "yes", &flags.concat())
        .with_stderr(6, "threshold `score.exact-match >= 0.8` does not hold: 0.7436");
    let run = &run_folders(folder.path())[0];
    let score = &summary(run)["scores"]["exact-match"];
    assert_eq!((&score["count"], &score["by"]), (&39.into(), &"wilson".into()));
    assert_eq!(score["unjudged"]["without-reference"], 1, "{score:#}");
    // Wilson's interval of 29 of 39.
    let low = score["confidence"]["low"].as_f64().unwrap();
    assert!((low - 0.5892).abs() < 1e-3, "{score:#}");
    assert_eq!(score["by-class"][0]["name"], "easy", "{score:#}");
    assert_eq!(score["by-class"][1]["mean"], 1.0, "{score:#}");
    let example = &score["examples"][0];
    assert_eq!(
        (&example["answer"], &example["reference"], &example["prompt-end"]),
        (&"yes".into(), &"nay".into(), &"Is 0 a number?".into())
    );
    let name = run.to_str().unwrap();
    let headline = "exact-match (mean of 39):                0.7436";
    let whole = in_folder(folder.path(), &["report", name, "--details"]).with_code(0);
    for part in [headline, "Worst Answers", "Scores by Class"] {
        assert!(whole.stdout.contains(part), "no {part} in {}", whole.stdout);
    }
    assert!(ended.stdout.contains(headline), "{}", ended.stdout);
    let page = in_folder(folder.path(), &["report", name, "--format", "html"]).with_code(0);
    for part in ["Worst answers", "Is 0 a number?", "not judged: 1 without a reference"] {
        assert!(page.stdout.contains(part), "no {part} in the page");
    }
}

#[test]
fn scores_that_no_scorer_gives_keep_to_no_threshold() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [&SCORED[..], &["--threshold", "score.final-number >= 0.1"]].concat();
    answered(folder.path(), "yes", &flags)
        .with_stderr(6, "not measured; the run has score.exact-match");
}

#[test]
fn comparisons_are_of_the_same_samples() {
    let folder = tempfile::tempdir().unwrap();
    for answer in ["yes", "nay"] {
        answered(folder.path(), answer, &SCORED).with_code(0);
    }
    let runs = run_folders(folder.path());
    let [yes, no] = [0, 1].map(|place: usize| runs[place].to_str().unwrap());
    let figures = ["--metric", "score.exact-match", "--allow", "verdict"];
    let compare = |sides: [&str; 2], more: &[&str]| {
        let line = [&["compare"], &sides[..], &figures, more].concat();
        in_folder(folder.path(), &line)
    };
    let found = compare([yes, no], &["--fail-if", "score.exact-match -1%"]).with_code(6);
    // Twenty-nine right answers became wrong, and ten wrong ones right.
    for part in
        ["39 samples judged in both runs: 0 equal, 10 higher, 29 lower (McNemar's test)", "! worse"]
    {
        assert!(found.stdout.contains(part), "no {part} in {}", found.stdout);
    }
    compare([yes, yes], &["--fail-if", "score.exact-match -1%"])
        .with_stdout(0, "39 equal, 0 higher, 0 lower");
    let found = compare([no, yes], &["--format", "json"]).with_code(0).json();
    let row = &found["pairs"][0]["figures"][0];
    assert_eq!(
        (&row["judgement"], &row["paired"]["by"]),
        (&"better".into(), &"mcnemar".into()),
        "{found:#}"
    );
}

#[test]
fn a_saved_run_is_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    answered(folder.path(), "yes", &SCORED).with_code(0);
    let run = run_folders(folder.path()).remove(0);
    let measured = || {
        ["records.jsonl.zst", "assessment.json", "plan.json", "status.json"]
            .map(|file| std::fs::read(run.join(file)).unwrap())
    };
    let before = measured();
    std::fs::write(
        folder.path().join("more.toml"),
        "[[scorers]]\nplugin = \"scorers/contains.wasm\"\nconfig = { mode = \"prefix\", pattern = \"ye\", name = \"begins\" }\n",
    )
    .unwrap();
    let name = run.to_str().unwrap();
    let again = ["score", name, "--scorer", "exact-match", "--scorer", "more.toml"];
    in_folder(folder.path(), &again).with_stderr(
        0,
        "the run has a score `exact-match` already; the new one is `exact-match.2`",
    );
    assert_eq!(measured(), before);
    let scores = summary(&run)["scores"].clone();
    assert_eq!(scores["exact-match.2"]["mean"], scores["exact-match"]["mean"]);
    assert_eq!(scores["begins"]["count"], 40, "{scores:#}");
    // A report is drawn from the folder, and knows them.
    let drawn = report(&run, "--format json").json();
    assert_eq!(drawn["scores"], scores);
    assert_eq!(drawn["run"]["plugins"].as_array().unwrap().len(), 5);
    in_folder(folder.path(), &["score", ".", "--scorer", "exact-match"])
        .with_stderr(3, "is `.` the folder of a run?");
    let wrong = ["score", name, "--scorer", "backends/vllm.wasm"];
    in_folder(folder.path(), &wrong).with_stderr(4, "is a backend, but a scorer is expected");
}

#[test]
fn answers_are_held_against_a_baseline_and_its_repeats() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        answered(folder.path(), "yes", &SCORED).with_code(0);
    }
    let runs_before = run_folders(folder.path());
    let [base, repeat] = [0, 1].map(|place: usize| runs_before[place].to_str().unwrap());
    let against = ["--baseline", base, "--floor", repeat];
    let flags = [&SCORED[..], &against].concat();
    let same = answered(folder.path(), "yes", &flags).with_code(0);
    for part in ["Identical answers (%):                   100.00", "= cleared"] {
        assert!(same.stdout.contains(part), "no {part} in {}", same.stdout);
    }
    let other = answered(folder.path(), "yet", &flags).with_code(0);
    for part in [
        "First character that differs, median:    2",
        "Answers of the run that differ (%):      100.00",
        "! changed",
        "exact-match:                             0.7436 -> 0.0000",
    ] {
        assert!(other.stdout.contains(part), "no {part} in {}", other.stdout);
    }
    let last = run_folders(folder.path()).pop().unwrap();
    let agreement = json_file(last.join("agreement.json"));
    assert_eq!(agreement["answers"]["floor"]["judgement"], "changed", "{agreement:#}");
    let line = ["agreement", last.to_str().unwrap(), "--baseline", base, "--format", "json"];
    let alone = in_folder(folder.path(), &line).with_code(0).json();
    assert_eq!(alone["answers"]["identical"], 0, "{alone:#}");
    assert!(alone["answers"]["floor"].is_null());
    assert!(alone["answers"]["apart"]["first-token"].is_null());
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false},
        "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"y": 0, "e": 1, "s": 2, "[UNK]": 3}, "unk_token": "[UNK]"},
    });
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let cut = [&line[..4], &["--tokenizer", "tokenizer.json"]].concat();
    in_folder(folder.path(), &cut).with_stdout(0, "First token that differs, median:        2");
    let wrong = [&line[..4], &["--tokenizer", "nowhere.json"]].concat();
    in_folder(folder.path(), &wrong).with_stderr(3, "nowhere.json");
}

#[test]
fn no_score_overwrites_another_and_no_scorer_vanishes() {
    let folder = tempfile::tempdir().unwrap();
    questions(folder.path());
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--answer", "yes"]);
    let scenario = "name = \"scored\"\n\
        [backend]\nplugin = \"backends/vllm.wasm\"\n\
        [dataset]\nplugin = \"datasets/custom.wasm\"\nfiles = { data = \"questions.jsonl\" }\n\
        config.columns = { prompt = \"question\", output-tokens = \"len\" }\n\
        [load]\nrequests = 40\nwarmup = 0\n\
        [[scorers]]\nplugin = \"scorers/contains.wasm\"\nconfig.pattern = \"yes\"\n\
        [[scorers]]\nplugin = \"scorers/contains.wasm\"\nconfig.pattern = \"ZZZZZ\"\n\
        [[scorers]]\nplugin = \"scorers/exact-match.wasm\"\n";
    std::fs::write(folder.path().join("scored.toml"), scenario).unwrap();
    let line = ["run", "scored.toml", "--base-url", &mock.url];
    let flags = ["--threshold", "score.exact-match >= 0.5"];
    let ended = in_folder(folder.path(), &[&line[..], &flags].concat()).with_code(6);
    let silent = "`scorers/exact-match.wasm` judged no answer: 40 without a reference";
    assert!(ended.stdout.contains(silent), "{ended:#?}");
    let others = format!("not measured: {silent}; the run has score.contains, score.contains.2");
    assert!(ended.stderr.contains(&others), "{ended:#?}");
    let run = &run_folders(folder.path())[0];
    let summary = summary(run);
    assert_eq!(summary["scores"]["contains"]["mean"], 1.0, "{summary:#}");
    assert_eq!(summary["scores"]["contains.2"]["mean"], 0.0);
    assert_eq!(summary["verdict"], "suspect");
    let findings = summary["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["id"] == "scorer-silent"));

    // If nothing was judged at all, a threshold names the configured scorer.
    let alone =
        scenario.replace("config.pattern = \"yes\"", "").replace("config.pattern = \"ZZZZZ\"", "");
    let alone = alone.replace("scorers/contains.wasm", "scorers/exact-match.wasm");
    std::fs::write(folder.path().join("scored.toml"), alone).unwrap();
    in_folder(folder.path(), &[&line[..], &flags].concat())
        .with_stderr(6, &format!("not measured: {silent}"));
}

#[test]
fn a_reference_cuts_no_answer_and_a_length_flag_wins() {
    let folder = tempfile::tempdir().unwrap();
    let row = json!({"prompt": "What is 2 + 2?", "reference": "4", "len": 3});
    std::fs::write(folder.path().join("q.jsonl"), format!("{row}\n{row}\n{row}\n")).unwrap();
    let mock = Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--answer", "Let me think.\n#### 4"]);
    let measured = |output_dir: &str, flags: &[&str]| {
        let line = format!(
            "run --backend vllm --dataset-name custom --dataset-path q.jsonl --num-prompts 3 \
             --disable-ignore-eos --plugin scorers/final-number.wasm --base-url {} \
             --output-dir {output_dir}",
            mock.url
        );
        run(runner().args(words(&line)).args(flags).current_dir(folder.path())).with_code(0);
        let summary = summary(&only_run(&folder.path().join(output_dir)).unwrap());
        let findings = summary["findings"].as_array().unwrap().iter();
        let is_cut = findings.filter(|finding| finding["id"] == "answers-cut").count();
        (
            summary["requests"]["total"].as_u64(),
            summary["tokens"]["output-requested"].as_u64(),
            summary["scores"]["final-number-strict"]["mean"].as_f64(),
            is_cut,
        )
    };
    let lengths = "dataset.config.columns.output-tokens=len";
    // The reference is a token long, and the answer twenty.
    let free = measured("free", &["--output-tokens", "60"]);
    assert_eq!(free, (Some(3), Some(180), Some(1.0), 0));
    let by_row = measured("by-row", &["--set", lengths]);
    assert_eq!((by_row.1, by_row.3), (Some(9), 1), "{by_row:?}");
    assert_ne!(by_row.2, Some(1.0));
    let over = measured("over", &["--set", lengths, "--output-tokens", "60"]);
    assert_eq!(over, free);
}

/// An engine whose setting simulates acceptance, with a length that is not as the file says.
#[test]
fn simulated_answers_are_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("golden.yaml"), "qwen3.5:\n  on:\n    2: 2.73\n").unwrap();
    let script = "[counts]\ndraft-tokens = 200\nsteps-by-accepted = [0, 0, 50, 50]\n";
    std::fs::write(folder.path().join("engine.toml"), script).unwrap();
    let script = folder.path().join("engine.toml");
    let mock =
        Mock::start(&["--ttft", "1ms", "--itl", "1ms", "--script", script.to_str().unwrap()]);
    let line = "run --backend sglang --dataset-name random --random-output-len 4 --num-prompts 9 --warmup-requests 0";
    run(runner()
        .args(words(line))
        .args(["--expect-acceptance-length", "golden.yaml#qwen3.5/on/2"])
        .args(["--launch-command", "SGLANG_SIMULATE_ACC_LEN=3.5 python -m sglang.launch_server"])
        .args(["--base-url", &mock.url])
        .current_dir(folder.path()))
    .with_code(0);
    let run = &run_folders(folder.path())[0];
    let findings = summary(run)["findings"].clone();
    let seen = |id: &str| {
        let mut findings = findings.as_array().unwrap().iter();
        let found = findings.find(|finding| finding["id"] == id);
        found.unwrap_or_else(|| panic!("{findings:#?}"))["seen"].as_str().unwrap().to_owned()
    };
    let differs = seen("acceptance-differs");
    assert!(differs.contains("3.50") && differs.ends_with("expects 2.73"), "{differs}");
    assert!(seen("acceptance-simulated").ends_with("sets `SGLANG_SIMULATE_ACC_LEN`"));
    let judged = ["score", run.to_str().unwrap(), "--scorer", "exact-match"];
    in_folder(folder.path(), &judged).with_stderr(3, "has no answers of the model to judge");
}
