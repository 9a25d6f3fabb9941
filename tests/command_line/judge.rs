//! A judge: a run over the answers of saved runs, with a scenario that ships. The engine of these
//! runs repeats its input, so a run's answers are its questions.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::process::{Exit, Mock, only_run, run, runner, words};
use crate::support::results::{json_file, json_lines};

const FLAGS: &str = "--backend openai-chat --dataset-name custom --model mock \
    --warmup-requests 0 --disable-ignore-eos";

fn ran(at: &Path, mock: &Mock, folder: &str, line: &str) -> String {
    let mut command = runner();
    command.arg("run").args(words(line)).args(["--base-url", &mock.url, "--output-dir", folder]);
    run(command.current_dir(at)).with_code(0);
    only_run(&at.join(folder)).unwrap().display().to_string()
}

/// Makes runs of these rows, each in a folder of its name.
fn answered<const N: usize>(
    at: &Path,
    rows: &[Value],
    flags: &str,
    names: [&str; N],
) -> [String; N] {
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(at.join("questions.jsonl"), text).unwrap();
    let engine = Mock::start(&["--itl", "0ms", "--echo"]);
    let line = format!("{FLAGS} --dataset-path questions.jsonl {flags}");
    names.map(|name| ran(at, &engine, name, &line))
}

fn exported(at: &Path, flags: &str, runs: &[&str]) -> Exit {
    let mut command = runner();
    command.arg("plan").args(words(FLAGS)).args(words(flags));
    command.args(["--dataset-path", "questions.jsonl", "--export", "answers.jsonl"]);
    command.args(runs.iter().flat_map(|run| ["--answers", run]));
    run(command.current_dir(at))
}

fn rows(at: &Path) -> Vec<Value> {
    json_lines(at.join("answers.jsonl"))
}

/// Has a judge that always answers this judge the exported answers, and gives its scores.
fn judged(at: &Path, scenario: &str, exported: &Exit, says: &str) -> Value {
    let (_, flags) = exported.stderr.split_once("scenarios/judge: ").unwrap();
    let flags = flags.lines().next().unwrap();
    let judge = Mock::start(&["--answer", says]);
    let folder = ran(at, &judge, "judged", &format!("scenarios/judge/{scenario}.toml {flags}"));
    json_file(Path::new(&folder).join("summary.json"))["scores"].clone()
}

#[test]
fn answers_are_graded() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let request = [
        json!({"id": "a", "prompt": "2 + 2?", "reference": "4", "class": "sums"}),
        json!({"id": "b", "prompt": "Why {answer}?"}),
    ];
    let [saved] = answered(at, &request, "", ["runs"]);
    let ended = exported(at, "", &[&saved]).with_code(0);
    let shown = rows(at);
    let wanted = json!({"id": "a", "class": "sums", "question": "2 + 2?", "reference": "4", "answer": "2 + 2?"});
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(shown[0][key], *value, "{shown:?}");
    }
    let nonces = [&shown[0], &shown[1]].map(|row| row["nonce"].as_str().unwrap());
    assert!(nonces[0] != nonces[1] && nonces[0].len() == 12, "{shown:?}");
    let scores = judged(at, "grade", &ended, "Good. Rating: [[7]]");
    assert_eq!((&scores["grade"]["mean"], &scores["grade"]["count"]), (&7.0.into(), &2.into()));
    // The judge echoes its prompt.
    let judge = Mock::start(&["--itl", "0ms", "--echo"]);
    let line = "scenarios/judge/grade.toml --dataset-path answers.jsonl --num-prompts 2";
    let saved = ran(at, &judge, "echoed", line);
    let ended = run(runner().args(["report", &saved, "--format", "jsonl"])).with_code(0);
    let end = format!(
        "Answer {0}]\\nWhy {{answer}}?\\n[The End of the Assistant's Answer {0}]",
        nonces[1]
    );
    assert!(ended.stdout.contains(&end), "no {end} in {}", ended.stdout);
}

#[test]
fn pairs_are_answers_to_one_sample() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let saved = answered(at, &[json!({"prompt": "1"}), json!({"prompt": "2"})], "", ["a", "b"]);
    let ended = exported(at, "", &[&saved[0], &saved[1]]).with_code(0);
    assert_eq!((&rows(at)[1]["answer-a"], &rows(at)[1]["answer-b"]), (&"2".into(), &"2".into()));
    assert_eq!(judged(at, "pair", &ended, "[[A]]")["choice"]["mean"], 1.0);
    let third = [&*saved[0], &*saved[1], &*saved[0]];
    exported(at, "", &third).with_code(2);
    exported(at, "--seed 5", &[&saved[0]]).with_stderr(3, "the plan draws other samples than");
}

#[test]
fn questions_hold_the_conversation_as_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let turns = json!({"id": "c", "messages": [
        {"role": "user", "content": "2"}, {"role": "assistant", "content": "recorded"},
        {"role": "user", "content": "4"},
    ]});
    let flags = "--set dataset.config.turns=all";
    let [saved] = answered(at, &[turns], flags, ["runs"]);
    exported(at, flags, &[&saved]).with_code(0);
    let shown = rows(at);
    // The given answer, and not the recorded answer.
    assert_eq!(shown[1]["question"], "[user]\n2\n\n[assistant]\n2\n\n[user]\n4", "{shown:?}");
    assert_eq!((&shown[0]["question"], &shown[1]["answer"]), (&"2".into(), &"4".into()));
}
