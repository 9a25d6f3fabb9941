//! The table of a distribution in a configuration: its keys and their values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bounds, Shape, Span};

const MOST_BINS: usize = 100_000;

/// A distribution of numbers.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "DistributionTable")]
pub(super) struct Table {
    /// Name of the distribution.
    distribution: Kind,
    /// The number; only of `constant`.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    /// The least number. Of `uniform`, which needs it, and of `normal` and `lognormal`, where a
    /// number below becomes this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    /// The largest number. Of `uniform`, which needs it, and of `normal` and `lognormal`, where a
    /// number above becomes this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// The mean, before `min` and `max` take effect. Of `normal`, which needs it, and of
    /// `lognormal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    /// The median; only of `lognormal`, in place of `mean`.
    #[serde(skip_serializing_if = "Option::is_none")]
    median: Option<f64>,
    /// The standard deviation. Of `normal`, which needs it, and of `lognormal`.
    #[serde(alias = "sd", alias = "stddev")]
    #[serde(skip_serializing_if = "Option::is_none")]
    deviation: Option<f64>,
    /// The standard deviation of the natural logarithm; only of `lognormal`, in place of
    /// `deviation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sigma: Option<f64>,
    /// Numbers and ranges with their weights; only of `histogram`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bins: Option<Vec<Bin>>,
}

/// The name of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// Always the same number.
    #[default]
    Constant,
    /// All numbers of a range alike.
    Uniform,
    /// A normal distribution.
    Normal,
    /// The logarithm has a normal distribution: many small numbers and few large ones.
    Lognormal,
    /// Numbers and ranges by weight.
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Constant => "constant",
            Kind::Uniform => "uniform",
            Kind::Normal => "normal",
            Kind::Lognormal => "lognormal",
            Kind::Histogram => "histogram",
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            Kind::Constant => &["value"],
            Kind::Uniform => &["min", "max"],
            Kind::Normal => &["mean", "deviation", "min", "max"],
            Kind::Lognormal => &["mean", "median", "deviation", "sigma", "min", "max"],
            Kind::Histogram => &["bins"],
        }
    }
}

/// A number or a range, and how often it occurs.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Bin {
    /// The number, in place of a range.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    /// The least number of the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<f64>,
    /// The largest number of the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// Frequency, in proportion to the weights of the others.
    weight: f64,
}

impl Table {
    pub(super) fn from_shape(shape: &Shape) -> Self {
        let empty = Table::default();
        match shape {
            Shape::Constant(value) => Table { value: Some(*value), ..empty },
            Shape::Uniform(span) => Table {
                distribution: Kind::Uniform,
                min: Some(span.min),
                max: Some(span.max),
                ..empty
            },
            Shape::Normal { mean, deviation, bounds } => Table {
                distribution: Kind::Normal,
                mean: Some(*mean),
                deviation: Some(*deviation),
                min: bounds.min,
                max: bounds.max,
                ..empty
            },
            Shape::Lognormal { mu, sigma, bounds } => Table {
                distribution: Kind::Lognormal,
                median: Some(mu.exp()),
                sigma: Some(*sigma),
                min: bounds.min,
                max: bounds.max,
                ..empty
            },
            Shape::Histogram(bins) => {
                let mut before = 0.0;
                let bins = bins.iter().map(|(span, share)| {
                    let weight = share - before;
                    before = *share;
                    Bin { value: None, min: Some(span.min), max: Some(span.max), weight }
                });
                Table { distribution: Kind::Histogram, bins: Some(bins.collect()), ..empty }
            }
        }
    }

    /// The distribution, or the mistake in the table.
    pub(super) fn shape(self) -> Result<Shape, String> {
        let kind = self.distribution;
        let numbers = [
            ("value", self.value),
            ("min", self.min),
            ("max", self.max),
            ("mean", self.mean),
            ("median", self.median),
            ("deviation", self.deviation),
            ("sigma", self.sigma),
        ];
        let given = numbers
            .iter()
            .filter_map(|(key, number)| number.map(|_| *key))
            .chain(self.bins.as_ref().map(|_| "bins"));
        if let Some(other) = given.into_iter().find(|key| !kind.keys().contains(key)) {
            return Err(format!(
                "a {} distribution does not accept `{other}`; expected {}",
                kind.name(),
                listed(kind.keys())
            ));
        }
        let bounds = Bounds { min: self.min, max: self.max };
        if let Some(span) = self.min.zip(self.max) {
            ordered(span)?;
        }
        let need = |key: &str, number: Option<f64>| {
            number.ok_or_else(|| format!("a {} distribution needs `{key}`, a number", kind.name()))
        };
        match kind {
            Kind::Constant => need("value", self.value).map(Shape::Constant),
            Kind::Uniform => Ok(Shape::Uniform(Span {
                min: need("min", self.min)?,
                max: need("max", self.max)?,
            })),
            Kind::Normal => Ok(Shape::Normal {
                mean: need("mean", self.mean)?,
                deviation: not_negative("deviation", need("deviation", self.deviation)?)?,
                bounds,
            }),
            Kind::Lognormal => {
                let (mu, sigma) = self.logarithm()?;
                Ok(Shape::Lognormal { mu, sigma, bounds })
            }
            Kind::Histogram => histogram(self.bins.unwrap_or_default()),
        }
    }

    /// Mean and standard deviation of the logarithm of a lognormal distribution.
    fn logarithm(&self) -> Result<(f64, f64), String> {
        let one_of = |names: [&str; 2], numbers: [Option<f64>; 2]| match numbers {
            [Some(_), Some(_)] => Err(format!(
                "a lognormal distribution takes `{}` or `{}`, not both",
                names[0], names[1]
            )),
            [None, None] => Err(format!(
                "a lognormal distribution needs `{}` or `{}`, a number",
                names[0], names[1]
            )),
            _ => Ok(()),
        };
        one_of(["median", "mean"], [self.median, self.mean])?;
        one_of(["sigma", "deviation"], [self.sigma, self.deviation])?;
        let centre = self.median.or(self.mean).unwrap_or_default();
        if centre <= 0.0 {
            let name = if self.mean.is_some() { "mean" } else { "median" };
            return Err(format!("`{name}` is {centre}; expected more than 0"));
        }
        let variance = match (self.sigma, self.deviation) {
            (Some(sigma), _) => not_negative("sigma", sigma)?.powi(2),
            (None, deviation) => {
                let deviation = not_negative("deviation", deviation.unwrap_or_default())?;
                let share = (deviation / centre).powi(2);
                if self.mean.is_some() {
                    share.ln_1p()
                } else {
                    ((1.0 + (1.0 + 4.0 * share).sqrt()) / 2.0).ln()
                }
            }
        };
        let shift = if self.mean.is_some() { variance / 2.0 } else { 0.0 };
        Ok((centre.ln() - shift, variance.sqrt()))
    }
}

fn histogram(bins: Vec<Bin>) -> Result<Shape, String> {
    if bins.is_empty() {
        return Err(
            "a histogram distribution needs `bins` like [{ value = 128, weight = 3 }, { min = 200, max = 299, weight = 1 }]"
                .to_owned(),
        );
    }
    if bins.len() > MOST_BINS {
        return Err(format!("the histogram has {} bins; expected at most {MOST_BINS}", bins.len()));
    }
    let mut sum = 0.0;
    let mut spans = Vec::with_capacity(bins.len());
    for (at, bin) in bins.into_iter().enumerate() {
        let named = |mistake: String| format!("bin {} of the histogram: {mistake}", at + 1);
        let (min, max) = match (bin.value, bin.min, bin.max) {
            (Some(value), None, None) => (value, value),
            (None, Some(min), Some(max)) => (min, max),
            _ => return Err(named("expected `value`, or `min` and `max`".to_owned())),
        };
        ordered((min, max)).map_err(named)?;
        let weight = not_negative("weight", bin.weight).map_err(named)?;
        // A bin that never occurs would divide by its share of nothing.
        if weight > 0.0 {
            sum += weight;
            spans.push((Span { min, max }, sum));
        }
    }
    if !(sum.is_finite() && sum > 0.0) {
        return Err(format!(
            "the weights of the histogram sum up to {sum}; expected at least one above 0"
        ));
    }
    for (_, share) in &mut spans {
        *share /= sum;
    }
    Ok(Shape::Histogram(spans))
}

fn ordered((min, max): (f64, f64)) -> Result<(), String> {
    if min <= max {
        return Ok(());
    }
    Err(format!("`min` is {min} and `max` is {max}; expected a `min` of at most `max`"))
}

fn not_negative(key: &str, number: f64) -> Result<f64, String> {
    if number >= 0.0 {
        return Ok(number);
    }
    Err(format!("`{key}` is {number}; expected 0 or more"))
}

fn listed(keys: &[&str]) -> String {
    let quoted: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
