//! Distributions against Python's own numbers, and the messages to users.

use serde::Deserialize;

use super::{Choice, Distribution, normal};
use crate::random::{NumpyGenerator, Python};
use crate::{Error, parse};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    length: Distribution,
}

fn distribution(json: &str) -> Distribution {
    parse::<Config>(&format!(r#"{{"length": {json}}}"#))
        .unwrap_or_else(|error| panic!("{json}: {error:?}"))
        .length
}

fn complaint(json: &str) -> String {
    match parse::<Config>(&format!(r#"{{"length": {json}}}"#)) {
        Err(Error::InvalidConfig(message)) => message,
        other => panic!("{json}: expected invalid configuration, got {other:?}"),
    }
}

/// The lines `INPUT => EXPECTED` of a table of cases.
fn cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.trim().lines().map(|case| case.trim().split_once(" => ").expect("a case"))
}

fn lengths(json: &str) -> Vec<u32> {
    let lengths = distribution(json)
        .lengths("length", 1..=100_000)
        .unwrap_or_else(|error| panic!("{json}: {error:?}"));
    let mut random = Python::new(42);
    (0..8).map(|_| lengths.draw(&mut random)).collect()
}

#[test]
fn normal_quantiles_equal_pythons() {
    // statistics.NormalDist().inv_cdf(p)
    for (p, expected) in [
        (0.5, 0.0),
        (0.1, -1.281_551_565_544_600_8),
        (0.9, 1.281_551_565_544_600_8),
        (0.925, 1.439_531_470_938_456),
        (0.075_000_1, -1.439_530_764_501_729_7),
        (0.999, 3.090_232_306_167_813),
        (1e-9, -5.997_807_015_007_686_5),
        (1e-14, -7.650_628_092_935_268),
        (0.0, -8.292_361_075_813_595),
    ] {
        let quantile = normal::quantile(p);
        assert!(
            (quantile - expected).abs() <= 1e-14 * expected.abs(),
            "{p}: {quantile} is not {expected}"
        );
    }
}

/// In Python: `random.seed(42)`, then `p = random.random()` and the formula for each length.
#[test]
fn lengths_follow_the_documented_formulas() {
    assert_eq!(lengths("512"), [512; 8]);
    assert_eq!(lengths(r#"{"distribution": "constant", "value": 7}"#), [7; 8]);
    assert_eq!(
        lengths(r#"{"distribution": "uniform", "min": 100, "max": 200}"#),
        [164, 102, 127, 122, 174, 168, 190, 108]
    );
    assert_eq!(
        lengths(r#"{"distribution": "normal", "mean": 512, "deviation": 80}"#),
        [541, 355, 464, 451, 563, 549, 611, 403]
    );
    assert_eq!(
        lengths(r#"{"distribution": "normal", "mean": 512, "sd": 80, "min": 450.5, "max": 549}"#),
        [541, 451, 464, 451, 549, 549, 549, 451]
    );
    assert_eq!(
        lengths(r#"{"distribution": "lognormal", "median": 512, "sigma": 0.8}"#),
        [681, 107, 317, 278, 849, 739, 1379, 173]
    );
    // The numbers below 0.25 are in the first bin; 0.275… is the first tenth of the second.
    let bins = r#"[{"value": 5, "weight": 1}, {"min": 10, "max": 19, "weight": 0.5}, {"value": 1, "weight": 0},
                   {"value": 30, "weight": 2.5}]"#;
    assert_eq!(
        lengths(&format!(r#"{{"distribution": "histogram", "bins": {bins}}}"#)),
        [30, 5, 12, 5, 30, 30, 30, 5]
    );
}

#[test]
fn both_ends_of_a_range_are_as_likely_as_the_rest() {
    let lengths = distribution(r#"{"distribution": "uniform", "min": 1, "max": 4}"#)
        .lengths("length", 1..=4)
        .expect("lengths");
    let quartered: Vec<u32> = (0..16).map(|at| lengths.quantile(f64::from(at) / 16.0)).collect();
    assert_eq!(quartered, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4]);
}

#[test]
fn a_lognormal_has_its_mean_and_deviation() {
    for json in [
        r#"{"distribution": "lognormal", "mean": 800, "deviation": 600}"#,
        // With this median and deviation the mean is 640 and e^(sigma²) is 1.5625, as above.
        r#"{"distribution": "lognormal", "median": 640, "deviation": 600}"#,
    ] {
        let distribution = distribution(json);
        let count = 200_000;
        let numbers =
            (0..count).map(|at| distribution.quantile((f64::from(at) + 0.5) / f64::from(count)));
        let (sum, squares) = numbers
            .fold((0.0, 0.0), |(sum, squares), number| (sum + number, squares + number * number));
        let mean = sum / f64::from(count);
        let deviation = (squares / f64::from(count) - mean * mean).sqrt();
        assert!((mean - 800.0).abs() < 0.5, "{json}: mean {mean}");
        assert!((deviation - 600.0).abs() < 3.0, "{json}: deviation {deviation}");
        assert!((distribution.quantile(0.5) - 640.0).abs() < 1e-9, "{json}");
    }
}

#[test]
fn every_draw_takes_one_number() {
    for json in [
        "3",
        r#"{"distribution": "uniform", "min": 1, "max": 1}"#,
        r#"{"distribution": "normal", "mean": 5, "deviation": 0}"#,
        r#"{"distribution": "lognormal", "mean": 5, "sigma": 3}"#,
        r#"{"distribution": "histogram", "bins": [{"value": 1, "weight": 1}]}"#,
    ] {
        let mut random = Python::new(3);
        let mut reference = Python::new(3);
        distribution(json).draw(&mut random);
        reference.random();
        assert_eq!(random.random(), reference.random(), "{json}");
    }
}

#[test]
fn lengths_outside_the_range_of_a_key_are_refused_or_limited() {
    for (json, expected) in cases(
        r#"
        0 => `length` is 0; expected at least 1
        -3 => `length` is -3; expected at least 1
        101 => `length` is 101; expected at most 100
        9.5 => `length` is 9.5; expected a whole number
        {"distribution": "uniform", "min": 0, "max": 9} => `min` of `length` is 0; expected at least 1
        {"distribution": "uniform", "min": 1, "max": 9.5} => `max` of `length` is 9.5; expected a whole number
        {"distribution": "normal", "mean": 9, "deviation": 1, "max": 500} => `max` of `length` is 500; expected at most 100
        {"distribution": "histogram", "bins": [{"value": 200, "weight": 1}]} => a number in the `bins` of `length` is 200; expected at most 100
        "#,
    ) {
        match distribution(json).lengths("length", 1..=100) {
            Err(Error::InvalidConfig(message)) => assert_eq!(message, expected, "{json}"),
            other => panic!("{json}: expected invalid configuration, got {other:?}"),
        }
    }
    let wide = distribution(r#"{"distribution": "normal", "mean": 50, "deviation": 1e9}"#);
    let wide = wide.lengths("length", 1..=100).expect("lengths");
    assert_eq!((wide.quantile(0.1), wide.quantile(0.9)), (1, 100));
}

#[test]
fn a_wrong_table_names_its_key_and_the_expected_value() {
    for (json, expected) in cases(
        r#"
        "long" => key `length`: invalid type: string "long", expected a number, or a table like { distribution = "uniform", min = 100, max = 200 }
        {"distribution": "even", "min": 1} => key `length.distribution`: unknown variant `even`, expected one of `constant`, `uniform`, `normal`, `lognormal`, `histogram`
        {"min": 1} => key `length`: missing field `distribution`
        {"distribution": "uniform", "low": 1} => key `length.low`: unknown field `low`
        {"distribution": "uniform", "min": 1, "max": 3, "mean": 2} => key `length`: a uniform distribution does not accept `mean`; expected `min` and `max`
        {"distribution": "uniform", "min": 1} => key `length`: a uniform distribution needs `max`, a number
        {"distribution": "uniform", "min": 5, "max": 3} => key `length`: `min` is 5 and `max` is 3; expected a `min` of at most `max`
        {"distribution": "normal", "mean": 5, "deviation": -1} => key `length`: `deviation` is -1; expected 0 or more
        {"distribution": "normal", "mean": "5", "deviation": 1} => key `length.mean`: invalid type: string "5", expected f64
        {"distribution": "lognormal", "sigma": 1} => key `length`: a lognormal distribution needs `median` or `mean`, a number
        {"distribution": "lognormal", "mean": 1, "sigma": 1, "deviation": 2} => key `length`: a lognormal distribution takes `sigma` or `deviation`, not both
        {"distribution": "lognormal", "median": 0, "sigma": 1} => key `length`: `median` is 0; expected more than 0
        {"distribution": "histogram"} => key `length`: a histogram distribution needs `bins` like
        {"distribution": "histogram", "bins": [{"value": 1, "weight": 1}, {"value": 1, "min": 2, "weight": 1}]} => key `length`: bin 2 of the histogram: expected `value`, or `min` and `max`
        {"distribution": "histogram", "bins": [{"value": 1, "weight": 0}]} => key `length`: the weights of the histogram sum up to 0; expected at least one above 0
        "#,
    ) {
        let message = complaint(json);
        assert!(message.starts_with(expected), "{json}\ngave: {message}\nnot:  {expected}");
    }
}

#[test]
fn a_distribution_written_down_reads_as_the_same() {
    assert_eq!(serde_json::to_string(&distribution("1024")).expect("JSON"), "1024");
    for json in [
        "0.5",
        "1e300",
        r#"{"distribution": "uniform", "min": 1, "max": 3}"#,
        r#"{"distribution": "normal", "mean": 5, "deviation": 2, "max": 9}"#,
        r#"{"distribution": "lognormal", "median": 1, "sigma": 3}"#,
        r#"{"distribution": "histogram", "bins": [{"value": 1, "weight": 1}, {"min": 3, "max": 9, "weight": 1}]}"#,
    ] {
        let whole = distribution(json);
        let written = serde_json::to_string(&whole).expect("JSON");
        assert_eq!(distribution(&written), whole, "{written}");
    }
}

#[test]
fn the_schema_takes_a_number_or_a_table() {
    let schema: serde_json::Value =
        serde_json::from_str(&crate::schema::<Distribution>()).expect("a schema");
    assert_eq!(schema["anyOf"][0]["type"], "number");
    let kinds = schema["$defs"]["DistributionTable"]["properties"]["distribution"].to_string();
    assert!(kinds.contains("Kind"), "{schema}");
}

/// `numpy.random.default_rng(42).choice(n, size=10, p=p)`, with `p` of Zipf's formula.
#[test]
fn choices_equal_numpys() {
    let drawn = |choice: &Choice| -> Vec<usize> {
        let mut random = NumpyGenerator::new(42);
        (0..10).map(|_| choice.draw(&mut random)).collect()
    };
    let zipf = Choice::zipf("zipf", 8, 1.2).expect("a choice");
    assert_eq!(drawn(&zipf), [3, 1, 4, 2, 0, 7, 3, 3, 0, 1]);
    let weighted = Choice::weighted("weight", [1.0, 0.0, 3.0, 4.0]).expect("a choice");
    assert_eq!(drawn(&weighted), [3, 2, 3, 3, 0, 3, 3, 3, 2, 2]);
}

#[test]
fn weights_that_make_no_choice_are_refused() {
    for (weights, expected) in [
        (vec![], "the weights of `weight` sum up to 0; expected at least one above 0"),
        (vec![0.0], "the weights of `weight` sum up to 0; expected at least one above 0"),
        (vec![1.0, -1.0], "a weight of `weight` is -1; expected 0 or more"),
        (vec![f64::NAN], "a weight of `weight` is NaN; expected 0 or more"),
    ] {
        let error = Choice::weighted("weight", weights.clone()).unwrap_err();
        assert_eq!(error, Error::InvalidConfig(expected.to_owned()), "{weights:?}");
    }
    let error = Choice::zipf("zipf", 3, -0.5).unwrap_err();
    assert_eq!(error, Error::config("`zipf` is -0.5; expected 0 or more"));
}
