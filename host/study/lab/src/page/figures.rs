//! The figures of every trial on every scenario, and one figure of all models and scenarios at a
//! glance.

use report::document::{Cell, Document, Table};
use report::label::label;

use super::doubts::mark_of;
use super::words::{figure, spread};
use crate::findings::{LabReport, StudyReport, TrialReport};

/// The figures of the tables.
const COLUMNS: [&str; 11] = [
    "requests.success-share",
    "throughput.requests-per-s",
    "throughput.output-tokens-per-s",
    "throughput.total-tokens-per-s",
    "ttft.mean",
    "ttft.p99",
    "tpot.mean",
    "tpot.p99",
    "e2e.mean",
    "devices.energy-per-million-output-tokens",
    "cost.per-million-output-tokens",
];

/// The figure that is shown at a glance.
const FIRST: &str = "throughput.output-tokens-per-s";

/// A trial's name, with its model where there are several.
fn name(study: &StudyReport, trial: &TrialReport) -> String {
    match study.model.as_str() {
        "" => trial.label.clone(),
        model => format!("{model}, {}", trial.label),
    }
}

/// A row for each model's trial, a column for each scenario, if there are several of either.
pub(super) fn overview(page: &mut Document, report: &LabReport) {
    let first = ["Trial".to_owned()].into_iter();
    let names = report.scenarios.iter().map(|scenario| scenario.name.clone());
    let mut table = Table::new(first.chain(names));
    for study in &report.studies {
        for trial in &study.trials {
            let cell = |scenario: &str| {
                let figure = spread(trial.figures.get(scenario)?.get(FIRST)?);
                Some(format!("{figure}{}", mark_of(trial, scenario)))
            };
            let cells: Vec<Option<String>> =
                report.scenarios.iter().map(|scenario| cell(&scenario.name)).collect();
            if cells.iter().any(Option::is_some) {
                let cells = cells.into_iter().map(Option::unwrap_or_default);
                table.row([name(study, trial)].into_iter().chain(cells));
            }
        }
    }
    if table.rows.len() > 1 || report.scenarios.len() > 1 {
        page.say(&format!("{} of each model on each scenario:", label(FIRST)));
        page.table(table);
    }
}

/// The figures of every trial on every scenario that any of them has, the models below one another.
pub(super) fn figures(page: &mut Document, report: &LabReport) {
    page.heading(2, "Figures");
    for scenario in &report.scenarios {
        let measured: Vec<_> = (report.studies.iter())
            .flat_map(|study| study.trials.iter().map(move |trial| (study, trial)))
            .filter_map(|(study, trial)| Some((study, trial, trial.figures.get(&scenario.name)?)))
            .collect();
        if measured.is_empty() {
            continue;
        }
        let has = |name: &&str| measured.iter().any(|(.., figures)| figures.contains_key(*name));
        let columns: Vec<&str> = COLUMNS.into_iter().filter(has).collect();
        let head = columns.iter().map(|name| label(name));
        let mut table = Table::new(["Trial".to_owned()].into_iter().chain(head));
        for (study, trial, figures) in measured {
            let cells = columns.iter().map(|name| {
                let value = figures.get(*name);
                Cell::from(value.map(|value| figure(name, value)).unwrap_or_default())
            });
            let mark = mark_of(trial, &scenario.name);
            let name = Cell::from(format!("{}{mark}", name(study, trial)));
            table.row([name].into_iter().chain(cells));
        }
        page.heading(3, scenario.name.as_str());
        page.table(table);
    }
}
