//! Arrival models: when requests are due, as pure functions of model, rate and seed.
//!
//! Neither the server, nor the number of workers, nor the machine has a say in it.
//! Waiting for the due time is `pace`'s business.

use rand_mt::Mt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// How requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "model", deny_unknown_fields)]
pub enum Arrival {
    /// All at once.
    Inf,
    /// One every 1/rate seconds, the first at once.
    Constant {
        /// Requests a second.
        rate: f64,
    },
    /// Independent exponential gaps of mean 1/rate, the first request at once.
    Poisson {
        /// Requests a second.
        rate: f64,
    },
    /// So many users, each sending its next request when the last one is answered.
    Closed {
        /// How many users.
        concurrency: u32,
    },
}

/// When a request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At this instant of its phase.
    At(Nanos),
    /// As soon as one of the users is free.
    WhenFree,
}

impl Arrival {
    /// The due times of a phase, without end.
    ///
    /// Poisson gaps are NumPy's legacy stream: `np.random.seed(seed)`, then one
    /// `np.random.exponential(1 / rate)` after each request, as SGLang and LMDeploy draw them.
    pub fn due_times(self, seed: u64) -> Box<dyn Iterator<Item = Due> + Send> {
        match self {
            Arrival::Inf => Box::new(std::iter::repeat(Due::At(Nanos::ZERO))),
            Arrival::Closed { .. } => Box::new(std::iter::repeat(Due::WhenFree)),
            Arrival::Constant { rate } => {
                Box::new((0u64..).map(move |i| Due::At(Nanos::from_secs_f64(i as f64 / rate))))
            }
            Arrival::Poisson { rate } => {
                let mut stream = Mt::new(seed as u32);
                let mut at = 0.0;
                Box::new(std::iter::repeat_with(move || {
                    let due = Due::At(Nanos::from_secs_f64(at));
                    at += -(1.0 - double(&mut stream)).ln() / rate;
                    due
                }))
            }
        }
    }

    /// Requests a second, where the model has such a thing; infinite for [`Arrival::Inf`].
    pub fn rate(self) -> Option<f64> {
        match self {
            Arrival::Inf => Some(f64::INFINITY),
            Arrival::Constant { rate } | Arrival::Poisson { rate } => Some(rate),
            Arrival::Closed { .. } => None,
        }
    }

    /// Whether due times are known beforehand, whatever the server does.
    pub fn is_open(self) -> bool {
        !matches!(self, Arrival::Closed { .. })
    }
}

impl std::fmt::Display for Arrival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Arrival::Inf => f.write_str("all at once"),
            Arrival::Constant { rate } => write!(f, "constant, {rate}/s"),
            Arrival::Poisson { rate } => write!(f, "Poisson, {rate}/s"),
            Arrival::Closed { concurrency } => write!(f, "closed loop of {concurrency}"),
        }
    }
}

/// A double in [0, 1) of 53 bits from two words, as CPython and NumPy make it.
fn double(stream: &mut Mt) -> f64 {
    let high = f64::from(stream.next_u32() >> 5);
    let low = f64::from(stream.next_u32() >> 6);
    (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(arrival: Arrival, seed: u64, n: usize) -> Vec<u64> {
        arrival
            .due_times(seed)
            .take(n)
            .map(|due| match due {
                Due::At(at) => at.0,
                Due::WhenFree => panic!("an open loop has due times"),
            })
            .collect()
    }

    #[test]
    fn constant_arrivals_do_not_drift() {
        let due = first(Arrival::Constant { rate: 3.0 }, 0, 3_000_001);
        assert_eq!(due[1], 333_333_333);
        assert_eq!(due[3], 1_000_000_000);
        assert_eq!(due[3_000_000], 1_000_000_000_000_000);
    }

    /// `np.random.seed(1); np.cumsum(np.random.exponential(1 / 10, 3))`.
    #[test]
    fn poisson_arrivals_are_numpys() {
        let due = first(Arrival::Poisson { rate: 10.0 }, 1, 4);
        assert_eq!(due[0], 0);
        let seconds: Vec<f64> = due[1..].iter().map(|at| *at as f64 / 1e9).collect();
        for (got, wanted) in seconds
            .iter()
            .zip([0.053_960_584, 0.181_373_109, 0.181_384_547])
        {
            assert!((got - wanted).abs() < 1e-9, "{got} {wanted}");
        }
    }

    #[test]
    fn due_times_depend_on_the_seed_alone() {
        let arrival = Arrival::Poisson { rate: 100.0 };
        assert_eq!(first(arrival, 7, 1000), first(arrival, 7, 1000));
        assert_ne!(first(arrival, 7, 1000), first(arrival, 8, 1000));
    }
}
