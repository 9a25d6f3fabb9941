//! Several runs' figures side by side, each with how far it is from the first run's.

use serde::Serialize;

use super::figures::{self, HEADLINE};
use crate::figure::{Better, Figure, Statistic, WHOLE};
use crate::report::chart::number::{percent, significant};
use crate::report::charts::Shown;

/// A figure of every run.
#[derive(Serialize)]
pub(super) struct Row {
    label: String,
    metric: Option<&'static str>,
    unit: &'static str,
    cells: Vec<Cell>,
}

/// A run's figure; empty where it was not measured.
#[derive(Default, Serialize)]
struct Cell {
    value: String,
    /// How far it is from the first run's.
    by: Option<String>,
    class: &'static str,
    word: Option<&'static str>,
}

/// The figures that any of the runs has; none of a run that is alone.
pub(super) fn rows(runs: &[Shown]) -> Vec<Row> {
    if runs.len() < 2 {
        return Vec::new();
    }
    let whole = WHOLE.iter().enumerate().map(|(place, whole)| {
        let label = whole.label.to_owned();
        (whole.better, row(runs, &Figure::Whole(place), label, None))
    });
    let statistics = [
        (Statistic::Mean, "mean"),
        (Statistic::Percentile(50.0), "median"),
        (Statistic::Percentile(99.0), "P99"),
    ];
    let of_metrics = HEADLINE.into_iter().flat_map(|metric| {
        statistics.map(|(statistic, name)| {
            let label = format!("{}, {name}", figures::label(metric));
            row(runs, &Figure::Of(metric, statistic), label, Some(metric))
        })
    });
    // What is better or worse comes before what only says how much there was.
    let (good, plain): (Vec<_>, Vec<_>) = whole.partition(|(better, _)| *better != Better::Neither);
    let wholes = good.into_iter().chain(plain).map(|(_, row)| row);
    of_metrics
        .chain(wholes)
        .filter(|row| row.cells.iter().any(|cell| !cell.value.is_empty()))
        .collect()
}

fn row(runs: &[Shown], figure: &Figure, label: String, metric: Option<&'static str>) -> Row {
    let values: Vec<Option<f64>> = runs
        .iter()
        .map(|run| figure.read(&run.reported.summary))
        .collect();
    let first = values[0];
    let is_share = matches!(
        figure.to_string().as_str(),
        "requests.success-share" | "goodput.slo-attainment"
    );
    let told = |value: f64| match is_share {
        true => percent(value),
        false => significant(value, 4),
    };
    let cells = values.iter().enumerate().map(|(number, value)| {
        let Some(value) = *value else {
            return Cell::default();
        };
        let apart = first.filter(|first| number > 0 && *first != 0.0);
        let by = apart.map(|first| (value - first) / first * 100.0);
        let worth = by.map(|by| (by > 0.0, figure.better()));
        let (class, word) = match worth {
            Some((_, Better::Neither)) | None => ("", None),
            Some(_) if by.is_some_and(|by| by.abs() < 0.05) => ("", None),
            Some((true, Better::Higher)) | Some((false, Better::Lower)) => {
                ("better", Some("better"))
            }
            Some(_) => ("worse", Some("worse")),
        };
        Cell {
            value: told(value),
            by: by.map(|by| format!("{}{:+.1} %", arrow(by), by).replace('-', "\u{2212}")),
            class,
            word,
        }
    });
    Row {
        label,
        metric,
        unit: figure.unit(),
        cells: cells.collect(),
    }
}

fn arrow(by: f64) -> &'static str {
    match by {
        by if by >= 0.05 => "▲ ",
        by if by <= -0.05 => "▼ ",
        _ => "",
    }
}
