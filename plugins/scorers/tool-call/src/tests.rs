use goldens::{agree, scores};
use serde_json::{Value, json};

use super::{ToolCall, *};

#[test]
fn scores_agree_with_bfcl() {
    assert_eq!(agree::<ToolCall>(include_str!("../golden.jsonl")), 500);
}

fn judged(reference: &Value, calls: &[Value]) -> (Value, Value) {
    let text: String = calls.iter().map(|call| json!({"function": call}).to_string()).collect();
    let answer = json!({"id": "1", "reference": reference, "tool-calls": text});
    let scores = scores::<ToolCall>(&json!({}), &answer);
    (scores["tool-call"].clone(), scores["tool-call-unparsed"].clone())
}

#[test]
fn no_call_is_right_without_right_calls() {
    assert_eq!(judged(&json!({"function": []}), &[]), (json!(1.0), json!(0.0)));
}

#[test]
fn references_that_cannot_be_used_are_errors() {
    let call = json!({"geo.weather": {"city": ["Rome"]}});
    for (reference, expected) in [
        (json!(3), "a table with `function` and `ground_truth`"),
        (json!({"ground_truth": 3}), "a list under `ground_truth`"),
        (json!({"ground_truth": [3]}), "one name and its arguments"),
        (
            json!({"ground_truth": [{"f": {"x": 3}}]}),
            "a list of right values for each argument of `f`",
        ),
        (json!({"ground_truth": [call]}), "a tool with the name `geo.weather`"),
        (json!({"function": {"name": "geo.weather"}, "ground_truth": [call]}), "`parameters`"),
    ] {
        let answer = json!({"id": "1", "reference": reference});
        let error = scores::<ToolCall>(&json!({}), &answer);
        assert!(
            error.as_str().is_some_and(|e| e.contains(expected) && e.contains("sample 1")),
            "{error}"
        );
    }
}

#[test]
fn lists_of_tables_have_the_same_length_and_order() {
    let items = json!({"type": "array", "items": {"type": "dict"}});
    let tool = json!({"name": "f", "parameters": {"properties": {"x": items}}});
    let right = json!([[{"k": ["a"]}, {"k": ["b", ""]}]]);
    let reference = json!({"function": tool, "ground_truth": [{"f": {"x": right}}]});
    for (given, expected) in [
        (json!([{"k": "A"}, {"k": "b"}]), 1.0),
        (json!([{"k": "a"}, {}]), 1.0),
        (json!([{"k": "a"}]), 0.0),
        (json!([{"k": "b"}, {"k": "a"}]), 0.0),
        (json!([{"k": "a"}, {"k": "b", "m": 1}]), 0.0),
        (json!([{"k": "a"}, 1]), 0.0),
    ] {
        let call = json!({"name": "f", "arguments": {"x": given}});
        assert_eq!(judged(&reference, &[call]).0, json!(expected), "{given}");
    }
}

#[test]
fn equality_is_pythons() {
    assert!(equal(&json!([1, {"a": 1.0}]), &json!([true, {"a": 1}])));
    assert!(!equal(&json!("1"), &json!(1)));
    assert!(!equal(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
    assert!(!equal(&json!(null), &json!(0)));
    assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992_u64)));
}

#[test]
fn texts_are_compared_without_marks() {
    assert_eq!(plain("April 1st, 'New-York'"), "april1st\"newyork\"");
}
