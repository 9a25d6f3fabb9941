use goldens::{agree, open, scores};
use serde_json::{Value, json};

use super::Contains;

#[test]
fn scores_agree_with_python() {
    assert_eq!(agree::<Contains>(include_str!("../golden.jsonl")), 500);
}

fn judged(config: &Value, reference: &Value, output: &str) -> Value {
    let answer =
        json!({"id": "1", "reference": reference, "output": output, "reasoning": "because"});
    scores::<Contains>(config, &answer)
}

#[test]
fn one_text_of_several_is_enough() {
    assert_eq!(judged(&json!({}), &json!(["x", "b"]), "abc"), json!({"contains": 1.0}));
    assert_eq!(judged(&json!({}), &json!(["x", "y"]), "abc"), json!({"contains": 0.0}));
}

#[test]
fn a_pattern_wins_over_references_and_needs_none() {
    let config = json!({"pattern": "^[0-9]+$", "mode": "regex", "name": "is-number"});
    assert_eq!(judged(&config, &json!("x"), "42"), json!({"is-number": 1.0}));
    let answer = json!({"id": "1", "output": "x"});
    assert_eq!(scores::<Contains>(&config, &answer), json!({"is-number": 0.0}));
    assert_eq!(scores::<Contains>(&json!({}), &answer), json!({}));
}

#[test]
fn the_reasoning_can_be_searched() {
    let config = json!({"part": "reasoning"});
    assert_eq!(judged(&config, &json!("cause"), "x"), json!({"contains": 1.0}));
}

#[test]
fn patterns_that_cannot_be_used_are_refused_at_once() {
    let long = "a".repeat(1001);
    for pattern in ["", "(", r"(a)\1", "(?<=a)b", &long, "(a{900}){900}"] {
        let config = json!({"mode": "regex", "pattern": pattern, "name": ""});
        let error = format!("{:?}", open::<Contains>(&config).err().unwrap());
        assert!(error.contains("key `pattern`") && error.contains("key `name`"), "{error}");
    }
}

#[test]
fn a_pattern_of_a_sample_names_the_sample() {
    let error = judged(&json!({"mode": "regex"}), &json!("("), "x");
    assert!(error.as_str().unwrap().contains("sample 1"), "{error}");
}
