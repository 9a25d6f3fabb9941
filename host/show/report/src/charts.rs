//! The charts of runs, and their contents. Each chart overlays several runs, except the charts of
//! single requests: every run has its own.
//!
//! Pure: takes the data gathered from the runs and returns charts. `chart` draws them.

mod course;
pub mod curve;
mod distribution;
mod first_token;
pub mod forest;
mod scatter;
mod shown;
mod waterfall;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use shown::RunView;

use super::chart::Chart;
use super::label::engine;
use runs::Reported;

/// The charts of runs, in the order of a page. Figures that were not measured have no chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Charts {
    /// Distributions: for each metric its cumulative distribution and its histogram.
    pub distributions: Vec<Chart>,
    pub course: Vec<Chart>,
    /// The parts of the time to first token.
    pub first_token: Vec<Chart>,
    /// Requests in full.
    pub requests: Vec<Chart>,
    /// Charts of the time to first token over its causes.
    pub dependence: Vec<Chart>,
}

impl Charts {
    pub fn new(runs: &[RunView]) -> Charts {
        let drawn = |charts: Vec<Chart>| -> Vec<Chart> {
            let mut charts = charts;
            charts.retain(|chart| !chart.is_empty());
            charts
        };
        Charts {
            distributions: drawn(distribution::charts(runs)),
            course: drawn(course::chart(runs).into_iter().collect()),
            first_token: drawn(first_token::charts(runs)),
            requests: drawn(waterfall::charts(runs)),
            dependence: drawn(scatter::charts(runs)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Chart> {
        let of_load = self.distributions.iter().chain(&self.course);
        let of_load = of_load.chain(&self.first_token);
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
    let numbered = runs.iter().enumerate();
    numbered.map(|(number, run)| format!("{} {}", number + 1, run.folder)).collect()
}
