//! Distributions of lengths and other numbers, read from a configuration and drawn from a plugin's
//! own generator.
//!
//! A key of type [`Distribution`] takes a number, or a table that names a distribution:
//!
//! | table | numbers |
//! | --- | --- |
//! | `{ distribution = "constant", value = 512 }` | always 512, as the number 512 itself |
//! | `{ distribution = "uniform", min = 100, max = 200 }` | all from 100 to 200 alike |
//! | `{ distribution = "normal", mean = 512, deviation = 80, min = 1, max = 2048 }` | normal |
//! | `{ distribution = "lognormal", median = 512, sigma = 0.8, max = 8192 }` | log-normal |
//! | `{ distribution = "histogram", bins = [BIN, ...] }` | a bin by weight, uniform within |
//!
//! A bin is `{ value = 128, weight = 3 }` or `{ min = 200, max = 299, weight = 1 }`.
//!
//! Each number is the distribution's quantile at one uniform number `p` from `[0, 1)`, so every
//! draw takes exactly one [`random`](Stream::random) from the generator, whatever the distribution.
//! The quantiles:
//!
//! * constant: `value`.
//! * uniform: `min + p · (max − min)`; as a length `min + ⌊p · (max − min + 1)⌋`, so that both ends
//!   are as likely as the rest.
//! * normal: `mean + deviation · z(p)`. `z` is the standard normal quantile by Wichura's algorithm
//!   AS 241 (Applied Statistics 37, 1988, <https://doi.org/10.2307/2347330>), as in Python's
//!   `statistics.NormalDist.inv_cdf`; `p` = 0 counts as 2⁻⁵⁴.
//! * lognormal: `exp(µ + sigma · z(p))`. `µ` is `ln(median)`, or `ln(mean) − sigma² / 2`. In place
//!   of `sigma`, the standard deviation of the logarithm, `deviation` gives the numbers' own: with
//!   a `mean`, `sigma² = ln(1 + (deviation / mean)²)`; with a `median`, `sigma² = ln((1 + √(1 + 4
//!   (deviation / median)²)) / 2)`.
//! * histogram: the first bin with which the cumulative share of the weights exceeds `p`; the
//!   excess of `p` over the earlier bins, as a share of this bin's weight, is the place in it, as
//!   in a uniform distribution.
//!
//! A number below `min` or above `max` becomes that bound; it is not drawn again. Lengths are
//! rounded to the nearest whole number, halves upwards.
//!
//! [`Choice`] draws one of several things, by weights or by Zipf's law.

mod normal;
mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::random::{NumpyGenerator, NumpyLegacy, Python};
use table::Table;

/// The most tokens of a prompt or an answer, and of all made-up texts of a request or a session:
/// more than any model takes, and still within a plugin's memory.
pub const MOST_TOKENS: u32 = 4 << 20;

/// Checks that the texts of a request, as many as `counts` says and each as long as `lengths` says,
/// have no more than [`MOST_TOKENS`] together. It uses numbers of both that one draw in a thousand
/// exceeds; the caller checks the draws beyond them.
///
/// # Errors
/// [`Error::InvalidConfig`] that names both keys.
pub fn check_product(
    (counts_key, counts): (&str, &Lengths),
    (lengths_key, lengths): (&str, &Lengths),
) -> Result<(), Error> {
    let (count, length) = (counts.quantile(0.999), lengths.quantile(0.999));
    if u64::from(count) * u64::from(length) <= MOST_TOKENS.into() {
        return Ok(());
    }
    Err(Error::InvalidConfig(format!(
        "`{counts_key}` and `{lengths_key}` give up to {count} × {length} tokens; expected at most {MOST_TOKENS} together: \
         set smaller numbers, or a `max` for a distribution"
    )))
}

/// A generator from which distributions draw.
pub trait Stream {
    /// A double, uniform in `[0, 1)`.
    fn random(&mut self) -> f64;
}

impl Stream for Python {
    fn random(&mut self) -> f64 {
        Python::random(self)
    }
}

impl Stream for NumpyLegacy {
    fn random(&mut self) -> f64 {
        NumpyLegacy::random(self)
    }
}

impl Stream for NumpyGenerator {
    fn random(&mut self) -> f64 {
        NumpyGenerator::random(self)
    }
}

/// A distribution of numbers, for a key of a configuration. The module says which there are, and
/// their formulas.
///
/// ```
/// use runner_plugin::{lengths::Distribution, random::NumpyGenerator, serde_json};
/// let distribution: Distribution = serde_json::from_str(
///     r#"{"distribution": "lognormal", "median": 512, "sigma": 0.8, "max": 8192}"#,
/// )?;
/// let lengths = distribution.lengths("input-len", 1..=1 << 20).expect("lengths in range");
/// let mut random = NumpyGenerator::new(42);
/// assert_eq!([lengths.draw(&mut random), lengths.draw(&mut random)], [934, 453]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(Shape);

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Constant(f64),
    Uniform(Span),
    Normal {
        mean: f64,
        deviation: f64,
        bounds: Bounds,
    },
    Lognormal {
        mu: f64,
        sigma: f64,
        bounds: Bounds,
    },
    /// Bins with their cumulative shares of the weights.
    Histogram(Vec<(Span, f64)>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    min: f64,
    max: f64,
}

impl Span {
    fn real(self, p: f64) -> f64 {
        self.min + p * (self.max - self.min)
    }

    fn whole(self, p: f64) -> f64 {
        (self.min + (p * (self.max - self.min + 1.0)).floor()).min(self.max)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    min: Option<f64>,
    max: Option<f64>,
}

impl Bounds {
    fn limit(self, number: f64) -> f64 {
        let number = self.min.map_or(number, |min| number.max(min));
        self.max.map_or(number, |max| number.min(max))
    }
}

impl Distribution {
    /// Always the same number.
    #[must_use]
    pub fn constant(value: f64) -> Self {
        Self(Shape::Constant(value))
    }

    /// The number if it is always the same.
    #[must_use]
    pub fn as_constant(&self) -> Option<f64> {
        match self.0 {
            Shape::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The number below which a share `p` of all numbers is; `p` is from `[0, 1)`.
    #[must_use]
    pub fn quantile(&self, p: f64) -> f64 {
        self.at(p, Span::real)
    }

    /// A number, from one uniform number of the generator.
    pub fn draw(&self, random: &mut impl Stream) -> f64 {
        self.quantile(random.random())
    }

    fn at(&self, p: f64, within: fn(Span, f64) -> f64) -> f64 {
        match &self.0 {
            Shape::Constant(value) => *value,
            Shape::Uniform(span) => within(*span, p),
            Shape::Normal { mean, deviation, bounds } => {
                bounds.limit(mean + deviation * normal::quantile(p))
            }
            Shape::Lognormal { mu, sigma, bounds } => {
                bounds.limit((mu + sigma * normal::quantile(p)).exp())
            }
            Shape::Histogram(bins) => {
                let at = bins.partition_point(|(_, share)| *share <= p).min(bins.len() - 1);
                let before = at.checked_sub(1).map_or(0.0, |before| bins[before].1);
                let (span, share) = bins[at];
                within(span, ((p - before) / (share - before)).clamp(0.0, 1.0))
            }
        }
    }

    /// The distribution as one of lengths within `range`; `key` is its key in the configuration. A
    /// distribution without a bound of its own gets the range's.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] that names the key, if a number of the configuration is outside the
    /// range, or if a constant, or an end of a uniform distribution or of a bin, is not a whole
    /// number.
    pub fn lengths(&self, key: &str, range: RangeInclusive<u32>) -> Result<Lengths, Error> {
        let (least, most) = (f64::from(*range.start()), f64::from(*range.end()));
        let called = |name: &str| match name {
            "" => format!("`{key}`"),
            "bins" => format!("a number in the `bins` of `{key}`"),
            name => format!("`{name}` of `{key}`"),
        };
        let inside = |name: &str, number: f64| {
            let expected = if number < least {
                format!("at least {least}")
            } else if number > most {
                format!("at most {most}")
            } else {
                return Ok(());
            };
            Err(Error::InvalidConfig(format!("{} is {number}; expected {expected}", called(name))))
        };
        let whole = |name: &str, number: f64| {
            if number.fract() == 0.0 {
                return inside(name, number);
            }
            Err(Error::InvalidConfig(format!(
                "{} is {number}; expected a whole number",
                called(name)
            )))
        };
        match &self.0 {
            Shape::Constant(value) => whole("", *value)?,
            Shape::Uniform(span) => {
                whole("min", span.min)?;
                whole("max", span.max)?;
            }
            Shape::Normal { bounds, .. } | Shape::Lognormal { bounds, .. } => {
                for (name, bound) in [("min", bounds.min), ("max", bounds.max)] {
                    bound.map_or(Ok(()), |bound| inside(name, bound))?;
                }
            }
            Shape::Histogram(bins) => {
                for (span, _) in bins {
                    whole("bins", span.min)?;
                    whole("bins", span.max)?;
                }
            }
        }
        Ok(Lengths { distribution: self.clone(), least: *range.start(), most: *range.end() })
    }
}

/// A distribution of whole numbers within a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Lengths {
    distribution: Distribution,
    least: u32,
    most: u32,
}

impl Lengths {
    /// Always the same length.
    #[must_use]
    pub fn constant(length: u32) -> Self {
        Self { distribution: Distribution::constant(length.into()), least: length, most: length }
    }

    /// The length below which a share `p` of all lengths is; `p` is from `[0, 1)`.
    #[must_use]
    pub fn quantile(&self, p: f64) -> u32 {
        // A cast from a double is limited to the numbers of the type.
        let length = (self.distribution.at(p, Span::whole) + 0.5).floor() as u32;
        length.clamp(self.least, self.most)
    }

    /// A length, from one uniform number of the generator.
    pub fn draw(&self, random: &mut impl Stream) -> u32 {
        self.quantile(random.random())
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrTable;

        impl<'de> Visitor<'de> for NumberOrTable {
            type Value = Distribution;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a number, or a table like { distribution = \"uniform\", min = 100, max = 200 }")
            }

            fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Distribution, E> {
                Ok(Distribution::constant(value as f64))
            }

            fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Distribution, E> {
                Ok(Distribution::constant(value as f64))
            }

            fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Distribution, E> {
                Ok(Distribution::constant(value))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Distribution, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(map))?;
                table.shape().map(Distribution).map_err(serde::de::Error::custom)
            }
        }

        deserializer.deserialize_any(NumberOrTable)
    }
}

/// A constant as its number, and whole numbers without a fraction; for defaults in a schema.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Shape::Constant(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
                serializer.serialize_i64(value as i64)
            }
            Shape::Constant(value) => serializer.serialize_f64(value),
            _ => Table::from_shape(&self.0).serialize(serializer),
        }
    }
}

impl JsonSchema for Distribution {
    fn schema_name() -> Cow<'static, str> {
        "Distribution".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A number, or the table of a distribution.",
            "anyOf": [{ "type": "number" }, generator.subschema_for::<Table>()],
        })
    }
}

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
