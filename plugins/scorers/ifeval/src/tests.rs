use goldens::{agree, open, scores};
use runner_plugin::Scorer;
use serde_json::{Value, json};

use super::IfEval;

#[test]
fn scores_agree_with_the_harness() {
    assert_eq!(agree::<IfEval>(include_str!("../golden.jsonl")), 500);
}

fn row(instructions: &[(&str, Value)]) -> Value {
    let (ids, arguments): (Vec<&str>, Vec<&Value>) =
        instructions.iter().map(|(id, given)| (*id, given)).unzip();
    json!({"key": 1, "prompt": "Write.", "instruction_id_list": ids, "kwargs": arguments})
}

fn judged(instructions: &[(&str, Value)], output: &str) -> Value {
    scores::<IfEval>(
        &json!({}),
        &json!({"id": "1", "reference": row(instructions), "output": output}),
    )
}

#[test]
fn instructions_with_random_arguments_are_not_judged_and_have_no_share() {
    let id = "length_constraints:nth_paragraph_first_word";
    let arguments = json!({"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "x"});
    assert_eq!(judged(&[(id, arguments)], "x"), json!({"ifeval-unjudged": 1.0}));
    let mut scorer: IfEval = open(&json!({})).unwrap();
    assert_eq!(scorer.finish().unwrap(), []);
}

#[test]
fn rows_that_say_too_little_are_errors() {
    for (reference, says) in [
        (json!({"instruction_id_list": [], "kwargs": []}), "1 to 100"),
        (
            row(&[(
                "length_constraints:number_words",
                json!({"num_words": 3, "relation": "most"}),
            )]),
            "`at least` or `less than`",
        ),
        (row(&[("keywords:existence", json!({"keywords": null}))]), "under `keywords`"),
    ] {
        let answer = json!({"id": "7", "reference": reference, "output": "A"});
        let error = scores::<IfEval>(&json!({}), &answer).to_string();
        assert!(error.contains("sample 7") && error.contains(says), "{error}");
    }
}

#[test]
fn hostile_texts_take_no_time() {
    let row = row(&[
        ("detectable_format:number_bullet_lists", json!({"num_bullets": 3})),
        ("detectable_format:title", json!({})),
        ("detectable_format:number_highlighted_sections", json!({"num_highlights": 3})),
        ("detectable_content:number_placeholders", json!({"num_placeholders": 3})),
        (
            "detectable_format:multiple_sections",
            json!({"section_spliter": "Section", "num_sections": 3}),
        ),
        ("detectable_content:postscript", json!({"postscript_marker": "P.S."})),
        ("detectable_format:json_format", json!({})),
    ]);
    for piece in ["<", "<<", "*", "[", "\n", " ", "p.", "Section ", "[\n", "{\"a\":", "* \n"] {
        let answer = json!({"id": "7", "reference": row, "output": piece.repeat(100_000)});
        assert!(scores::<IfEval>(&json!({}), &answer).is_object(), "{piece}");
    }
}
