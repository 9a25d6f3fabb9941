//! A continuous-batching engine in virtual time, from a seed.
//!
//! Many runs with a known truth can be drawn from it. They show the coverage of intervals, the rate
//! of false findings and the accuracy of comparisons. The mock engine plays the same model over
//! real sockets.
//!
//! This crate owns the engine's model, the loads it is put under, and the exchanges that a client
//! would record of them. It leaves every figure of these exchanges to `result`, and sockets and
//! clocks to `mock`.

#![forbid(unsafe_code)]

mod case;
mod engine;
mod exchanges;
mod load;
pub mod parameters;
mod workload;

use model::random::SplitMix64;

pub use case::{Case, Draw, Effects, Load, label};
pub use engine::{Engine, Work};
pub use exchanges::{delay, exchanges};
pub use load::{
    ServedRequest, all_at_once, capacity, closed, gamma, open, open_ends, open_slowing, poisson,
};
pub use parameters::Parameters;
pub use workload::{
    BIMODAL, CHAT, FIXED, Lengths, REASONING, SHAREGPT, TEMPLATES, THOUSAND, Workload,
};

#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(SplitMix64::new(model::random::mix(seed)))
    }

    /// Uniform over (0, 1].
    pub fn uniform(&mut self) -> f64 {
        ((self.0.draw() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Gamma with a mean of 1 and a shape of at least 0.01, so with a coefficient of variation of 1
    /// / √shape. Marsaglia and Tsang 2000, "A simple method for generating gamma variables".
    pub fn gamma(&mut self, shape: f64) -> f64 {
        let shape = shape.max(0.01);
        // Below a shape of 1, a number of a shape that is larger by 1 is scaled.
        let (larger, scale) = if shape < 1.0 {
            (shape + 1.0, self.uniform().powf(1.0 / shape))
        } else {
            (shape, 1.0)
        };
        let d = larger - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let normal = self.normal();
            let cube = (1.0 + c * normal).powi(3);
            let accepted = || 0.5 * normal * normal + d - d * cube + d * cube.ln();
            if cube > 0.0 && self.uniform().ln() < accepted() {
                return d * cube * scale / shape;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_moments_of_their_distributions() {
        let mut random = Random::new(3);
        let many = 100_000;
        for shape in [0.25, 0.5, 1.0, 4.0] {
            let gamma: Vec<f64> = (0..many).map(|_| random.gamma(shape)).collect();
            let mean = gamma.iter().sum::<f64>() / f64::from(many);
            let squares = gamma.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let cubes = gamma.iter().map(|x| (x - mean).powi(3)).sum::<f64>();
            let deviation = (squares / f64::from(many)).sqrt();
            let skewness = cubes / f64::from(many) / deviation.powi(3);
            assert!((mean - 1.0).abs() < 0.03, "{shape}: {mean}");
            assert!((deviation * shape.sqrt() - 1.0).abs() < 0.04, "{shape}: {deviation}");
            // A gamma distribution's skewness is 2 / √shape.
            assert!((skewness * shape.sqrt() / 2.0 - 1.0).abs() < 0.15, "{shape}: {skewness}");
        }
        let normal: Vec<f64> = (0..many).map(|_| random.normal()).collect();
        assert!((normal.iter().sum::<f64>() / f64::from(many)).abs() < 0.01);
        assert!((normal.iter().map(|x| x * x).sum::<f64>() / f64::from(many) - 1.0).abs() < 0.02);
    }
}
