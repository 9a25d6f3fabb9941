//! The objective of a lab: a figure to maximize or minimize, and constraints that it must meet.
//!
//! The objective is taken over the answered requests; constraints count requests that failed or
//! were not sent as the worst, as thresholds do: as infinitely slow, as wrong answers. So a trial
//! cannot win by losing requests: the success share always has a constraint, also where the file
//! states none.
//!
//! A constraint is on the mean over a trial's rounds. One round beyond a limit is chance as often
//! as not. So a trial breaks a constraint only where the 95 % interval of its mean lies beyond the
//! limit, and meets it where the interval lies within. Otherwise neither is shown.

use std::fmt;
use std::str::FromStr;

use crate::measured::Measured;
use crate::stat::{self, MOST_ROUNDS, OUTSIDE, Spread};
use crate::study::Scenario;
use result::figure::Figure;
use result::finding::Verdict;
use result::limit::LimitError;
use result::threshold::Threshold;
use search::config::Load;
use search::sweep::At;
use statistics::student;

/// The least success share, if no constraint is on it: one request in a hundred may fail.
pub const SUCCESS: &str = "requests.success-share >= 99%";

/// A figure to make as high or as low as possible, and constraints that must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    pub measure: Figure,
    /// True if the figure is to be high.
    pub is_maximized: bool,
    pub constraints: Vec<Constraint>,
    pub pareto: [Figure; 2],
}

impl Objective {
    /// An objective with these constraints, and the default one if none is on the success share.
    pub fn new(measure: Figure, is_maximized: bool, mut constraints: Vec<Constraint>) -> Self {
        let is_success = |constraint: &Constraint| {
            let measure = constraint.measure().map(|measure| measure.to_string());
            matches!(measure.as_deref(), Some("requests.success-share" | "requests.failed"))
        };
        if !constraints.iter().any(is_success) {
            constraints.extend(SUCCESS.parse::<Constraint>());
        }
        let figure = |name: &str| name.parse().unwrap_or_else(|_| measure.clone());
        let pareto = ["throughput.output-tokens-per-s", "tpot.mean"].map(figure);
        Objective { measure, is_maximized, constraints, pareto }
    }

    /// Every figure that it needs of a run.
    pub fn measures(&self) -> Vec<Figure> {
        let constraints = self.constraints.iter();
        let constraints = constraints.filter_map(|constraint| constraint.measure().cloned());
        [self.measure.clone()].into_iter().chain(constraints).chain(self.pareto.clone()).collect()
    }

    /// Scores a run: the logarithm of its figure, greater the better, so that differences are
    /// ratios. Nothing if the figure was not measured, or is not above zero.
    pub fn score(&self, run: &Measured) -> Option<f64> {
        let value = run.value(&self.measure).filter(|value| *value > 0.0 && value.is_finite())?;
        Some(if self.is_maximized { value.ln() } else { -value.ln() })
    }

    /// The doubt about a throughput objective on a scenario with a fixed rate.
    pub fn doubt(&self, scenario: &Scenario) -> Option<String> {
        let load = scenario.load.as_ref().filter(|load| load.kind == Load::Rate)?;
        let At::Load(rate) = load.at else { return None };
        let figure = self.measure.to_string();
        figure.starts_with("throughput.").then(|| {
            format!(
                "{} offers {rate} requests per second whatever the engine does, so {figure} hardly distinguishes engines. Use a latency as the objective, or a load by concurrency.",
                scenario.name
            )
        })
    }

    /// Lists the constraints that a run by itself does not meet, as text.
    pub fn broken(&self, run: &Measured) -> Vec<String> {
        let each = self.constraints.iter().map(|constraint| constraint.compliance(&[run]));
        each.filter(|own| !own.is_within).map(|own| own.words).collect()
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.is_maximized { "maximize" } else { "minimize" };
        write!(f, "{verb} {}", self.measure)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub(crate) threshold: Threshold,
    /// The text as written: `99.9%` is not shown as `0.9990000000000001`.
    text: String,
}

model::words! {
    /// The standing of a trial to a constraint.
    pub enum Standing {
        /// It meets it, beyond chance.
        Meets = "meets",
        /// It breaks it, beyond chance; or a run was not measured, or too many lost requests made
        /// its figure infinite.
        Breaks = "breaks",
        /// Neither is shown.
        NotShown = "not-shown",
    }
}

/// The standing of a trial's runs to a constraint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compliance {
    /// The standing: shown to be met, shown to be broken, or neither.
    pub standing: Standing,
    /// True if the mean meets it, or of a verdict every run.
    pub is_within: bool,
    /// The figure over the runs; absent for a verdict, and if infinite or not measured.
    pub figure: Option<Spread>,
    pub words: String,
    /// Rounds that would show it in nine of ten cases, if the mean is the truth; absent beyond
    /// [`MOST_ROUNDS`] and where it is shown.
    pub rounds: Option<u32>,
}

impl Compliance {
    fn new(standing: Standing, words: String) -> Compliance {
        let is_within = standing == Standing::Meets;
        Compliance { standing, is_within, figure: None, words, rounds: None }
    }

    fn broken(words: String) -> Compliance {
        Compliance::new(Standing::Breaks, words)
    }
}

impl Constraint {
    /// The figure that it is on; none for the verdict.
    fn measure(&self) -> Option<&Figure> {
        self.threshold.figure()
    }

    /// Computes the standing of a trial's runs to it, one for each round; at least one.
    pub(crate) fn compliance(&self, runs: &[&Measured]) -> Compliance {
        let (measure, relation, limit) = match &self.threshold {
            Threshold::Verdict(worst) => return self.verdict(runs, *worst),
            Threshold::Difference(..) => {
                return Compliance::broken(format!("`{self}` is for a run with `[[sides]]`"));
            }
            Threshold::Figure(measure, relation, limit) => (measure, *relation, *limit),
        };
        let values: Option<Vec<f64>> = runs.iter().map(|run| run.with_failures(measure)).collect();
        let Some(values) = values else {
            return Compliance::broken(format!(
                "{measure} was not measured, but `{self}` must hold"
            ));
        };
        let holds = |value: f64| relation.holds(value, limit);
        if values.iter().any(|value| !value.is_finite() && !holds(*value)) {
            return Compliance::broken(format!(
                "{measure} is infinite, because requests failed or were not sent, but `{self}` must hold"
            ));
        }
        let figure = stat::spread(&values).filter(|figure| figure.mean.is_finite());
        let is_within = figure.is_none_or(|figure| holds(figure.mean));
        let ends = figure.and_then(|figure| figure.interval).map(|ends| ends.map(holds));
        let standing = match ends {
            Some([true, true]) => Standing::Meets,
            Some([false, false]) => Standing::Breaks,
            _ => Standing::NotShown,
        };
        let unsure = figure.filter(|_| standing == Standing::NotShown);
        let rounds = unsure.and_then(|figure| rounds(&figure, limit));
        let words = self.statement(measure, figure, standing, is_within);
        Compliance { standing, is_within, figure, words, rounds }
    }

    /// A verdict has no mean: every run must have it.
    fn verdict(&self, runs: &[&Measured], worst: Verdict) -> Compliance {
        match runs.iter().find(|run| run.verdict > worst) {
            Some(run) => {
                let verdict = run.verdict.name();
                Compliance::broken(format!("a run is {verdict}, but `{self}` must hold"))
            }
            None => Compliance::new(Standing::Meets, format!("`{self}` holds in every run")),
        }
    }

    fn statement(
        &self,
        measure: &Figure,
        figure: Option<Spread>,
        standing: Standing,
        is_within: bool,
    ) -> String {
        let Some(figure) = figure else { return format!("`{self}` holds") };
        let with_unit = |text: String| match measure.unit() {
            "" => text,
            unit => format!("{text} {unit}"),
        };
        let mean = with_unit(stat::figures(figure.mean));
        let over = match figure.repeats {
            1 => String::new(),
            many => format!(" on average over {many} rounds"),
        };
        let interval = figure.interval.map(|[low, high]| {
            let high = with_unit(stat::figures(high));
            format!(", 95 % interval {} to {high}", stat::figures(low))
        });
        let interval = interval.unwrap_or_default();
        let end = match (standing, is_within) {
            (Standing::Meets, _) => format!(": `{self}` holds"),
            (Standing::NotShown, true) => format!("{interval}: `{self}` is not confirmed"),
            (Standing::NotShown, false) if figure.repeats > 1 => {
                format!("{interval}: `{self}` is not refuted")
            }
            _ => format!(", but `{self}` must hold"),
        };
        format!("{measure} is {mean}{over}{end}")
    }
}

/// The least rounds that show the side of a limit on which a mean lies, in nine of ten cases.
fn rounds(figure: &Spread, limit: f64) -> Option<u32> {
    let [low, high] = figure.interval?;
    let were = figure.repeats as f64;
    let quantile = student::quantile(OUTSIDE, were - 1.0);
    let deviation = (high - low) / 2.0 / quantile * were.sqrt();
    let apart = (figure.mean - limit).abs();
    (figure.repeats as u32 + 1..=MOST_ROUNDS).find(|rounds| {
        let rounds = f64::from(*rounds);
        student::detectable(OUTSIDE, rounds - 1.0) * deviation / rounds.sqrt() <= apart
    })
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Constraint {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let text = text.trim();
        Ok(Constraint { threshold: text.parse()?, text: text.to_owned() })
    }
}
