//! The basis of judgements and conditions: paired requests, figures that count as the same, and
//! failed requests.

use std::convert::Infallible;

use super::fixture::{USUAL, exchanges, named, plan, side};
use super::*;
use crate::exchanges::failed;
use model::exchange::{Class, Exchange};
use runs::folder;
use statistics::decomposition::Decomposition;

const REQUESTS: u64 = 200;

/// The sum and the number of TTFTs by block, of a run that is read beside a baseline.
fn cut(run: &[Exchange], baseline: Option<&Places>) -> Vec<[f64; 2]> {
    let figures = named(&["ttft.mean"]);
    let facts = folder::facts(&plan(&[]), Default::default(), false);
    let reported = side(run).measured()[0].reported.clone();
    let read = run.iter().cloned().map(Ok::<_, Infallible>);
    let Ok(read) = Measured::read(reported, &facts, &figures, Some(20), baseline, read);
    match read.blocked.and_then(|blocked| blocked.take(&figures[0])) {
        Some(Decomposition::Ratio(parts)) => parts,
        other => panic!("{other:?}"),
    }
}

fn places(run: &[Exchange]) -> Places {
    side(run).measured()[0].places()
}

#[test]
fn blocks_follow_the_baseline_in_any_order() {
    let run = exchanges(USUAL, REQUESTS, 10.0);
    let mut turned = run.clone();
    for exchange in &mut turned {
        exchange.index = REQUESTS - 1 - exchange.index;
    }
    let first = |run: &[Exchange], baseline: Option<&Places>| cut(run, baseline)[0][0];
    let same = first(&run, None);
    assert!((first(&turned, Some(&places(&run))) - same).abs() < 1e-6);
    assert!((first(&turned, None) - same).abs() > 1.0);
}

/// Requests that are sent twice, and runs of another length, keep their places: no block is empty.
#[test]
fn requests_without_a_partner_keep_their_own_places() {
    let run = exchanges(USUAL, REQUESTS, 10.0);
    let mut repeated = run.clone();
    for exchange in &mut repeated {
        exchange.sample.request_digest = format!("{:016x}", exchange.index % 40);
    }
    let each = |run: &[Exchange], baseline: &Places| -> Vec<f64> {
        cut(run, Some(baseline)).iter().map(|[_, count]| *count).collect()
    };
    assert_eq!(each(&repeated, &places(&repeated)), [10.0; 20]);
    assert_eq!(each(&run[..100], &places(&run)), [5.0; 20]);
}

fn judged(sides: &[Side], options: &Options, figure: &str) -> Judgement {
    let found = compare(sides, options).unwrap();
    found.row("B", figure).unwrap().judgement.unwrap()
}

#[test]
fn only_surely_close_figures_are_the_same() {
    let steady = super::fixture::Engine { spread: 0.01, places: 1000, ..USUAL };
    let other = super::fixture::Engine { seed: 2, ..steady };
    let sides = [steady, other].map(|engine| side(&exchanges(engine, REQUESTS, 10.0)));
    let options = |share, within| Options {
        variation: Some(Variation::Assumed { share }),
        same_within: Some(within),
        ..Options::new(named(&["itl.mean", "requests.success-share"]), blocks(REQUESTS))
    };
    assert_eq!(judged(&sides, &options(0.0, 0.02), "itl.mean"), Judgement::Same);
    // 1.645 √2 of the assumed 2 % is more than 2 %.
    assert_eq!(judged(&sides, &options(0.02, 0.02), "itl.mean"), Judgement::NoDifference);
    assert_eq!(judged(&sides, &options(0.02, 0.1), "itl.mean"), Judgement::Same);
    // That all of two hundred were answered on both sides bounds nothing.
    let found = compare(&sides, &options(0.0, 0.02)).unwrap();
    let row = found.row("B", "requests.success-share").unwrap();
    assert_eq!((row.judgement, row.detectable), (Some(Judgement::NoDifference), None));
}

/// A run with this percentage of failed requests.
fn failing(percent: u64) -> Side {
    let mut run = exchanges(USUAL, REQUESTS, 10.0);
    for exchange in run.iter_mut().filter(|own| own.index * 37 % 100 < percent) {
        *exchange = failed(exchange.clone(), Class::Truncated, "cut off");
    }
    side(&run)
}

#[test]
fn failures_that_hide_a_percentile_make_a_condition_hold() {
    let options = Options {
        conditions: vec!["ttft.p99 +50%".parse().unwrap()],
        allowed: Kind::ALL.to_vec(),
        ..Options::new(named(&["ttft.p99"]), blocks(REQUESTS))
    };
    let outcome = |baseline, percent| {
        let found = compare(&[failing(baseline), failing(percent)], &options).unwrap();
        let outcome = &found.conditions[0];
        (outcome.fails, outcome.seen.clone())
    };
    assert!(!outcome(0, 0).0);
    let (fails, seen) = outcome(0, 10);
    assert!(fails && seen.contains("it is the worst possible"), "{seen}");
    let (fails, seen) = outcome(10, 20);
    assert!(!fails && seen.contains("too many requests failed on both sides"), "{seen}");
    // From zero, any change for the worse is too much.
    let options = Options { conditions: vec!["requests.failed +5%".parse().unwrap()], ..options };
    assert!(compare(&[failing(0), failing(50)], &options).unwrap().conditions[0].fails);
}

#[test]
fn conditions_are_of_every_further_side() {
    let options = Options {
        conditions: vec!["ttft.mean +5%".parse().unwrap()],
        ..Options::new(named(&["ttft.mean"]), blocks(REQUESTS))
    };
    let slower = super::fixture::Engine { ttft: 1.5, ..USUAL };
    let sides = [USUAL, USUAL, slower].map(|engine| side(&exchanges(engine, REQUESTS, 10.0)));
    let found = compare(&sides, &options).unwrap();
    let outcomes: Vec<(&str, bool)> =
        (found.conditions.iter()).map(|outcome| (outcome.side.as_str(), outcome.fails)).collect();
    assert_eq!(outcomes, [("B", false), ("C", true)]);
}
