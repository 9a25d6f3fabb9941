use goldens::{agree, exchange, open};
use runner_plugin::Scorer;
use serde_json::json;

use super::Needle;

#[test]
fn scores_agree_with_ruler() {
    assert_eq!(agree::<Needle>(include_str!("../golden.jsonl")), 500);
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
