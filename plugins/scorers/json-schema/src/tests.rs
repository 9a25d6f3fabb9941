use goldens::{agree, open, scores};
use serde_json::{Value, json};

use super::{ByJsonSchema, *};

#[test]
fn scores_agree_with_pythons_jsonschema() {
    assert_eq!(agree::<ByJsonSchema>(include_str!("../golden.jsonl")), 500);
}

fn judged(config: &Value, reference: &Value, output: &str) -> Value {
    scores::<ByJsonSchema>(config, &json!({"id": "1", "reference": reference, "output": output}))
}

fn valid() -> Value {
    json!({"json-schema": 1.0, "json-schema-unparsed": 0.0})
}

#[test]
fn schemas_come_from_the_configuration_or_the_sample() {
    let schema = json!({"type": "integer"});
    let config = json!({"schema": schema});
    assert_eq!(judged(&config, &json!("x"), "4"), valid());
    for reference in
        [json!(schema), json!({"schema": schema}), json!(schema.to_string()), json!(true)]
    {
        assert_eq!(judged(&json!({}), &reference, "4"), valid(), "{reference}");
    }
    let answer = json!({"id": "1", "output": "4"});
    assert_eq!(scores::<ByJsonSchema>(&json!({}), &answer), json!({}));
    assert_eq!(scores::<ByJsonSchema>(&config, &answer), valid());
}

#[test]
fn an_answer_without_json_is_wrong_and_unparsed() {
    let expected = json!({"json-schema": 0.0, "json-schema-unparsed": 1.0});
    assert_eq!(judged(&json!({}), &json!(true), "four"), expected);
    assert_eq!(judged(&json!({"fenced": false}), &json!(true), "```\n4\n```"), expected);
}

#[test]
fn unsupported_keywords_are_errors_with_their_place() {
    let schema = json!({
        "properties": {"a": {"unevaluatedItems": false, "minLength": -1}},
        "items": [{"type": "text"}],
        "allOf": [],
        "pattern": "(?<=a)b",
        "multipleOf": 0,
        "required": ["a", "a"],
        "$ref": "#/$defs/missing",
        "anyOf": [{"$id": "x"}, {"$ref": "other.json"}, 3],
    });
    let error = format!("{:?}", open::<ByJsonSchema>(&json!({"schema": schema})).err().unwrap());
    for place in [
        "#/properties/a/unevaluatedItems",
        "#/properties/a/minLength",
        "`#/items`",
        "#/allOf",
        "#/pattern",
        "#/multipleOf",
        "#/required",
        "#/anyOf/0/$id",
        "#/anyOf/1/$ref",
        "#/anyOf/2",
    ] {
        assert!(error.contains(place), "{place} in {error}");
    }
    let error = format!(
        "{:?}",
        open::<ByJsonSchema>(&json!({"schema": {"$ref": "#/$defs/x"}})).err().unwrap()
    );
    assert!(error.contains("#/$defs/x"), "{error}");
}

#[test]
fn a_schema_of_a_sample_that_cannot_be_used_names_the_sample() {
    for reference in [json!({"unknown": 1}), json!("{"), json!(3)] {
        let error = judged(&json!({}), &reference, "4");
        assert!(error.as_str().is_some_and(|e| e.contains("sample 1")), "{error}");
    }
}

#[test]
fn circles_and_explosions_end_with_an_error() {
    let twice = json!({"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]});
    for schema in [json!({"$ref": "#"}), json!({"$ref": "#/$defs/x", "$defs": {"x": twice}})] {
        let error = judged(&json!({}), &schema, "4");
        assert!(error.as_str().is_some_and(|e| e.contains("too many steps")), "{error}");
    }
}

#[test]
fn references_may_be_recursive() {
    let schema = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    });
    assert_eq!(judged(&json!({}), &schema, "[[], [[]]]"), valid());
    assert_eq!(judged(&json!({}), &schema, "[[], [1]]")["json-schema"], json!(0.0));
}

#[test]
fn whole_answers_and_fences() {
    assert_eq!(find_json(" {\"a\": 1}\n", true), Some(json!({"a": 1})));
    let answer = "Code:\n```python\nx = 1\n```\nand\n```json\n[1,\n2]\n```\n```\n3\n```";
    assert_eq!(find_json(answer, true), Some(json!([1, 2])));
    assert_eq!(find_json(answer, false), None);
    assert_eq!(find_json("```\n4\n", true), Some(json!(4)));
    assert_eq!(find_json("see ```4```", true), None);
    assert_eq!(find_json("", true), None);
}

fn number(value: &Value) -> Number {
    value.as_number().unwrap().clone()
}

#[test]
fn floats_without_a_fraction_are_integers() {
    assert!(equal(&json!([1, {"a": 2.0}]), &json!([1.0, {"a": 2}])));
    assert!(!equal(&json!(1), &json!(true)));
    assert!(!equal(&json!(u64::MAX), &json!(u64::MAX - 1)));
    assert_eq!(integer(&number(&json!(1.5))), None);
}

#[test]
fn multiples() {
    let is = |a: Value, b: Value| is_multiple(&number(&a), &number(&b));
    assert!(is(json!(6), json!(3)) && is(json!(7.5), json!(2.5)) && is(json!(4.0), json!(2)));
    assert!(!is(json!(7), json!(3)) && !is(json!(7.5), json!(2)) && !is(json!(1e308), json!(1e-9)));
}
