//! Names of the figures of a result: `ttft.p99`, `throughput.output-tokens-per-s`. Thresholds,
//! comparisons and readers of other tools' results refer to figures by these names.
//!
//! A name is the figure's path in the summary's JSON: a metric of the catalogue with a statistic,
//! or a section with a key. `metric` defines the metrics, `summary` computes the figures, `read`
//! finds them there.

pub(crate) mod read;
mod score;
mod whole;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::metric::{self, Metric, Unit};
use model::nearest;

pub use score::better as score_is_better;
pub(crate) use score::needs_the_end as score_needs_the_end;
pub(crate) use score::scale as score_scale;
pub use whole::{FIRST_TOKEN_AFTER, READY_AFTER, WHOLE, Whole};

/// The name of a figure.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Figure {
    /// A statistic of a metric: `ttft.p99`.
    Of(&'static str, Statistic),
    /// A figure of the run as a whole, by its place in [`WHOLE`].
    Whole(usize),
    /// A score by its name, `score.exact-match`: the mean over the judged answers, or a score of
    /// the run as a whole.
    Score(String),
}

/// The statistic of a metric's samples.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The standard deviation of the population.
    Std,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// A percentile, above 0 and below 100; the median is the 50th.
    Percentile(f64),
}

/// The direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The lower, as of latencies.
    Lower,
    /// The higher, as of throughputs.
    Higher,
    /// Neither: it describes the request, not the outcome.
    Neither,
}

use Better::{Higher, Lower, Neither};

impl Figure {
    /// The unit's symbol, empty for a share or a number.
    pub fn unit(&self) -> &'static str {
        match self {
            Figure::Of(name, _) => match metric::by_name(name).map(|metric| metric.unit) {
                None | Some(Unit::Share | Unit::Ratio) => "",
                Some(unit) => unit.symbol(),
            },
            Figure::Whole(place) => WHOLE[*place].unit,
            Figure::Score(_) => "",
        }
    }

    pub fn better(&self) -> Better {
        match self {
            Figure::Of(_, Statistic::Std) => Neither,
            Figure::Of(name, _) => match metric::by_name(name).map(|metric| metric.unit) {
                Some(Unit::Milliseconds | Unit::Share | Unit::Ratio) => Lower,
                Some(Unit::TokensPerSecond | Unit::Speedup) => Higher,
                _ => Neither,
            },
            Figure::Whole(place) => WHOLE[*place].better,
            Figure::Score(name) => score::better(name),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Of(metric, statistic) => write!(f, "{metric}.{statistic}"),
            Figure::Whole(place) => f.write_str(WHOLE[*place].name),
            Figure::Score(name) => write!(f, "{}{name}", score::PREFIX),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statistic::Mean => f.write_str("mean"),
            Statistic::Std => f.write_str("std"),
            Statistic::Min => f.write_str("min"),
            Statistic::Max => f.write_str("max"),
            Statistic::Percentile(50.0) => f.write_str("median"),
            Statistic::Percentile(percent) => f.write_str(&percentile_name(*percent)),
        }
    }
}

/// The key of a percentile: `p99`, `p99.9`.
pub(crate) fn percentile_name(percent: f64) -> String {
    format!("p{percent}")
}

impl FromStr for Statistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "mean" => Statistic::Mean,
            "std" => Statistic::Std,
            "min" => Statistic::Min,
            "max" => Statistic::Max,
            "median" => Statistic::Percentile(50.0),
            other => {
                let percent = other.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
                match percent.filter(|p| *p > 0.0 && *p < 100.0) {
                    Some(percent) => Statistic::Percentile(percent),
                    None => {
                        return Err(format!(
                            "`{other}` is not a statistic; use mean, median, std, min, max or a percentile such as p99"
                        ));
                    }
                }
            }
        })
    }
}

impl FromStr for Figure {
    type Err = String;

    /// Errors: a message that says why there is no such figure, with the most similar name.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(place) = WHOLE.iter().position(|whole| whole.name == text) {
            return Ok(Figure::Whole(place));
        }
        match text.strip_prefix(score::PREFIX) {
            Some("") => return Err(score::unnamed(text)),
            None if text == score::PREFIX.trim_end_matches('.') => {
                return Err(score::unnamed(text));
            }
            Some(name) => return Ok(Figure::Score(name.to_owned())),
            None => {}
        }
        let Some((name, statistic)) = text.split_once('.') else {
            return Err(match metric::by_name(text) {
                Some(_) => format!("`{text}` needs a statistic, such as `{text}.p99`"),
                None => unknown(text),
            });
        };
        let name = metric::ALIASES
            .iter()
            .find_map(|(theirs, ours)| (*theirs == name).then_some(*ours))
            .unwrap_or(name);
        match metric::by_name(name) {
            Some(Metric { name, .. }) => Ok(Figure::Of(name, statistic.parse()?)),
            None => Err(unknown(text)),
        }
    }
}

/// The percentiles of the slowest users that belong to these, of a metric where more is better: P1
/// for P99, and P1 itself; the highest first.
pub fn mirrored(percentiles: &[f64]) -> Vec<f64> {
    let low = percentiles.iter().map(|percent| match *percent {
        percent if percent > 50.0 => mirror(percent),
        percent => percent,
    });
    let mut low: Vec<f64> = low.filter(|percent| *percent > 0.0 && *percent < 50.0).collect();
    low.sort_unstable_by(|a, b| b.total_cmp(a));
    low.dedup();
    low
}

/// The percentile with the same share of the samples beyond it, from the other end.
pub fn mirror(percent: f64) -> f64 {
    // Rounded, because 100 - 99.9 is not 0.1.
    ((100.0 - percent) * 1e9).round() / 1e9
}

/// Writes the error that there is no such figure, with the name that was probably meant.
fn unknown(text: &str) -> String {
    let wholes = WHOLE.iter().map(|whole| whole.name);
    let (name, statistic) = text.split_once('.').unwrap_or((text, "p99"));
    let metrics = metric::CATALOGUE.iter().map(|metric| metric.name);
    let near = nearest(text, wholes)
        .map(str::to_owned)
        .or_else(|| nearest(name, metrics).map(|metric| format!("{metric}.{statistic}")));
    match near {
        Some(name) => format!("there is no figure `{text}`; did you mean `{name}`?"),
        None => format!(
            "there is no figure `{text}`; `runner guide metrics` lists the metrics, which take a statistic, as in `ttft.p99`"
        ),
    }
}

impl From<Figure> for String {
    fn from(figure: Figure) -> String {
        figure.to_string()
    }
}

impl TryFrom<String> for Figure {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_parsing() {
        let metrics = metric::CATALOGUE.iter().flat_map(|metric| {
            ["mean", "median", "p99.9", "max"].map(|s| format!("{}.{s}", metric.name))
        });
        let names = WHOLE
            .iter()
            .map(|whole| whole.name.to_owned())
            .chain(["score.needle:4k 50%".to_owned()])
            .chain(metrics);
        for name in names {
            assert_eq!(name.parse::<Figure>().map(|figure| figure.to_string()), Ok(name));
        }
        assert_eq!("e2el.p50".parse::<Figure>().map(|f| f.to_string()), Ok("e2e.median".into()));
    }

    #[test]
    fn suggests_a_similar_figure() {
        for (text, part) in [
            ("ttft", "needs a statistic"),
            ("tttf.p99", "did you mean `ttft.p99`?"),
            ("throughput.output-token-per-s", "did you mean `throughput.output-tokens-per-s`?"),
            ("ttft.p100", "is not a statistic"),
            ("ttft.q99", "a percentile such as p99"),
            ("score.", "name the score"),
        ] {
            let error = text.parse::<Figure>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
