use runner_plugin::{Error, Exchange, Score, Scorer};
use runner_plugin_testing::tokenizer::StandIn;

use super::ExactMatch;

fn judged(config: &str, reference: Option<&str>, output: &str) -> Result<Vec<Score>, Error> {
    let config = runner_plugin::parse(config)?;
    ExactMatch::open(config, Box::new(StandIn))?.score(&Exchange {
        id: "a".to_owned(),
        reference: reference.map(str::to_owned),
        turn: None,
        class: None,
        requested_tokens: None,
        output: output.to_owned(),
        reasoning: "42".to_owned(),
        tool_calls: String::new(),
        output_tokens: None,
        finish: None,
    })
}

#[test]
fn an_answer_is_right_or_wrong() {
    let cases = [
        ("{}", r#""42""#, "42", 1.0),
        ("{}", r#""42""#, " 42\n", 1.0),
        ("{}", r#"" 42""#, "42", 1.0),
        (r#"{"strip": false}"#, r#""42""#, " 42", 0.0),
        ("{}", r#""42""#, "it is 42", 0.0),
        ("{}", r#""42""#, "", 0.0),
        ("{}", r#""Été""#, "été", 0.0),
        (r#"{"ignore-case": true}"#, r#""Été""#, "éTÉ", 1.0),
        ("{}", "42", "42", 1.0),
        ("{}", "true", "true", 1.0),
        ("{}", r#"["four", "4"]"#, "4", 1.0),
        ("{}", r#"["four", "4"]"#, "5", 0.0),
        ("{}", r#"{"answer": "4", "question": "5"}"#, "4", 1.0),
        ("{}", r#"{"answer": ["4", "four"]}"#, "four", 1.0),
        (
            r#"{"reference-key": "gold"}"#,
            r#"{"answer": "5", "gold": "4"}"#,
            "4",
            1.0,
        ),
    ];
    for (config, reference, output, value) in cases {
        let expected = vec![Score {
            name: "exact-match".to_owned(),
            value,
        }];
        assert_eq!(
            judged(config, Some(reference), output),
            Ok(expected),
            "{config} {reference} {output}"
        );
    }
}

#[test]
fn without_a_reference_there_is_no_judgement() {
    assert_eq!(judged("{}", None, "42"), Ok(Vec::new()));
}

#[test]
fn a_reference_that_is_no_answer_is_refused() {
    for (reference, what) in [
        (r#"{"gold": 1}"#, "is a table without one"),
        ("[[1]]", "is a list with something else in it"),
        ("null", "is null"),
    ] {
        match judged("{}", Some(reference), "42") {
            Err(Error::InvalidInput(message)) => {
                assert!(
                    message.contains(what) && message.contains("set `reference-key`"),
                    "{message}"
                );
            }
            other => panic!("{reference} gave {other:?}"),
        }
    }
}
