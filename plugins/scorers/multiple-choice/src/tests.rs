use goldens::{agree, open, scores};
use serde_json::{Value, json};

use super::MultipleChoice;

#[test]
fn scores_agree_with_the_harness() {
    assert_eq!(agree::<MultipleChoice>(include_str!("../golden.jsonl")), 500);
}

fn judged(config: &Value, reference: &Value, output: &str) -> (Value, Value) {
    let answer = json!({"id": "1", "reference": reference, "output": output});
    let scores = scores::<MultipleChoice>(config, &answer);
    (scores["multiple-choice"].clone(), scores["multiple-choice-unparsed"].clone())
}

#[test]
fn references_are_letters_indices_and_numbers() {
    let config = json!({"extraction": "arc"});
    for reference in [json!("B"), json!("(b)"), json!(1), json!("2"), json!({"answer": 1})] {
        assert_eq!(judged(&config, &reference, " B. "), (json!(1.0), json!(0.0)), "{reference}");
        assert_eq!(judged(&config, &reference, "C"), (json!(0.0), json!(0.0)), "{reference}");
        assert_eq!(judged(&config, &reference, "well"), (json!(0.0), json!(1.0)), "{reference}");
    }
}

#[test]
fn letters_come_from_the_configuration() {
    let config = json!({"letters": "WXYZ"});
    assert_eq!(judged(&config, &json!(3), "the answer is (Z)."), (json!(1.0), json!(0.0)));
    assert_eq!(judged(&config, &json!(3), "the answer is (A)."), (json!(0.0), json!(1.0)));
    let digits = json!({"letters": "123"});
    assert_eq!(judged(&digits, &json!("2"), "the answer is 2"), (json!(1.0), json!(0.0)));
}

#[test]
fn letters_that_are_none_are_refused() {
    for letters in ["", "A", "AA", "A B", "AÄ"] {
        let error = open::<MultipleChoice>(&json!({"letters": letters})).err().unwrap();
        assert!(format!("{error:?}").contains("key `letters`"), "{error:?}");
    }
}

#[test]
fn references_that_name_no_choice_are_errors() {
    for reference in [json!(26), json!("0"), json!("!"), json!(null), json!({"gold": "A"})] {
        let answer = json!({"id": "1", "reference": reference, "output": "A"});
        let error = scores::<MultipleChoice>(&json!({}), &answer);
        assert!(error.as_str().is_some_and(|e| e.contains("sample 1")), "{error}");
    }
}
