//! Throughput and latency over the load, and the Pareto front of each scenario: charts, and tables
//! of the same figures.

use report::charts::curve::{Line, Plane, Plot, Spot, Style, chart, front};
use report::document::{Document, Table};
use report::label::label;
use report::search::{amount, unit};
use report::sweep::{knee_rule, spot};

use super::of_model;
use super::words::{number, spread, with_margin};
use crate::findings::{Front, LabReport, LoadCurves, StudyReport};
use search::sweep::Mean;

/// The most trials that a chart draws; a table has all of them.
const MOST_LINES: usize = 12;

/// The throughput-latency curves of a study, if it has scenarios that differ only in their load.
pub(super) fn curves(
    page: &mut Document,
    report: &LabReport,
    study: &StudyReport,
    study_at: usize,
) {
    if study.curves.is_empty() {
        return;
    }
    page.heading(2, format!("Throughput and latency{}", of_model(report, study)));
    page.say(
        "Scenarios that differ only in their load are points of one curve; further right and further down is better. \
         Beyond the knee, more load brings latency and little throughput. A point is on the Pareto front if no point of \
         any trial has as much throughput and as little latency.",
    );
    for (at, curves) in study.curves.iter().enumerate() {
        page.heading(3, curves.name.as_str());
        page.chart(chart(&plot(curves, format!("curve-{}-{}", study_at + 1, at + 1))));
        page.table(table(curves));
        knees(page, curves);
    }
}

fn plot(curves: &LoadCurves, name: String) -> Plot {
    let figures = [curves.figures[0].as_str(), &curves.figures[1]];
    let several = curves.lines.len() > 1;
    let drawn = curves.lines.iter().take(MOST_LINES);
    let point = |place: &_| spot(figures, curves.load, place);
    let lines = drawn.clone().map(|line| Line {
        label: line.label.clone(),
        shape: Style::Joined,
        spots: line.curve.places.iter().filter_map(point).collect(),
    });
    let places = curves.lines.iter().flat_map(|line| &line.curve.places);
    let on_front = places.filter(|place| place.on_front == Some(true));
    let rules = drawn.clone().filter_map(|line| {
        let name = if several { format!("knee of {}", line.label) } else { "knee".to_owned() };
        Some(knee_rule(&name, curves.load, line.curve.knee.as_ref()?))
    });
    let left_out = match curves.lines.len().saturating_sub(MOST_LINES) {
        0 => String::new(),
        more => format!(" {more} more trials are in the table."),
    };
    Plot {
        name,
        title: format!("Throughput and latency: {}", curves.name),
        note: format!("One point for each load, joined from the lowest to the highest.{left_out}"),
        x: label(figures[0]),
        head: "Load".to_owned(),
        panels: vec![Plane {
            y: label(figures[1]),
            is_share: false,
            lines: lines.chain(front(on_front.filter_map(point))).collect(),
            rules: rules.collect(),
        }],
        bands: Vec::new(),
        is_named: true,
    }
}

fn mean(value: Option<Mean>) -> String {
    value.map(|value| with_margin(value.mean, value.margin)).unwrap_or_default()
}

fn table(curves: &LoadCurves) -> Table {
    let mut table = Table::new([
        "Trial".to_owned(),
        format!("Load ({})", unit(curves.load)),
        label(&curves.figures[0]),
        label(&curves.figures[1]),
        "On the front".to_owned(),
    ]);
    for line in &curves.lines {
        for place in &line.curve.places {
            table.row([
                line.label.clone(),
                place.at.to_string(),
                mean(place.throughput),
                mean(place.latency),
                if place.on_front == Some(true) { "yes" } else { "" }.to_owned(),
            ]);
        }
    }
    table
}

/// The knee of each line that has one.
fn knees(page: &mut Document, curves: &LoadCurves) {
    let mut table = Table::new(["Trial", "Knee", "Throughput there"]);
    for line in &curves.lines {
        if let Some(knee) = &line.curve.knee {
            table.row([line.label.clone(), amount(curves.load, knee.at), number(knee.throughput)]);
        }
    }
    if table.rows.is_empty() {
        page.say(
            "No knee is shown: a knee needs five loads or more, and throughput that stops following them.",
        )
    } else {
        page.table(table)
    }
}

/// The Pareto front of each scenario that has several trials.
pub(super) fn fronts(
    page: &mut Document,
    report: &LabReport,
    study: &StudyReport,
    study_at: usize,
) {
    let several = |front: &&Front| front.points.len() > 1;
    let drawn: Vec<&Front> = study.pareto.iter().filter(several).collect();
    if drawn.is_empty() {
        return;
    }
    page.heading(2, format!("Pareto front{}", of_model(report, study)));
    page.say(
        "A trial is on the front if no other trial is at least as good in both figures and better in one, by their means.",
    );
    for (at, front) in drawn.into_iter().enumerate() {
        page.heading(3, front.scenario.as_str());
        page.chart(chart(&plane(front, format!("front-{}-{}", study_at + 1, at + 1))));
        let mut table = Table::new([
            "Trial".to_owned(),
            label(&front.figures[0]),
            label(&front.figures[1]),
            "On the front".to_owned(),
        ]);
        for point in &front.points {
            table.row([
                point.label.clone(),
                spread(&point.at[0]),
                spread(&point.at[1]),
                if point.is_on_front { "yes" } else { "" }.to_owned(),
            ]);
        }
        page.table(table);
    }
}

fn plane(pareto: &Front, name: String) -> Plot {
    let [x, y] = pareto.figures.each_ref().map(|figure| label(figure));
    let spots = |wanted: bool| -> Vec<Spot> {
        let points = pareto.points.iter().filter(|point| point.is_on_front == wanted);
        let spot = |point: &crate::findings::Point| Spot {
            row: point.label.clone(),
            x: point.at[0].mean,
            y: point.at[1].mean,
            text: format!("{x}: {}; {y}: {}", spread(&point.at[0]), spread(&point.at[1])),
        };
        points.map(spot).collect()
    };
    let line = |label: &str, spots| Line { label: label.to_owned(), shape: Style::Apart, spots };
    let lines = [line("On the front", spots(true)), line("Beaten by another trial", spots(false))]
        .into_iter()
        .filter(|line| !line.spots.is_empty())
        .chain(front(spots(true)))
        .collect();
    Plot {
        name,
        title: format!("Pareto front: {}", pareto.scenario),
        note: "One point for each trial, over all rounds.".to_owned(),
        head: "Trial".to_owned(),
        panels: vec![Plane { y, is_share: false, lines, rules: Vec::new() }],
        x,
        bands: Vec::new(),
        is_named: true,
    }
}
