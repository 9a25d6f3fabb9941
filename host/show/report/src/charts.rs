//! The charts of runs, and their contents. Each chart overlays several runs, except the charts of
//! single requests: every run has its own.
//!
//! Pure: takes the data gathered from the runs and returns charts. `chart` draws them.

mod course;
pub mod curve;
mod distribution;
mod first_token;
pub mod forest;
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
use model::number::{count, percent, short, significant};
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
