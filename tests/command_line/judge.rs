//! A model that judges saved runs. Both engines are mocks that repeat their input: the answers of a
//! run are its questions, and the judge's answers are the prompts that a rubric makes of them, so
//! all verdicts are known.

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::process::{Ended, Mock, Process, run, runner, words};

/// A rubric by which the answer `7` is the verdict `[[7]]`.
const GRADE: &str = "[[{answer}]]";

/// A rubric by which the answer that is shown first is the verdict.
const CHOOSE: &str = "{answer_b}? [[{answer_a}]]";

/// A mock engine that repeats its input.
fn echo(flags: &[&str]) -> Mock {
    Mock::start(&[&["--itl", "0ms", "--echo"], flags].concat())
}

/// Makes a run that is answered with these texts, in a folder of its own, with references that are
/// right for some.
fn answered(folder: &Path, name: &str, answers: &[&str], right: &[&str]) -> String {
    let rows = answers.iter().enumerate().map(|(index, answer)| {
        let reference = if right.contains(answer) { answer } else { "another" };
        let class = ["easy", "hard"][index % 2];
        let row = json!({
            "id": format!("s{index}"), "prompt": answer, "reference": reference, "class": class,
        });
        format!("{row}\n")
    });
    let file = format!("{name}.jsonl");
    std::fs::write(folder.join(&file), rows.collect::<String>()).unwrap();
    let flags = ["--plugin", "scorers/exact-match.wasm"];
    asked(folder, name, &file, &flags).with_code(0);
    only(&folder.join(name))
}

/// Sends a file's prompts to an engine that repeats everything.
fn asked(folder: &Path, name: &str, file: &str, flags: &[&str]) -> Ended {
    let engine = echo(&[]);
    let mut command = runner();
    command.args(words(
        "run --backend openai-chat --dataset-name custom --warmup-requests 0 --disable-ignore-eos",
    ));
    command.args(["--dataset-path", file, "--output-dir", name]);
    command.args(flags).args(["--base-url", &engine.url]);
    run(command.current_dir(folder))
}

fn only(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0).display().to_string()
}

fn judged(folder: &Path, line: &[&str]) -> Ended {
    run(runner().arg("judge").args(line).args(["--output-dir", "judged"]).current_dir(folder))
}

fn rubric<'r>(folder: &Path, name: &'r str, text: &str) -> &'r str {
    std::fs::write(folder.join(name), text).unwrap();
    name
}

fn read(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

const ANSWERS: [&str; 12] = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "none"];

#[test]
fn grades_stand_beside_the_scores_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run_of = answered(at, "runs", &ANSWERS, &["6", "7", "8", "9", "10"]);
    let file = rubric(at, "mine.txt", GRADE);
    let judge = echo(&[]);
    let line = [
        &run_of,
        "--base-url",
        &judge.url,
        "--rubric",
        file,
        "--repeat",
        "2",
        "--price-per-million",
        "1,2",
        "--json",
    ];
    let ended = judged(at, &line).with_code(0);
    let open = "the rubric `mine.txt` has no {nonce} in its marks";
    assert!(ended.stderr.contains(open), "{}", ended.stderr);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    let schema = report::schema::schema("judgement").unwrap();
    let schema = Validator::new(&serde_json::from_str(&schema).unwrap()).unwrap();
    assert!(schema.is_valid(&found), "{found:#}");
    let saved = only(&at.join("judged"));
    assert_eq!(read(Path::new(&saved).join("judgement.json")), found);

    // Of twelve answers, twice each, ten have a grade: 11 is beyond the scale, and `none` is none.
    let requests = &found["requests"];
    assert_eq!(
        (&requests["planned"], &requests["with-verdict"]),
        (&24.into(), &20.into()),
        "{found:#}"
    );
    assert_eq!((&requests["without-verdict"], &requests["failed"]), (&4.into(), &0.into()));
    let grades = &found["grades"];
    assert_eq!(
        (&grades["name"], &grades["score"]["mean"]),
        (&"judge.grade".into(), &5.5.into()),
        "{grades:#}"
    );
    assert_eq!(grades["score"]["unjudged"]["failed"], 2, "{grades:#}");
    assert_eq!(grades["score"]["by-class"][0]["mean"], 5.0, "{grades:#}");
    assert_eq!(grades["repeats"]["identical-share"], 1.0);
    assert_eq!(grades["repeats"]["pairs"], 10);
    assert_eq!(grades["repeats"]["mean-difference"], 0.0);
    // Every right answer has a higher grade than every wrong one.
    let against = &grades["against"]["exact-match"];
    assert_eq!(
        (&against["right"], &against["concordance"]),
        (&5.into(), &1.0.into()),
        "{grades:#}"
    );
    assert_eq!((&against["right-mean"], &against["wrong-mean"]), (&8.0.into(), &3.0.into()));
    let cost = &found["cost"];
    assert_eq!((&cost["requests"], &cost["uncounted"]), (&24.into(), &0.into()));
    let tokens = |of: &str| cost[of].as_u64().unwrap() as f64;
    let wanted = (tokens("input-tokens") + 2.0 * tokens("output-tokens")) / 1e6;
    assert!((cost["total"].as_f64().unwrap() - wanted).abs() < 1e-12, "{cost:#}");
    assert!(tokens("output-tokens") > 20.0, "{cost:#}");

    // The run has them from now on, with who gave them.
    let scores = &read(Path::new(&run_of).join("summary.json"))["scores"];
    assert_eq!(scores["judge.grade"]["count"], 10, "{scores:#}");
    let later = &read(Path::new(&run_of).join("scores.json"))[0];
    assert_eq!(later["judge"], found["judge"]);
    assert_eq!(later["judge"]["rubric"], "mine.txt");
    let digest = later["judge"]["rubric-digest"].as_str().unwrap();
    assert_eq!(digest.len(), 64, "{digest}");
    let shown = run(runner().args(["report", &run_of]).current_dir(at)).with_code(0);
    assert!(
        shown.stdout.contains("judge.grade (mean of 10):                5.5000"),
        "{}",
        shown.stdout
    );
    // The judging is a run of its own.
    let folders = std::fs::read_dir(&saved).unwrap().map(|entry| entry.unwrap().path());
    let of_judge: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    let [of_judge] = of_judge.as_slice() else { panic!("{of_judge:?}") };
    let shown = run(runner().arg("report").arg(of_judge).current_dir(at)).with_code(0);
    assert!(shown.stdout.contains("grade (mean of 20):"), "{}", shown.stdout);

    // A second judging takes another name, and a text says the same.
    let vllm = ["--backend", "vllm", "--rubric", file];
    let line = [&[&*run_of, "--base-url", &judge.url], &vllm[..]].concat();
    let again = judged(at, &line).with_code(0);
    assert!(again.stderr.contains("the new one is `judge.grade.2`"), "{again:#?}");
    for part in [
        "judge.grade.2 (1-10, mean of 10):        5.5000",
        "  not judged:                            2 on which the scorer failed",
        "  without a verdict:                     2",
        "against exact-match, right / wrong:      5 / 5",
        "judges its own answers",
    ] {
        assert!(again.stdout.contains(part), "no {part} in {}", again.stdout);
    }
}

#[test]
fn pairs_are_won_in_both_orders() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let ours = answered(at, "ours", &["A", "B", "A", "C", "none", "A"], &[]);
    let base = answered(at, "base", &["B", "A", "A", "C", "A"], &[]);
    let file = rubric(at, "pair.txt", CHOOSE);
    let judge = echo(&[]);
    let line = [&ours, "--baseline", &base, "--base-url", &judge.url, "--rubric", file];
    let ended = judged(at, &line).with_code(0);
    for part in [
        "Samples that both answered:              5",
        "Answered by one run only:                1",
        "Requests to the judge:                   10",
        "  without a verdict:                     1",
        "Wins / ties / losses of the run:         1 / 2 / 1",
        "  without a verdict in both orders:      1",
        "Win rate, ties as half (%):              50.00",
        "Pairs both orders agree on (%):          75.00 (3 of 4)",
        // First in 1, 0, 0, 1, 1, 1, and in the pair that lacks the other verdict.
        "Verdicts for the answer shown first (%): 71.43",
    ] {
        assert!(ended.stdout.contains(part), "no {part} in {}", ended.stdout);
    }
    assert!(!Path::new(&ours).join("scores.json").exists());
    let turned = [&base, "--baseline", &ours, "--base-url", &judge.url, "--rubric", file, "--json"];
    let turned = judged(at, &turned).with_code(0);
    let turned: Value = serde_json::from_str(&turned.stdout).unwrap();
    let preference = &turned["preference"];
    assert_eq!(
        (&preference["wins"], &preference["losses"]),
        (&1.into(), &1.into()),
        "{preference:#}"
    );
    assert!(turned["grades"].is_null());
}

#[test]
fn requests_that_fail_are_counted_and_are_no_grades() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run_of = answered(at, "runs", &["1", "2", "3", "4"], &[]);
    let file = rubric(at, "mine.txt", GRADE);
    let some = echo(&["--fault", "kind = \"http-error\", status = 503, every = 2"]);
    let line = |url: &str| {
        let line = [&*run_of, "--base-url", url, "--rubric", file, "--json"];
        line.map(str::to_owned)
    };
    let line_of = |url: &str| {
        let line = line(url);
        judged(at, &line.each_ref().map(String::as_str))
    };
    let ended = line_of(&some.url).with_code(0);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    let requests = &found["requests"];
    assert_eq!(
        (&requests["failed"], &requests["with-verdict"]),
        (&2.into(), &2.into()),
        "{found:#}"
    );
    assert_eq!(requests["failures"]["http-status"], 2);
    assert_eq!(found["grades"]["score"]["count"], 2);
    assert_eq!(found["grades"]["score"]["unjudged"]["failed"], 2);
    assert_eq!(found["cost"]["uncounted"], 2);

    let before = std::fs::read(Path::new(&run_of).join("scores.json")).unwrap();
    let all = echo(&["--fault", "kind = \"http-error\", status = 503"]);
    let ended = line_of(&all.url).with_code(5);
    assert!(ended.stderr.contains("every request failed"), "{ended:#?}");
    let silent = Mock::start(&["--answer", "Well."]);
    let ended = line_of(&silent.url).with_code(7);
    assert!(ended.stderr.contains("no answer of the judge held a verdict"), "{ended:#?}");
    let after = std::fs::read(Path::new(&run_of).join("scores.json")).unwrap();
    assert_eq!(before, after, "what says nothing adds no score");
}

#[test]
fn what_cannot_be_judged_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run_of = answered(at, "runs", &["1", "2"], &[]);
    let nowhere = "http://127.0.0.1:9";
    let refused = |line: &[&str], code: i32, words: &[&str]| {
        let ended = judged(at, line).with_code(code);
        for word in words {
            assert!(ended.stderr.contains(word), "no {word} in {ended:#?}");
        }
        let left = std::fs::read_dir(at.join("judged")).map_or(0, |entries| entries.count());
        assert_eq!((left, &*ended.stdout), (0, ""), "{ended:#?}");
    };
    refused(&[&run_of, "--base-url", nowhere], 5, &["127.0.0.1:9"]);
    refused(&[".", "--base-url", nowhere], 3, &["is `.` the folder of a run?"]);
    let wrong = rubric(at, "wrong.txt", "Grade {anser}\nas {answer_a}.\n");
    refused(
        &[&run_of, "--base-url", nowhere, "--rubric", wrong],
        3,
        &[
            "the rubric has no place {anser}",
            "did you mean {answer}?",
            "wrong.txt:1:7",
            "the rubric has no place {answer_a}",
            "wrong.txt:2:4",
            "the rubric lacks the place {answer}",
        ],
    );
    let missing = [&run_of, "--base-url", nowhere, "--rubric", "missing.txt"];
    refused(&missing, 3, &["cannot read the rubric `missing.txt`"]);
    refused(&[&run_of, "--scale", "10-1"], 2, &["--scale", "as in 1-10"]);
    let other = answered(at, "other", &["1", "2"], &["1", "2"]);
    let apart = [&run_of, "--baseline", &other, "--base-url", nowhere];
    refused(&apart, 3, &["no sample was answered in both"]);
    let silent = Mock::start(&["--fault", "kind = \"http-error\", status = 500"]);
    let line =
        words("run --backend openai-chat --num-prompts 2 --warmup-requests 0 --output-dir failed");
    let failed = run(runner().args(line).args(["--base-url", &silent.url]).current_dir(at));
    failed.with_code(5);
    let failed = only(&at.join("failed"));
    refused(&[&failed, "--base-url", nowhere], 3, &["has no answer to judge"]);
    // The questions would be others.
    std::fs::write(at.join("runs.jsonl"), "{\"id\": \"s0\", \"prompt\": \"?\"}\n").unwrap();
    refused(
        &[&run_of, "--base-url", nowhere],
        3,
        &["runs.jsonl` has changed since the run was made"],
    );
}

#[test]
fn the_judge_sees_the_conversation_and_a_part_of_the_answers() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let turns = json!({"id": "c", "messages": [
        {"role": "user", "content": "2"}, {"role": "assistant", "content": "recorded"},
        {"role": "user", "content": "4"},
    ]});
    std::fs::write(at.join("turns.jsonl"), format!("{turns}\n")).unwrap();
    let flags = ["--set", "dataset.config.turns=all"];
    asked(at, "runs", "turns.jsonl", &flags).with_code(0);
    let run_of = only(&at.join("runs"));
    let file = rubric(at, "mine.txt", "{question}\n\n[[{answer}]]");
    let judge = echo(&[]);
    let line = [&run_of, "--base-url", &judge.url, "--rubric", file];
    judged(at, &line).with_code(0);
    let prompts = |folder: &str| {
        let text = std::fs::read_to_string(Path::new(folder).join("prompts.jsonl")).unwrap();
        let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| row["prompt"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    // The given answer, and not the one on record.
    assert_eq!(
        prompts(&only(&at.join("judged"))),
        ["2\n\n[[2]]", "[user]\n2\n\n[assistant]\n2\n\n[user]\n4\n\n[[4]]"]
    );
    std::fs::remove_dir_all(at.join("judged")).unwrap();
    let part = [&line[..], &["--sample", "1", "--json"]].concat();
    let ended = judged(at, &part).with_code(0);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&found["answers"]["judged"], &found["answers"]["left-out"]),
        (&1.into(), &1.into())
    );
    assert_eq!(found["grades"]["score"]["unjudged"]["left-out"], 1, "{found:#}");
    std::fs::remove_dir_all(at.join("judged")).unwrap();
    // The rubrics that ship, with a reference (here the answer on record) and without one.
    judged(at, &[&run_of, "--base-url", &judge.url]).with_code(7);
    let shown = prompts(&only(&at.join("judged")));
    for (shown, answer, is_referring) in [(&shown[0], "2", true), (&shown[1], "4", false)] {
        // Each prompt has a word of its own in its marks.
        let (_, after) = shown.split_once("[The Start of the Assistant's Answer ").unwrap();
        let (nonce, after) = after.split_once(']').unwrap();
        let rest = format!("\n{answer}\n[The End of the Assistant's Answer {nonce}]");
        assert_eq!(after.trim_end(), rest, "{shown}");
        assert!(shown.contains("from 1 (worst) to 10 (best)"), "{shown}");
        let reference = format!("[The Start of the Reference Answer {nonce}]\nrecorded\n");
        assert_eq!(shown.contains(&reference), is_referring, "{shown}");
    }
}

#[test]
fn an_interrupt_keeps_the_verdicts_and_adds_no_score() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let answers: Vec<String> = (0..40).map(|index| (index % 10 + 1).to_string()).collect();
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let run_of = answered(at, "runs", &answers, &[]);
    let file = rubric(at, "mine.txt", GRADE);
    let judge = echo(&["--ttft", "300ms"]);
    let mut command = runner();
    command.args(["judge", &run_of, "--base-url", &judge.url, "--rubric", file]);
    command.args(["--max-concurrency", "2", "--output-dir", "judged", "--json"]);
    let mut process = Process::start(command.current_dir(at));
    process.until("some verdicts are on disk", |_| {
        let folders = std::fs::read_dir(at.join("judged")).into_iter().flatten();
        let mut folders = folders.map(|entry| entry.unwrap().path());
        folders.next().is_some_and(|outer| {
            let inner = std::fs::read_dir(outer).into_iter().flatten();
            let mut inner = inner.map(|entry| entry.unwrap().path());
            inner.any(|path| {
                let records = path.join(runs::record::FILE);
                std::fs::metadata(records).is_ok_and(|file| file.len() > 100)
            })
        })
    });
    process.signal("INT");
    let ended = process.end().with_code(130);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(found["interrupted"], true);
    let verdicts = found["requests"]["with-verdict"].as_u64().unwrap();
    assert!((1..40).contains(&verdicts), "{found:#}");
    assert_eq!(found["grades"]["score"]["count"], verdicts);
    assert!(found["grades"]["name"].is_null(), "{found:#}");
    assert!(!Path::new(&run_of).join("scores.json").exists());
    let caution = found["cautions"].to_string();
    assert!(caution.contains("the judging was stopped"), "{caution}");
}

/// The key goes to the judge and into no file.
#[test]
fn the_key_of_the_judge_is_nowhere() {
    const KEY: &str = "sk-judge-do-not-tell-5519";
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let run_of = answered(at, "runs", &["1", "2"], &[]);
    let file = rubric(at, "mine.txt", GRADE);
    let judge = echo(&["--api-key", KEY]);
    let line = [&run_of, "--base-url", &judge.url, "--rubric", file, "--output-dir", "judged"];
    let refused = run(runner().arg("judge").args(line).current_dir(at));
    refused.with_code(5);
    let mut command = runner();
    command.arg("judge").args(line).env("OPENAI_API_KEY", KEY);
    let ended = run(command.current_dir(at)).with_code(0);
    assert!(!ended.stdout.contains(KEY) && !ended.stderr.contains(KEY));
    let mut folders = vec![at.join("judged"), at.join(&run_of)];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read(path).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains(KEY));
            files += 1;
        }
    }
    assert!(files > 10, "{files} files");
}
