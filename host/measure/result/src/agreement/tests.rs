//! Answers that agree, part, and differ more than repeats do, by hand.

use super::*;
use crate::summary::fixture::{failed, reply};
use model::exchange::Kind::{End, Text};
use model::exchange::{Class, Turn};

fn answer(index: u64, text: &str) -> Exchange {
    let mut exchange = reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
    exchange.sample.id = format!("s{index}");
    exchange.output = text.to_owned();
    exchange
}

/// A hundred answers; the answers whose number is in the list have another end.
fn run(otherwise: impl Fn(u64) -> bool) -> Vec<Exchange> {
    (0..100)
        .map(|index| {
            let end = if otherwise(index) { "no" } else { "yes" };
            answer(index, &format!("The answer to {index} is {end}"))
        })
        .collect()
}

fn agreement(baseline: &[Exchange], repeats: &[&[Exchange]], run: &[Exchange]) -> Agreement {
    let mut answers = Answers::default();
    baseline.iter().for_each(|own| answers.add_baseline(own));
    for repeat in repeats {
        answers.begin_repeat();
        repeat.iter().for_each(|own| answers.add_repeat(own));
    }
    run.iter().for_each(|own| answers.add_run(own));
    answers.finish()
}

#[test]
fn the_same_answers_agree() {
    let baseline = run(|_| false);
    let found = agreement(&baseline, &[], &baseline);
    assert_eq!((found.samples, found.identical, found.identical_share), (100, 100, Some(1.0)));
    assert_eq!((found.apart, found.floor), (None, None));
    // Wilson's interval of 100 of 100 ends at 100 / (100 + 1.96²).
    assert!((found.confidence.unwrap().low.unwrap() - 0.963_0).abs() < 1e-4);
}

#[test]
fn shows_where_answers_part() {
    let baseline =
        [answer(0, "héllo world"), answer(1, "same"), answer(2, "short"), answer(9, "alone")];
    let lost = failed(answer(3, "never came"), Class::Truncated, "cut off");
    let other = [
        answer(0, "héllo there!"),
        answer(1, "same"),
        answer(2, "short and more"),
        lost,
        answer(4, "new"),
    ];
    let found = agreement(&baseline, &[], &other);
    assert_eq!((found.samples, found.identical), (3, 1));
    assert_eq!((found.baseline_only, found.run_only), (1, 1));
    let apart = found.apart.unwrap();
    assert_eq!(apart.first_character, 5.5, "6 and 5");
    assert!((apart.shared_prefix - (6.0 / 12.0 + 5.0 / 14.0) / 2.0).abs() < 1e-12);
    assert_eq!(apart.length_ratio, Some(30.0 / 20.0));
    let parting = &found.examples[0];
    let parts = [&parting.before, &parting.baseline, &parting.run];
    assert_eq!(parts, ["héllo ", "world", "there!"]);
    assert_eq!((found.examples[1].character, found.examples[1].baseline.as_str()), (5, ""));
}

#[test]
fn clears_differences_no_larger_than_between_repeats() {
    let baseline = run(|_| false);
    // Repeats differ in ten of a hundred, the run in ten others.
    let repeat = run(|index| index % 10 == 0);
    let floor = agreement(&baseline, &[&repeat], &run(|index| index % 10 == 5)).floor.unwrap();
    assert_eq!((floor.differing_share, floor.run_differing_share), (0.1, 0.1));
    assert_eq!((floor.judgement, floor.probability), (Judgement::Cleared, Some(1.0)));
    // In thirty others: the flips are thirty one way and ten the other.
    let changed = agreement(&baseline, &[&repeat], &run(|index| index % 10 >= 7));
    let floor = changed.floor.unwrap();
    assert_eq!(floor.judgement, Judgement::Changed, "{floor:?}");
    assert!((floor.run_differing_share - 0.3).abs() < 1e-12);
    // One that differs less is not changed.
    let fewer = agreement(&baseline, &[&run(|index| index % 2 == 0)], &baseline);
    assert_eq!(fewer.floor.unwrap().judgement, Judgement::Cleared);
}

#[test]
fn several_repeats_are_a_share_of_each_sample() {
    let baseline = run(|_| false);
    let [one, two] = [3, 4].map(|by| run(move |index| index % by == 0));
    let found = agreement(&baseline, &[&one, &two], &run(|index| index % 3 == 0 || index % 4 == 0));
    let floor = found.floor.unwrap();
    assert_eq!((floor.repeats, floor.samples), (2, 100));
    assert!((floor.differing_share - (34.0 + 25.0) / 200.0).abs() < 1e-12);
    assert_eq!(floor.judgement, Judgement::Changed, "{floor:?}");
}

#[test]
fn turns_of_a_conversation_part_together() {
    let talk = |otherwise: fn(u64) -> bool| {
        let mut run = run(otherwise);
        for exchange in &mut run {
            exchange.sample.turn = Some(Turn {
                session: format!("c{}", exchange.index / 20),
                index: (exchange.index % 20) as u32,
            });
        }
        run
    };
    // Eight turns of one of five conversations: too few conversations to say.
    let (baseline, other) = (talk(|_| false), talk(|index| index < 8));
    let floor = agreement(&baseline, &[&baseline], &other).floor.unwrap();
    assert_eq!((floor.judgement, floor.probability), (Judgement::Unknown, None));
}

#[test]
fn finds_the_first_differing_token() {
    let words: FirstToken = Box::new(|one, other| {
        let (one, other): (Vec<&str>, Vec<&str>) =
            (one.split(' ').collect(), other.split(' ').collect());
        let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
        (same < one.len().max(other.len())).then_some(same as u64)
    });
    let mut answers = Answers::tokenized(words);
    for index in 0..3 {
        answers.add_baseline(&answer(index, "one two three"));
    }
    for (index, text) in [(0, "one two four"), (1, "one two"), (2, "six")] {
        answers.add_run(&answer(index, text));
    }
    let found = answers.finish();
    assert_eq!(found.apart.unwrap().first_token, Some(2.0));
    let tokens: Vec<Option<u64>> = found.examples.iter().map(|parting| parting.token).collect();
    assert_eq!(tokens, [Some(2), Some(2), Some(0)]);
    // Without a tokenizer there is no such figure.
    let none = agreement(&[answer(0, "a")], &[], &[answer(0, "b")]);
    assert_eq!(none.apart.unwrap().first_token, None);
}
