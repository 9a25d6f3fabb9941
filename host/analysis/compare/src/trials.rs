//! The share of right comparisons: trials on exchanges of an engine with a queue, each with chances
//! of its own. Requests wait for one another there, so neighbours are alike, as they are in real
//! runs. Whole runs of two scripts of the mock engine are compared in
//! `tests/whole_runs/comparisons.rs`.

use super::fixture::{Engine, USUAL, exchanges, side};
use super::*;
use model::units::Nanos;

const TRIALS: u64 = 100;

fn compared(a: Engine, b: Engine, requests: u64, rate: f64) -> Compared {
    compare_headline(&[a, b].map(|engine| side(&exchanges(engine, requests, rate))), requests)
}

/// These engines do not vary from run to run, and that is known.
fn steady() -> Variation {
    Variation::Assumed { share: 0.0 }
}

/// Runs with this many requests each, compared with each other.
fn compare_headline(sides: &[Side; 2], requests: u64) -> Compared {
    let summary = &sides[0].measured()[0].reported.summary;
    let options = Options {
        variation: Some(steady()),
        ..Options::new(figures(&Choice::Headline, &[summary], &[]), blocks(requests))
    };
    compare(sides, &options).unwrap()
}

/// Counts the trials in which any figure, and any of TTFT, was called worse or better.
fn calls(trials: u64, a: Engine, b: Engine, requests: u64, rate: f64) -> (u64, u64) {
    let (mut any, mut ttft) = (0, 0);
    for trial in 0..trials {
        let seeded = |engine, seed| Engine { seed, ..engine };
        let found = compared(seeded(a, 2 * trial), seeded(b, 2 * trial + 1), requests, rate);
        let called = found.pairs[0]
            .figures
            .iter()
            .filter(|row| matches!(row.judgement, Some(Judgement::Better | Judgement::Worse)));
        let called: Vec<&str> = called.map(|row| row.figure.as_str()).collect();
        any += u64::from(!called.is_empty());
        ttft += u64::from(called.iter().any(|figure| figure.starts_with("ttft.")));
    }
    (any, ttft)
}

/// An engine with enough time for all requests, which wait now and then.
#[test]
fn equal_engines_do_not_differ() {
    let (any, ttft) = calls(TRIALS, USUAL, USUAL, 300, 20.0);
    assert!(any <= 5 && ttft <= 5, "any figure {any}, TTFT {ttft}");
}

/// An engine that hardly varies: the same number of answers fall in each part of both runs. A
/// rate's remaining difference is the time of the last answer.
#[test]
fn equal_steady_engines_do_not_differ() {
    let quiet = Engine { spread: 0.01, places: 1000, ..USUAL };
    for (requests, rate) in [(60, 30.0), (300, 20.0)] {
        let (any, ttft) = calls(TRIALS, quiet, quiet, requests, rate);
        assert!(any <= 5 && ttft <= 5, "{requests} at {rate}/s: any figure {any}, TTFT {ttft}");
    }
}

/// An engine that paused once while all requests were in flight: they share one gap.
#[test]
fn a_shared_pause_is_one_event() {
    let wide = Engine { places: 1000, ..USUAL };
    let (at, by) = (Nanos(1_150_000_000), 50_000_000);
    let later = |instant: &mut Nanos| instant.0 += if *instant >= at { by } else { 0 };
    let mut paused = exchanges(wide, 200, 1e9);
    for exchange in &mut paused {
        exchange.events.at.iter_mut().for_each(later);
        exchange.ended.as_mut().into_iter().for_each(later);
    }
    let sides = [side(&exchanges(wide, 200, 1e9)), side(&paused)];
    let found = compare_headline(&sides, 200);
    let row = found.row("B", "itl.p99").unwrap();
    assert!(row.percent.unwrap() > 50.0, "{row:?}");
    // All its gaps lie in one block, so it is the story of one instant.
    assert_eq!(row.judgement, Some(Judgement::NotJudged), "{row:?}");
    assert_eq!(row.no_interval, Some(NoInterval::FewBlocks), "{row:?}");
}

/// An engine whose queue grows from the first request to the last: there the intervals of
/// independent samples call seven of ten pairs different.
#[test]
fn equal_overloaded_engines_do_not_differ() {
    for rate in [37.0, 1e9] {
        let (any, ttft) = calls(TRIALS / 2, USUAL, USUAL, 300, rate);
        assert!(any <= 3 && ttft <= 3, "at {rate}/s any {any}, TTFT {ttft}");
    }
}

/// An engine whose time to first token is 3 % longer, each varying by a twentieth. A missed
/// difference is taken for a walk.
#[test]
fn three_percent_of_ttft_are_seen() {
    let quiet = Engine { spread: 0.05, ..USUAL };
    let slower = Engine { ttft: 1.03, ..quiet };
    let (_, ttft) = calls(TRIALS / 2, quiet, slower, 400, 10.0);
    assert!(ttft >= 43, "{ttft} of 50");
}

/// The interval of a difference holds the true one in 95 of 100 trials. For engines without a queue
/// the true difference is known: the factor.
#[test]
fn intervals_hold_the_true_difference() {
    let wide = Engine { places: 1000, ..USUAL };
    let slower = Engine { ttft: 1.1, gap: 0.9, ..wide };
    let mut held = [0_u64; 4];
    let figures = ["ttft.mean", "ttft.median", "itl.mean", "itl.p99"];
    for trial in 0..TRIALS {
        let seeded = |engine, seed| Engine { seed, ..engine };
        let found = compared(seeded(wide, 2 * trial), seeded(slower, 2 * trial + 1), 200, 20.0);
        for (held, figure) in held.iter_mut().zip(figures) {
            let row = found.row("B", figure).unwrap();
            let (ends, baseline) = row.interval.zip(row.baseline).unwrap();
            let truth = baseline * if figure.starts_with("ttft") { 0.1 } else { -0.1 };
            *held += u64::from(ends.low <= truth && truth <= ends.high);
        }
    }
    // 95 of 100 give less than 88 in one of 400 such tests.
    assert!(held.iter().all(|held| *held >= 88), "{held:?} of {TRIALS}");
}
