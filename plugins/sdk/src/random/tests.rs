//! Every draw against what CPython and NumPy themselves gave; `goldens.json` says how it was made.

use serde::Deserialize;

use super::{NumpyGenerator, NumpyLegacy, Python};

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Goldens {
    python: Vec<PythonCase>,
    numpy_legacy: Vec<LegacyCase>,
    numpy_generator: Vec<GeneratorCase>,
}

#[derive(Deserialize)]
struct PythonCase {
    seed: u64,
    random: Vec<f64>,
    bits: Vec<(u32, u64)>,
    below: Vec<(u64, u64)>,
    shuffle: Vec<u32>,
    choice: Vec<u32>,
    sample: Vec<(usize, usize, Vec<usize>)>,
}

#[derive(Deserialize)]
struct LegacyCase {
    seed: u32,
    random: Vec<f64>,
    randint: Vec<(u64, u64, Vec<u64>)>,
    exponential: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct GeneratorCase {
    seed: u64,
    random: Vec<f64>,
    integers: Vec<(u64, u64, Vec<u64>)>,
    random_after: f64,
}

fn goldens() -> Goldens {
    serde_json::from_str(include_str!("goldens.json")).expect("the goldens are well formed")
}

#[test]
fn python_draws_as_cpython_does() {
    for golden in goldens().python {
        let seed = golden.seed;
        let mut generator = Python::new(seed);
        for expected in golden.random {
            assert_eq!(generator.random(), expected, "random() of seed {seed}");
        }
        let mut generator = Python::new(seed);
        for (bits, expected) in golden.bits {
            assert_eq!(generator.bits(bits), expected, "{bits} bits of seed {seed}");
        }
        let mut generator = Python::new(seed);
        for (bound, expected) in golden.below {
            assert_eq!(generator.below(bound), expected, "below {bound} of seed {seed}");
        }
        let mut generator = Python::new(seed);
        let mut items: Vec<u32> = (0..100).collect();
        generator.shuffle(&mut items);
        assert_eq!(items, golden.shuffle, "shuffle of seed {seed}");
        for expected in golden.choice {
            assert_eq!(generator.choice(&items), Some(&expected), "choice of seed {seed}");
        }
        let mut generator = Python::new(seed);
        for (items, count, expected) in golden.sample {
            assert_eq!(
                generator.sample(items, count),
                Some(expected),
                "{count} of {items} by seed {seed}"
            );
        }
        assert_eq!(generator.sample(3, 4), None);
    }
}

#[test]
fn an_empty_choice_draws_nothing() {
    let mut generator = Python::new(1);
    assert_eq!(generator.choice::<u8>(&[]), None);
    assert_eq!(generator.random(), Python::new(1).random());
}

#[test]
fn legacy_draws_as_numpy_does() {
    for golden in goldens().numpy_legacy {
        let seed = golden.seed;
        let mut generator = NumpyLegacy::new(seed);
        for expected in golden.random {
            assert_eq!(generator.random(), expected, "random_sample() of seed {seed}");
        }
        let mut generator = NumpyLegacy::new(seed);
        for (low, high, expected) in golden.randint {
            let drawn: Vec<u64> = expected.iter().map(|_| generator.randint(low, high)).collect();
            assert_eq!(drawn, expected, "randint({low}, {high}) of seed {seed}");
        }
        for (scale, expected) in golden.exponential {
            // Logarithms may differ in the last bit from platform to platform.
            let drawn = generator.exponential(scale);
            assert!(
                (drawn / expected - 1.0).abs() < 1e-15,
                "exponential({scale}) of seed {seed}: {drawn} is not {expected}"
            );
        }
    }
}

#[test]
fn generator_draws_as_numpy_does() {
    for golden in goldens().numpy_generator {
        let seed = golden.seed;
        let mut generator = NumpyGenerator::new(seed);
        for expected in golden.random {
            assert_eq!(generator.random(), expected, "random() of seed {seed}");
        }
        let mut generator = NumpyGenerator::new(seed);
        for (low, high, expected) in golden.integers {
            let drawn: Vec<u64> = expected.iter().map(|_| generator.integers(low, high)).collect();
            assert_eq!(drawn, expected, "integers({low}, {high}) of seed {seed}");
        }
        assert_eq!(
            generator.random(),
            golden.random_after,
            "random() after integers of seed {seed}"
        );
    }
}
