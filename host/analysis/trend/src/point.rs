//! From runs to points: runs of one version, method and machine are one point.

use statistics::student;

use crate::{Change, Point};

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
pub(crate) fn points(runs: &[Run]) -> Vec<Point> {
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
