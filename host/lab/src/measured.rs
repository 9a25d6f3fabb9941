//! What a lab keeps of a run: its verdict, the figures that decide and those that are shown, and its findings.
//!
//! It is what the journal holds of a run, so that a page can be drawn of the journal alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::objective::{Measure, Objective, Scores};
use result::figure::Figure;
use result::finding::Verdict;
use result::summary::Summary;

/// Figures that are kept of every run.
pub const SHOWN: [&str; 16] = [
    "requests.total",
    "requests.success-share",
    "throughput.duration-s",
    "throughput.requests-per-s",
    "throughput.input-tokens-per-s",
    "throughput.output-tokens-per-s",
    "throughput.total-tokens-per-s",
    "ttft.mean",
    "ttft.median",
    "ttft.p99",
    "tpot.mean",
    "tpot.median",
    "tpot.p99",
    "e2e.mean",
    "e2e.median",
    "e2e.p99",
];

/// A number that may be infinite: JSON has no such number, so it is written as `"inf"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Measured {
    /// The run's verdict.
    pub verdict: Verdict,
    /// Figures by name, over the requests that were answered; scores as `score.NAME`. Absent is not measured.
    pub figures: BTreeMap<String, Number>,
    /// Those that are different where requests that failed or were not sent count as the worst.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with_failures: BTreeMap<String, Number>,
    /// The run's findings, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl Measured {
    /// What a lab with that objective keeps of a run, given the means of its scorers.
    pub fn of(
        summary: &Summary,
        scores: &Scores,
        objective: Option<&Objective>,
        findings: Vec<String>,
    ) -> Self {
        let needed = objective.map(Objective::measures).unwrap_or_default();
        let shown = SHOWN.iter().filter_map(|name| name.parse().ok());
        let needed = needed.into_iter().filter_map(|measure| match measure {
            Measure::Figure(figure) => Some(figure),
            Measure::Score(_) => None,
        });
        let mut measured = Measured {
            verdict: summary.verdict,
            figures: BTreeMap::new(),
            with_failures: BTreeMap::new(),
            findings,
        };
        for figure in shown.chain(needed) {
            measured.add(&figure, summary);
        }
        let scores = scores
            .iter()
            .map(|(name, mean)| (format!("score.{name}"), Number(*mean)));
        measured.figures.extend(scores);
        measured
    }

    fn add(&mut self, figure: &Figure, summary: &Summary) {
        let name = figure.to_string();
        let own = figure.read(summary);
        let all = figure
            .read_with_failures(summary)
            .filter(|all| Some(*all) != own);
        self.figures
            .extend(own.map(|own| (name.clone(), Number(own))));
        self.with_failures
            .extend(all.map(|all| (name, Number(all))));
    }

    /// A figure over the requests that were answered.
    pub fn value(&self, measure: &Measure) -> Option<f64> {
        self.named(&measure.to_string())
    }

    /// A figure by its name, over the requests that were answered.
    pub fn named(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|number| number.0)
    }

    /// A figure where requests that failed or were not sent count as the worst.
    pub fn with_failures(&self, measure: &Measure) -> Option<f64> {
        let all = self.with_failures.get(&measure.to_string());
        all.map(|number| number.0).or_else(|| self.value(measure))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.is_finite() {
            true => serializer.serialize_f64(self.0),
            false => serializer.collect_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(Number(number)),
            Written::Text(text) => match text.as_str() {
                "inf" => Ok(Number(f64::INFINITY)),
                "-inf" => Ok(Number(f64::NEG_INFINITY)),
                "NaN" => Ok(Number(f64::NAN)),
                _ => Err(serde::de::Error::custom(format!(
                    "expected a number, found {text:?}"
                ))),
            },
        }
    }
}

impl JsonSchema for Number {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number; `inf` if it is infinite.",
            "anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "NaN"]}],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchanges::{facts, failed, reply};
    use model::exchange::Class;
    use model::exchange::Kind::{End, Text};

    fn objective(constraints: &[&str]) -> Objective {
        let constraints = constraints.iter().map(|text| text.parse().unwrap());
        Objective::new("ttft.mean".parse().unwrap(), false, constraints.collect())
    }

    /// Ten requests answered after 50 ms, the last of which fails if that is asked for.
    fn run(fails: bool, objective: &Objective) -> Measured {
        let mut run: Vec<_> = (0..10)
            .map(|index| reply(index, 1000, &[(1050, Text, None, 3), (1070, End, None, 0)]))
            .collect();
        if fails {
            run[9] = failed(run[9].clone(), Class::Truncated, "cut off");
        }
        let summary = Summary::of(&facts(), &run);
        let scores = Scores::from([("exact-match".to_owned(), 0.8)]);
        Measured::of(&summary, &scores, Some(objective), Vec::new())
    }

    #[test]
    fn a_failure_breaks_constraints_on_latency_and_not_the_figure() {
        let objective = objective(&[
            "ttft.p99 < 2s",
            "score.exact-match >= 90%",
            "tpot.mean < 1s",
        ]);
        let whole = run(false, &objective);
        assert_eq!(whole.named("ttft.mean"), Some(50.0));
        assert_eq!(
            objective.broken(&whole),
            [
                "score.exact-match is 0.8000, but `score.exact-match >= 90%` must hold",
                "tpot.mean was not measured, but `tpot.mean < 1s` must hold",
            ]
        );
        assert_eq!(objective.score(&whole), Some(-(50.0_f64.ln())));
        let lossy = run(true, &objective);
        assert_eq!(lossy.named("ttft.mean"), Some(50.0));
        let broken = objective.broken(&lossy);
        assert!(
            broken[0].starts_with("ttft.p99 is infinite, because requests failed"),
            "{broken:?}"
        );
        // It is not asked for, and holds all the same.
        let success =
            "requests.success-share is 0.9000, but `requests.success-share >= 99%` must hold";
        assert!(broken.contains(&success.to_owned()), "{broken:?}");
        // The infinite survives its way through a file.
        let text = serde_json::to_string(&lossy).unwrap();
        assert!(text.contains(r#""ttft.p99":"inf""#), "{text}");
        assert_eq!(serde_json::from_str::<Measured>(&text).unwrap(), lossy);
    }

    #[test]
    fn a_constraint_on_success_replaces_the_usual_one() {
        let own = objective(&["requests.success-share >= 50%"]);
        assert_eq!(own.constraints.len(), 1);
        assert_eq!(own.broken(&run(true, &own)), Vec::<String>::new());
        assert_eq!(objective(&["verdict <= suspect"]).constraints.len(), 2);
        let shown = |text| objective(&[text]).constraints[0].to_string();
        for text in ["requests.success-share >= 99.9%", "ttft.p99 <0.7s"] {
            assert_eq!(shown(text), text);
        }
    }
}
