use super::*;

/// Samples, then (percent, value) as `np.percentile` of NumPy 2.4 gives them.
type Case = (&'static [f64], &'static [(f64, f64)]);

const NUMPY: [Case; 4] = [
    (
        &[5.0],
        &[(0.0, 5.0), (50.0, 5.0), (99.0, 5.0), (100.0, 5.0)],
    ),
    (
        &[1.0, 2.0],
        &[
            (1.0, 1.01),
            (25.0, 1.25),
            (50.0, 1.5),
            (90.0, 1.9),
            (99.9, 1.999),
        ],
    ),
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
            assert_eq!(
                sorted.percentile(percent),
                value,
                "P{percent} of {samples:?}"
            );
        }
    }
}

#[test]
fn moments_are_numpys() {
    let four = Sorted::new(vec![3.0, 1.0, 2.0, 10.0]).unwrap();
    assert_eq!((four.count(), four.min(), four.max()), (4, 1.0, 10.0));
    assert_eq!(four.mean(), 4.0);
    assert_eq!(four.std(), 3.5355339059327378);
}

#[test]
fn no_samples_have_no_statistics() {
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
