//! Several runs' figures side by side, each with its difference from the first run's. `compare`
//! decides which differences are more than chance.

use std::collections::BTreeSet;

use serde::Serialize;

use super::figures::{self, HEADLINE};
use crate::charts::Shown;
use crate::compared::obstacle_words;
use compare::{Compared, Judgement, Obstacle, letter};
use model::number::{change, percent, significant};
use result::figure::{Better, Figure, Statistic, WHOLE};

/// A figure of every run.
#[derive(Serialize)]
pub(super) struct Row {
    label: String,
    metric: Option<&'static str>,
    unit: &'static str,
    cells: Vec<Cell>,
}

/// A run's figure; empty if it was not measured.
#[derive(Default, Serialize)]
struct Cell {
    value: String,
    /// The difference from the first run's.
    by: Option<String>,
    class: &'static str,
    word: Option<&'static str>,
}

/// The result of comparing every further run with the first, or why they are not comparable.
pub type Comparison = Result<Compared, Vec<Obstacle>>;

/// Differences between runs that should agree, for people.
pub(super) fn obstacles(runs: &[Shown], compared: &Comparison) -> Vec<String> {
    let Err(obstacles) = compared else {
        return Vec::new();
    };
    let words = obstacles.iter().map(|obstacle| {
        let mut named = obstacle.clone();
        let mut lettered = (0..).map(letter).zip(runs);
        if let Some((_, run)) = lettered.find(|(letter, _)| *letter == obstacle.difference.side) {
            named.difference.side.clone_from(&run.label);
        }
        obstacle_words(&named, &runs[0].label)
    });
    words.collect()
}

/// The figures that any of the runs has.
pub(super) fn rows(runs: &[Shown], compared: &Comparison) -> Vec<Row> {
    let row = |figure, label, metric| row(runs, compared, figure, label, metric);
    let whole = WHOLE.iter().enumerate().map(|(place, whole)| {
        let label = whole.label.to_owned();
        (whole.better, row(Figure::Whole(place), label, None))
    });
    let statistics = [
        (Statistic::Mean, "mean"),
        (Statistic::Percentile(50.0), "median"),
        (Statistic::Percentile(99.0), "P99"),
    ];
    let of_metrics = HEADLINE.into_iter().flat_map(|metric| {
        statistics.map(|(statistic, name)| {
            let label = format!("{}, {name}", figures::label(metric));
            row(Figure::Of(metric, statistic), label, Some(metric))
        })
    });
    let names = runs.iter().flat_map(|run| {
        let summary = &run.reported.summary;
        summary.scores.keys().chain(summary.run_scores.keys())
    });
    let names: BTreeSet<&String> = names.collect();
    let scores = names.into_iter().map(|name| {
        let figure = Figure::Score(name.clone());
        let label = figure.to_string();
        row(figure, label, None)
    });
    // What is better or worse comes before what only says how much there was.
    let (good, plain): (Vec<_>, Vec<_>) = whole.partition(|(better, _)| *better != Better::Neither);
    let wholes = good.into_iter().chain(plain).map(|(_, row)| row);
    of_metrics
        .chain(scores)
        .chain(wholes)
        .filter(|row| row.cells.iter().any(|cell| !cell.value.is_empty()))
        .collect()
}

fn row(
    runs: &[Shown],
    compared: &Comparison,
    figure: Figure,
    label: String,
    metric: Option<&'static str>,
) -> Row {
    let name = figure.to_string();
    let is_share = matches!(
        name.as_str(),
        "requests.success-share"
            | "goodput.slo-attainment"
            | "devices.mean-utilization"
            | "devices.throttled-share"
    );
    let told = |value: f64| match is_share {
        true => percent(value),
        false => significant(value, 4),
    };
    let first = figure.read(&runs[0].reported.summary);
    let cells = runs.iter().enumerate().map(|(number, run)| {
        let Some(value) = figure.read(&run.reported.summary) else {
            return Cell::default();
        };
        let apart = first.filter(|first| number > 0 && *first != 0.0);
        let by = apart.map(|first| (value - first) / first * 100.0);
        let judged = compared.as_ref().ok();
        let judged = judged.and_then(|compared| compared.row(&letter(number), &name)?.judgement);
        let (class, word, arrow) = match (judged, by) {
            (Some(Judgement::Better), Some(by)) => ("better", Some("better"), arrow(by)),
            (Some(Judgement::Worse), Some(by)) => ("worse", Some("worse"), arrow(by)),
            _ => ("", None, ""),
        };
        Cell {
            value: told(value),
            by: by.map(|by| format!("{arrow}{}", change(by).replace('-', "\u{2212}"))),
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
    match by > 0.0 {
        true => "▲ ",
        false => "▼ ",
    }
}
