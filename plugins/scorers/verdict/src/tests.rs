use goldens::{open, scores};
use serde_json::{Value, json};

use super::Verdict;

fn judged(config: &Value, output: &str) -> Value {
    scores::<Verdict>(config, &json!({"id": "1", "output": output}))
}

fn grade(output: &str) -> Option<f64> {
    let found = judged(&json!({}), output);
    let grade = found.get("grade").and_then(Value::as_f64);
    assert_eq!(found["grade-unparsed"], json!(f64::from(u8::from(grade.is_none()))), "{output}");
    grade
}

#[test]
fn grades_are_in_brackets() {
    for (output, expected) in [
        ("Rating: [[7]]", Some(7.0)),
        ("Rating: [[7.5]]", Some(7.5)),
        ("**Rating: [[ 10 ]]**", Some(10.0)),
        ("Rating: [[7/10]]", Some(7.0)),
        ("RATING: **[8]**", Some(8.0)),
        ("é Rating:\n[1]", Some(1.0)),
        ("As in \"Rating: [[5]]\", I say: Rating: [[3]]", Some(3.0)),
        ("[[3]] in the form [[rating]]", Some(3.0)),
        ("[[5]], no: [[50]]", None),
        ("Rating: 7", None),
        ("See [7].", None),
        ("Rating: [[7/20]]", None),
        ("Rating: [[11]]", None),
        ("Rating: [[0]]", None),
        ("Rating: [[-3]]", None),
        ("[[nan]] [[inf]] [[1e1]] [[]] [[.]]", None),
        ("]] [[", None),
        ("", None),
    ] {
        assert_eq!(grade(output), expected, "{output}");
    }
}

#[test]
fn the_scale_is_the_users() {
    let config = json!({"lowest": 0, "highest": 1});
    assert_eq!(judged(&config, "[[0.25]]")["grade"], 0.25);
    assert_eq!(judged(&config, "[[2]]").get("grade"), None);
    for (lowest, highest) in [(1, 1), (5, 1)] {
        let Err(runner_plugin::Error::InvalidConfig(words)) =
            open::<Verdict>(&json!({"lowest": lowest, "highest": highest}))
        else {
            panic!("{lowest} to {highest} is no scale");
        };
        assert!(words.contains("must be below"), "{words}");
    }
}

#[test]
fn choices_are_letters_in_brackets_and_the_last_counts() {
    for (output, expected) in [
        ("[[A]]", Some(1.0)),
        ("My final verdict is: [[B]].", Some(0.0)),
        ("[[C]]", Some(0.5)),
        ("[[a]]", Some(1.0)),
        ("\"[[A]]\" if A is better, \"[[B]]\" if B is. [[B]]", Some(0.0)),
        ("[[B]] and so [[Tie]]", Some(0.0)),
        ("A", None),
        ("[A]", None),
        ("[[7]]", None),
        ("", None),
    ] {
        let found = judged(&json!({"form": "choice"}), output);
        let choice = found.get("choice").and_then(Value::as_f64);
        assert_eq!(choice, expected, "{output}");
        assert_eq!(found.get("grade"), None);
    }
}

#[test]
fn the_reasoning_holds_no_verdict_by_default() {
    let answer = json!({"id": "1", "output": "", "reasoning": "[[4]]"});
    let found = scores::<Verdict>(&json!({}), &answer);
    assert_eq!(found, json!({"grade-unparsed": 1.0}));
    let found = scores::<Verdict>(&json!({"part": "both"}), &answer);
    assert_eq!(found["grade"], 4.0);
}
