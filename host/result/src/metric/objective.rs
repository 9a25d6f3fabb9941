//! Service level objectives: upper limits that the metrics of a request must meet for it to count as
//! good. `summary` counts the good requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Metric, Reading, Single, TPOT, Unit, by_name, single};
use model::duration;
use model::units::Nanos;

/// An upper limit for a metric of each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Objective {
    /// The metric's name.
    pub metric: String,
    /// The limit, in milliseconds.
    pub at_most_ms: f64,
}

/// Names of `vllm bench serve` for metrics that have another name here.
pub const ALIASES: [(&str, &str); 1] = [("e2el", "e2e")];

/// The metrics that an objective can use: those in milliseconds with one value per request.
pub fn metrics() -> impl Iterator<Item = &'static str> {
    single()
        .filter(|(metric, _)| metric.unit == Unit::Milliseconds)
        .map(|(metric, _)| metric.name)
}

impl Objective {
    /// An objective by its metric's name here or in `vllm bench serve`, and its limit in
    /// milliseconds.
    ///
    /// # Errors
    /// Why there is no such objective, in words.
    pub fn new(name: &str, at_most_ms: f64) -> Result<Self, String> {
        let alias = ALIASES.iter().find(|(theirs, _)| *theirs == name);
        let name = alias.map_or(name, |(_, ours)| ours);
        if !metrics().any(|metric| metric == name) {
            return Err(match by_name(name) {
                Some(Metric {
                    measure: super::Measure::Pooled(_),
                    ..
                }) => format!(
                    "a request has many values of `{name}`, and an objective needs one; use `tpot`, or `itl-max` for the longest gap"
                ),
                Some(Metric {
                    measure: super::Measure::Session(_),
                    ..
                }) => format!(
                    "`{name}` belongs to a session and not to a request; use it in a threshold, such as `{name}.p99`"
                ),
                Some(metric) => format!(
                    "`{name}` is in {}, but an objective must be a time",
                    metric.unit.symbol()
                ),
                None => format!(
                    "there is no metric `{name}`; objectives can use {}",
                    metrics().collect::<Vec<_>>().join(", ")
                ),
            });
        }
        if !(at_most_ms.is_finite() && at_most_ms > 0.0) {
            return Err(format!(
                "`{name}`: expected a time above zero, found {at_most_ms} ms"
            ));
        }
        Ok(Objective {
            metric: name.to_owned(),
            at_most_ms,
        })
    }

    /// How the objective's metric is taken.
    pub fn measure(&self) -> Option<Single> {
        single()
            .find(|(metric, _)| metric.name == self.metric)
            .map(|(_, measure)| measure)
    }
}

/// The time per token at which an answer is read: the limit on `tpot`, the tightest if there are several;
/// absent without one.
pub fn pace(objectives: &[Objective]) -> Option<Nanos> {
    let limits = objectives.iter().filter(|own| own.metric == TPOT);
    let tightest = limits.map(|own| own.at_most_ms).reduce(f64::min)?;
    Some(Nanos::from_secs_f64(tightest / 1000.0))
}

/// Objectives as `vllm bench serve` writes them: `ttft:200 tpot:20`, in milliseconds, or with a
/// unit; set apart by spaces or commas.
///
/// # Errors
/// What is wrong with one of them, in words.
pub fn parse(text: &str) -> Result<Vec<Objective>, String> {
    text.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, most) = part.split_once(':').ok_or_else(|| {
                format!("`{part}`: expected METRIC:MILLISECONDS, such as `ttft:200`")
            })?;
            Objective::new(name, duration::milliseconds(most)?)
        })
        .collect()
}

/// Whether an answered request meets a limit in milliseconds; `None` if its metric is unknown. An
/// answer of one token meets every limit on its further tokens, as it does in
/// `vllm bench serve`.
pub fn kept(measure: Single, at_most_ms: f64, reading: &Reading<'_>) -> Option<bool> {
    match measure(reading) {
        Some(value) => Some(value <= at_most_ms),
        None => reading.is_one_token().then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vllms_notation_and_ours() {
        let of = |metric: &str, at_most_ms| Objective {
            metric: metric.into(),
            at_most_ms,
        };
        assert_eq!(
            parse("ttft:200 tpot:20.5 e2el:5000"),
            Ok(vec![of("ttft", 200.0), of("tpot", 20.5), of("e2e", 5000.0)])
        );
        assert_eq!(
            parse("itl-max:1.5s, ttft-from-due:250ms"),
            Ok(vec![of("itl-max", 1500.0), of("ttft-from-due", 250.0)])
        );
    }

    #[test]
    fn what_is_no_objective_is_told_why() {
        for (text, part) in [
            ("ttft", "expected METRIC:MILLISECONDS"),
            ("chat.toml", "expected METRIC:MILLISECONDS"),
            (
                "ttfs:1",
                "there is no metric `ttfs`; objectives can use ttft, ",
            ),
            ("itl:20", "`itl-max`"),
            ("output-tokens:3", "in tokens"),
            ("session-time:9s", "belongs to a session"),
            ("ttft:0", "above zero"),
            ("ttft:inf", "above zero"),
            ("ttft:-1", "above zero"),
            ("ttft:fast", "expected a number"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
