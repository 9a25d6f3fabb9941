//! Thresholds: limits that a run's figures must meet, such as `ttft.p99 <= 200ms`. `limit` has the
//! grammar, and `check` holds them against a summary.

mod check;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::finding::Verdict;
use crate::limit::{Difference, Grammar, LEVELS, LimitError, Numbers, Relation, VERDICT};

/// A limit that a run must meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Threshold {
    /// A figure has a limit, in the figure's unit.
    Figure(Figure, Relation, f64),
    /// The verdict is no worse.
    Verdict(Verdict),
    /// The difference of a side from the baseline has a limit.
    Difference(Figure, Relation, Difference),
}

const GRAMMAR: Grammar<Relation> = Grammar {
    signs: LEVELS,
    numbers: Numbers::Any,
    example: "`ttft.p99 <= 200ms` or `verdict <= suspect`",
};

/// The beginning of a threshold's name that is on the difference of two sides.
const DIFFERENCE: &str = "difference.";

/// A threshold, and if it holds.
#[model::apply(model::document!)]
#[derive(Default)]
pub struct Checked {
    /// The threshold, as `ttft.p99 <= 200 ms`.
    pub threshold: String,
    /// The figure that decides, in the unit of the threshold. Requests that failed or were not sent
    /// count as infinitely slow, and as a speed of zero. Absent if it is infinite or was not
    /// measured.
    pub seen: Option<f64>,
    /// True if the figure that decides is infinite, because requests failed or were not sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub infinite: bool,
    /// The figure without those requests; absent if it is the same.
    pub without_failures: Option<f64>,
    /// True if the threshold holds.
    pub held: bool,
    /// A remark on facts that the figure does not show: it was not measured, requests failed, or
    /// the run is invalid.
    pub because: Option<String>,
}

impl Checked {
    /// Writes the measured value: `250.00`, or the reason why there is none.
    pub fn outcome(&self) -> String {
        if self.infinite {
            let because = self.because.as_deref().unwrap_or("requests failed");
            return format!("infinite, because {because}");
        }
        // Scores are mostly shares; two decimals would hide a limit's meaning.
        let decimals = if self.threshold.starts_with("score.") { 4 } else { 2 };
        let seen = self.seen.map(|seen| format!("{seen:.decimals$}"));
        let parts: Vec<String> = seen.into_iter().chain(self.because.clone()).collect();
        parts.join(", ")
    }
}

impl Threshold {
    pub fn figure(&self) -> Option<&Figure> {
        match self {
            Threshold::Figure(figure, ..) => Some(figure),
            Threshold::Verdict(_) | Threshold::Difference(..) => None,
        }
    }

    pub fn difference(&self) -> Option<&Figure> {
        match self {
            Threshold::Difference(figure, ..) => Some(figure),
            Threshold::Figure(..) | Threshold::Verdict(_) => None,
        }
    }

    /// Names its subject: a figure, or `verdict`.
    pub fn subject(&self) -> String {
        match self {
            Threshold::Figure(figure, ..) => figure.to_string(),
            Threshold::Verdict(_) => VERDICT.to_owned(),
            Threshold::Difference(figure, ..) => format!("{DIFFERENCE}{figure}"),
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threshold::Verdict(worst) => write!(f, "{VERDICT} <= {}", worst.name()),
            Threshold::Difference(figure, relation, limit) => {
                let (amount, unit) = match limit {
                    Difference::Percent(amount) => (amount, "%"),
                    Difference::Absolute(amount) => (amount, figure.unit()),
                };
                write!(f, "{DIFFERENCE}{figure} {} {amount}{unit}", relation.sign())
            }
            Threshold::Figure(figure, relation, limit) => {
                write!(f, "{figure} {} {limit}", relation.sign())?;
                match figure.unit() {
                    "" => Ok(()),
                    unit => write!(f, " {unit}"),
                }
            }
        }
    }
}

impl FromStr for Threshold {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let mut written = GRAMMAR.read(text)?;
        let relation = written.relation;
        if written.subject == VERDICT {
            let worst = verdict(written.number).filter(|_| relation == Relation::AtMost);
            if worst.is_none() {
                written.wrong("expected `verdict <= valid` or `verdict <= suspect`");
            }
            return written.finish(worst.map(Threshold::Verdict));
        }
        if let Some(name) = written.subject.strip_prefix(DIFFERENCE) {
            written.subject = name;
            let figure = written.figure();
            let limit = written.difference(figure.as_ref().map(Figure::unit));
            let limit = figure.zip(limit);
            let limit = limit.map(|(of, amount)| Threshold::Difference(of, relation, amount));
            return written.finish(limit);
        }
        let figure = written.figure();
        let level = written.level(figure.as_ref().map(Figure::unit));
        let limit = figure.zip(level);
        written.finish(limit.map(|(figure, level)| Threshold::Figure(figure, relation, level)))
    }
}

fn verdict(text: &str) -> Option<Verdict> {
    [Verdict::Valid, Verdict::Suspect].into_iter().find(|verdict| verdict.name() == text)
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> String {
        threshold.to_string()
    }
}

impl TryFrom<String> for Threshold {
    type Error = LimitError;

    fn try_from(text: String) -> Result<Self, LimitError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(text: &str) -> Threshold {
        text.parse().unwrap()
    }

    #[test]
    fn thresholds_are_read_in_any_unit_and_written_in_one() {
        for (text, written) in [
            ("ttft.p99 <= 200ms", "ttft.p99 <= 200 ms"),
            ("ttft.p99<=0.2s", "ttft.p99 <= 200 ms"),
            ("e2el.mean < 1500", "e2e.mean < 1500 ms"),
            (
                "throughput.output-tokens-per-s >= 5000 tok/s",
                "throughput.output-tokens-per-s >= 5000 tok/s",
            ),
            ("requests.success-share > 99%", "requests.success-share > 0.99"),
            ("throughput.duration-s <= 2m", "throughput.duration-s <= 120 s"),
            ("output-speed.p1 >= 20", "output-speed.p1 >= 20 tok/s"),
            ("stall-share.mean <= 5%", "stall-share.mean <= 0.05"),
            ("requests.success-share >= 99.9%", "requests.success-share >= 0.999"),
            ("score.final-number>=81%", "score.final-number >= 0.81"),
            ("verdict <= suspect", "verdict <= suspect"),
        ] {
            assert_eq!(threshold(text).to_string(), written);
            assert_eq!(threshold(written), threshold(text));
        }
    }
}
