use goldens::{agree, exchange, open, scores};
use runner_plugin::Scorer;
use serde_json::{Value, json};

use super::WordErrorRate;

const GOLDEN: &str = include_str!("../golden.jsonl");

#[test]
fn scores_agree_with_jiwer() {
    assert_eq!(agree::<WordErrorRate>(GOLDEN), 500);
}

#[test]
fn rates_of_a_run_cover_all_its_texts() {
    let lines: Vec<Value> =
        (GOLDEN.lines().map(|line| serde_json::from_str(line).unwrap())).collect();
    for run in lines[0]["runs"].as_array().unwrap() {
        let mut scorer: WordErrorRate = open(&run["config"]).unwrap();
        let same = |line: &&Value| line.get("config").unwrap_or(&json!({})) == &run["config"];
        let mut count = 0;
        for line in lines[1..].iter().filter(same) {
            scorer.score(&exchange(&line["exchange"])).unwrap();
            count += 1;
        }
        assert_eq!(json!(count), run["count"]);
        for score in scorer.finish().unwrap() {
            let expected = run[&score.name].as_f64().unwrap();
            assert!((score.value - expected).abs() < 1e-12, "{score:?}: {expected}");
        }
    }
}

#[test]
fn the_nearest_of_several_references_counts() {
    let answer = json!({"id": "1", "reference": ["a b c d", "a b c x"], "output": "a b c x y"});
    let found = scores::<WordErrorRate>(&json!({}), &answer);
    assert_eq!(found["sample-word-error-rate"], 0.25);
    assert_eq!(found["word-insertions"], 1.0);
    assert!(found.get("audio-seconds").is_none());
}

#[test]
fn the_length_of_the_sound_is_passed_on() {
    let reference = json!({"text": "Yes", "seconds": 1.5});
    let answer = json!({"id": "1", "reference": reference, "output": "yes."});
    let found = scores::<WordErrorRate>(&json!({"normalization": "words"}), &answer);
    assert_eq!((&found["audio-seconds"], &found["word-hits"]), (&json!(1.5), &json!(1.0)));
    let found = scores::<WordErrorRate>(&json!({}), &answer);
    assert_eq!(found["sample-word-error-rate"], 1.0);
}

#[test]
fn a_run_without_judged_answers_has_no_rate() {
    let mut scorer: WordErrorRate = open(&json!({})).unwrap();
    let answer = exchange(&json!({"id": "1", "output": "a"}));
    assert_eq!(scorer.score(&answer).unwrap(), []);
    assert_eq!(scorer.finish().unwrap(), []);
}

#[test]
fn texts_too_long_to_compare_are_errors() {
    let answer =
        json!({"id": "7", "reference": "a".repeat(200_000), "output": "b".repeat(200_000)});
    let message = scores::<WordErrorRate>(&json!({}), &answer).to_string();
    assert!(message.contains("sample 7: the answer has 200000 bytes"), "{message}");
    let answer = json!({"id": "7", "reference": {"words": 1}, "output": ""});
    let message = scores::<WordErrorRate>(&json!({}), &answer).to_string();
    assert!(message.contains("under `text`"), "{message}");
}
