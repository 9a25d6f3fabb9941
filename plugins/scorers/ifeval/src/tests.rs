use goldens::{agree, exchange, open, scores};
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
fn an_unjudged_instruction_gives_no_score_unless_another_fails() {
    let instructions = [
        ("language:response_language", json!({"language": "de"})),
        ("punctuation:no_comma", json!({})),
    ];
    assert_eq!(judged(&instructions, "Ja"), json!({"ifeval-unjudged": 1.0}));
    let broken =
        json!({"ifeval-unjudged": 1.0, "prompt-level-strict": 0.0, "prompt-level-loose": 0.0});
    assert_eq!(judged(&instructions, "Ja, ja"), broken);
    let capital = [("change_case:english_capital", json!({}))];
    assert_eq!(judged(&capital, "YES"), json!({"ifeval-unjudged": 1.0}));
    let followed =
        json!({"ifeval-unjudged": 0.0, "prompt-level-strict": 0.0, "prompt-level-loose": 0.0});
    assert_eq!(judged(&capital, "Yes"), followed);
}

#[test]
fn instructions_with_random_arguments_are_not_judged() {
    for (id, given) in [
        (
            "keywords:letter_frequency",
            json!({"letter": "#", "let_frequency": 4, "let_relation": "at least"}),
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            json!({"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "x"}),
        ),
    ] {
        assert_eq!(judged(&[(id, given)], "x"), json!({"ifeval-unjudged": 1.0}), "{id}");
    }
}

#[test]
fn the_run_has_the_share_of_all_instructions() {
    let mut scorer: IfEval = open(&json!({})).unwrap();
    assert_eq!(scorer.finish().unwrap(), []);
    let comma = ("punctuation:no_comma", json!({}));
    let title = ("detectable_format:title", json!({}));
    let language = ("language:response_language", json!({"language": "de"}));
    for (instructions, output) in
        [(vec![comma.clone(), title, language], "<<A>>\nb, c"), (vec![comma], "Sure, here:\nb")]
    {
        let answer = json!({"id": "1", "reference": row(&instructions), "output": output});
        scorer.score(&exchange(&answer)).unwrap();
    }
    let run: Vec<(String, f64)> =
        (scorer.finish().unwrap().into_iter()).map(|score| (score.name, score.value)).collect();
    let expected = [
        ("inst-level-strict".to_owned(), 1.0 / 3.0),
        // Without its last line, the first answer has no comma; without its first, the second has
        // none.
        ("inst-level-loose".to_owned(), 1.0),
    ];
    assert_eq!(run, expected);
}

#[test]
fn rows_that_say_too_little_are_errors() {
    for (reference, says) in [
        (json!("x"), "a row of IFEval"),
        (json!({"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}), "as many tables"),
        (json!({"instruction_id_list": [], "kwargs": []}), "1 to 100"),
        (row(&[("keywords:none", json!({}))]), "instructions of IFEval, not `keywords:none`"),
        (row(&[("length_constraints:number_words", json!({"num_words": 3}))]), "under `relation`"),
        (
            row(&[(
                "length_constraints:number_words",
                json!({"num_words": 3, "relation": "most"}),
            )]),
            "`at least` or `less than`",
        ),
        (row(&[("keywords:existence", json!({"keywords": ["a(?=b)"]}))]), "regex-lite"),
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

#[test]
fn without_a_reference_there_are_no_scores() {
    assert_eq!(scores::<IfEval>(&json!({}), &json!({"id": "1", "output": "7"})), json!({}));
}
