//! Regressions of counts whose curve is known.

use super::*;
use simulator::Random;

fn point(at: f64, bad: f64, requests: f64) -> Point {
    Point { at, requests, bad, effect: 1.0, tail_effect: 1.0, loads: f64::INFINITY, control: None }
}

/// Odds of 1 to 99 at 3, which grow with a power of the load.
fn share_at(at: f64, power: i32) -> f64 {
    let odds = (at / 3.0).powi(power) / 99.0;
    odds / (1.0 + odds)
}

fn exact(at: f64) -> Point {
    point(at, 1e9 * share_at(at, 8), 1e9)
}

#[test]
fn the_crossing_lies_between_the_neighbours() {
    let all = [exact(3.6), exact(2.9), exact(1.0), exact(3.2)];
    assert!((crossing(&all, 0.01).unwrap() - 3.0).abs() < 1e-6);
    assert_eq!(crossing(&all[1..3], 0.01), None, "all are below");
    assert_eq!(crossing(&[], 0.01), None);
    // None are bad below, and all above.
    let step = [point(2.0, 0.0, 500.0), point(4.0, 500.0, 500.0)];
    let step = crossing(&step, 0.01).unwrap();
    assert!((2.0..3.0).contains(&step), "{step}");
}

#[test]
fn shares_that_fall_are_pooled() {
    let all = [
        point(1.0, 1.0, 1000.0),
        point(2.0, 30.0, 1000.0),
        point(2.1, 2.0, 9000.0),
        point(4.0, 300.0, 1000.0),
    ];
    let found = crossing(&all, 0.01).unwrap();
    assert!((2.1..3.0).contains(&found), "{found}");
}

#[test]
fn a_curve_that_is_known_is_found_by_near_loads_on_both_sides() {
    let all = [2.8, 2.9, 3.05, 3.1, 3.2].map(exact);
    let curve = fit(&all, 2.9, 0.01, [0.025; 2]).unwrap();
    assert!((curve.estimate - 3.0).abs() < 1e-4 && (curve.slope - 8.0).abs() < 1e-3);
    let [low, high] = [curve.low.unwrap(), curve.high.unwrap()];
    assert!(low < 3.0 && high > 3.0 && high / low < 1.001, "{curve:?}");
    assert!((curve.scatter, curve.loads) == (1.0, 5), "{curve:?}");
    let json = serde_json::to_string(&curve).unwrap();
    assert_eq!(serde_json::from_str::<Curve>(&json).unwrap(), curve);
    // Loads far away follow another curve, and take no part.
    let mut all = [2.8, 2.9, 3.05, 3.1, 3.2].map(exact).to_vec();
    all.push(point(1.0, 9e6, 1e9));
    all.push(point(6.0, 4e8, 1e9));
    let curve = fit(&all, 2.9, 0.01, [0.025; 2]).unwrap();
    assert!((curve.estimate - 3.0).abs() < 1e-4 && curve.loads == 5, "{curve:?}");
    assert_eq!(fit(&[2.9, 3.0, 3.1].map(exact), 3.0, 0.01, [0.025; 2]), None);
    assert_eq!(fit(&[2.6, 2.7, 2.8, 2.9].map(exact), 3.0, 0.01, [0.025; 2]), None);
}

/// The interval's width by the delta method. Close to the crossing, the logit's variance is the
/// variance of the counts there, 1 / (n p (1 - p)). The load's is the logit's divided by the square
/// of the slope.
#[test]
fn the_width_is_that_of_the_counts() {
    let all: Vec<Point> =
        [2.9, 2.97, 3.03, 3.1].map(|at| point(at, 20_000.0 * share_at(at, 30), 20_000.0)).to_vec();
    let curve = fit(&all, 3.0, 0.01, [0.025; 2]).unwrap();
    let half = (curve.high.unwrap() / curve.low.unwrap()).ln() / 2.0;
    // Student's quantile of twelve degrees of freedom is 2.179.
    let expected = 2.179 / 30.0 / (80_000.0_f64 * 0.01 * 0.99).sqrt();
    assert!((0.95..1.15).contains(&(half / expected)), "{half} {expected}");
    // Requests that are worth a tenth.
    let few: Vec<Point> =
        (all.iter()).map(|own| Point { effect: 10.0, tail_effect: 10.0, ..*own }).collect();
    let wide = fit(&few, 3.0, 0.01, [0.025; 2]).unwrap();
    let ratio = (wide.high.unwrap() / wide.low.unwrap()).ln() / 2.0 / half;
    let wanted = effects(&few, 0.01)[0].sqrt();
    assert!((15.0..21.0).contains(&wanted.powi(2)), "{wanted}");
    assert!((0.9..1.15).contains(&(ratio / wanted)), "{ratio} {wanted}");
}

/// Counts at six loads, fitted by statsmodels 0.15.0 as a binomial GLM of the logarithm of the
/// load. The values are the crossing of 1 %, and the ends of its profile likelihood interval at
/// Student's quantile of 204 degrees of freedom, 1.97166. Pearson's statistic is 1.16 with four
/// degrees of freedom, so nothing scatters beyond chance.
#[test]
fn statsmodels_finds_the_same() {
    let all = [
        point(2.8, 9.0, 3000.0),
        point(2.9, 25.0, 5000.0),
        point(2.97, 62.0, 8000.0),
        point(3.03, 103.0, 8000.0),
        point(3.1, 87.0, 5000.0),
        point(3.2, 95.0, 3000.0),
    ];
    let curve = fit(&all, 3.0, 0.01, [0.025; 2]).unwrap();
    let found = [Some(curve.estimate), curve.low, curve.high];
    for (found, wanted) in found.into_iter().zip([3.001_834, 2.981_097, 3.020_202]) {
        assert!((found.unwrap() / wanted - 1.0).abs() < 5e-4, "{curve:?}");
    }
    assert!((curve.slope / 18.467 - 1.0).abs() < 0.02 && curve.scatter == 1.0, "{curve:?}");
}

/// No request is bad up to 10, and half are from 10.5 on: no slope is too steep, and the interval
/// is the gap.
#[test]
fn a_jump_is_an_interval_too() {
    let all = [
        point(9.3, 0.0, 900.0),
        point(9.5, 0.0, 900.0),
        point(10.0, 0.0, 900.0),
        point(10.5, 450.0, 900.0),
        point(11.0, 450.0, 900.0),
    ];
    let curve = fit(&all, 10.2, 0.01, [0.025; 2]).unwrap();
    let [low, high] = [curve.low.unwrap(), curve.high.unwrap()];
    assert!((10.0..10.02).contains(&low) && (10.3..=10.5).contains(&high), "{curve:?}");
}

/// Of 400 draws at six loads, the interval holds the crossing in 92 to 98 of 100, and each end is
/// wrong as often.
#[test]
fn intervals_hold_the_crossing_as_often_as_they_say() {
    let mut random = Random::new(3);
    let (mut low, mut high) = (0, 0);
    for _ in 0..400 {
        let all: Vec<Point> = [2.8, 2.9, 2.97, 3.03, 3.1, 3.2]
            .map(|at| {
                let share = share_at(at, 20);
                let bad = (0..3000).filter(|_| random.uniform() < share).count();
                point(at, bad as f64, 3000.0)
            })
            .to_vec();
        let curve = fit(&all, 3.0, 0.01, [0.025; 2]).unwrap();
        low += u32::from(curve.low.is_some_and(|low| low > 3.0));
        high += u32::from(curve.high.is_some_and(|high| high < 3.0));
    }
    assert!((2..=20).contains(&low) && (2..=20).contains(&high), "{low} {high}");
}

/// Runs whose misses come in clusters of a hundred and are half as many as in the long run, each
/// with a control that knows. The control's share counts, and a tenth of the clusters' effect.
#[test]
fn a_control_takes_the_place_of_the_misses() {
    let unexplained = |left: f64| {
        let own = |place: i32| {
            let at = 3.0 * (0.02 * f64::from(place)).exp();
            let share = share_at(at, 8);
            let control = Control { share, unexplained: left, ..control(100.0) };
            let bad = share / 2.0 * 20_000.0;
            let control = Some(control).filter(|_| place != 5);
            Point { effect: 100.0, loads: 200.0, control, ..point(at, bad, 20_000.0) }
        };
        (-3..=5).map(own).collect::<Vec<Point>>()
    };
    let points = unexplained(0.1);
    let with = controlled(&points).unwrap();
    assert_eq!(with.len(), 8, "a load without a control takes no part");
    let effect = 0.1 * (1.0 + 99.0 * LOOKS) + 1.0;
    assert!((effects(&with, 0.01)[0] - effect).abs() < 1e-9);
    let found = fit(&with, 3.0, 0.01, [0.025; 2]).unwrap();
    assert!((found.estimate / 3.0 - 1.0).abs() < 0.002, "{found:?}");
    let plain: Vec<Point> = points.iter().map(|own| Point { control: None, ..*own }).collect();
    let wide = fit(&plain, 3.2, 0.01, [0.025; 2]).unwrap();
    assert!(wide.estimate > 3.2, "{wide:?}");
    assert_eq!(controlled(&unexplained(0.5)), None);
    assert_eq!(controlled(&plain), None);
}

/// A control whose long run has this design effect.
fn control(effect: f64) -> Control {
    Control { share: 0.0, unexplained: 0.05, effect, added: 1.0, uneven: 0.0, slope: 8.0 }
}

/// Short runs: the chance of lengths makes each run's load another one by one percent, and its
/// misses and their clusters with it. The controls' slopes are a third too large.
#[test]
fn controls_of_short_runs_hold_the_crossing_as_often_as_they_say() {
    let mut random = Random::new(5);
    let (mut low, mut high, mut widths) = (0, 0, 0.0);
    for _ in 0..400 {
        let all = [2.9, 2.95, 3.0, 3.02, 3.05, 3.08].map(|at| {
            let requests = 3000.0;
            let met = share_at(at * (0.01 * random.normal()).exp(), 20);
            let control = control(1.0 + 2e6 * met * met);
            let effect = 0.05 * control.effect + control.added;
            let by_chance = (met * (1.0 - met) * effect / requests).sqrt() * random.normal();
            let share = (met + by_chance).max(0.0);
            let control = Control { share, uneven: 0.3, slope: 27.0, ..control };
            Point { control: Some(control), ..point(at, share * requests, requests) }
        });
        let Some(curve) = fit(&all, 3.0, 0.01, [0.025; 2]) else { continue };
        low += u32::from(curve.low.is_some_and(|low| low > 3.0));
        high += u32::from(curve.high.is_some_and(|high| high < 3.0));
        widths += curve.high.unwrap_or(4.0) / curve.low.unwrap_or(2.0) - 1.0;
    }
    assert!((2..=20).contains(&low) && (2..=20).contains(&high), "{low} {high}");
    assert!(widths / 400.0 < 0.06, "{widths}");
}
