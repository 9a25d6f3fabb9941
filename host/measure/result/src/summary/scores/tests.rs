//! Scores in a summary, checked by hand.

use super::*;
use crate::summary::Summary;
use crate::summary::fixture::{facts, failed, reply};
use model::exchange::Kind::{End, Text};
use model::exchange::{Class, Turn};

/// An answer of a conversation of four turns, in one of two classes.
fn answer(index: u64) -> Exchange {
    let sent = 1000 + index * 10;
    let mut exchange = reply(index, sent, &[(sent + 5, Text, None, 1), (sent + 9, End, None, 0)]);
    exchange.sample.id = format!("s{index}");
    exchange.sample.reference = Some(serde_json::json!(index));
    exchange.output = format!("answer {index}");
    exchange.sample.turn =
        Some(Turn { session: format!("c{}", index / 4), index: (index % 4) as u32 });
    exchange.sample.class = Some(["easy", "hard"][(index / 4 % 2) as usize].into());
    exchange
}

fn judged(run: &[Exchange], columns: &[(&str, Column<f64>)]) -> BTreeMap<String, Score> {
    let mut facts = facts();
    facts.scores =
        columns.iter().map(|(name, column)| ((*name).to_owned(), column.clone())).collect();
    Summary::new(&facts, run).scores
}

#[test]
fn independent_shares_have_wilsons_interval() {
    let mut run: Vec<Exchange> = (0..20).map(answer).collect();
    for exchange in &mut run {
        exchange.sample.turn = None;
    }
    let none: Column<f64> = (0..20).map(|index| (index, 0.0)).collect();
    let score = &judged(&run, &[("exact-match", none)])["exact-match"];
    let bounds = score.confidence.unwrap();
    assert_eq!((score.mean, score.count, score.by), (0.0, 20, Some(By::Wilson)));
    assert_eq!(bounds.low, Some(0.0));
    assert!((bounds.high.unwrap() - 0.1611).abs() < 5e-5, "{bounds:?}");
    assert!(score.by_turn.is_empty());
    assert_eq!(score.by_class.len(), 2);
    assert_eq!((score.by_class[0].count, score.by_class[1].count), (12, 8));
}

#[test]
fn conversations_count_as_units() {
    let run: Vec<Exchange> = (0..80).map(answer).collect();
    // Whole conversations are right or wrong.
    let together: Column<f64> = (0..80).map(|i| (i, (i / 4 % 2) as f64)).collect();
    let apart: Column<f64> = (0..80).map(|i| (i, (i % 2) as f64)).collect();
    let scores = judged(&run, &[("together", together), ("apart", apart)]);
    let width = |name: &str| {
        let bounds = scores[name].confidence.unwrap();
        bounds.high.unwrap() - bounds.low.unwrap()
    };
    assert!(width("together") > 1.5 * width("apart"), "{scores:?}");
    let score = &scores["together"];
    assert_eq!(score.by_turn.len(), 4);
    assert!(score.by_turn.iter().all(|turn| turn.count == 20 && turn.mean == Some(0.5)));
    assert_eq!(score.by_class[0].mean, Some(0.0));
    assert_eq!(score.by_class[1].name.as_deref(), Some("hard"));
}

#[test]
fn other_scores_have_students_interval_in_any_order() {
    let mut run: Vec<Exchange> = (0..40).map(answer).collect();
    let column: Column<f64> = (0..40).map(|i| (i, (i % 7) as f64 / 6.0)).collect();
    let long: Column<f64> = (0..40).map(|i| (i, (i * 7 % 23) as f64)).collect();
    let columns = [("rouge-l", column), ("output-length", long)];
    let scores = judged(&run, &columns);
    assert_eq!(scores["output-length"].by, Some(By::Student));
    let score = &scores["rouge-l"];
    assert_eq!(score.by, Some(By::Bounded));
    let bounds = score.confidence.unwrap();
    assert!(bounds.low < Some(score.mean) && bounds.high > Some(score.mean));
    run.reverse();
    assert_eq!(judged(&run, &columns), scores);
}

/// Two grades of 7 do not show that every grade is 7. Where no scale is known, nothing shows how
/// they vary.
#[test]
fn equal_grades_have_the_interval_of_their_scale() {
    let mut run: Vec<Exchange> = (0..2).map(answer).collect();
    for exchange in &mut run {
        exchange.sample.turn = None;
    }
    let column: Column<f64> = (0..).zip([7.0, 7.0]).collect();
    let scores = judged(&run, &[("judge.grade", column.clone()), ("output-length", column)]);
    let grade = &scores["judge.grade"];
    let bounds = grade.confidence.unwrap();
    assert_eq!((grade.mean, grade.by), (7.0, Some(By::Bounded)));
    assert!(bounds.low.unwrap() < 3.0 && bounds.high.unwrap() > 9.0, "{bounds:?}");
    let length = &scores["output-length"];
    assert_eq!((length.mean, length.confidence, length.by), (7.0, None, None));
}

#[test]
fn counts_unjudged_answers_by_reason() {
    let mut run: Vec<Exchange> = (0..8).map(answer).collect();
    run[1].sample.reference = None;
    run[7] = failed(run[7].clone(), Class::Truncated, "cut off");
    let mut facts = facts();
    let column: Column<f64> = [(0, 1.0), (4, 0.0), (5, 1.0)].into();
    facts.scores.insert("exact-match".into(), column);
    facts.unscored.insert("exact-match".into(), vec![2]);
    facts.left_out.insert("exact-match".into(), vec![6]);
    let score = &Summary::new(&facts, &run).scores["exact-match"];
    let wanted = Unjudged { failed: 1, left_out: 1, without_reference: 1, passed_over: 1 };
    assert_eq!((score.count, score.unjudged), (3, wanted));
    assert_eq!((wanted.count(), score.by_class[1].unjudged.left_out), (4, 1));
    assert_eq!(score.by_class[0].count, 1);
    assert_eq!(score.by_turn[3].mean, None, "nothing of it was judged");
    let expected = "1 on which the scorer failed, 1 that were not drawn, 1 without a reference, 1 that the scorer passed over";
    assert_eq!(score.unjudged.label().unwrap(), expected);
}

#[test]
fn examples_are_the_worst_answers_and_short() {
    let mut run: Vec<Exchange> = (0..8).map(answer).collect();
    run[5].output = "ä".repeat(5000);
    let wrong: Column<f64> = (0..8).map(|i| (i, f64::from(i < 4))).collect();
    let right: Column<f64> = (0..8).map(|i| (i, 1.0)).collect();
    let rouge: Column<f64> = (0..8).map(|i| (i, 0.9 - i as f64 / 10.0)).collect();
    let unparsed: Column<f64> = (0..8).map(|i| (i, f64::from(i == 6))).collect();
    let scores = judged(
        &run,
        &[
            ("exact-match", wrong),
            ("contains", right),
            ("rouge-l", rouge),
            ("contains-unparsed", unparsed),
        ],
    );
    let ids = |name: &str| -> Vec<&str> {
        scores[name].examples.iter().map(|example| example.id.as_str()).collect()
    };
    assert_eq!(ids("exact-match"), ["s4", "s5", "s6"]);
    assert!(ids("contains").is_empty());
    assert_eq!(ids("rouge-l"), ["s7", "s6", "s5"]);
    assert_eq!(ids("contains-unparsed"), ["s6"]);
    let long = &scores["exact-match"].examples[1];
    assert_eq!(long.answer.chars().count(), 120 + 3 + 360);
    assert_eq!((long.reference.as_deref(), long.turn), (Some("5"), Some(1)));
}
