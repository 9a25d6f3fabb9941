//! Random numbers of the distributions that the model needs. The generator itself is `model::random`.

use model::random::SplitMix64;

use crate::Work;

/// A sequence of random numbers from a seed.
#[derive(Clone, Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// From a seed.
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
}

/// How long prompts or answers are, in tokens: lognormal, at least one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lengths {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, as a share of the mean.
    pub spread: f64,
}

impl Lengths {
    /// A length.
    pub fn draw(self, random: &mut Random) -> u32 {
        // The variance of the logarithm that gives this spread.
        let variance = (1.0 + self.spread * self.spread).ln();
        let drawn = (self.mean.ln() - variance / 2.0 + variance.sqrt() * random.normal()).exp();
        drawn.round().clamp(1.0, f64::from(u32::MAX)) as u32
    }

    /// The prompts and answers of a number of requests.
    pub fn work(prompts: Lengths, answers: Lengths, requests: usize, seed: u64) -> Vec<Work> {
        let mut random = Random::new(seed);
        let draw = |_| Work {
            prompt_tokens: prompts.draw(&mut random),
            output_tokens: answers.draw(&mut random),
        };
        (0..requests).map(draw).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_moments_of_their_distributions() {
        let mut random = Random::new(3);
        let many = 100_000;
        let lengths = Lengths {
            mean: 300.0,
            spread: 0.8,
        };
        let drawn: Vec<f64> = (0..many)
            .map(|_| f64::from(lengths.draw(&mut random)))
            .collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(many);
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(many);
        assert!((mean - 300.0).abs() < 4.0, "{mean}");
        assert!((variance.sqrt() / mean - 0.8).abs() < 0.03, "{variance}");
        let normal: Vec<f64> = (0..many).map(|_| random.normal()).collect();
        assert!((normal.iter().sum::<f64>() / f64::from(many)).abs() < 0.01);
        assert!((normal.iter().map(|x| x * x).sum::<f64>() / f64::from(many) - 1.0).abs() < 0.02);
    }
}
