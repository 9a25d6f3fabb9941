//! Figures over time: runs of one key become points, and the newest point is judged against the
//! points before it.
//!
//! Runs of one version, or without a version of one day, are one point: their mean with Student's
//! interval. A change of the method or of the machine begins the series anew, so no point is
//! compared across the change. History alone tells too little, because days differ: a step is
//! *suspected* by a pooled t-test, and *confirmed* only by runs of both versions, interleaved on
//! one day ([`confirm`]).
//!
//! Owns points, classes and tests. It leaves reading runs to `store`, and drawing to `report`.

mod judge;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use result::figure::{Better, Figure};
use statistics::difference::StandardError;
use statistics::student;

pub use judge::{LEAST_HISTORY, LEVEL, RECENT, WINDOW, judge};

/// The probability below which a confirming measurement shows a step.
pub const CONFIRMING_LEVEL: f64 = 0.002;

/// The runs that a series has in common, apart from the version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Key {
    /// The model, as the server names it.
    pub model: Option<String>,
    /// The engine.
    pub engine: Option<String>,
    /// The devices that it ran on.
    pub hardware: Option<String>,
    /// The digest of the requests and their load, without the seed.
    pub scenario: String,
}

impl Key {
    /// The key in a line, the digest in short.
    pub fn label(&self) -> String {
        let digest: String = self.scenario.chars().take(8).collect();
        let named = [&self.model, &self.engine, &self.hardware];
        let named = named.into_iter().flatten().map(String::as_str);
        named.chain([digest.as_str()]).collect::<Vec<_>>().join(", ")
    }
}

/// A point of a series: the runs of one version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Point {
    /// The version's tag, or the day of the runs.
    pub version: String,
    /// The start of its first run.
    pub started: String,
    /// The mean of its runs.
    pub value: f64,
    /// The lower end of the 95 % interval; absent if nothing shows it.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The number of runs.
    pub runs: usize,
    /// The changes of method or machine since the point before; the series begins anew here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
}

/// A change that forbids a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Change {
    /// `plan`, `plugins`, `program` or `machine`.
    pub part: String,
    /// The value before; absent if it was not known.
    pub before: Option<String>,
    /// The value since; absent if it is not known.
    pub after: Option<String>,
}

impl Change {
    pub fn label(&self) -> String {
        let short = |value: &Option<String>| match value {
            Some(value) if value.len() > 40 => value.chars().take(8).collect(),
            Some(value) => value.clone(),
            None => "unknown".to_owned(),
        };
        format!("{}: {} before, {} since", self.part, short(&self.before), short(&self.after))
    }
}

model::words! {
    /// The standing of the newest point against its history.
    pub enum Class {
        /// The plan, the plugins or the program differ from the point before.
        MethodChanged = "method-changed",
        /// The machine differs from the point before.
        MachineChanged = "machine-changed",
        /// Too few earlier points are comparable.
        NotEnoughData = "not-enough-data",
        /// No step is shown.
        Unchanged = "unchanged",
        /// The latest points differ from the history, by history alone.
        Suspected = "suspected",
        /// A confirming measurement showed the step.
        Confirmed = "confirmed",
    }
}

/// A step of a series.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// The last version before the step.
    pub last_good: String,
    /// The first version after it.
    pub first_bad: String,
    /// The mean before.
    pub before: f64,
    /// The mean after.
    pub after: f64,
    /// The difference as a share of the mean before; absent if that mean is zero.
    pub share: Option<f64>,
    /// True if the figure got worse; absent if the figure has no better direction.
    pub is_worse: Option<bool>,
    /// The probability of such a step by chance.
    pub p: f64,
}

/// A figure of one key over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Series {
    /// The key of its runs.
    pub key: Key,
    /// The figure's name.
    pub figure: String,
    /// The figure's unit; empty for a share or a number.
    pub unit: String,
    /// The points, the oldest first.
    pub points: Vec<Point>,
    /// The standing of the newest point.
    pub class: Class,
    /// The step that the class names; absent for other classes.
    pub step: Option<Step>,
    /// The further points that a judgement needs; 0 if there are enough.
    pub more: usize,
    /// The standard deviation of points, as a share of their mean; absent with fewer than two.
    pub noise: Option<f64>,
}

impl Series {
    /// The reason for the class, in a line.
    pub fn reason(&self) -> String {
        let newest = self.points.last().map(|point| point.changed.as_slice()).unwrap_or_default();
        let changes = || newest.iter().map(Change::label).collect::<Vec<_>>().join("; ");
        match (self.class, &self.step) {
            (Class::MethodChanged | Class::MachineChanged, _) => {
                format!("the series begins anew: {}", changes())
            }
            (Class::NotEnoughData, _) => {
                let more = self.more;
                format!("{more} more earlier point{} needed", if more == 1 { "" } else { "s" })
            }
            (_, Some(step)) => {
                let share = step.share.map(|share| format!("{:+.1} %", share * 100.0));
                let share = share.unwrap_or_else(|| "from zero".to_owned());
                let word = match step.is_worse {
                    Some(true) => " (worse)",
                    Some(false) => " (better)",
                    None => "",
                };
                let (from, to, p) = (&step.last_good, &step.first_bad, probability(step.p));
                format!("{share}{word} between {from} and {to}, p {p}")
            }
            _ => "no step is shown".to_owned(),
        }
    }
}

/// All series of the chosen runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct Trends {
    pub series: Vec<Series>,
}

/// A confirming measurement, as it was written down.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Confirmed {
    /// The key of its runs.
    pub key: Key,
    /// The figure's name.
    pub figure: String,
    /// The last version before the step.
    pub old_version: String,
    /// The first version after it.
    pub new_version: String,
    /// Its result.
    pub verdict: Verdict,
    /// The probability of the difference by chance.
    pub p: f64,
    /// The time of the measurement, in UTC.
    pub time: String,
}

model::words! {
    /// The result of a confirming measurement.
    pub enum Verdict {
        /// The versions differ.
        Confirmed = "confirmed",
        /// No difference is shown.
        Refuted = "refuted",
    }
}

/// The result of the test of two versions' interleaved runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Confirmation {
    /// The difference of the means, new minus old.
    pub difference: f64,
    /// Its probability by chance, two-sided.
    pub p: f64,
    /// The result.
    pub verdict: Verdict,
}

/// Tests whether two versions differ, by runs that were interleaved on one day: Welch's t-test at
/// [`CONFIRMING_LEVEL`]. With fewer than two runs of a version the probability is 1.
pub fn confirm(old: &[f64], new: &[f64]) -> Confirmation {
    let difference = statistics::mean(new) - statistics::mean(old);
    let of_mean = |values: &[f64]| {
        let count = values.len() as f64;
        let error = (statistics::variance(values)? / count).sqrt();
        Some(StandardError { error, freedom: count - 1.0 })
    };
    let p = of_mean(old).zip(of_mean(new)).map_or(1.0, |(a, b)| {
        let both = StandardError { error: a.error.hypot(b.error), freedom: a.joint_freedom(b) };
        both.probability(difference)
    });
    let verdict = if p <= CONFIRMING_LEVEL { Verdict::Confirmed } else { Verdict::Refuted };
    Confirmation { difference, p, verdict }
}

pub fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

fn is_worse(figure: &str, difference: f64) -> Option<bool> {
    match figure.parse::<Figure>().ok()?.better() {
        Better::Lower => Some(difference > 0.0),
        Better::Higher => Some(difference < 0.0),
        Better::Neither => None,
    }
}

/// The share of cases in which an interval of a point does not hold its mean.
const OUTSIDE: f64 = 0.05;

/// The way in which a run was measured. Runs of different methods are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Method {
    /// The digest of the plan without its seed.
    pub plan: Option<String>,
    /// The plugins with their digests.
    pub plugins: Option<String>,
    /// The program that measured, with its version.
    pub program: Option<String>,
}

/// A figure of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Its start, in UTC: `2026-01-02T03:04:05Z`.
    pub started: String,
    /// Its version's tag; absent if it has none.
    pub version: Option<String>,
    pub method: Method,
    /// The machine that measured; absent if unknown.
    pub machine: Option<String>,
    pub value: f64,
    /// The 95 % interval of the run alone.
    pub interval: Option<[f64; 2]>,
}

impl Run {
    /// The version, else the day of the start.
    fn version(&self) -> &str {
        let day = self.started.split('T').next().unwrap_or_default();
        self.version.as_deref().unwrap_or(day)
    }

    fn is_of_point(&self, other: &Run) -> bool {
        (self.version(), &self.method, &self.machine)
            == (other.version(), &other.method, &other.machine)
    }
}

/// The points, in the order of their first runs. A version that was measured again with the same
/// method and machine keeps its place.
fn points(runs: &[Run]) -> Vec<Point> {
    let mut ordered: Vec<&Run> = runs.iter().filter(|run| run.value.is_finite()).collect();
    ordered.sort_by(|a, b| a.started.cmp(&b.started));
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in ordered {
        match groups.iter_mut().find(|group| group[0].is_of_point(run)) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    let mut before: Option<&Run> = None;
    let point = |group: &Vec<&Run>, before: Option<&Run>| {
        let values: Vec<f64> = group.iter().map(|run| run.value).collect();
        let own = match group.as_slice() {
            [run] => run.interval,
            _ => student::interval(&values, OUTSIDE).map(|own| [own.low, own.high]),
        };
        Point {
            version: group[0].version().to_owned(),
            started: group[0].started.clone(),
            value: statistics::mean(&values),
            low: own.map(|[low, _]| low),
            high: own.map(|[_, high]| high),
            runs: group.len(),
            changed: before.map(|before| changes(before, group[0])).unwrap_or_default(),
        }
    };
    let mut points = Vec::with_capacity(groups.len());
    for group in &groups {
        points.push(point(group, before));
        before = Some(group[0]);
    }
    points
}

fn changes(before: &Run, after: &Run) -> Vec<Change> {
    let (a, b) = (&before.method, &after.method);
    let parts = [
        ("plan", &a.plan, &b.plan),
        ("plugins", &a.plugins, &b.plugins),
        ("program", &a.program, &b.program),
        ("machine", &before.machine, &after.machine),
    ];
    let changed = parts.into_iter().filter(|(_, before, after)| before != after);
    let change = |(part, before, after): (&str, &Option<String>, &Option<String>)| Change {
        part: part.to_owned(),
        before: before.clone(),
        after: after.clone(),
    };
    changed.map(change).collect()
}
