use goldens::{agree, open, scores};
use serde_json::{Value, json};

use super::Contains;

#[test]
fn scores_agree_with_python() {
    assert_eq!(agree::<Contains>(include_str!("../golden.jsonl")), 500);
}

fn judged(config: &Value, reference: &Value, output: &str) -> Value {
    scores::<Contains>(config, &json!({"id": "1", "reference": reference, "output": output}))
}

#[test]
fn one_text_of_several_is_enough() {
    assert_eq!(judged(&json!({}), &json!(["x", "b"]), "abc"), json!({"contains": 1.0}));
    assert_eq!(judged(&json!({}), &json!(["x", "y"]), "abc"), json!({"contains": 0.0}));
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
