use runner_plugin::{Count, CountSource, Exchange, Scorer};
use runner_plugin_testing::tokenizer::StandIn;

use super::{Config, OutputLength};

fn exchange(had: Option<u32>, asked: Option<u32>) -> Exchange {
    Exchange {
        id: "a".to_owned(),
        reference: None,
        turn: None,
        class: None,
        requested_tokens: asked,
        output: String::new(),
        reasoning: String::new(),
        tool_calls: String::new(),
        output_tokens: had.map(|tokens| Count {
            tokens,
            source: CountSource::Usage,
        }),
        finish: None,
    }
}

fn scores(tolerance: u32, had: Option<u32>, asked: Option<u32>) -> Vec<(String, f64)> {
    let mut scorer =
        OutputLength::open(Config { tolerance }, Box::new(StandIn)).expect("a valid configuration");
    let scores = scorer.score(&exchange(had, asked)).expect("scores");
    scores
        .into_iter()
        .map(|score| (score.name, score.value))
        .collect()
}

fn both(right: f64, ratio: f64) -> Vec<(String, f64)> {
    vec![
        ("output-length".to_owned(), right),
        ("output-length-ratio".to_owned(), ratio),
    ]
}

#[test]
fn only_the_exact_length_is_right_without_a_tolerance() {
    assert_eq!(scores(0, Some(128), Some(128)), both(1.0, 1.0));
    assert_eq!(scores(0, Some(96), Some(128)), both(0.0, 0.75));
    assert_eq!(scores(0, Some(0), Some(128)), both(0.0, 0.0));
}

#[test]
fn a_tolerance_counts_both_ways_and_includes_its_end() {
    assert_eq!(scores(2, Some(98), Some(100)), both(1.0, 0.98));
    assert_eq!(scores(2, Some(102), Some(100)), both(1.0, 1.02));
    assert_eq!(scores(2, Some(103), Some(100)), both(0.0, 1.03));
}

#[test]
fn what_is_absent_is_not_judged() {
    assert!(scores(0, None, Some(128)).is_empty());
    assert!(scores(0, Some(128), None).is_empty());
}

#[test]
fn nothing_asked_has_no_ratio() {
    assert_eq!(
        scores(0, Some(0), Some(0)),
        vec![("output-length".to_owned(), 1.0)]
    );
}
