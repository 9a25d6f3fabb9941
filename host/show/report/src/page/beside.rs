//! Several runs' figures side by side, each with its difference from the first run's. `compare`
//! decides which differences are more than chance.

use std::collections::BTreeSet;

use super::figures::{self, HEADLINE};
use crate::charts::RunView;
use crate::compared::obstacle_words;
use crate::document::{Cell, Fit, Span, Table, Text, Tone};
use compare::{Compared, Judgement, Obstacle, letter};
use model::number::{change, percent, significant};
use result::figure::{Better, Figure, Statistic, WHOLE};

/// The result of comparing every further run with the first, or why they are not comparable.
pub type Comparison = Result<Compared, Vec<Obstacle>>;

/// Differences between runs that should agree, for people.
pub(super) fn obstacles(runs: &[RunView], compared: &Comparison) -> Vec<Text> {
    let Err(obstacles) = compared else { return Vec::new() };
    let words = obstacles.iter().map(|obstacle| {
        let mut named = obstacle.clone();
        let mut lettered = (0..).map(letter).zip(runs);
        if let Some((_, run)) = lettered.find(|(letter, _)| *letter == obstacle.difference.side) {
            named.difference.side.clone_from(&run.label);
        }
        Text::plain(obstacle_words(&named, &runs[0].label))
    });
    words.collect()
}

pub(super) fn table(runs: &[RunView], compared: &Comparison) -> Table {
    let row = |figure, name| row(runs, compared, &figure, name);
    let whole = WHOLE.iter().enumerate().map(|(place, whole)| {
        let name = Span::Plain(whole.label.to_owned());
        (whole.better, row(Figure::Whole(place), name))
    });
    let statistics = [
        (Statistic::Mean, "mean"),
        (Statistic::Percentile(50.0), "median"),
        (Statistic::Percentile(99.0), "P99"),
    ];
    let of_metrics = HEADLINE.into_iter().flat_map(|metric| {
        statistics.map(|(statistic, name)| {
            let label = format!("{}, {name}", figures::label(metric));
            row(Figure::Of(metric, statistic), Span::Term(label, metric))
        })
    });
    let names = runs.iter().flat_map(|run| {
        let summary = &run.reported.summary;
        summary.scores.keys().chain(summary.run_scores.keys())
    });
    let names: BTreeSet<&String> = names.collect();
    let scores = names.into_iter().map(|name| {
        let figure = Figure::Score(name.clone());
        let name = Span::Plain(figure.to_string());
        row(figure, name)
    });
    // Figures that are better or worse come before plain amounts.
    let (good, plain): (Vec<_>, Vec<_>) = whole.partition(|(better, _)| *better != Better::Neither);
    let wholes = good.into_iter().chain(plain).map(|(_, row)| row);
    let names = runs.iter().map(|run| run.label.as_str());
    let mut table = Table::new(["Figure"].into_iter().chain(names));
    table.fit = Fit::Narrow;
    for row in of_metrics.chain(scores).chain(wholes).flatten() {
        table.row(row);
    }
    table
}

/// A figure of every run, if any has it.
fn row(runs: &[RunView], compared: &Comparison, figure: &Figure, label: Span) -> Option<Vec<Cell>> {
    let name = figure.to_string();
    let is_share = matches!(
        name.as_str(),
        "requests.success-share"
            | "goodput.slo-attainment"
            | "devices.mean-utilization"
            | "devices.throttled-share"
    );
    let text = |value: f64| if is_share { percent(value) } else { significant(value, 4) };
    let values = runs.iter().map(|run| figure.read(&run.reported.summary));
    let values: Vec<Option<f64>> = values.collect();
    values.iter().find(|value| value.is_some())?;
    let first = values[0].filter(|first| *first != 0.0);
    let cells = values.iter().enumerate().map(|(number, value)| {
        let mut cell = Vec::new();
        cell.extend(value.map(|value| Span::Plain(text(value))));
        if number > 0 && value.is_some() {
            let by = value.zip(first).map(|(value, first)| (value - first) / first * 100.0);
            let judged = compared.as_ref().ok();
            let judged = judged.and_then(|of| of.row(&letter(number), &name)?.judgement);
            let (tone, arrow) = match (judged, by) {
                (Some(Judgement::Better), Some(by)) => (Tone::Good, arrow(by)),
                (Some(Judgement::Worse), Some(by)) => (Tone::Bad, arrow(by)),
                _ => (Tone::Plain, ""),
            };
            let by = by.map(|by| change(by).replace('-', "\u{2212}"));
            let words = format!("{arrow}{}", by.unwrap_or_default());
            cell.push(Span::Change(words, tone));
        }
        Cell::from(Text(cell))
    });
    let name = Cell::from(Text(vec![label, Span::Unit(figure.unit())]));
    Some(std::iter::once(name).chain(cells).collect())
}

fn arrow(by: f64) -> &'static str {
    if by > 0.0 { "▲ " } else { "▼ " }
}
