use goldens::{agree, open};
use serde_json::json;

use super::Overlap;

#[test]
fn scores_agree_with_rouge_score_sacrebleu_and_squad() {
    assert_eq!(agree::<Overlap>(include_str!("../golden.jsonl")), 500);
}

#[test]
fn measures_are_given_once_and_at_least_one() {
    for measures in [json!([]), json!(["chrf", "chrf"]), json!(["bleu"])] {
        let error = open::<Overlap>(&json!({"measures": measures})).err().unwrap();
        assert!(format!("{error:?}").contains("key `measures"), "{error:?}");
    }
}
