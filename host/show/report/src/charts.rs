//! The charts of runs, and what each shows. Each chart overlays several runs, except the charts of
//! single requests, of which every run has its own.
//!
//! Pure: takes the data gathered from the runs and returns charts. `chart` draws them.

mod course;
pub mod curve;
mod distribution;
pub mod forest;
mod scatter;
mod waterfall;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use super::chart::{Chart, Key, Tone, scale};
use super::view::View;
use model::number::{short, significant};
use runs::Reported;

/// A run that is shown.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its name among the runs shown with it.
    pub label: String,
    /// The facts about it, except its exchanges.
    pub reported: Reported,
    /// The view of its exchanges.
    pub view: View,
}

/// The charts of runs, in the order of a page. Figures that were not measured have no chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Charts {
    /// Distributions: for each metric its cumulative distribution and its histogram.
    pub distributions: Vec<Chart>,
    /// The course over time.
    pub course: Vec<Chart>,
    /// Requests in full.
    pub requests: Vec<Chart>,
    /// Charts of the time to first token over what it depends on.
    pub dependence: Vec<Chart>,
}

impl Charts {
    /// The charts of these runs.
    pub fn of(runs: &[Shown]) -> Charts {
        let drawn = |charts: Vec<Chart>| -> Vec<Chart> {
            let mut charts = charts;
            charts.retain(|chart| !chart.is_empty());
            charts
        };
        Charts {
            distributions: drawn(distribution::charts(runs)),
            course: drawn(course::chart(runs).into_iter().collect()),
            requests: drawn(waterfall::charts(runs)),
            dependence: drawn(scatter::charts(runs)),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Chart> {
        let of_load = self.distributions.iter().chain(&self.course);
        of_load.chain(&self.requests).chain(&self.dependence)
    }
}

/// Names of runs that are shown together, by the first of these that distinguishes them: engine and
/// version, name, folder; else by folder and number.
pub fn labels(runs: &[Reported]) -> Vec<String> {
    let engine = |run: &Reported| {
        let about = &run.plan.about;
        let engine = about.engine.as_deref()?;
        let version = about.engine_version.as_deref();
        Some(version.map_or(engine.to_owned(), |version| format!("{engine} {version}")))
    };
    let engines: Option<Vec<String>> = runs.iter().map(engine).collect();
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
    let numbered = runs.iter().enumerate();
    numbered
        .map(|(number, run)| format!("{} {}", number + 1, run.folder))
        .collect()
}

/// A key for each run.
fn keys(runs: &[Shown]) -> Vec<Key> {
    let numbered = runs.iter().enumerate();
    numbered
        .map(|(number, run)| Key {
            label: run.label.clone(),
            tone: Tone::Series(number),
        })
        .collect()
}

/// The unit for spans of time up to a number of milliseconds, and its length in milliseconds.
fn time_unit(longest_ms: f64) -> (&'static str, f64) {
    if longest_ms >= 20_000.0 {
        ("s", 1000.0)
    } else {
        ("ms", 1.0)
    }
}

/// A span of time in words.
fn milliseconds(ms: f64) -> String {
    let (unit, divisor) = time_unit(ms);
    format!("{} {unit}", significant(ms / divisor, 4))
}

/// A chosen span of time in words, such as where a bar ends.
fn chosen_milliseconds(ms: f64) -> String {
    let (unit, divisor) = time_unit(ms);
    format!("{} {unit}", short(ms / divisor, 4))
}

/// An instant of a run in words.
fn seconds(s: f64) -> String {
    format!("{} s", short(s, 4))
}

/// The nearest lower 1, 2 or 5 times a power of ten, at which a logarithmic axis may begin.
fn round_begin(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let factor = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|f| f * power <= value * 1.000_001);
    factor.unwrap_or(1.0) * power
}

/// The end of an axis from zero that includes a value.
fn end(value: f64) -> f64 {
    scale::round_end(value, 6)
}

/// One sentence per run, each with the run's name if there are several.
fn sentences(runs: &[Shown], of: impl Fn(usize) -> Option<String>) -> String {
    let several = runs.len() > 1;
    let sentences = runs.iter().enumerate().filter_map(|(number, run)| {
        let sentence = of(number)?;
        Some(match several {
            true => format!("{}: {sentence}", run.label),
            false => sentence,
        })
    });
    sentences.collect::<Vec<_>>().join(" ")
}
