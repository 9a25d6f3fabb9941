use goldens::{agree, open, scores};
use serde_json::json;

use super::Overlap;

#[test]
fn scores_agree_with_rouge_score_sacrebleu_and_squad() {
    assert_eq!(agree::<Overlap>(include_str!("../golden.jsonl")), 500);
}

#[test]
fn the_best_reference_counts_for_each_measure() {
    let answer = json!({"id": "1", "reference": ["no", "The cat."], "output": "the cat"});
    let config = json!({"measures": ["squad-f1", "squad-exact", "rouge-l"]});
    let expected = json!({"squad-f1": 1.0, "squad-exact": 1.0, "rouge-l": 1.0});
    assert_eq!(scores::<Overlap>(&config, &answer), expected);
}

#[test]
fn measures_are_given_once_and_at_least_one() {
    for measures in [json!([]), json!(["chrf", "chrf"]), json!(["bleu"])] {
        let error = open::<Overlap>(&json!({"measures": measures})).err().unwrap();
        assert!(format!("{error:?}").contains("key `measures"), "{error:?}");
    }
}
