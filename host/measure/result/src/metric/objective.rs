//! Service level objectives: upper limits on a good request's metrics, which `summary` counts.

use std::str::FromStr;

use super::{ALIASES, Metric, Reading, Single, TPOT, Unit, by_name, single};
use crate::limit::{self, Clause, Grammar, LimitError, Numbers};
use model::nearest;
use model::units::Nanos;

/// An upper limit for a metric of each request.
#[model::apply(model::document!)]
pub struct Objective {
    /// The metric's name.
    pub metric: String,
    /// The limit, in milliseconds.
    pub at_most_ms: f64,
}

/// The metrics that an objective can use: metrics in milliseconds with one value per request.
pub fn metrics() -> impl Iterator<Item = &'static str> {
    single().filter(|(metric, _)| metric.unit == Unit::Milliseconds).map(|(metric, _)| metric.name)
}

/// Objectives of requests in the grammar of limits, as `vllm bench serve` writes them.
const GRAMMAR: Grammar<()> =
    Grammar { signs: &[(":", ())], numbers: Numbers::AboveZero, example: "`ttft:200ms`" };

/// The metric that an objective can use, by its name here or in `vllm bench serve`. Errors: the
/// reason why there is no such metric, and the metric to use.
pub fn timed(name: &str) -> Result<&'static str, String> {
    let name = ALIASES.iter().find(|(theirs, _)| *theirs == name).map_or(name, |(_, ours)| ours);
    if let Some(own) = metrics().find(|metric| *metric == name) {
        return Ok(own);
    }
    Err(match by_name(name) {
        Some(Metric { measure: super::Measure::Pooled(_), .. }) => format!(
            "a request has many values of `{name}`, and an objective needs one; use `tpot`, or `itl-max` for the longest gap"
        ),
        Some(Metric { measure: super::Measure::Session(_), .. }) => format!(
            "`{name}` belongs to a session and not to a request; use it in a threshold, such as `{name}.p99`"
        ),
        Some(metric) => {
            format!("`{name}` is in {}, but an objective must be a time", metric.unit.symbol())
        }
        None => match nearest(name, metrics()) {
            Some(near) => format!("there is no metric `{name}`; did you mean `{near}`?"),
            None => format!(
                "there is no metric `{name}`; objectives can use {}",
                metrics().collect::<Vec<_>>().join(", ")
            ),
        },
    })
}

impl FromStr for Objective {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        objective(GRAMMAR.read(text)?)
    }
}

fn objective(mut written: Clause<'_, ()>) -> Result<Objective, LimitError> {
    let metric = written.metric();
    let level = written.level(Some(Unit::Milliseconds.symbol()));
    let limit = metric.map(str::to_owned).zip(level);
    written.finish(limit.map(|(metric, at_most_ms)| Objective { metric, at_most_ms }))
}

impl Objective {
    /// An objective by its metric's name here or in `vllm bench serve`, and its limit in
    /// milliseconds. Errors: the mistakes in it.
    pub fn new(name: &str, at_most_ms: f64) -> Result<Self, LimitError> {
        objective(GRAMMAR.unsigned(name, (), &at_most_ms.to_string()))
    }

    pub fn measure(&self) -> Option<Single> {
        single().find(|(metric, _)| metric.name == self.metric).map(|(_, measure)| measure)
    }
}

/// The time per token at which an answer is read: the limit on `tpot`, the tightest if there are
/// several; absent without one.
pub fn pace(objectives: &[Objective]) -> Option<Nanos> {
    let limits = objectives.iter().filter(|own| own.metric == TPOT);
    let tightest = limits.map(|own| own.at_most_ms).reduce(f64::min)?;
    Some(Nanos::from_secs_f64(tightest / 1000.0))
}

/// Objectives as `vllm bench serve` writes them: `ttft:200 tpot:20`, in milliseconds, or with a
/// unit; set apart by spaces or commas. Errors: the mistakes in each that is wrong.
pub fn parse(text: &str) -> Result<Vec<Objective>, Vec<LimitError>> {
    let parts = text.split(|c: char| c == ',' || c.is_whitespace());
    limit::all(parts.filter(|part| !part.is_empty()))
}

/// True if an answered request meets a limit in milliseconds; `None` if its metric is unknown. One
/// token meets every limit on further tokens, as in `vllm bench serve`.
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
        let of = |metric: &str, at_most_ms| Objective { metric: metric.into(), at_most_ms };
        let expected = Ok(vec![of("ttft", 200.0), of("tpot", 20.5), of("e2e", 5000.0)]);
        assert_eq!(parse("ttft:200 tpot:20.5 e2el:5000"), expected);
        let wanted = Ok(vec![of("itl-max", 1500.0), of("ttft-from-due", 250.0)]);
        assert_eq!(parse("itl-max:1.5s, ttft-from-due:250ms"), wanted);
    }
}
