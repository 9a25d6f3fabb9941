//! Unit tests, which run natively and so are quicker than cases: `cargo test`.

use runner_plugin::{Error, Exchange, Scorer};
use runner_plugin_testing::tokenizer::StandIn;

use super::{Config, Plugin};

fn judged(reference: &str, output: &str) -> Result<Vec<f64>, Error> {
    let exchange = Exchange {
        id: "1".to_owned(),
        reference: Some(reference.to_owned()),
        turn: None,
        class: None,
        requested_tokens: None,
        output: output.to_owned(),
        choices: Vec::new(),
        reasoning: String::new(),
        tool_calls: String::new(),
        output_tokens: None,
        finish: None,
    };
    let mut plugin = Plugin::open(Config::default(), Box::new(StandIn))?;
    let scores = plugin.score(&exchange)?;
    Ok(scores.into_iter().map(|score| score.value).collect())
}

#[test]
fn one_of_several_texts_is_enough() {
    assert_eq!(judged(r#""Paris""#, "in PARIS"), Ok(vec![1.0]));
    assert_eq!(judged(r#"["4", "four"]"#, "five"), Ok(vec![0.0]));
}

#[test]
fn a_reference_of_another_shape_is_the_users_to_mend() {
    assert!(matches!(judged("4", "four"), Err(Error::InvalidInput(_))));
}
