//! The charts of runs, and their contents. Each chart overlays several runs, except the charts of
//! single requests: every run has its own.
//!
//! Pure: takes the data gathered from the runs and returns charts. `chart` draws them.

mod course;
pub mod curve;
mod distribution;
mod first_token;
pub(crate) mod lanes;
mod scatter;
mod waterfall;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use super::chart::{Cell, Chart, Key, Point, Tone, scale};
use super::label::engine;
use super::view::View;
use crate::chart::{Axis, Form, Mark, Panel, Rows, Rule, Shape, Side, Snap, Ticks};
use model::number::{self, count, percent, short, significant};
use runs::Reported;

/// The charts of runs, in the order of a page. Figures that were not measured have no chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Charts {
    /// Distributions: for each metric its cumulative distribution and its histogram.
    pub distributions: Vec<Chart>,
    pub course: Vec<Chart>,
    pub first_token: Vec<Chart>,
    pub requests: Vec<Chart>,
    /// Charts of the time to first token over its causes.
    pub dependence: Vec<Chart>,
}

impl Charts {
    pub fn new(runs: &[RunView]) -> Charts {
        let drawn = |mut charts: Vec<Chart>| {
            charts.retain(|chart| !chart.is_empty());
            charts
        };
        Charts {
            distributions: drawn(distribution::charts(runs)),
            course: drawn(course::chart(runs).into_iter().collect()),
            first_token: drawn(first_token::charts(runs)),
            requests: drawn([lanes::charts(runs), waterfall::charts(runs)].concat()),
            dependence: drawn(scatter::charts(runs)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Chart> {
        let of_load = self.distributions.iter().chain(&self.course).chain(&self.first_token);
        of_load.chain(&self.requests).chain(&self.dependence)
    }
}

/// Names of runs that are shown together, by the first of these that distinguishes them: engine and
/// version, name, folder; else by folder and number.
pub fn labels(runs: &[Reported]) -> Vec<String> {
    let engines: Option<Vec<String>> = runs.iter().map(|run| engine(&run.plan.about)).collect();
    let names = runs.iter().map(|run| run.plan.name.clone()).collect();
    let folders = runs.iter().map(|run| run.folder.clone()).collect();
    for labels in [engines, Some(names), Some(folders)] {
        let apart = |labels: &Vec<String>| {
            let distinct: std::collections::BTreeSet<&String> = labels.iter().collect();
            distinct.len() == labels.len() && labels.iter().all(|label| !label.trim().is_empty())
        };
        if let Some(labels) = labels.filter(apart) {
            return labels;
        }
    }
    runs.iter().enumerate().map(|(number, run)| format!("{} {}", number + 1, run.folder)).collect()
}

#[derive(Clone, Debug)]
pub struct RunView {
    /// Its name among the runs shown with it.
    pub label: String,
    /// The facts about it, except its exchanges.
    pub reported: Reported,
    pub view: View,
}

fn keys(runs: &[RunView]) -> Vec<Key> {
    let keys = runs.iter().enumerate();
    keys.map(|(number, run)| Key { label: run.label.clone(), tone: Tone::Series(number) }).collect()
}

/// The name and the title of a chart of one run; with its number and label if there are several.
fn of_run(runs: &[RunView], number: usize, name: &str, title: &str) -> [String; 2] {
    match runs {
        [_] => [name.to_owned(), title.to_owned()],
        _ => [format!("{name}-{}", number + 1), format!("{title}: {}", runs[number].label)],
    }
}

/// The unit for spans of time up to a number of milliseconds, and its length in milliseconds.
fn time_unit(longest_ms: f64) -> (&'static str, f64) {
    if longest_ms >= 20_000.0 { ("s", 1000.0) } else { ("ms", 1.0) }
}

fn milliseconds(ms: f64) -> String {
    let (unit, divisor) = time_unit(ms);
    format!("{} {unit}", significant(ms / divisor, 4))
}

/// A chosen span of time as text, such as the end of a bar.
fn chosen_milliseconds(ms: f64) -> String {
    let (unit, divisor) = time_unit(ms);
    format!("{} {unit}", short(ms / divisor, 4))
}

fn seconds(s: f64) -> String {
    format!("{} s", short(s, 4))
}

/// The nearest lower 1, 2 or 5 times a power of ten, at which a logarithmic axis may begin.
fn round_begin(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factor = [5.0, 2.0, 1.0].into_iter().find(|f| f * power <= value * 1.000_001);
    factor.unwrap_or(1.0) * power
}

/// The end of an axis from zero that includes a value.
fn end(value: f64) -> f64 {
    scale::round_end(value, 6)
}

/// One sentence per run, each with the run's name if there are several.
fn sentences(runs: &[RunView], of: impl Fn(usize) -> Option<String>) -> String {
    let several = runs.len() > 1;
    let sentences = runs.iter().enumerate().filter_map(|(number, run)| {
        let sentence = of(number)?;
        Some(if several { format!("{}: {sentence}", run.label) } else { sentence })
    });
    sentences.collect::<Vec<_>>().join(" ")
}

/// The points and cells of a histogram's bars, each with its ends and its number of samples.
pub(crate) fn histogram(bars: Vec<(f64, f64, u64)>, total: u64) -> (Vec<Point>, Vec<Option<Cell>>) {
    let bars = bars.into_iter().map(|(x, to, samples)| {
        let y = samples as f64 / total as f64;
        let text = format!("{} ({})", percent(y), count(samples));
        (Point { x, to, y: Some(y) }, Some(Cell { x: (x + to) / 2.0, y, text }))
    });
    bars.unzip()
}

// Differences from something, one below the other, each with its interval: a forest plot.
//
// Labs say which differences; these functions make a chart of them.

/// Pixels from a row to the next: its name, and below it the interval.
const ROW: f64 = 40.0;

/// The axis reaches at least so far to both sides.
const LEAST: f64 = 0.01;

/// The axis reaches at most this multiple of the shorter intervals: few repeats give wide ones.
const FURTHEST: f64 = 2.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// Its name, unique in its page.
    pub name: String,
    pub title: String,
    pub note: String,
    pub x: String,
    /// The meaning of zero: `the baseline`.
    pub zero: String,
    pub rows: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub name: String,
    /// The size, as a share: 0.1 is 10 % better.
    pub share: f64,
    /// The ends of its interval; absent if there is none.
    pub interval: Option<[f64; 2]>,
    /// True if it is shown to be more, false if less; absent if it may be chance.
    pub is_better: Option<bool>,
    /// The difference as text, with its interval.
    pub text: String,
}

pub fn chart(forest: &Forest) -> Chart {
    let kinds = [
        (Some(true), "better", Tone::Spots(2)),
        (None, "no difference shown", Tone::Spots(5)),
        (Some(false), "worse", Tone::Failed),
    ];
    let has = |kind: &Option<bool>| forest.rows.iter().any(|row| row.is_better == *kind);
    let kinds: Vec<_> = kinds.into_iter().filter(|(kind, ..)| has(kind)).collect();
    let (low, high) = ends(&forest.rows);
    // An interval that leaves the drawing has its ends in its row's name.
    let name = |row: &Difference| match row.interval {
        Some([from, to]) if from < low - 1e-9 || to > high + 1e-9 => {
            format!("{} ({} to {})", row.name, signed(from), signed(to))
        }
        _ => row.name.clone(),
    };
    let marks = kinds.iter().enumerate().flat_map(|(key, (kind, head, _))| {
        let rows = || forest.rows.iter().enumerate();
        let own = || rows().filter(|(_, row)| row.is_better == *kind);
        let intervals = own().filter_map(|(at, row)| {
            let [x, to] = row.interval?;
            Some(Point { x, to, y: Some(at as f64) })
        });
        let spots = own().map(|(at, row)| Point::at(row.share, at as f64));
        let cells = rows().map(|(at, row)| {
            let is_own = row.is_better == *kind;
            is_own.then(|| Cell { x: row.share, y: at as f64, text: row.text.clone() })
        });
        [
            Mark::new(key, Shape::Spans(2.0), intervals.collect()),
            Mark::new(key, Shape::Spots, spots.collect()).with_column(*head, cells.collect()),
        ]
    });
    let marks = marks.collect();
    let count = forest.rows.len() as f64;
    let y = Axis::new("", -0.8, count - 0.6, Ticks::Names);
    let seen = forest.rows.iter().map(|row| format!("{}: {}.", row.name, row.text));
    Chart {
        name: forest.name.clone(),
        title: forest.title.clone(),
        note: forest.note.clone(),
        seen: seen.collect::<Vec<_>>().join(" "),
        x: Axis::new(forest.x.clone(), low, high, Ticks::Percent),
        panels: vec![Panel {
            rules: vec![Rule::new(Side::X, 0.0, forest.zero.clone())],
            ..Panel::new(y, (count + 0.2) * ROW, marks)
        }],
        keys: kinds
            .into_iter()
            .map(|(_, label, tone)| Key { label: label.to_owned(), tone })
            .collect(),
        rows: Rows::new("Of", forest.rows.iter().map(name).collect(), Snap::Y),
        log: None,
        form: Form::Full,
    }
}

/// A share in percent, with its sign: `+12 %`.
fn signed(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

/// The ends of the axis: it holds zero, every difference, and most of each interval.
fn ends(rows: &[Difference]) -> (f64, f64) {
    let largest = rows.iter().map(|row| row.share.abs()).fold(LEAST, f64::max);
    let reaches = rows.iter().filter_map(|row| row.interval);
    let mut reaches: Vec<f64> = reaches.map(|[low, high]| low.abs().max(high.abs())).collect();
    reaches.sort_by(f64::total_cmp);
    let middle = reaches.get(reaches.len().saturating_sub(1) / 2).copied();
    let far = (largest * 1.25).max(FURTHEST * middle.unwrap_or(0.0));
    let ends = rows.iter().flat_map(|row| row.interval.unwrap_or([row.share; 2]));
    let (low, high) = ends
        .fold((-LEAST, LEAST), |(low, high), end| (low.min(end.max(-far)), high.max(end.min(far))));
    let step = number::round_step(high - low, 8);
    ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
}
