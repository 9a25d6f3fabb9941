//! The part of a run that a lab keeps: its verdict, the figures to decide by and to show, and its
//! findings.
//!
//! The journal holds this part of a run, so a page can be drawn from the journal alone.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::objective::Objective;
use result::figure::{FIRST_TOKEN_AFTER, Figure, READY_AFTER};
use result::finding::Verdict;
use result::summary::Summary;

/// Figures to keep of every run.
pub const SHOWN: [&str; 18] = [
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
    "devices.energy-per-million-output-tokens",
    "cost.per-million-output-tokens",
];

/// A number that may be infinite: JSON has no such number, so it is written as `"inf"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

/// The part of a run that is kept.
#[model::apply(model::document!)]
pub struct Measured {
    /// The run's verdict.
    pub verdict: Verdict,
    /// Figures by name, over the answered requests; scores as `score.NAME`. An absent figure was
    /// not measured.
    pub figures: BTreeMap<String, Number>,
    /// Figures that differ where requests that failed or were not sent count as the worst.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with_failures: BTreeMap<String, Number>,
    /// The run's findings, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl Measured {
    /// Keeps the part of a run that a lab with this objective needs; its scores in any case.
    pub fn new(summary: &Summary, objective: Option<&Objective>, findings: Vec<String>) -> Self {
        let needed = objective.map(Objective::measures).unwrap_or_default();
        let shown = SHOWN.iter().filter_map(|name| name.parse().ok());
        let scores = summary.scores.keys().chain(summary.run_scores.keys());
        let scores = scores.map(|name| Figure::Score(name.clone()));
        let mut measured = Measured {
            verdict: summary.verdict,
            figures: BTreeMap::new(),
            with_failures: BTreeMap::new(),
            findings,
        };
        for figure in shown.chain(needed).chain(scores) {
            measured.add(&figure, summary);
        }
        measured
    }

    /// Adds the seconds from the start of the engine's process until it answered, and until the
    /// first token of a run, warm-up included. `None` if the lab did not start the engine.
    pub fn started(mut self, ready: Option<f64>, first_token: Option<f64>) -> Self {
        for (name, seconds) in [(READY_AFTER, ready), (FIRST_TOKEN_AFTER, first_token)] {
            self.figures.extend(seconds.map(|seconds| (name.to_owned(), Number(seconds))));
        }
        self
    }

    fn add(&mut self, figure: &Figure, summary: &Summary) {
        let name = figure.to_string();
        let own = figure.read(summary);
        let all = figure.read_with_failures(summary).filter(|all| Some(*all) != own);
        self.figures.extend(own.map(|own| (name.clone(), Number(own))));
        self.with_failures.extend(all.map(|all| (name, Number(all))));
    }

    /// A figure over the answered requests.
    pub fn value(&self, measure: &Figure) -> Option<f64> {
        self.named(&measure.to_string())
    }

    /// A figure by its name, over the answered requests.
    pub fn named(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|number| number.0)
    }

    /// A figure where requests that failed or were not sent count as the worst.
    pub fn with_failures(&self, measure: &Figure) -> Option<f64> {
        let all = self.with_failures.get(&measure.to_string());
        all.map(|number| number.0).or_else(|| self.value(measure))
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Repr {
            Number(f64),
            Text(String),
        }
        match Repr::deserialize(deserializer)? {
            Repr::Number(number) => Ok(Number(number)),
            Repr::Text(text) => match text.as_str() {
                "inf" => Ok(Number(f64::INFINITY)),
                "-inf" => Ok(Number(f64::NEG_INFINITY)),
                "NaN" => Ok(Number(f64::NAN)),
                _ => Err(serde::de::Error::custom(format!("expected a number, found {text:?}"))),
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
    use crate::objective::Standing;
    use model::exchange::Class;
    use model::exchange::Kind::{End, Text};

    fn objective(constraints: &[&str]) -> Objective {
        let constraints = constraints.iter().map(|text| text.parse().unwrap());
        Objective::new("ttft.mean".parse().unwrap(), false, constraints.collect())
    }

    /// Ten requests answered after 50 ms, two of them wrongly; with `fails`, the last one fails.
    fn run(fails: bool, objective: &Objective) -> Measured {
        let mut run: Vec<_> = (0..10)
            .map(|index| reply(index, 1000, &[(1050, Text, None, 3), (1070, End, None, 0)]))
            .collect();
        if fails {
            run[9] = failed(run[9].clone(), Class::Truncated, "cut off");
        }
        let mut facts = facts();
        let right = (0..10).map(|index| (index, f64::from(index > 1)));
        facts.scores.insert("exact-match".into(), right.collect());
        let unparsed = (0..10).map(|index| (index, f64::from(index < 1)));
        facts.scores.insert("exact-match-unparsed".into(), unparsed.collect());
        let summary = Summary::new(&facts, &run);
        Measured::new(&summary, Some(objective), Vec::new())
    }

    #[test]
    fn a_failure_breaks_latency_constraints_but_not_the_figure() {
        let objective = objective(&["ttft.p99 < 2s", "score.exact-match >= 90%", "tpot.mean < 1s"]);
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
        let infinite = "ttft.p99 is infinite, because requests failed";
        assert!(broken[0].starts_with(infinite), "{broken:?}");
        // The file does not state this constraint, but it holds.
        let success =
            "requests.success-share is 0.9000, but `requests.success-share >= 99%` must hold";
        assert!(broken.contains(&success.to_owned()), "{broken:?}");
        // An infinite figure survives a file.
        let text = serde_json::to_string(&lossy).unwrap();
        assert!(text.contains(r#""ttft.p99":"inf""#), "{text}");
        assert_eq!(serde_json::from_str::<Measured>(&text).unwrap(), lossy);
    }

    /// Of nine judged answers, seven are right; with the lost answer, seven of ten. Unreadable
    /// answers are a fault, and a lost answer counts as one more.
    #[test]
    fn constraints_count_a_lost_answer_as_wrong() {
        let objective = objective(&[
            "score.exact-match >= 75%",
            "score.exact-match-unparsed <= 15%",
            "requests.success-share >= 50%",
        ]);
        assert_eq!(objective.broken(&run(false, &objective)), [""; 0]);
        let lossy = run(true, &objective);
        assert_eq!(lossy.named("score.exact-match"), Some(7.0 / 9.0));
        assert_eq!(
            objective.broken(&lossy),
            [
                "score.exact-match is 0.7000, but `score.exact-match >= 75%` must hold",
                "score.exact-match-unparsed is 0.2000, but `score.exact-match-unparsed <= 15%` must hold",
            ]
        );
    }

    /// P99 of rounds that scatter by 3 %, 4 % within a limit: two of five beyond it show nothing.
    #[test]
    fn constraints_are_on_the_mean_over_rounds() {
        let objective = objective(&["ttft.p99 < 2s"]);
        let compliance = |values: &[f64]| {
            let run = |value: &f64| {
                let mut run = run(false, &objective);
                run.figures.insert("ttft.p99".into(), Number(*value));
                run.with_failures.clear();
                run
            };
            let runs: Vec<Measured> = values.iter().map(run).collect();
            objective.constraints[0].compliance(&runs.iter().collect::<Vec<_>>())
        };
        let near = compliance(&[1900.0, 2010.0, 1880.0, 2005.0, 1930.0]);
        assert_eq!((near.standing, near.is_within), (Standing::NotShown, true));
        // A mean of 1945 and a deviation of 59.8: Student's 2.160 and 1.350 of 13, times 59.8 /
        // √14, are 56.1.
        assert_eq!(near.rounds, Some(15), "{near:?}");
        let expected = "ttft.p99 is 1945 ms on average over 5 rounds, 95 % interval 1871 to 2019 ms: `ttft.p99 < 2s` is not confirmed";
        assert_eq!(near.words, expected);
        let well = compliance(&[1500.0, 1520.0, 1480.0]);
        assert_eq!((well.standing, well.rounds), (Standing::Meets, None));
        let over = compliance(&[2500.0, 2520.0, 2480.0]);
        assert_eq!(over.standing, Standing::Breaks);
        let expected =
            "ttft.p99 is 2500 ms on average over 3 rounds, but `ttft.p99 < 2s` must hold";
        assert_eq!(over.words, expected);
        // One round shows nothing, and one infinite round is a failure whatever the others are.
        let one = compliance(&[2500.0]);
        assert_eq!((one.standing, one.is_within), (Standing::NotShown, false));
        assert_eq!(compliance(&[1500.0, f64::INFINITY]).standing, Standing::Breaks);
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
