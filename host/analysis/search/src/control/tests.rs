//! Controls of simulated engines, whose long-run share of misses is known from long runs.

use crate::control::Arrivals;
use crate::gather::{Gather, Measured};
use crate::laboratory::{Kind, gathered};
use crate::slo::{Observation, tiers};
use model::units::Nanos;
use statistics::{mean, variance};

const E2E: &str = "e2e.p95 <= 5s";

/// The share of misses of an engine at a rate, in the long run.
fn share_of(kind: Kind, limit: &str, rate: f64) -> f64 {
    let run = kind.run(rate, 400_000, 9_999);
    let long = gathered(&tiers([limit]).unwrap(), &run, None).tiers[0][0];
    long.bad as f64 / long.requests as f64
}

/// Runs of an engine at a rate: the plain shares of misses, and the controls.
fn runs(kind: Kind, limit: &str, rate: f64, many: u64) -> Vec<(f64, Option<super::Control>)> {
    let limits = tiers([limit]).unwrap();
    let requests = 4000;
    let own = |seed: u64| {
        let arrivals = Arrivals { per_s: rate, seed };
        let Measured { tiers, .. } =
            gathered(&limits, &kind.run(rate, requests, 100 * seed), Some(arrivals));
        (tiers[0][0].bad as f64 / requests as f64, tiers[0][0].control)
    };
    (0..many).map(own).collect()
}

/// At 94 % of the capacity most runs meet none of the long queues, and show too few misses. The
/// controls lie on either side of the truth, though they know nothing of padding and of steps that
/// read prompts alone. Their stated variance is about their variance, but for the chance of the
/// load.
#[test]
fn a_control_is_right_though_its_engine_is_wrong() {
    let (kind, rate) = (Kind::Padded, 13.0);
    let truth = share_of(kind, E2E, rate);
    let found = runs(kind, E2E, rate, 12);
    let plain: Vec<f64> = found.iter().map(|own| own.0 - truth).collect();
    let controls: Vec<super::Control> = found.iter().map(|own| own.1.unwrap()).collect();
    let off: Vec<f64> = controls.iter().map(|own| own.share - truth).collect();
    let squares = |off: &[f64]| off.iter().map(|own| own * own).sum::<f64>();
    let below = |off: &[f64]| off.iter().filter(|own| **own < 0.0).count();
    assert!(below(&plain) >= 10 && (3..=9).contains(&below(&off)), "{truth} {found:?}");
    let deviation = (variance(&off).unwrap() / 12.0).sqrt();
    assert!((mean(&off) / deviation).abs() < 4.0, "{truth} {off:?}");
    let stated = controls.iter().map(|own| own.effect * own.unexplained + own.added);
    let stated = stated.sum::<f64>() / 12.0 * truth * (1.0 - truth) / 4000.0;
    let ratio = stated / (squares(&off) / 12.0);
    assert!((0.3..4.0).contains(&ratio), "{ratio} {controls:?}");
}

/// Rare misses: most runs have none, and the requests that waited longest show how alike the
/// simulation is.
#[test]
fn runs_without_a_miss_have_controls_about_the_truth() {
    for (kind, limit, rate) in
        [(Kind::Usual, "ttft.p99 <= 2s", 15.24), (Kind::Cliff, "e2e.p95 <= 1s", 61.2)]
    {
        let truth = share_of(kind, limit, rate);
        let found = runs(kind, limit, rate, 8);
        assert!(found.iter().filter(|own| own.0 == 0.0).count() >= 4, "{found:?}");
        let controls: Vec<super::Control> = found.iter().map(|own| own.1.unwrap()).collect();
        assert!(controls.iter().all(|own| own.unexplained < 0.3), "{controls:?}");
        let off: Vec<f64> = controls.iter().map(|own| own.share - truth).collect();
        let deviation = (variance(&off).unwrap() / 8.0).sqrt();
        assert!((mean(&off) / deviation).abs() < 4.0, "{truth} {off:?}");
    }
}

/// An engine whose pace wanders by itself: its misses are not the simulation's.
#[test]
fn a_control_that_explains_little_does_not_help() {
    let found = runs(Kind::Wandering, E2E, 15.4, 3);
    let known = || found.iter().filter_map(|own| own.1);
    let left = mean(&known().map(|own| own.unexplained).collect::<Vec<_>>());
    assert!(left > 0.25, "{found:?}");
}

/// Replicas behind a router: requests wait for one while the other is free. Where the router
/// favours one of them, no simulation waits as the run.
#[test]
fn a_simulation_that_waits_less_than_the_run_explains_nothing() {
    let left = |kind, rate| {
        let found = runs(kind, E2E, rate, 4);
        let left = found.iter().map(|own| own.1.map_or(1.0, |control| control.unexplained));
        mean(&left.collect::<Vec<_>>())
    };
    assert!(left(Kind::Usual, 15.3) < 0.2);
    assert!(left(Kind::Replicas, 31.0) < 0.2);
    assert!(left(Kind::Lopsided, 23.0) > 0.7);
}

/// Without the instants of tokens there is no simulation, nor without a rate.
#[test]
fn runs_whose_answers_came_whole_have_no_control() {
    let limits = tiers([E2E]).unwrap();
    let served = Kind::Usual.run(15.0, 1000, 1);
    assert_eq!(gathered(&limits, &served, None).tiers[0][0].control, None);
    let mut gather = Gather::new(&limits);
    for own in &served {
        let took = own.tokens[own.tokens.len() - 1].since(own.sent);
        let end = Some(Nanos(own.sent.0 + took.0));
        gather.add_seen(own.sent, [None, end], Some(&[Observation::Took(took.as_millis_f64())]));
    }
    let arrivals = Arrivals { per_s: 15.0, seed: 1 };
    assert_eq!(gather.finish(None, Some(arrivals)).tiers[0][0].control, None);
}
