//! One of several things, drawn by weight.

use super::Stream;
use crate::Error;

/// Draws indices, each with its own probability, as `numpy.random.Generator.choice(n, p=…)` does:
/// one uniform number each, and the first index with which the cumulative probability exceeds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    cumulative: Vec<f64>,
}

/// The most things to choose among: each takes 8 bytes.
const MOST: usize = 1 << 22;

impl Choice {
    /// With probabilities in proportion to `weights`; `key` is their key in the configuration.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] that names the key, if there are no weights, more than 4,194,304 of
    /// them, one that is negative or not a number, or only zeros.
    pub fn weighted(key: &str, weights: impl IntoIterator<Item = f64>) -> Result<Self, Error> {
        let mut cumulative: Vec<f64> = Vec::new();
        let mut sum = 0.0;
        for weight in weights {
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(Error::InvalidConfig(format!(
                    "a weight of `{key}` is {weight}; expected 0 or more"
                )));
            }
            if cumulative.len() == MOST {
                return Err(Error::InvalidConfig(format!(
                    "`{key}` has more than {MOST} choices: set fewer"
                )));
            }
            sum += weight;
            cumulative.push(sum);
        }
        if !(sum.is_finite() && sum > 0.0) {
            return Err(Error::InvalidConfig(format!(
                "the weights of `{key}` sum up to {sum}; expected at least one above 0"
            )));
        }
        for each in &mut cumulative {
            *each /= sum;
        }
        Ok(Self { cumulative })
    }

    /// By Zipf's law: index `i` of `count` has a probability in proportion to
    /// `1 / (i + 1)^exponent`, so index 0 is the most frequent. An exponent of 0 gives all the
    /// same; `key` is the exponent's key in the configuration.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] that names the key, if the exponent is negative or not a number, or
    /// if there is nothing or too much to choose among.
    pub fn zipf(key: &str, count: u32, exponent: f64) -> Result<Self, Error> {
        if !(exponent.is_finite() && exponent >= 0.0) {
            return Err(Error::InvalidConfig(format!("`{key}` is {exponent}; expected 0 or more")));
        }
        let weights = (1..=count).map(|rank| 1.0 / f64::from(rank).powf(exponent));
        Self::weighted(key, weights)
    }

    /// The number of things to choose among.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cumulative.len()
    }

    /// An index, from one uniform number of the generator.
    pub fn draw(&self, random: &mut impl Stream) -> usize {
        let p = random.random();
        self.cumulative.partition_point(|share| *share <= p).min(self.cumulative.len() - 1)
    }
}
