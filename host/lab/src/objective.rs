//! What the best trial is the best in: a figure to maximize or minimize, and constraints that every run must meet.
//!
//! A figure is one of a result's (`throughput.output-tokens-per-s`) or a scorer's mean (`score.exact-match`). The
//! objective is taken over the requests that were answered; constraints count those that failed or were not sent as
//! infinitely slow, as thresholds do. So a trial cannot win by losing requests: the success share has a constraint,
//! whether the file says so or not.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use result::figure::{Better, Figure};
use result::threshold::{Relation, Threshold};

use crate::measured::Measured;

/// The least success share, if no constraint is on it: one request in a hundred may fail.
pub const SUCCESS: &str = "requests.success-share >= 99%";

/// What names of scores begin with.
const SCORE: &str = "score.";

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A figure of the result.
    Figure(Figure),
    /// The mean of a scorer, by its name.
    Score(String),
}

impl Measure {
    /// Its unit's symbol; empty for a share or a number.
    pub fn unit(&self) -> &'static str {
        match self {
            Measure::Figure(figure) => figure.unit(),
            Measure::Score(_) => "",
        }
    }

    /// Whether more of it is better; scores are better the higher they are.
    pub fn is_better_higher(&self) -> bool {
        match self {
            Measure::Figure(figure) => figure.better() != Better::Lower,
            Measure::Score(_) => true,
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Figure(figure) => figure.fmt(f),
            Measure::Score(name) => write!(f, "{SCORE}{name}"),
        }
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(SCORE) {
            Some("") => Err(format!("`{text}` does not name a scorer")),
            Some(name) => Ok(Measure::Score(name.to_owned())),
            None => text.parse().map(Measure::Figure),
        }
    }
}

/// What is to be as high or as low as possible, and what must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The figure.
    pub measure: Measure,
    /// Whether it is to be high.
    pub is_maximized: bool,
    /// What every run must meet.
    pub constraints: Vec<Constraint>,
    /// The figures of the Pareto front.
    pub pareto: [Measure; 2],
}

impl Objective {
    /// An objective with those constraints, and the one on the success share unless there is one already.
    pub fn new(measure: Measure, is_maximized: bool, mut constraints: Vec<Constraint>) -> Self {
        let of_success = |constraint: &Constraint| {
            let measure = constraint.measure().map(|measure| measure.to_string());
            ["requests.success-share", "requests.failed"]
                .contains(&measure.as_deref().unwrap_or(""))
        };
        if !constraints.iter().any(of_success) {
            constraints.extend(SUCCESS.parse::<Constraint>());
        }
        let figure = |name: &str| name.parse().unwrap_or_else(|_| measure.clone());
        let pareto = ["throughput.output-tokens-per-s", "tpot.mean"].map(figure);
        Objective {
            measure,
            is_maximized,
            constraints,
            pareto,
        }
    }

    /// Every figure that it needs of a run.
    pub fn measures(&self) -> Vec<Measure> {
        let constraints = self.constraints.iter().filter_map(Constraint::measure);
        [self.measure.clone()]
            .into_iter()
            .chain(constraints)
            .chain(self.pareto.clone())
            .collect()
    }

    /// How good a run is: the logarithm of its figure, greater the better, so that differences are ratios. Nothing if
    /// the figure was not measured, or is not above zero.
    pub fn score(&self, run: &Measured) -> Option<f64> {
        let value = run
            .value(&self.measure)
            .filter(|value| *value > 0.0 && value.is_finite())?;
        Some(if self.is_maximized {
            value.ln()
        } else {
            -value.ln()
        })
    }

    /// Why a run cannot win, if it cannot: the constraints that it breaks.
    pub fn broken(&self, run: &Measured) -> Vec<String> {
        self.constraints
            .iter()
            .filter_map(|constraint| constraint.broken(run))
            .collect()
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.is_maximized {
            "maximize"
        } else {
            "minimize"
        };
        write!(f, "{verb} {}", self.measure)
    }
}

/// What a run must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The limit.
    limit: Limit,
    /// As it was written: `99.9%` is not shown as `0.9990000000000001`.
    text: String,
}

/// What a constraint limits.
#[derive(Clone, Debug, PartialEq)]
enum Limit {
    /// A figure, or the verdict.
    Threshold(Threshold),
    /// A scorer's mean.
    Score(String, Relation, f64),
}

impl Constraint {
    /// The figure that it is on; none for the verdict.
    fn measure(&self) -> Option<Measure> {
        match &self.limit {
            Limit::Threshold(threshold) => threshold.figure().cloned().map(Measure::Figure),
            Limit::Score(name, ..) => Some(Measure::Score(name.clone())),
        }
    }

    /// A figure that meets it, for forecasts; none for the verdict.
    pub(crate) fn met_by(&self) -> Option<(Measure, f64)> {
        let (relation, limit) = match &self.limit {
            Limit::Threshold(Threshold::Verdict(_)) => return None,
            Limit::Threshold(Threshold::Figure(_, relation, limit)) => (relation, limit),
            Limit::Score(_, relation, limit) => (relation, limit),
        };
        let well = (limit.abs() / 2.0).max(1e-9);
        let value = match relation {
            Relation::AtMost | Relation::Below => limit - well,
            Relation::AtLeast | Relation::Above => limit + well,
        };
        Some((self.measure()?, value))
    }

    /// Why a run breaks it, if it does. What was not measured breaks it.
    fn broken(&self, run: &Measured) -> Option<String> {
        let (relation, limit) = match &self.limit {
            Limit::Threshold(Threshold::Verdict(worst)) => {
                let because =
                    || format!("the run is {}, but `{self}` must hold", run.verdict.name());
                return (run.verdict > *worst).then(because);
            }
            Limit::Threshold(Threshold::Figure(_, relation, limit)) => (relation, limit),
            Limit::Score(_, relation, limit) => (relation, limit),
        };
        let measure = self.measure()?;
        let Some(value) = run.with_failures(&measure) else {
            return Some(format!(
                "{measure} was not measured, but `{self}` must hold"
            ));
        };
        let holds = match relation {
            Relation::AtMost => value <= *limit,
            Relation::Below => value < *limit,
            Relation::AtLeast => value >= *limit,
            Relation::Above => value > *limit,
        };
        let unit = match measure.unit() {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        let shown = match value.is_infinite() {
            true => "infinite, because requests failed or were not sent".to_owned(),
            false => format!("{}{unit}", crate::stat::figures(value)),
        };
        (!holds).then(|| format!("{measure} is {shown}, but `{self}` must hold"))
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Relations as written, two-character ones first.
const SIGNS: [(&str, Relation); 4] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("<", Relation::Below),
    (">", Relation::Above),
];

impl FromStr for Constraint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let limit = match text.strip_prefix(SCORE) {
            Some(rest) => score(text, rest)?,
            None => Limit::Threshold(text.parse()?),
        };
        Ok(Constraint {
            limit,
            text: text.to_owned(),
        })
    }
}

/// A limit on a scorer's mean, given what follows `score.` in the text.
fn score(text: &str, rest: &str) -> Result<Limit, String> {
    let split = SIGNS.iter().find_map(|(sign, relation)| {
        let (name, limit) = rest.split_once(sign)?;
        Some((name.trim(), *relation, limit.trim()))
    });
    let Some((name, relation, limit)) = split.filter(|(name, ..)| !name.is_empty()) else {
        return Err(format!(
            "`{text}`: expected score.NAME, one of <= < >= >, and a number, such as `score.exact-match >= 0.9`"
        ));
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    let percent = || number(limit.strip_suffix('%')?.trim()).map(|n| n / 100.0);
    let limit = number(limit).or_else(percent);
    let limit = limit.ok_or_else(|| format!("`{text}`: expected a number or percent"))?;
    Ok(Limit::Score(name.to_owned(), relation, limit))
}

/// Scores by the scorer's name.
pub type Scores = BTreeMap<String, f64>;
