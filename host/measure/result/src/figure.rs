//! Names of the figures of a result: `ttft.p99`, `throughput.output-tokens-per-s`. Thresholds,
//! comparisons and readers of other tools' results refer to figures by these names.
//!
//! A name is the figure's path in the summary's JSON: a metric of the catalogue with a statistic,
//! or a section with a key. `metric` defines the metrics, `summary` computes the figures, `read`
//! finds them there.

mod score;
mod whole;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::metric::{self, CATALOGUE, Metric, Unit};
use crate::summary::{Bounds, Summary};
use model::nearest;
use score::{PREFIX, better};

pub use score::better as score_is_better;
pub(crate) use score::{needs_the_end as score_needs_the_end, scale as score_scale};
pub use whole::{FIRST_TOKEN_AFTER, READY_AFTER, WHOLE, Whole};

/// The name of a figure.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Figure {
    /// A statistic of a metric: `ttft.p99`.
    Of(&'static str, Statistic),
    /// A figure of the run as a whole, by its place in [`WHOLE`].
    Whole(usize),
    /// A score by its name, `score.exact-match`: the mean over the judged answers, or the run's.
    Score(String),
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub enum Statistic {
    Mean,
    /// The standard deviation of the population.
    Std,
    Min,
    Max,
    /// A percentile, above 0 and below 100; the median is the 50th.
    Percentile(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Lower,
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

impl Figure {
    /// The figure's value in a summary; absent if it was not measured or not requested.
    pub fn read(&self, summary: &Summary) -> Option<f64> {
        match self {
            Figure::Of(metric, statistic) => summary.metric(metric)?.statistic(*statistic),
            Figure::Whole(place) => (WHOLE[*place].value)(summary),
            Figure::Score(name) => score(name, summary),
        }
    }

    /// The figure's 95 % interval for other requests; absent if one run does not show it.
    pub fn interval(&self, summary: &Summary) -> Option<Bounds> {
        match self {
            Figure::Of(metric, statistic) => {
                let shown = summary.metric(metric)?.confidence?;
                match statistic {
                    Statistic::Mean => shown.mean,
                    Statistic::Percentile(50.0) => shown.median,
                    Statistic::Percentile(99.0) => shown.p99,
                    _ => None,
                }
            }
            Figure::Whole(place) => {
                let rates = summary.throughput.confidence?.other_requests;
                match WHOLE[*place].name {
                    "throughput.requests-per-s" => rates.requests_per_s,
                    "throughput.input-tokens-per-s" => rates.input_tokens_per_s,
                    "throughput.output-tokens-per-s" => rates.output_tokens_per_s,
                    "throughput.total-tokens-per-s" => rates.total_tokens_per_s,
                    _ => None,
                }
            }
            Figure::Score(name) => summary.scores.get(name)?.confidence,
        }
    }

    /// Every figure that a summary has: the figures of the run as a whole, the statistics of each
    /// metric in the order of the catalogue, and the scores.
    pub fn all(summary: &Summary) -> Vec<Figure> {
        let wholes = (0..WHOLE.len()).map(Figure::Whole);
        let metrics = CATALOGUE.iter().filter_map(|metric| {
            let keys = summary.metric(metric.name)?.percentiles.keys();
            let percentiles = keys.filter_map(|key| key.parse().ok());
            // The median may be among the percentiles.
            let further = percentiles.filter(|one| *one != Statistic::Percentile(50.0));
            let mut statistics: Vec<Statistic> = further.collect();
            statistics.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
            let first = [Statistic::Mean, Statistic::Std, Statistic::Min, Statistic::Max];
            let all = first.into_iter().chain([Statistic::Percentile(50.0)]).chain(statistics);
            Some(all.map(|statistic| Figure::Of(metric.name, statistic)))
        });
        let scores = summary.scores.keys().chain(summary.run_scores.keys());
        let scores = scores.map(|name| Figure::Score(name.clone()));
        let all = wholes.chain(metrics.flatten()).chain(scores);
        all.filter(|figure| figure.read(summary).is_some()).collect()
    }

    /// Reads the figure with requests that failed or were not sent counted as the worst. Their
    /// latency is infinite, their speed zero, their answer wrong. The value of [`Figure::read`] if
    /// there are none, and for token counts.
    pub fn read_with_failures(&self, summary: &Summary) -> Option<f64> {
        let own = self.read(summary)?;
        let (metric, statistic) = match self {
            Figure::Of(metric, statistic) => (metric, statistic),
            Figure::Whole(_) => return Some(own),
            Figure::Score(name) => return Some(score_with_failures(name, summary).unwrap_or(own)),
        };
        match &summary.metric(metric)?.with_failures {
            Some(all) => all.statistic(*statistic),
            None => Some(own),
        }
    }
}

fn score(name: &str, summary: &Summary) -> Option<f64> {
    let mean = summary.scores.get(name).map(|score| score.mean);
    mean.or_else(|| summary.run_scores.get(name).copied())
}

/// The mean where requests that failed or were not sent count as the worst: as 0, or as 1 for a
/// share of faults. Otherwise a run could pass because it loses the samples that it would answer
/// wrongly. Absent for scores of the run as a whole, which are no means, and for scores that are
/// neither better nor worse.
fn score_with_failures(name: &str, summary: &Summary) -> Option<f64> {
    let score = summary.scores.get(name)?;
    let worst = match better(name) {
        Better::Higher => 0.0,
        Better::Lower => 1.0,
        Better::Neither => return None,
    };
    let (judged, failed) = (score.count as f64, summary.requests.failed as f64);
    Some((score.mean * judged + worst * failed) / (judged + failed)).filter(|_| failed > 0.0)
}

const NAMED: usize = 12;

/// Says that a score was not measured, and which were.
pub(crate) fn scores_there_are(summary: &Summary) -> String {
    let names = summary.scores.keys().chain(summary.run_scores.keys());
    let names: Vec<String> = names.take(NAMED).map(|name| format!("{PREFIX}{name}")).collect();
    let silent = summary.silent_scorers.iter().map(|scorer| scorer.label());
    let silent: Vec<String> = silent.collect();
    let (names, silent) = (names.join(", "), silent.join("; "));
    match (names.is_empty(), silent.is_empty()) {
        (false, true) => format!("not measured; the run has {names}"),
        (false, false) => format!("not measured: {silent}; the run has {names}"),
        (true, false) => format!("not measured: {silent}"),
        (true, true) => {
            "not measured: no scorer judged the answers; name one under [[scorers]]".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture::{facts, failed, reply};
    use model::exchange::Class;
    use model::exchange::Kind::{End, Text};

    #[test]
    fn names_survive_parsing() {
        let metrics = metric::CATALOGUE.iter().flat_map(|metric| {
            ["mean", "median", "p99.9", "max"].map(|s| format!("{}.{s}", metric.name))
        });
        let wholes = WHOLE.iter().map(|whole| whole.name.to_owned());
        let names = wholes.chain(["score.needle:4k 50%".to_owned()]).chain(metrics);
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

    #[test]
    fn scores_are_figures_and_lost_requests_are_wrong_answers() {
        let answer = |index| reply(index, 1000, &[(1050, Text, None, 3), (1060, End, None, 0)]);
        let mut run: Vec<_> = (0..10).map(answer).collect();
        let mut facts = facts();
        let right = (0..10).map(|index| (index, f64::from(index % 5 != 0)));
        facts.scores.insert("exact-match".into(), right.collect());
        let unparsed = (0..10).map(|index| (index, 0.0));
        facts.scores.insert("exact-match-unparsed".into(), unparsed.collect());
        facts.run_scores.insert("needle:4k".into(), 0.25);
        let read = |run: &[_]| {
            let summary = Summary::new(&facts, run);
            ["exact-match", "exact-match-unparsed", "needle:4k", "none"].map(|name| {
                let figure: Figure = format!("score.{name}").parse().unwrap();
                (figure.read(&summary), figure.read_with_failures(&summary))
            })
        };
        let same = |value: f64| (Some(value), Some(value));
        assert_eq!(read(&run), [same(0.8), same(0.0), same(0.25), (None, None)]);
        for exchange in &mut run[1..3] {
            *exchange = failed(exchange.clone(), Class::Truncated, "cut off");
        }
        let [right, unparsed, whole, _] = read(&run);
        assert_eq!(right, (Some(0.75), Some(0.6)));
        assert_eq!(unparsed, (Some(0.0), Some(0.2)));
        assert_eq!(whole, same(0.25));
    }
}
