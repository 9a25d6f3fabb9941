use goldens::{agree, exchange, open, scores};
use runner_plugin::Scorer;
use serde_json::json;

use super::Needle;

#[test]
fn scores_agree_with_ruler() {
    assert_eq!(agree::<Needle>(include_str!("../golden.jsonl")), 500);
}

#[test]
fn each_class_has_a_mean() {
    let mut scorer: Needle = open(&json!({})).unwrap();
    for (class, output) in [("depth=0", "7 8"), ("depth=0", "7"), ("depth=50", "none")] {
        let answer = json!({"id": "1", "class": class, "reference": [7, 8], "output": output});
        scorer.score(&exchange(&answer)).unwrap();
    }
    let run: Vec<(String, f64)> =
        (scorer.finish().unwrap().into_iter()).map(|score| (score.name, score.value)).collect();
    let expected = [("needle:depth=0".to_owned(), 0.75), ("needle:depth=50".to_owned(), 0.0)];
    assert_eq!(run, expected);
}

#[test]
fn classes_are_bounded_and_the_first_stay() {
    let mut scorer: Needle = open(&json!({})).unwrap();
    for class in (0..1200).chain(0..10) {
        let answer =
            json!({"id": "1", "class": class.to_string(), "reference": "7", "output": "7"});
        scorer.score(&exchange(&answer)).unwrap();
    }
    let run = scorer.finish().unwrap();
    assert_eq!(run.len(), 1000);
    assert!(run.iter().all(|score| score.value == 1.0));
}

#[test]
fn without_a_reference_there_are_no_scores() {
    assert_eq!(scores::<Needle>(&json!({}), &json!({"id": "1", "output": "7"})), json!({}));
}
