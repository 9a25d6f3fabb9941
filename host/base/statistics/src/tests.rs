use proptest::prelude::*;

use super::histogram::ERROR;
use super::spread::KEPT;
use super::*;

/// Samples, then (percent, value) as `np.percentile` of NumPy 2.4 gives them.
type Case = (&'static [f64], &'static [(f64, f64)]);

const NUMPY: [Case; 4] = [
    (&[5.0], &[(0.0, 5.0), (50.0, 5.0), (99.0, 5.0), (100.0, 5.0)]),
    (&[1.0, 2.0], &[(1.0, 1.01), (25.0, 1.25), (50.0, 1.5), (90.0, 1.9), (99.9, 1.999)]),
    (
        &[3.0, 1.0, 2.0, 10.0],
        &[
            (0.0, 1.0),
            (1.0, 1.03),
            (25.0, 1.75),
            (50.0, 2.5),
            (90.0, 7.900000000000001),
            (95.0, 8.949999999999998),
            (99.0, 9.79),
            (99.9, 9.979000000000003),
            (100.0, 10.0),
        ],
    ),
    (
        &[12.25, 7.5, 7.5, 100.125, 0.3, 42.0, 9.75],
        &[
            (1.0, 0.732),
            (25.0, 7.5),
            (50.0, 9.75),
            (90.0, 65.25000000000003),
            (95.0, 82.68749999999996),
            (99.0, 96.63749999999997),
            (99.9, 99.77625000000003),
        ],
    ),
];

#[test]
fn percentiles_are_numpys_to_the_last_bit() {
    for (samples, expected) in NUMPY {
        let sorted = Sorted::new(samples.to_vec()).unwrap();
        for &(percent, value) in expected {
            assert_eq!(sorted.percentile(percent), value, "P{percent} of {samples:?}");
        }
    }
}

#[test]
fn moments_are_numpys_and_no_samples_have_none() {
    let four = Sorted::new(vec![3.0, 1.0, 2.0, 10.0]).unwrap();
    assert_eq!((four.count(), four.min(), four.max()), (4, 1.0, 10.0));
    assert_eq!(four.mean(), 4.0);
    assert_eq!(four.std(), 3.5355339059327378);
    assert_eq!(Sorted::new(Vec::new()), None);
}

#[test]
fn order_does_not_matter_to_the_last_bit() {
    let rising: Vec<f64> = (1..2000).map(|i| 0.1 * f64::from(i)).collect();
    let falling: Vec<f64> = rising.iter().rev().copied().collect();
    let (a, b) = (Sorted::new(rising).unwrap(), Sorted::new(falling).unwrap());
    assert_eq!(a.mean().to_bits(), b.mean().to_bits());
    assert_eq!(a.std().to_bits(), b.std().to_bits());
}

fn figures(samples: impl IntoIterator<Item = f64>, scale: f64) -> Figures {
    let mut spread = Spread::new(scale);
    samples.into_iter().for_each(|sample| spread.add(sample));
    spread.figures().unwrap()
}

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|value| histogram.add(*value, 1));
    histogram
}

#[test]
fn samples_are_kept_up_to_a_number_and_counted_beyond() {
    let ramp = |n: usize| (0..n).map(|i| i as f64 / 1e6);
    let kept = figures(ramp(KEPT), 1e6);
    assert_eq!(kept.error(), None);
    let sorted = Sorted::new(ramp(KEPT).collect()).unwrap();
    assert_eq!(kept.percentile(99.9), sorted.percentile(99.9));
    let counted = figures(ramp(KEPT + 1), 1e6);
    assert_eq!(counted.error(), Some(ERROR));
    assert_eq!((counted.min(), counted.max()), (0.0, 0.1));
    assert_eq!((counted.count(), counted.mean()), (100_001, 0.05));
    let exact = 0.0999;
    assert!((counted.percentile(99.9) / exact - 1.0).abs() <= ERROR);
}

#[test]
fn counts_have_no_end_and_know_a_value_that_does_not_vary() {
    let mut equal = Histogram::default();
    equal.add(20_000_003, 128_000_000);
    let figures = equal.counted(1e6).unwrap();
    assert_eq!((figures.mean, figures.std), (20.000003, 0.0));
    for percent in [0.0, 50.0, 99.9] {
        assert_eq!(figures.percentile(percent), 20.000003);
    }
    let values = [0, 1, u64::MAX, u64::MAX, 1 << 40];
    let figures = histogram(&values).counted(1.0).unwrap();
    assert_eq!((figures.count(), figures.min), (5, 0.0));
    assert!(figures.percentile(100.0) > 4e18);
    assert!(Histogram::default().counted(1.0).is_none());
}

proptest! {
    /// A percentile of counts is within its bound of NumPy's; all else is exact.
    #[test]
    fn counts_are_within_their_bound_of_the_samples(
        values in prop::collection::vec(prop_oneof![0u64..5000, 0u64..10_000_000_000], 1..200),
        percent in 0.0f64..=100.0,
    ) {
        let counted = histogram(&values).counted(1.0).unwrap();
        let sorted = Sorted::new(values.iter().map(|value| *value as f64).collect()).unwrap();
        for percent in [percent, 0.0, 50.0, 99.0, 99.9, 100.0] {
            let (got, exact) = (counted.percentile(percent), sorted.percentile(percent));
            prop_assert!((got - exact).abs() <= ERROR * exact + 1e-9, "P{}: {} for {}", percent, got, exact);
        }
        prop_assert_eq!((counted.min, counted.max), (sorted.min(), sorted.max()));
        prop_assert!((counted.mean - sorted.mean()).abs() <= 1e-12 * sorted.mean());
        prop_assert!((counted.std - sorted.std()).abs() <= 1e-9 * sorted.mean());
    }

    /// Parts merged are the whole, to the last bit, in whatever order.
    #[test]
    fn parts_merged_are_the_whole(
        values in prop::collection::vec(0u64..1_000_000_000_000, 1..200),
        cut in 0usize..200,
    ) {
        let (left, right) = values.split_at(cut.min(values.len()));
        let whole = histogram(&values).counted(1e6);
        let mut merged = histogram(right);
        merged.merge(&histogram(left));
        prop_assert_eq!(&merged.counted(1e6), &whole);

        let part = |values: &[u64], counting: bool| {
            let mut spread = if counting { Spread::counting(1.0) } else { Spread::new(1.0) };
            values.iter().for_each(|value| spread.add(*value as f64));
            spread
        };
        for counting in [false, true] {
            let mut merged = part(left, counting);
            merged.merge(part(right, counting));
            prop_assert_eq!(merged.figures(), part(&values, counting).figures());
        }
    }
}

#[test]
fn parts_that_are_too_many_together_are_counted() {
    let half = |from: usize| {
        let mut spread = Spread::new(1.0);
        (0..60_000).for_each(|i| spread.add((from + i) as f64));
        spread
    };
    let mut merged = half(60_000);
    merged.merge(half(0));
    let whole = figures((0..120_000).map(f64::from), 1.0);
    assert_eq!(whole.error(), Some(ERROR));
    assert_eq!(merged.figures(), Some(whole));
}
